"""Run one scenario with the official Python SDK and print the observations as one JSON object.

Runs in the virtual environment of one SDK version and imports no code of jumpseat. The plan is the first argument;
``driver.mjs`` takes the same plan and prints the same observations.
"""
# pyright: basic, reportMissingImports=false
# The SDK lives in a virtual environment of its own, where the type checker does not look.

import asyncio
import collections
import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from importlib.metadata import version

from copilot import CopilotClient, RuntimeConnection, define_tool
from copilot.rpc import AccountGetQuotaRequest, PermissionDecisionReject
from copilot.session import PermissionHandler
from pydantic import BaseModel

TIME_LIMIT_S = 90


class Recorder(logging.Handler):
    """Record the observations in the form in which they are printed."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.seen = {"sdk": version("github-copilot-sdk"), "answers": [], "events": [], "history": []}
        self.seen |= {"tool_arguments": [], "asked": [], "complaints": [], "stderr": []}
        self._arrived = collections.defaultdict(asyncio.Event)

    def emit(self, record):
        """Record a warning of the SDK: a line of the server's stderr, or a message that it could not process."""
        text = self.format(record)
        self.seen["stderr" if text.startswith("[CLI] ") else "complaints"].append(text)

    def event(self, event):
        self.seen["events"].append(event.to_dict())
        self._arrived[self.seen["events"][-1]["type"]].set()

    async def until(self, event_type):
        await self._arrived[event_type].wait()


def connection(plan):
    transport = plan["transport"]
    match transport["kind"]:
        case "stdio":
            return RuntimeConnection.for_stdio(path=plan["executable"])
        case "tcp":
            return RuntimeConnection.for_tcp(path=plan["executable"])
        case "uri":
            return RuntimeConnection.for_uri(transport["url"], connection_token=transport["token"])


def session_options(plan, recorder):
    class EncryptParams(BaseModel):
        input: str

    @define_tool(description="Encrypts a string")
    def encrypt_string(params: EncryptParams) -> str:
        recorder.seen["tool_arguments"].append(params.model_dump())
        return params.input.upper()

    options = {
        "model": plan["model"],
        "streaming": plan["streaming"],
        "working_directory": plan["working_directory"],
        "tools": [encrypt_string],
        "on_permission_request": PermissionHandler.approve_all,
        "on_event": recorder.event,
        "client_name": "contract-host",
        "custom_agents": [{"name": "planner", "display_name": "Planner", "prompt": "You plan."}],
    }
    if plan["rejection"] is not None:
        options["on_permission_request"] = lambda *_: PermissionDecisionReject(**plan["rejection"])
    if plan["provider"] is not None:
        options["provider"] = plan["provider"]
    if plan["callbacks"] is not None:
        options |= callbacks(plan["callbacks"], recorder)
    return options


def callbacks(answers, recorder):
    """Return handlers of every kind, which record their inputs and answer as planned; "throw" raises."""

    def handler(name, answer):
        def handle(given, *_):
            recorder.seen["asked"].append([name, json.loads(json.dumps(given, default=str))])
            if answer == "throw":
                raise RuntimeError("the handler is broken")
            return answer

        return handle

    def option(name):
        return "on_" + re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)

    sections = {"tone": {"action": handler("transform", answers["tone"])}}
    return {
        "hooks": {option(name): handler(name, answer) for name, answer in answers["hooks"].items()},
        "on_user_input_request": handler("question", answers["question"]),
        "on_elicitation_request": handler("form", answers["form"]),
        "system_message": {"mode": "customize", "sections": sections},
    }


async def open_session(client, plan, recorder):
    options = session_options(plan, recorder)
    if plan["session_id"] is None:
        session = await client.create_session(**options)
    else:
        session = await client.resume_session(plan["session_id"], **options)
    recorder.seen["session_id"] = session.session_id
    return session


async def ask(session, prompt, recorder, **options):
    message = await session.send_and_wait(prompt, **options)
    recorder.seen["answers"].append(message.data.content if message else None)


