"""One session, recorded over the raw wire, with every event that a client may have to decode."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio

from tests.support.callbacks import answering
from tests.support.fake_copilot import ALICE, FakeCopilot, fake_copilot
from tests.support.guarded_mcp_server import guarded
from tests.support.mcp_servers import rude, status, stdio
from tests.support.model_server import ModelServer
from tests.support.server import JsonObject, RunningServer, Wire, calls, frame, running_server
from tests.support.task_server import TaskServer

Protocol = Literal[2, 3]

IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FORM: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOL_RESULT: JsonObject = {
    "textResultForLlm": "looked up",
    "resultType": "success",
    "sessionLog": "looked it up",
    "toolTelemetry": {"tries": 1},
    "binaryResultsForLlm": [{"data": IMAGE, "mimeType": "image/png", "type": "image", "description": "a red dot"}],
}


PROMPTS: list[tuple[str, list[JsonObject]]] = [
    (
        "use every tool",
        [
            calls("exit_plan_mode", "call-plan", summary="In short"),
            {
                "reasoning": "Let me think about this.",
                "text": "I start.",
                **calls("bash", "call-bash", command="for x in 1 2; do echo $x; done > out.txt && wc -l < out.txt"),
            },
            calls("create", "call-create", path="made.txt", file_text="old\n"),
            calls("edit", "call-edit", path="made.txt", old_str="old", new_str="new"),
            calls("view", "call-view", path="read.txt"),
            calls("view", "call-view-again", path="read.txt"),
            calls("grep", "call-grep", pattern="line"),
            calls("glob", "call-glob", pattern="*.txt"),
            calls("create", "call-refused", path="secret.txt", file_text="x"),
            {"tool_calls": [{"id": "call-broken", "name": "view", "arguments": '{"path": '}]},
            calls("look_up", "call-error", key="error"),
            calls("ask_user", "call-ask", question="Which one?", choices=["this", "that"]),
            calls("sql", "call-sql", query="INSERT INTO todos (id, title) VALUES ('a', 'First')"),
            calls("skill", "call-skill", skill="tea"),
            calls("tool_search_tool", "call-search", query="echo"),
            # A prompt arrives while this one runs; from then on the model answers that one.
            calls("look_up", "call-look-up", key="steer"),
        ],
    ),
    ("also this", [{"text": "All done."}]),
    ("^Please create a detailed summary", [{"text": "<overview>Much was done.</overview>"}]),
    (
        "use the servers",
        [
            calls("testing-work", "call-work"),
            calls("testing-learn", "call-learn"),
            calls("testing-ask", "call-form"),
            calls("testing-think", "call-think"),
            calls("far-go", "call-far"),
            calls("slow-dig", "call-dig"),
            {"text": "All served."},
        ],
    ),
    (
        "look up much",
        [*(calls("look_up", f"call-much-{n}", key=f"much {n}") for n in range(7)), {"text": "That was much."}],
    ),
    ("start over", [calls("look_up", "call-clear", key="clear")]),
    ("a new beginning", [{"text": "What was before?"}]),
    # The question beside the conversation takes another turn of the prompt before it.
    ("What is 2", [{"text": "four"}, {"text": "four"}]),
    ("has finished|has failed", [{"text": "Noted."}, {"text": "four"}]),
    ("look around", [{"text": "I looked."}]),
    ("fail", [{"errors": [{"status": 400, "message": "a bad request", "code": "bad"}], "text": "-"}]),
    ("work alone", [{"text": "A part."}, calls("task_complete", "call-complete", summary="All of it.")]),
    ("wait", [{"text": "It was a dark and stormy", "hang": True}]),
    ("later", [{"text": "Later it is."}]),
]
OPTIONS: JsonObject = {
    "provider": {
        "type": "scripted",
        "script": {"prompts": [{"when": when, "turns": turns} for when, turns in PROMPTS]},
    },
    "streaming": True,
    "requestPermission": True,
    "requestUserInput": True,
    "requestExitPlanMode": True,
    "requestElicitation": True,
    "hooks": True,
    "tools": [{"name": "look_up"}],
    "customAgents": [{"name": "planner", "prompt": "You plan.", "tools": ["view"]}, {"name": "all", "prompt": "x"}],
    # So few that the model has to search for some tools.
    "toolSearch": {"deferThreshold": 5},
    "commands": [{"name": "deploy", "description": "Deploy the app"}],
}

STATUSES = (("testing", "connected"), ("far", "connected"), ("slow", "connected"), ("dying", "failed"))
DUG: JsonObject = {
    "status": "completed",
    "result": {"content": [{"type": "text", "text": "found water"}], "resultType": "complete"},
}


@dataclass(frozen=True)
class Recording:
    """The events that a client received live, and those in the history."""

    live: list[JsonObject]
    stored: list[JsonObject]


async def record_session(folder: Path, protocol: Protocol) -> Recording:
    """Run the session. With protocol 2 its client begins with ``ping``, as SDKs before 1.0 do."""
    workspace = folder / "workspace"
    _make_repository(workspace)
    async with (
        ModelServer(answer=guarded) as far,
        ModelServer(answer=TaskServer([DUG])) as slow,
        fake_copilot() as copilot,
        # Long for one server; each wait has its own limit.
        running_server(folder, tcp=True, config=_own_server(), env=copilot.environ, limit_s=120) as server,
        _connection(server, protocol) as wire,
    ):
        options: JsonObject = {
            "model": "scripted-model",
            "workingDirectory": str(workspace),
            "skillDirectories": [str(_make_skill(folder / "skills"))],
            "mcpServers": {
                "testing": stdio(),
                "far": {"url": f"{far.url}/mcp", "headersRefreshTtlMs": 3_600_000},
                "slow": {"url": f"{slow.url}/mcp"},
            },
        }
        opened = await wire.call("session.create", OPTIONS | options)
        session: str = opened["sessionId"]
        client = _Client(wire, session, protocol)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.answer)
            for request in ("mcp.oauth_required", "mcp.headers_refresh_required", "sampling.requested"):
                await wire.call("session.eventLog.registerInterest", {"sessionId": session, "eventType": request})
            for name, wanted in STATUSES:
                await status(wire, session, name, wanted)
            prompt = {"prompt": "use every tool", "agentMode": "plan"}
            prompt |= {"attachments": _attachments(workspace, protocol)}
            await wire.call("session.send", {"sessionId": session, **prompt})
            await client.idle(1)
            await _use_servers(wire, session)
            await client.idle(2)
            await wire.call("session.send", {"sessionId": session, "prompt": "fail"})
            await client.idle(3)
            for number, task in enumerate(("look around", "fail"), start=4):
                agent = {"agentType": "explore", "name": "scout", "description": "a task", "prompt": task}
                await wire.call("session.tasks.startAgent", {"sessionId": session, **agent})
                await client.idle(number)
            await _change_settings(server, wire, session, workspace)
            await _run_commands(wire, session)
            await client.idle(6)
            await _schedule_prompts(wire, session)
            await _work_alone(wire, session)
            await client.idle(7)
            await _use_canvases(server, wire, session)
            await wire.call("session.send", {"sessionId": session, "prompt": "look up much"})
            await client.idle(8)
            await wire.call("session.send", {"sessionId": session, "prompt": "start over"})
            await client.idle(9)
            await _abort(wire, session)
            await client.idle(10)
            await wire.call("session.resume", OPTIONS | {"sessionId": session})
            await wire.call("session.history.compact", {"sessionId": session, "customInstructions": "Be brief."})
            await _take_back(wire, session)
            await wire.call("session.shutdown", {"sessionId": session, "type": "error", "reason": "the power"})
            await _reach_a_limit(wire, session, copilot)
            await client.idle(11)
            await wire.call("session.resume", OPTIONS | {"sessionId": session})
            tasks.cancel_scope.cancel()
        history: JsonObject = await wire.call("session.getMessages", {"sessionId": session})
        assert client.problems == []
        return Recording(wire.events(session), history["events"])


def _make_repository(folder: Path) -> None:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.com/one/two.git\n')
    (folder / "read.txt").write_text("a line\n")


def _make_skill(folder: Path) -> Path:
    (folder / "tea").mkdir(parents=True)
    front = "name: tea\ndescription: How to make tea\nallowed-tools: view, bash\nargument-hint: '[kind]'"
    (folder / "tea" / "SKILL.md").write_text(f"---\n{front}\n---\nWarm the pot.\n")
    return folder


def _own_server() -> str:
    """Write a user configuration with an MCP server that fails."""
    server = rude("dying")
    return f"[mcp.servers.dying]\ncommand = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n"


def _attachments(workspace: Path, protocol: Protocol) -> list[JsonObject]:
    """Return attachments of every kind that SDKs with this protocol can send."""
    path = str(workspace / "read.txt")
    both = [
        {"type": "file", "path": path, "displayName": "read.txt"},
        {"type": "directory", "path": str(workspace), "displayName": "workspace"},
    ]
    if protocol == 2:
        return both
    start, end = {"line": 0, "character": 0}, {"line": 0, "character": 6}
    where = {"filePath": path, "text": "a line", "selection": {"start": start, "end": end}}
    return [
        *both,
        {"type": "selection", "displayName": "read.txt", **where},
        {"type": "blob", "data": IMAGE, "mimeType": "image/png", "displayName": "dot.png"},
    ]


@contextlib.asynccontextmanager
async def _connection(server: RunningServer, protocol: Protocol) -> AsyncGenerator[Wire]:
    async with server.connect(handshake=protocol == 3) as wire:
        if protocol == 2:
            await wire.call("ping", {})
        yield wire


@dataclass
class _Client:
    """A client that answers the server's events and requests, and steers while its tool runs."""

    wire: Wire
    session: str
    protocol: Protocol
    problems: list[str] = field(default_factory=list[str])

    async def idle(self, count: int) -> None:
        """Wait until the session has been idle ``count`` times; the time limit is that of each message."""
        position = 0
        while count:
            message = await self.wire.until(lambda _: True, since=position, what="session.idle")
            position += 1
            if message.get("method") == "session.event":
                count -= message["params"]["event"]["type"] == "session.idle"

    async def answer(self) -> None:
        """Answer every message; runs as a task beside the session."""
        position = 0
        while True:
            message = await self.wire.until(lambda _: True, since=position, what="message")
            position += 1
            if message.get("method") == "session.event":
                await self._answer_event(message["params"]["event"])
            elif "method" in message and "id" in message:
                result = await self._result(message["method"], message["params"])
                await self.wire.send(frame({"jsonrpc": "2.0", "id": message["id"], **result}))

    async def _answer_event(self, event: JsonObject) -> None:
        data = event["data"]
        ids = {"sessionId": self.session, "requestId": data.get("requestId")}
        match event["type"]:
            case "permission.requested":
                answer = {"result": self._decision(data["permissionRequest"])}
                await self.wire.ask("session.permissions.handlePendingPermissionRequest", ids | answer)
            case "external_tool.requested":
                answer = await self._tool(data["arguments"])
                await self.wire.ask("session.tools.handlePendingToolCall", ids | answer)
            case "command.execute":
                await self.wire.ask("session.commands.handlePendingCommand", ids)
            case "command.queued":
                answer = {"result": {"handled": True}}
                await self.wire.ask("session.commands.respondToQueuedCommand", ids | answer)
            case "elicitation.requested":
                fields = data["requestedSchema"]["properties"]
                answer = {"result": {"action": "accept", "content": dict.fromkeys(fields, "Ada")}}
                await self.wire.ask("session.ui.handlePendingElicitation", ids | answer)
            case "mcp.oauth_required":
                # The first token is not sufficient for calls.
                token = "one" if data["reason"] == "initial" else "two"
                answer = {"result": {"kind": "token", "accessToken": token}}
                await self.wire.ask("session.mcp.oauth.handlePendingRequest", ids | answer)
            case "mcp.headers_refresh_required":
                answer = {"result": {"kind": "headers", "headers": {"X-Trace": "1"}}}
                await self.wire.ask("session.mcp.headers.handlePendingHeadersRefreshRequest", ids | answer)
            case "sampling.requested":
                question = {name: data[name] for name in ("serverName", "mcpRequestId", "request")}
                ran = await self.wire.call("session.mcp.executeSampling", ids | question)
                await self.wire.ask("session.ui.handlePendingSampling", ids | {"response": ran["result"]})
            case _:
                pass

    async def _result(self, method: str, params: JsonObject) -> JsonObject:
        match method:
            case "permission.request":
                return {"result": {"result": self._decision(params["permissionRequest"])}}
            case "tool.call":
                answer = await self._tool(params["arguments"])
                if "error" in answer:
                    return {"error": {"code": -32603, "message": answer["error"]}}
                return {"result": answer}
            case "userInput.request":
                return {"result": {"answer": "this", "wasFreeform": False}}
            case "exitPlanMode.request":
                return {"result": {"approved": True, "selectedAction": "interactive", "feedback": "Go on."}}
            case "autoModeSwitch.request":
                return {"result": {"response": "yes"}}
            case "hooks.invoke":
                return _hook(params["hookType"], params["input"])
            case _:
                self.problems.append(f"unexpected request {method}")
                return {"error": {"code": -32601, "message": "unexpected"}}

    def _decision(self, request: JsonObject) -> JsonObject:
        if request.get("fileName", "").endswith("secret.txt"):
            if self.protocol == 2:
                return {"kind": "denied-interactively-by-user", "feedback": "not there"}
            return {"kind": "reject", "feedback": "not there"}
        if request["kind"] == "read":
            return {"kind": "approve-for-session", "approval": {"kind": "read"}}
        return {"kind": "approved" if self.protocol == 2 else "approve-once"}

    async def _tool(self, arguments: JsonObject) -> JsonObject:
        if arguments["key"] == "error":
            return {"error": "no such key"}
        if arguments["key"].startswith("much"):
            # The context fills up, so that results are cleared.
            return {"result": {"textResultForLlm": "much of it " * 2000, "resultType": "success"}}
        if arguments["key"] == "clear":
            cleared = {"sessionId": self.session, "prompt": "a new beginning"}
            await self.wire.ask("session.history.clearContext", cleared)
            return {"result": TOOL_RESULT}
        for prompt in ({"prompt": "also this", "mode": "immediate"}, {"prompt": "later, please"}):
            await self.wire.ask("session.send", {"sessionId": self.session, **prompt})
        return {"result": TOOL_RESULT}


