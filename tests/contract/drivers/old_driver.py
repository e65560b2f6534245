"""Run one scenario with a Python SDK from before 1.0 and print the observations as one JSON object.

Like ``driver.py``, and with the same observations, for both early interfaces of the SDK: until 0.1 it takes
dictionaries and its handlers return them, later it takes keywords and returns objects. Without an ``executable`` in
the plan the SDK looks for ``copilot`` itself. ``old_driver.mjs`` takes the same plan.
"""
# pyright: basic, reportMissingImports=false
# The SDK lives in a virtual environment of its own, where the type checker does not look.

import asyncio
import collections
import contextlib
import io
import json
import logging
import subprocess
import sys
import traceback
from importlib.metadata import version

import copilot
from copilot import CopilotClient, define_tool
from pydantic import BaseModel

TIME_LIMIT_S = 90

VERSION = version("github-copilot-sdk")
TAKES_DICTIONARIES = VERSION.startswith("0.1.")


class Recorder(logging.Handler):
    """Record the observations in the form in which they are printed."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.seen = {"sdk": VERSION, "answers": [], "events": [], "history": []}
        self.seen |= {"tool_arguments": [], "complaints": [], "stderr": []}
        self._arrived = collections.defaultdict(asyncio.Event)

    def emit(self, record):
        """Record a log entry: the event loop logs events that the SDK could not decode."""
        self.seen["complaints"].append(self.format(record))

    def event(self, event):
        self.seen["events"].append(event.to_dict())
        self._arrived[self.seen["events"][-1]["type"]].set()

    async def until(self, event_type):
        await self._arrived[event_type].wait()


def new_client(plan):
    path = {"cli_path": plan["executable"]} if plan["executable"] else {}
    options = {**path, "cwd": plan["working_directory"], "log_level": "error"}
    options["use_stdio"] = plan["transport"]["kind"] == "stdio"
    if TAKES_DICTIONARIES:
        return CopilotClient(options)
    return CopilotClient(copilot.SubprocessConfig(**options))


def decision(plan):
    """Return the host's answer to every permission request, in the form of the SDK version."""
    allowed = plan["rejection"] is None
    if VERSION.startswith("0.3."):
        kind = "approve-once" if allowed else "reject"
    else:
        kind = "approved" if allowed else "denied-interactively-by-user"
    if TAKES_DICTIONARIES:
        return {"kind": kind}
    from copilot.session import PermissionRequestResult

    return PermissionRequestResult(kind=kind)


def session_options(client, plan, recorder):
    class EncryptParams(BaseModel):
        input: str

    @define_tool(description="Encrypts a string")
    async def encrypt_string(params: EncryptParams) -> str:
        recorder.seen["tool_arguments"].append(params.model_dump())
        if plan["scenario"] == "call_back":
            pong = await client.ping("from a tool")
            messages = await plan["session"].get_messages()
            pong_message = pong["message"] if isinstance(pong, dict) else pong.message
            recorder.seen["report"]["during_the_call"] = {
                "pong": pong_message,
                "last_event": messages[-1].to_dict()["type"],
            }
        return params.input.upper()

    def on_permission_request(request, _):
        kind = request["kind"] if isinstance(request, dict) else request.kind.value
        recorder.seen["report"].setdefault("permission_kinds", []).append(kind)
        return decision(plan)

    options = {"streaming": plan["streaming"], "tools": [encrypt_string]}
    if plan["decides"]:
        options["on_permission_request"] = on_permission_request
    for name in ("model", "provider", "excluded_tools"):
        if plan[name] is not None:
            options[name] = plan[name]
    if plan["system_message"] is not None:
        options["system_message"] = {"mode": "append", "content": plan["system_message"]}
    return options


async def open_session(client, plan, recorder):
    options = session_options(client, plan, recorder)
    keywords = {} if TAKES_DICTIONARIES else options
    dictionary = [options] if TAKES_DICTIONARIES else []
    if plan["session_id"] is None:
        session = await client.create_session(*dictionary, **keywords)
    else:
        session = await client.resume_session(plan["session_id"], *dictionary, **keywords)
    session.on(recorder.event)
    recorder.seen["session_id"] = session.session_id
    plan["session"] = session
    return session