async def converse(client, plan, recorder):
    """Create or resume a session and send the prompts one after the other; show a form if one is planned."""
    session = await open_session(client, plan, recorder)
    for prompt in plan["prompts"]:
        await ask(session, prompt, recorder)
    if plan["callbacks"] is not None:
        recorder.seen["report"] = {"confirmed": await session.ui.confirm("Sure?")}
    recorder.seen["history"] = [event.to_dict() for event in await session.get_events()]
    if plan["callbacks"] is not None:
        # `CopilotClient.stop` would drop the hooks of the session before it detaches.
        await session.disconnect()


async def abort(client, plan, recorder):
    """Abort the first prompt after its first delta, then ask the second."""
    session = await open_session(client, plan, recorder)
    await session.send(plan["prompts"][0])
    await recorder.until("assistant.message_delta")
    await session.abort()
    await recorder.until("session.idle")
    await ask(session, plan["prompts"][1], recorder)
    recorder.seen["history"] = [event.to_dict() for event in await session.get_events()]


async def choose(client, plan, recorder):
    """Send the first prompt with attachments and a header, then the second to another model."""
    session = await open_session(client, plan, recorder)
    await ask(
        session,
        plan["prompts"][0],
        recorder,
        attachments=plan["attachments"],
        request_headers={"x-message": "first"},
    )
    await session.set_model("second-model", reasoning_effort="high")
    await ask(session, plan["prompts"][1], recorder)
    agents = (await session.rpc.agent.list()).agents
    recorder.seen["report"] = {
        "model": (await session.rpc.model.get_current()).model_id,
        "agents": [[agent.name, agent.display_name] for agent in agents],
    }
    recorder.seen["history"] = [event.to_dict() for event in await session.get_events()]


async def inspect(client, plan, recorder):
    """Request the server's status and sessions, before and after one prompt and after deleting the session."""

    async def session_ids():
        return [session.session_id for session in await client.list_sessions()]

    async def knows_session(session_id):
        return await client.get_session_metadata(session_id) is not None

    report = recorder.seen["report"] = {
        "pong": (await client.ping("hello")).message,
        "status": (await client.get_status()).to_dict(),
        "authenticated": (await client.get_auth_status()).isAuthenticated,
        "models": [model.id for model in await client.list_models()],
        "sessions_at_first": await session_ids(),
    }
    await converse(client, plan, recorder)
    session_id = recorder.seen["session_id"]
    report |= {
        "sessions": await session_ids(),
        "last_session": await client.get_last_session_id(),
        "known": await knows_session(session_id),
    }
    await client.delete_session(session_id)
    report |= {"sessions_at_last": await session_ids(), "known_at_last": await knows_session(session_id)}


async def identify(client, plan, recorder):
    """Open a session per login, request its login status and send the prompt."""

    async def who(login):
        asked = []

        def give(args):
            asked.append({"host": args["host"], "session": args["session_id"], "reason": args["reason"].value})
            return login["gives"]

        seen: dict = {"asked": asked}
        recorder.seen["report"]["logins"].append(seen)
        options = session_options({**plan, "model": login["model"]}, recorder)
        if "gives" in login:
            options["github_token_provider"] = give
        elif "token" in login:
            options["github_token"] = login["token"]
        try:
            session = await client.create_session(**options)
        except Exception as error:
            seen["error"] = str(error)
            return
        recorder.seen["session_id"] = session.session_id
        status = await session.rpc.git_hub_auth.get_status()
        seen |= {"session": session.session_id, "login": status.login, "plan": status.copilot_plan}
        seen["kind"] = status.auth_type.value if status.auth_type else None
        await ask(session, plan["prompts"][0], recorder)
        seen["answer"] = recorder.seen["answers"][-1]
        await session.disconnect()

    recorder.seen["report"] = {"logins": []}
    for login in plan["logins"]:
        await who(login)
    quota = await client.rpc.account.get_quota(AccountGetQuotaRequest(git_hub_token=plan["logins"][0]["token"]))
    recorder.seen["report"]["quota"] = quota.to_dict()["quotaSnapshots"]