def _hook(kind: str, given: JsonObject) -> JsonObject:
    """Return the result of a hook: one asks, one changes arguments, one fails, some add context."""
    match kind, given.get("toolName"):
        case "preToolUse", "glob":
            return {"result": {"output": {"permissionDecision": "ask", "permissionDecisionReason": "house rule"}}}
        case "preToolUse", "view":
            return {"result": {"output": {"modifiedArgs": {"path": "read.txt", "view_range": [1, 1]}}}}
        case "postToolUse", "edit":
            return {"error": {"code": -32603, "message": "the hook is broken"}}
        case (("sessionStart" | "postToolUse"), _):
            return {"result": {"output": {"additionalContext": "be brief"}}}
        case _:
            return {"result": {"output": None}}


async def _use_canvases(server: RunningServer, wire: Wire, session: str) -> None:
    """Open canvases of another client, close one, and let the other client leave."""
    actions = [{"name": "add", "description": "Add a line", "inputSchema": FORM}]
    text = {"displayName": "Board", "description": "A board."}
    board: JsonObject = {"id": "board", **text, "inputSchema": {"type": "object"}, "actions": actions}
    shown = {"url": "https://example.com", "title": "The board", "status": "ready"}
    provider = {"id": "app:board", "name": "App"}
    async with (
        server.connect() as other,
        answering(other, {"canvas.open": [shown, shown], "canvas.close": [None]}),
    ):
        declared = {"canvases": [board], "canvasProvider": provider, "requestCanvasRenderer": True}
        await other.call("session.resume", {"sessionId": session, **declared})
        for name in ("one", "two"):
            place = {"canvasId": "board", "instanceId": name, "input": {"line": 1}}
            await wire.call("session.canvas.open", {"sessionId": session, **place})
        await wire.call("session.canvas.close", {"sessionId": session, "instanceId": "one"})
    await wire.event("session.canvas.unavailable", session=session)


