"""``jumpseat mcp-server``: sessions as tools of other agents, driven by the client of the ``mcp`` package."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import mcp.types as types
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.support.editor import CONFIG
from tests.support.limits import WAIT_S
from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

EXTENSION: Final = "io.modelcontextprotocol/tasks"
JUMPSEAT: Final = str(Path(sys.executable).with_name("jumpseat"))
MAKING: Final[list[JsonObject]] = [
    {"when": "make", "turns": [calls("create", path="made.txt", file_text="x\n"), {"text": "Made it."}]},
    {"when": "hi", "turns": [{"text": "Hello."}]},
    {"when": "wait", "turns": [calls("bash", command="sleep 600"), {"text": "Slept."}]},
]


def environ_of(folder: Path, prompts: Sequence[JsonObject] = MAKING) -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(CONFIG)
    (home / "script.json").write_text(json.dumps({"prompts": list(prompts), "after_last": "repeat"}))
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "COPILOT_HOME": str(home)}


class Caller:
    """The calling agent, whose user answers forms as ``answer`` says; without one, it shows no forms."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.questions: list[types.ElicitRequestFormParams] = []
        self.progress: list[str | None] = []

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.questions.append(params)
        if self.answer == "allow":
            return types.ElicitResult(action="accept", content={"decision": "allow"})
        if self.answer == "reject":
            return types.ElicitResult(action="accept", content={"decision": "reject"})
        return types.ElicitResult(action="decline")

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(message)

    @asynccontextmanager
    async def session(self, folder: Path, *, modern: bool) -> AsyncGenerator[Client]:
        parameters = StdioServerParameters(
            command=JUMPSEAT, args=["mcp-server"], env=environ_of(folder), cwd=str(folder)
        )
        callback = self.elicit if self.answer is not None else None
        # A revision that is named is adopted without asking the server for those that it supports.
        mode = "2026-07-28" if modern else "legacy"
        async with Client(parameters, elicitation_callback=callback, mode=mode) as client:
            assert client.session.protocol_version == ("2026-07-28" if modern else "2025-11-25")
            yield client

    async def call(self, session: Client, tool: str, **arguments: Any) -> types.CallToolResult:
        with anyio.fail_after(WAIT_S):
            return await session.call_tool(tool, arguments, progress_callback=self.note)


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
async def test_a_task_is_done_asks_by_a_form_and_goes_on(tmp_path: Path, *, modern: bool) -> None:
    caller = Caller("allow")
    async with caller.session(tmp_path, modern=modern) as session:
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert tools == {"start_session", "continue_session", "read_session", "list_sessions"}
        made = await caller.call(session, "start_session", prompt="make", folder=str(tmp_path))
        assert not made.is_error
        assert made.structured_content is not None
        assert made.structured_content["answer"] == "Made it."
        assert made.structured_content["status"] == "completed"
        assert (tmp_path / "made.txt").read_text() == "x\n"
        (question,) = caller.questions
        assert question.message.startswith(f"Change {tmp_path}/made.txt?")
        assert "x" in question.message
        assert "uses create" in caller.progress
        named = made.structured_content["session_id"]
        again = await caller.call(session, "continue_session", session_id=named, prompt="hi")
        assert again.structured_content is not None
        assert again.structured_content["answer"] == "Hello."
        read = await caller.call(session, "read_session", session_id=named)
        assert read.structured_content is not None
        messages = [(one["role"], one["text"]) for one in read.structured_content["messages"]]
        assert messages == [("user", "make"), ("assistant", "Made it."), ("user", "hi"), ("assistant", "Hello.")]
        listed = await caller.call(session, "list_sessions")
        assert listed.structured_content is not None
        assert [one["session_id"] for one in listed.structured_content["sessions"]] == [named]


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("answer", ["reject", "decline", None])
async def test_what_is_not_allowed_does_not_run(tmp_path: Path, answer: str | None, *, modern: bool) -> None:
    caller = Caller(answer)
    async with caller.session(tmp_path, modern=modern) as session:
        result = await caller.call(session, "start_session", prompt="make", folder=str(tmp_path))
        assert result.structured_content is not None
        assert result.structured_content["answer"] == "Made it."
        assert not (tmp_path / "made.txt").exists()
        assert len(caller.questions) == (answer is not None)