def memory_files(files):
    """Return the files of one session, in a dictionary of the application."""
    # Older versions do not have it.
    from copilot.session_fs_provider import SessionFsFileInfo, SessionFsProvider

    class MemoryFiles(SessionFsProvider):
        def __init__(self, files):
            self.files = files

        async def read_file(self, path):
            if path not in self.files:
                raise FileNotFoundError(path)
            return self.files[path]

        async def write_file(self, path, content, mode=None):
            self.files[path] = content

        async def append_file(self, path, content, mode=None):
            self.files[path] = self.files.get(path, "") + content

        async def exists(self, path):
            return path in self.files

        async def stat(self, path):
            content = await self.read_file(path)
            now = datetime.now(UTC)
            return SessionFsFileInfo(True, False, len(content.encode()), now, now)

        async def mkdir(self, path, recursive, mode=None):
            pass

        async def readdir(self, path):
            return [name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")]

        async def readdir_with_types(self, path):
            return []

        async def rm(self, path, recursive, force):
            del self.files[path]

        async def rename(self, src, dest):
            self.files[dest] = self.files.pop(src)

    return MemoryFiles(files)


async def share(_client, plan, recorder):
    """Let each user have a connection, a session in files of the user, and another connection that resumes it."""

    async def talk(login, stores, session_id, *, resume):
        client = CopilotClient(
            mode="empty",
            connection=connection(plan),
            session_fs={
                "initial_working_directory": "/workspace",
                "session_state_path": "/session-state",
                "conventions": "posix",
            },
        )
        await client.start()
        try:
            options = {name: session_options(plan, recorder)[name] for name in ("tools", "on_permission_request")}
            options |= {"model": login["model"], "github_token": login["token"]}
            options |= {"available_tools": ["custom:encrypt_string"]}
            options["create_session_fs_handler"] = lambda session: memory_files(
                stores.setdefault(session.session_id, {})
            )
            if resume:
                session = await client.resume_session(session_id, **options)
            else:
                session = await client.create_session(session_id=session_id, **options)
            recorder.seen["session_id"] = session.session_id
            message = await session.send_and_wait(plan["prompts"][0])
            await session.disconnect()
            return message.data.content
        finally:
            await client.stop()

    users = [(login, {}, f"user-{number}") for number, login in enumerate(plan["logins"])]
    answers = await asyncio.gather(*(talk(*user, resume=False) for user in users))
    again = await asyncio.gather(*(talk(*user, resume=True) for user in users))
    try:
        (login, stores, _), (*_, foreign) = users
        stolen = await talk(login, stores, foreign, resume=True)
    except Exception as error:
        stolen = {"error": str(error)}
    recorder.seen["report"] = {
        "answers": [answers, again],
        "files": [{name: sorted(files) for name, files in stores.items()} for _, stores, _ in users],
        "stolen": stolen,
    }


SCENARIOS = {
    "converse": converse,
    "abort": abort,
    "choose": choose,
    "inspect": inspect,
    "identify": identify,
    "share": share,
}


async def run():
    plan = json.loads(sys.argv[1])
    recorder = Recorder()
    logging.getLogger().addHandler(recorder)
    client = CopilotClient(
        connection=connection(plan),
        working_directory=plan["working_directory"],
        base_directory=plan["home"],
        log_level="error",
    )
    try:
        async with asyncio.timeout(TIME_LIMIT_S):
            await client.start()
            await SCENARIOS[plan["scenario"]](client, plan, recorder)
            await client.stop()
    except BaseException:
        recorder.seen["failure"] = traceback.format_exc()
        await client.force_stop()
    print(json.dumps(recorder.seen))


def main():
    asyncio.run(run())


if __name__ == "__main__":
    main()