async def _use_servers(wire: Wire, session: str) -> None:
    """Let the model call tools of MCP servers, and stop and start a server."""
    await wire.prompt(session, "use the servers")
    # Sent after the new list was read.
    await wire.event("mcp.tools.list_changed", session=session)
    params = {"sessionId": session, "serverName": "testing"}
    for stop, start in (("stopServer", "startServer"), ("disable", "enable")):
        since = len(wire.messages)
        await wire.call(f"session.mcp.{stop}", params)
        await status(wire, session, "testing", "disabled", since=since)
        await wire.call(f"session.mcp.{start}", params)
        await status(wire, session, "testing", "connected", since=since)


async def _change_settings(server: RunningServer, wire: Wire, session: str, workspace: Path) -> None:
    """Change everything that can be changed while the session is idle."""
    here = {"sessionId": session}
    for mode in ("plan", "interactive"):
        await wire.call("session.mode.set", here | {"mode": mode})
    await wire.call("session.model.switchTo", here | {"modelId": "other-model", "reasoningEffort": "low"})
    await wire.call("session.model.switchTo", here | {"modelId": "scripted-model"})
    await wire.call("session.name.set", here | {"name": "A session"})
    for agent in ("planner", "all"):
        await wire.call("session.agent.select", here | {"name": agent})
    await wire.call("session.agent.deselect", here)
    await wire.call("session.plan.update", here | {"content": "- one"})
    await wire.call("session.plan.update", here | {"content": "- two"})
    await wire.call("session.plan.delete", here)
    await wire.call("session.workspaces.createFile", here | {"path": "notes.md", "content": "one"})
    await wire.call("session.workspaces.createFile", here | {"path": "notes.md", "content": "two"})
    for mode in ("allow-all", "manual"):
        await wire.call("session.permissions.setMode", here | {"mode": mode})
    for level in ("info", "warning", "error"):
        await wire.call("session.log", here | {"message": f"a line of {level}", "level": level, "url": "http://x"})
    context = {"cwd": str(workspace), "gitRoot": str(workspace), "branch": "main", "repository": "one/two"}
    context |= {"repositoryHost": "example.com", "hostType": "github", "headCommit": "c0ffee", "baseCommit": "beef"}
    await wire.call("session.metadata.recordContextChange", here | {"context": context})
    await wire.call("session.remote.notifySteerableChanged", here | {"remoteSteerable": True})
    await wire.call("session.ui.elicitation", here | {"message": "Who are you?", "requestedSchema": FORM})
    # A second client joins; then the first one cannot show forms for a while.
    async with server.connect() as other:
        silent = here | {"provider": OPTIONS["provider"], "disableResume": True}
        policy = {"managedSettings": {"permissions": {"disableAssistedPermissionsMode": True}}}
        await other.call("session.resume", silent | policy)
        await wire.error_of("session.permissions.setMode", here | {"mode": "assisted"})
        await wire.call("session.resume", silent)
        await wire.event("capabilities.changed", session=session)
        await wire.call("session.resume", silent | OPTIONS)