async def test_a_cancelled_call_stops_the_turn_and_the_session_can_go_on(tmp_path: Path) -> None:
    caller = Caller("allow")
    async with caller.session(tmp_path, modern=False) as session:
        begun = anyio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await session.call_tool(
                    "start_session", {"prompt": "wait", "folder": str(tmp_path)}, progress_callback=note
                )

            tasks.start_soon(call)
            with anyio.fail_after(WAIT_S):
                await begun.wait()
            tasks.cancel_scope.cancel()
        listed = await caller.call(session, "list_sessions")
        assert listed.structured_content is not None
        named = listed.structured_content["sessions"][0]["session_id"]
        with anyio.fail_after(WAIT_S):
            while (again := await caller.call(session, "continue_session", session_id=named, prompt="hi")).is_error:
                # The turn is still being stopped.
                pass
        assert again.structured_content is not None
        assert again.structured_content["answer"] == "Hello."


async def test_wrong_calls_get_errors_in_words(tmp_path: Path) -> None:
    caller = Caller(None)
    async with caller.session(tmp_path, modern=False) as session:
        for tool, arguments, expected in (
            ("start_session", {"prompt": "hi", "folder": "relative"}, "folder: expected the absolute path"),
            ("start_session", {}, "prompt: Field required"),
            ("continue_session", {"session_id": "unknown", "prompt": "hi"}, "unknown"),
            ("read_session", {"session_id": "unknown"}, "unknown"),
        ):
            result = await caller.call(session, tool, **arguments)
            assert result.is_error, tool
            assert isinstance(result.content[0], types.TextContent)
            assert expected in result.content[0].text


@asynccontextmanager
async def over_http(folder: Path, *args: str, **environ: str) -> AsyncGenerator[str]:
    process = await anyio.open_process(
        [JUMPSEAT, "mcp-server", "--http", "0", *args],
        env={**environ_of(folder), **environ},
        cwd=folder,
        stderr=None,
    )
    try:
        assert process.stdout is not None
        with anyio.fail_after(WAIT_S):
            line = (await process.stdout.receive()).decode()
        yield line.removeprefix("jumpseat serves MCP clients at ").strip()
    finally:
        process.terminate()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def test_over_http_a_token_is_needed_and_pages_of_other_sites_are_refused(tmp_path: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Accept": "application/json, text/event-stream"}
    async with over_http(tmp_path, JUMPSEAT_MCP_TOKEN="sesame") as url, httpx2.AsyncClient() as client:
        assert (await client.post(url, json=ping, headers=headers)).status_code == 401
        headers["Authorization"] = "Bearer wrong"
        assert (await client.post(url, json=ping, headers=headers)).status_code == 401
        headers["Authorization"] = "Bearer sesame"
        greeting = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
        assert (await client.post(url, json=greeting, headers=headers)).status_code == 200
        evil = {**headers, "Host": "evil.example"}
        assert (await client.post(url, json=greeting, headers=evil)).status_code in (403, 421)
        evil = {**headers, "Origin": "https://evil.example"}
        assert (await client.post(url, json=greeting, headers=evil)).status_code == 403


class RawCaller:
    """A caller of the revision 2026-07-28 that understands tasks, message by message."""

    def __init__(self, process: anyio.abc.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self._lines = BufferedByteReceiveStream(process.stdout)
        self._id = 0

    async def ask(self, method: str, extensions: JsonObject | None = None, **params: Any) -> JsonObject:
        """Return the response to a request, with these ``extensions`` of the caller instead of that for tasks."""
        self._id += 1
        about: JsonObject = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {},
                "extensions": {EXTENSION: {}} if extensions is None else extensions,
            },
        }
        message: JsonObject = {
            "jsonrpc": "2.0",
            "id": self._id,
            "method": method,
            "params": {**params, "_meta": about},
        }
        await self._stdin.send(json.dumps(message).encode() + b"\n")
        with anyio.fail_after(WAIT_S):
            while (answer := json.loads(await self._lines.receive_until(b"\n", 1 << 20))).get("id") != self._id:
                pass
        return answer

    async def state(self, task_id: str, *wanted: str) -> JsonObject:
        """Return the state of a task, once it is one of those that are wanted."""
        with anyio.fail_after(WAIT_S):
            while (state := (await self.ask("tasks/get", taskId=task_id))["result"])["status"] not in wanted:
                pass
        return state


@asynccontextmanager
async def raw_caller(folder: Path) -> AsyncGenerator[tuple[RawCaller, anyio.abc.Process]]:
    async with await anyio.open_process(
        [JUMPSEAT, "mcp-server"], env=environ_of(folder), cwd=folder, stderr=None
    ) as process:
        yield RawCaller(process), process
        if process.returncode is None:
            process.kill()