def message(plan, prompt):
    """Return the arguments and keywords for sending a prompt."""
    attachments = {"attachments": plan["attachments"]} if plan["attachments"] else {}
    return ([{"prompt": prompt, **attachments}], {}) if TAKES_DICTIONARIES else ([prompt], attachments)


async def ask(session, plan, prompt, recorder):
    arguments, keywords = message(plan, prompt)
    answer = await session.send_and_wait(*arguments, **keywords)
    recorder.seen["answers"].append(answer.data.content if answer else None)


async def converse(client, plan, recorder):
    """Create or resume a session and send the prompts one after the other."""
    session = await open_session(client, plan, recorder)
    for prompt in plan["prompts"]:
        await ask(session, plan, prompt, recorder)
    recorder.seen["history"] = [event.to_dict() for event in await session.get_messages()]


async def abort(client, plan, recorder):
    """Abort the first prompt after its first delta, then ask the second."""
    session = await open_session(client, plan, recorder)
    arguments, keywords = message(plan, plan["prompts"][0])
    await session.send(*arguments, **keywords)
    await recorder.until("assistant.message_delta")
    await session.abort()
    await recorder.until("session.idle")
    await ask(session, plan, plan["prompts"][1], recorder)
    recorder.seen["history"] = [event.to_dict() for event in await session.get_messages()]


async def inspect(client, plan, recorder):
    """Request the server's status, models and sessions, and send a prompt."""

    def member(value, name):
        return value[name] if isinstance(value, dict) else getattr(value, name)

    report = recorder.seen["report"]
    report["pong"] = member(await client.ping("hello"), "message")
    report["protocol"] = member(await client.get_status(), "protocolVersion")
    report["authenticated"] = member(await client.get_auth_status(), "isAuthenticated")
    report["models"] = [member(model, "id") for model in await client.list_models()]
    await converse(client, plan, recorder)
    report["sessions"] = [member(session, "sessionId") for session in await client.list_sessions()]


class Server(subprocess.Popen):
    """The server, of which these SDKs lose sight over TCP, so that they do not end it."""

    started = None

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        Server.started = self


subprocess.Popen = Server


async def stop(client, recorder):
    server, connection = Server.started, client._client
    assert server is not None
    assert server.stderr is not None
    # The SDK waits up to a second for each of its readers before it ends the server that they read from.
    connection._read_thread = None
    reader = getattr(connection, "_stderr_thread", None)
    if reader is not None:
        connection._stderr_thread = None
    # The errors of 0.1, which later SDKs raise.
    recorder.seen["complaints"] += map(str, await client.stop() or [])
    if reader is not None:
        reader.join(timeout=TIME_LIMIT_S)
        stderr = connection.get_stderr_output()
    else:
        server.terminate()
        stderr = server.stderr.read().decode()
        server.wait(timeout=TIME_LIMIT_S)
    recorder.seen["stderr"] += stderr.splitlines()


async def run():
    plan = json.loads(sys.argv[1])
    recorder = Recorder()
    recorder.seen["report"] = {}
    logging.getLogger().addHandler(recorder)
    client = new_client(plan)
    scenarios = {"converse": converse, "abort": abort, "inspect": inspect, "call_back": converse}
    try:
        async with asyncio.timeout(TIME_LIMIT_S):
            await client.start()
            await scenarios[plan["scenario"]](client, plan, recorder)
            await stop(client, recorder)
    except BaseException:
        recorder.seen["failure"] = traceback.format_exc()
        await client.force_stop()
    return recorder.seen


def main():
    # These SDKs print their errors.
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        observations = asyncio.run(run())
    observations["complaints"] += printed.getvalue().splitlines()
    print(json.dumps(observations))


if __name__ == "__main__":
    main()