async def _run_commands(wire: Wire, session: str) -> None:
    """Run a command of the client at once, and one from the queue."""
    here = {"sessionId": session}
    await wire.call("session.commands.execute", here | {"commandName": "deploy", "args": "now"})
    interest = await wire.call("session.eventLog.registerInterest", here | {"eventType": "command.queued"})
    await wire.call("session.commands.enqueue", here | {"command": "/rollback"})
    await wire.event("command.completed", session=session)
    await wire.call("session.eventLog.releaseInterest", here | interest)


async def _schedule_prompts(wire: Wire, session: str) -> None:
    """Schedule prompts, run a command of the user and ask beside the conversation."""
    here = {"sessionId": session}
    hourly = (await wire.call("session.schedule.add", here | {"interval": "1h", "prompt": "What is 2?"}))["entry"]
    await wire.call("session.schedule.stop", here | {"id": hourly["id"]})
    # Runs in the distant future.
    paced = (await wire.call("session.schedule.addSelfPaced", here | {"prompt": "What is 2?"}))["entry"]
    await wire.call("session.schedule.rearmSelfPaced", here | {"id": paced["id"], "at": 4_000_000_000_000})
    await wire.call("session.shell.executeUserRequested", here | {"requestId": "own", "command": "echo hello"})
    await wire.call("session.ui.ephemeralQuery", here | {"question": "What is 2?"})


