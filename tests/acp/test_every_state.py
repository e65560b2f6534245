"""A turn ends in each of its states when the user cancels it, or when the editor disconnects."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.editor import CONFIG, Editor, Schemas, option, running_editor
from tests.support.fake_openai import fake_openai, says, stalls
from tests.support.server import calls

pytestmark = pytest.mark.anyio

ALLOWED: Final = {"session/request_permission": option("allow_once")}
FILES: Final = {"fs": {"readTextFile": True, "writeTextFile": True}}
SUMMING_UP: Final = (
    {"when": "^Please create a detailed summary", "turns": [{"hang": True}]},
    {"turns": [{"text": "ok"}]},
)
RUDE: Final = str(Path(__file__).parents[1] / "support" / "rude_mcp_server.py")


@dataclass(frozen=True)
class State:
    """A state of a turn, and how to reach it. ``reached`` returns when the scripted model's ``turns`` led to it.

    Cancelling the turn must cancel the request with method ``withdrawn``. ``before`` is a prompt before ``prompt``.
    """

    turns: tuple[dict[str, Any], ...]
    reached: Callable[[Editor], Awaitable[object]]
    answers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    servers: tuple[dict[str, Any], ...] = ()
    withdrawn: str | None = None
    mode: str = "agent"
    before: str | None = None
    prompt: str = "go"
    prompts: tuple[dict[str, Any], ...] = ()
    config: str = CONFIG


def _asked(method: str) -> Callable[[Editor], Awaitable[object]]:
    return lambda editor: editor.question(method)


def _updated(kind: str, **values: Any) -> Callable[[Editor], Awaitable[object]]:
    return lambda editor: editor.update(kind, **values)


def _running(editor: Editor) -> Awaitable[object]:
    return editor.until(lambda message: "started\\n" in str(message) and "console" in str(message))


STATES: Final[Mapping[str, State]] = {
    "the model is silent": State(({"hang": True},), _updated("session_info_update")),
    "text is coming": State(({"text": "I am", "hang": True},), _updated("agent_message_chunk")),
    "reasoning is coming": State(({"reasoning": "Hm", "hang": True},), _updated("agent_thought_chunk")),
    "a failed model call waits for its retry": State(
        ({"text": "never", "errors": [{"status": 429, "retry_after_s": 20}]},), _updated("session_info_update")
    ),
    "a command waits for approval": State(
        (calls("bash", command="touch x; sleep 60"),),
        _asked("session/request_permission"),
        withdrawn="session/request_permission",
    ),
    "an edit waits for approval": State(
        (calls("create", path="x", file_text="x"),),
        _asked("session/request_permission"),
        withdrawn="session/request_permission",
    ),
    "a command runs": State((calls("bash", command="echo started; sleep 60 & sleep 60"),), _running, ALLOWED),
    "a command that ignores signals runs": State(
        (calls("bash", command="trap '' TERM INT; echo started; sleep 60"),), _running, ALLOWED
    ),
    "a command runs and another waits": State(
        (
            {
                "tool_calls": [
                    {"id": "call-1", "name": "bash", "arguments": {"command": "echo started; sleep 61"}},
                    {"id": "call-2", "name": "bash", "arguments": {"command": "sleep 60"}},
                ]
            },
        ),
        _running,
        ALLOWED,
    ),
    "a buffer is read": State(
        (calls("view", path="a.txt"),),
        _asked("fs/read_text_file"),
        ALLOWED,
        FILES,
        withdrawn="fs/read_text_file",
    ),
    "a buffer is written": State(
        (calls("create", path="x", file_text="x"),),
        _asked("fs/write_text_file"),
        ALLOWED,
        FILES,
        withdrawn="fs/write_text_file",
    ),
    "a terminal is created": State(
        (calls("bash", command="sleep 60"),),
        _asked("terminal/create"),
        ALLOWED,
        {"terminal": True},
    ),
    "a terminal runs a command": State(
        (calls("bash", command="sleep 60"),),
        _asked("terminal/wait_for_exit"),
        {
            **ALLOWED,
            "terminal/create": {"terminalId": "t1"},
            "terminal/output": {"output": "", "truncated": False},
            "terminal/kill": {},
            "terminal/release": {},
        },
        {"terminal": True},
    ),
    "a plan waits for approval": State(
        (calls("exit_plan_mode", summary="Two steps"),),
        _asked("session/request_permission"),
        withdrawn="session/request_permission",
        mode="plan",
    ),
    "a form is shown": State(
        (calls("ask_user", question="Why?"),),
        _asked("elicitation/create"),
        capabilities={"elicitation": {"form": {}}},
        withdrawn="elicitation/create",
    ),
    "buttons are shown": State(
        (calls("ask_user", question="Which?", choices=["a", "b"]),),
        _asked("session/request_permission"),
        withdrawn="session/request_permission",
    ),
    "calls follow each other without a pause": State(
        (calls("no_such_tool"),), _updated("tool_call_update", status="failed")
    ),
    "the turn waits for a compaction": State(
        (),
        _updated("compaction_update", status="in_progress"),
        capabilities={"session": {"compaction": {}}},
        prompts=SUMMING_UP,
        before="hi",
        config=CONFIG + "\n[compaction]\nbackground_threshold = 0.0\nexhaustion_threshold = 0.0\n",
    ),
    "the compact command runs": State(
        (),
        _updated("compaction_update", status="in_progress"),
        capabilities={"session": {"compaction": {}}},
        prompts=SUMMING_UP,
        before="hi",
        prompt="/compact",
    ),
    "an MCP server does not start": State(
        ({"text": "never"},),
        _updated("session_info_update"),
        servers=({"name": "rude", "command": sys.executable, "args": [RUDE, "silent"], "env": []},),
    ),
}


@pytest.mark.parametrize("name", STATES)
async def test_a_turn_can_be_cancelled_while(tmp_path: Path, schemas: Schemas, name: str) -> None:
    state = STATES[name]
    (tmp_path / "a.txt").write_text("text\n")
    async with running_editor(
        tmp_path,
        schemas,
        *state.turns,
        prompts=state.prompts,
        capabilities=dict(state.capabilities),
        config=state.config,
        answers=state.answers,
    ) as (server, editor):
        session = await _opened(editor, tmp_path, state)
        prompt = await editor.begin(session, state.prompt)
        await state.reached(editor)
        await editor.cancel(session)
        answer = await editor.response(prompt)
        assert answer["result"]["stopReason"] == "cancelled"
        assert editor.messages[-1] == answer, "the response is the last message"
        assert _open_calls(editor, session) == set()
        if not state.servers:
            assert server.descendants() == []
        assert not (tmp_path / "x").exists()
        if state.withdrawn is not None:
            question = await editor.question(state.withdrawn)
            cancelled = [
                message["params"] for message in editor.messages if message.get("method") == "$/cancel_request"
            ]
            assert cancelled == [{"requestId": question["id"]}]
            # Some editors respond nevertheless.
            await editor.send(
                editor.encode(
                    {"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32800, "message": "cancelled"}}
                )
            )
        assert (await editor.say(session, "/help"))["stopReason"] == "end_turn"


@pytest.mark.parametrize("name", STATES)
async def test_an_editor_can_disconnect_while(tmp_path: Path, schemas: Schemas, name: str) -> None:
    state = STATES[name]
    (tmp_path / "a.txt").write_text("text\n")
    async with running_editor(
        tmp_path,
        schemas,
        *state.turns,
        prompts=state.prompts,
        capabilities=dict(state.capabilities),
        config=state.config,
        answers=state.answers,
    ) as (server, editor):
        await editor.begin(await _opened(editor, tmp_path, state), state.prompt)
        await state.reached(editor)
        await server.close_stdin()
        # The exit of running_editor checks that it took half a second at most and left no process.
        assert await server.exit_code() == 0


async def test_cancel_cancels_queued_prompts_too(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, {"text": "I am", "hang": True}) as (_, editor):
        session = await editor.new(tmp_path)
        prompts = [await editor.begin(session, f"prompt {number}") for number in range(3)]
        await editor.update("agent_message_chunk")
        await editor.cancel(session)
        for prompt in prompts:
            assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"


async def test_an_editor_can_disconnect_while_prompts_are_queued(tmp_path: Path, schemas: Schemas) -> None:
    async with running_editor(tmp_path, schemas, {"text": "I am", "hang": True}) as (server, editor):
        session = await editor.new(tmp_path)
        for number in range(3):
            await editor.begin(session, f"prompt {number}")
        await editor.update("agent_message_chunk")
        await server.close_stdin()
        assert await server.exit_code() == 0


async def test_a_terminal_created_after_a_cancel_is_released(tmp_path: Path, schemas: Schemas) -> None:
    turn = calls("bash", command="sleep 60")
    async with running_editor(
        tmp_path, schemas, turn, capabilities={"terminal": True}, answers={**ALLOWED, "terminal/release": {}}
    ) as (server, editor):
        session = await editor.new(tmp_path)
        prompt = await editor.begin(session, "go")
        request = await editor.question("terminal/create")
        await editor.cancel(session)
        assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
        await editor.answer(request, {"terminalId": "late"})
        assert (await editor.question("terminal/release"))["params"]["terminalId"] == "late"
        assert server.descendants() == []


async def test_cancel_closes_the_connection_to_the_provider(tmp_path: Path, schemas: Schemas) -> None:
    async with fake_openai({"go": [stalls("I am")], "again": [says("fine")]}) as model:
        env = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": model.base_url, "OPENAI_MODEL": "fake-model"}
        async with running_editor(tmp_path, schemas, config="", env=env) as (_, editor):
            session = await editor.new(tmp_path)
            prompt = await editor.begin(session, "go")
            await editor.update("agent_message_chunk")
            await editor.cancel(session)
            assert (await editor.response(prompt))["result"]["stopReason"] == "cancelled"
            await model.hung_up.wait()
            assert (await editor.say(session, "again"))["stopReason"] == "end_turn"


async def _opened(editor: Editor, folder: Path, state: State) -> str:
    session = await editor.new(folder, mcpServers=list(state.servers))
    if state.mode != "agent":
        await editor.call("session/set_mode", {"sessionId": session, "modeId": state.mode})
    if state.before is not None:
        await editor.say(session, state.before)
    return session


def _open_calls(editor: Editor, session: str) -> set[str]:
    """Return the ids of the tool calls that have started and not ended."""
    begun = {update["toolCallId"] for update in editor.updates(session, "tool_call")}
    ended = {
        update["toolCallId"]
        for update in editor.updates(session, "tool_call_update")
        if update.get("status") in ("completed", "failed")
    }
    return begun - ended