async def test_a_long_call_is_a_task_whose_result_outlives_the_server(tmp_path: Path) -> None:
    async with raw_caller(tmp_path) as (caller, process):
        found = await caller.ask("server/discover")
        assert EXTENSION in found["result"]["capabilities"]["extensions"]
        # A short one has its result at once.
        quick = await caller.ask("tools/call", name="start_session", arguments={"prompt": "hi"})
        assert quick["result"]["structuredContent"]["answer"] == "Hello."

        asks = await caller.ask("tools/call", name="start_session", arguments={"prompt": "make"})
        task = asks["result"]
        assert (task["resultType"], task["status"]) == ("task", "input_required")
        (key, question) = next(iter(task["inputRequests"].items()))
        assert question["params"]["message"].startswith(f"Change {tmp_path}/made.txt?")
        answers = {key: {"action": "accept", "content": {"decision": "allow"}}, "unknown": {"action": "decline"}}
        assert "error" not in await caller.ask("tasks/update", taskId=task["taskId"], inputResponses=answers)
        made = await caller.state(task["taskId"], "completed")
        assert made["result"]["structuredContent"]["answer"] == "Made it."
        assert (tmp_path / "made.txt").read_text() == "x\n"

        waits = (await caller.ask("tools/call", name="start_session", arguments={"prompt": "wait"}))["result"]
        waiting = await caller.state(waits["taskId"], "input_required")
        key = next(iter(waiting["inputRequests"]))
        allow = {key: {"action": "accept", "content": {"decision": "allow"}}}
        await caller.ask("tasks/update", taskId=waits["taskId"], inputResponses=allow)
        working = await caller.state(waits["taskId"], "working")
        assert working["statusMessage"] == "uses bash"
        assert "error" not in await caller.ask("tasks/cancel", taskId=waits["taskId"])
        stopped = await caller.state(waits["taskId"], "completed")
        assert stopped["result"]["structuredContent"]["status"] == "cancelled"

        cut = (await caller.ask("tools/call", name="start_session", arguments={"prompt": "wait"}))["result"]
        process.kill()
    async with raw_caller(tmp_path) as (caller, _):
        again = await caller.state(task["taskId"], "completed")
        assert again["result"] == made["result"]
        assert (await caller.state(waits["taskId"], "completed"))["result"] == stopped["result"]
        ended = await caller.state(cut["taskId"], "completed")
        assert ended["result"]["isError"]
        assert "continue_session goes on" in ended["result"]["structuredContent"]["answer"]
        for wrong in ("x", f"{cut['taskId']}x", f"x.{task['taskId']}", ""):
            for method in ("tasks/get", "tasks/cancel"):
                assert (await caller.ask(method, taskId=wrong))["error"]["code"] == -32602
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            refused = (await caller.ask(method, {}, taskId=cut["taskId"], inputResponses={}))["error"]
            assert refused["code"] == -32021
            assert refused["data"]["requiredCapabilities"] == {"extensions": {EXTENSION: {}}}


async def test_a_session_of_jumpseat_works_for_another_one_of_jumpseat(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    turns = [calls("helper-start_session", prompt="make", folder=str(inner)), {"text": "{{last_tool_result}}"}]
    options = {"command": JUMPSEAT, "args": ["mcp-server"], "env": environ_of(inner), "cwd": str(inner)}
    helper = {"type": "stdio", "tools": ["*"], **options}
    async with running_server(tmp_path, args=["--yolo"]) as server:
        wire = server.wire
        session = await wire.create(scripted(*turns), mcpServers={"helper": helper}, requestElicitation=True)
        await wire.event("session.mcp_server_status_changed", status="connected")
        await wire.call("session.send", {"sessionId": session, "prompt": "delegate"})
        asked = await wire.event("elicitation.requested", session=session)
        assert asked["data"]["message"].startswith(f"Change {inner}/made.txt?")
        answer = {"action": "accept", "content": {"decision": "allow"}}
        await wire.call(
            "session.ui.handlePendingElicitation",
            {"sessionId": session, "requestId": asked["data"]["requestId"], "result": answer},
        )
        await wire.event("session.idle", session=session)
        said = [one["data"]["content"] for one in wire.events(session) if one["type"] == "assistant.message"]
        assert "Made it." in said[-1]
    assert (inner / "made.txt").read_text() == "x\n"