async def _work_alone(wire: Wire, session: str) -> None:
    """Give the autopilot an objective, which the model reaches after it was told to go on."""
    here = {"sessionId": session}
    result = await wire.call("session.commands.invoke", here | {"name": "autopilot", "input": "work alone"})
    await wire.call("session.send", here | {"prompt": result["prompt"]})


async def _abort(wire: Wire, session: str) -> None:
    """Abort a turn in the middle of its answer."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "wait"})
    await wire.event("assistant.message_delta", session=session, since=since)
    await wire.call("session.abort", {"sessionId": session})
    await wire.event("abort", session=session, since=since)


async def _reach_a_limit(wire: Wire, session: str, copilot: FakeCopilot) -> None:
    """Call a rate-limited model whose provider can choose another one."""
    copilot.models.append({"id": "auto"})
    copilot.limited["by-chat"] = "user_weekly_rate_limited"
    # The provider of the session is not stored, so this is its only one.
    options = {"gitHubToken": ALICE, "model": "by-chat", "requestAutoModeSwitch": True}
    await wire.call("session.resume", {"sessionId": session, **options})
    await wire.call("session.send", {"sessionId": session, "prompt": "anything"})


async def _take_back(wire: Wire, session: str) -> None:
    """Remove the last prompt and all later events."""
    events = (await wire.call("session.getMessages", {"sessionId": session}))["events"]
    prompts = [event["id"] for event in events if event["type"] == "user.message"]
    await wire.call("session.history.truncate", {"sessionId": session, "eventId": prompts[-1]})
    await wire.call("jumpseat.changes.undo", {"sessionId": session})
