"""Random sequences of calls and answers: every call gets one result, no process is left running, and every provider
accepts the next request.

Sequences are generated from a seed: real commands, client tools, built-in and declared tools, invalid calls,
answers, rejections, changed arguments, time-outs, crashes, and an abort at any moment.
"""

# Functions of tools may have arbitrary signatures.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from anyio.abc import TaskGroup
from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, TextBlock, ToolUseBlock
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat.agent.model import (
    Capabilities,
    Completed,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    StopReason,
    TextDelta,
    ToolProtocol,
)
from jumpseat.agent.model_calls.xml_tools.prompt import as_text
from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.builtin.bash import TOOL as BASH
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool
from tests.support.sessions import MODEL, MadeSession, make_session
from tests.support.wire_rules import check_calls, steps
from tests.tools.session import until

pytestmark = pytest.mark.anyio

SEEDS: Final = 80
AT_ONCE: Final = 4
"""Sequences that run at the same time, because each mostly waits."""
ENDPOINT: Final = Endpoint("http://127.0.0.1:1/base", api_key="k")
ADD: Final = ClientTool(
    name="add",
    description="Add",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)


class NoArgs(ToolArgs):
    """A built-in tool without arguments."""


async def crash(_ctx: ToolContext, _args: NoArgs) -> ToolOutcome:
    raise RuntimeError("the secret of the crash")


async def wait(_ctx: ToolContext, _args: NoArgs) -> ToolOutcome:
    await anyio.sleep_forever()
    raise AssertionError


CRASH: Final = BuiltinTool(
    name="crash", description="Crash", args=NoArgs, run=crash, intention=lambda _args: "Crash"
)
WAIT: Final = BuiltinTool(name="wait", description="Wait", args=NoArgs, run=wait, intention=lambda _args: "Wait")


def leave(_args: Any) -> None:
    raise SystemExit("the secret of the exit")


async def never(_args: Any) -> None:
    await anyio.sleep_forever()


def declared(mark: str) -> dict[str, dict[str, Any]]:
    """Return declared tools: long commands, functions that return or never finish, and handlers that fail."""
    stays = [["sh", "-c", f"sleep 304 {mark} & exec sleep 305 {mark}"]]
    stubborn = f"trap '' TERM; sleep 306 {mark} & sleep 307 {mark}"
    text = {"text": {"type": "string"}}
    return {
        "say": {"cmds": [["echo", "${text}"], "exit 3"], "parameters": text},
        "stay": {"cmds": stays, "timeout_s": 0.25},
        "stubborn": {"cmds": [stubborn], "opts": {"parallel": True, "allowed_in_yolo_mode": False}},
        "leave": {"cmds": [lambda args: "first", leave], "requires_approval": False},
        "never": {"cmds": [never], "timeout_s": 0.25, "output": {"cancelled": "It was cancelled."}},
        "shared": {
            "cmds": [lambda args: "done"],
            "opts": {"use_handlers_once": True},
            "handlers": {"setup": lambda tool: None, "on_exit": leave},
        },
    }


class Whim:
    """A model that makes a few random calls, then ends. It records the requests."""

    adapter_name = signs_as = "whim"

    def __init__(self, chance: random.Random, mark: str, protocol: ToolProtocol) -> None:
        self.chance, self.mark, self.protocol = chance, mark, protocol
        self.asked: list[ModelRequest] = []
        self.turns = chance.randint(1, 3)

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.asked.append(request)
        yield self._answer()

    async def _answer(self) -> AsyncGenerator[ModelEvent]:
        blocks: list[AssistantBlock] = [TextBlock("So: ")] if self.chance.random() < 0.5 else []
        reason: StopReason = "end_turn"
        if self.turns > 0:
            self.turns -= 1
            calls = [self._call() for _ in range(self.chance.randint(1, 4))]
            reason = self.chance.choice(["tool_use", "tool_use", "max_tokens"])
            blocks += [TextBlock(self._written(calls))] if self.protocol == "xml" else calls
        blocks = blocks or [TextBlock("Done.")]
        for block in blocks:
            if isinstance(block, TextBlock):
                yield TextDelta(block.text)
        yield Completed(AssistantMessage(blocks), reason)

    def _call(self) -> ToolUseBlock:
        name, text = self.chance.choice(
            [
                ("bash", {"command": "echo hello"}),
                ("bash", {"command": "exit 3"}),
                ("bash", {"command": "kill -9 $$"}),
                ("bash", {"command": f"sleep 301 {self.mark} & exec sleep 302 {self.mark}"}),
                ("bash", {"command": f"(trap '' TERM; exec sleep 303 {self.mark})", "mode": "async"}),
                ("bash", {"command": 7}),
                ("add", {"a": 1}),
                ("add", {"a": 2}),
                ("add", {"a": "x"}),
                ("add", '{"a": 1,}'),
                ("add", '{"a": 1'),
                ("add", "[1]"),
                ("add", ""),
                ("crash", {}),
                ("wait", {}),
                ("nothing", {"x": "</tool_result>"}),
                ("say", {"text": "$(touch here)"}),
                ("say", {"text": 7}),
                ("stay", {}),
                ("stubborn", {}),
                ("leave", {}),
                ("never", {}),
                ("shared", {}),
                ("shared", {"more": "of it"}),
            ]
        )
        # Some providers repeat ids in every answer, some even within one.
        call_id = self.chance.choice(["call_1", f"call:{self.chance.randint(1, 9)}", uuid.uuid4().hex])
        written = text if isinstance(text, str) else json.dumps(text)
        return ToolUseBlock(call_id, name, written, None if isinstance(text, str) else text)

    def _written(self, calls: list[ToolUseBlock]) -> str:
        (message,) = as_text([AssistantMessage([*calls])], {}, vision=True)
        assert isinstance(message, AssistantMessage)
        text = message.text()
        return text[: self.chance.randint(1, len(text))] if self.chance.random() < 0.3 else text


async def _deal_with(made: MadeSession, chance: random.Random) -> None:
    """Answer requests at random, or not at all, until the run ends or is aborted."""
    seen = steps = 0
    with anyio.move_on_after(chance.uniform(0.05, 0.3)):
        while True:
            while seen < len(made.client.events):
                payload, seen = made.client.events[seen].payload, seen + 1
                steps += 1
                match payload:
                    case events.SessionIdle():
                        return
                    case events.PermissionRequested() if chance.random() < 0.9:
                        feedback = {"feedback": "not so"} if chance.random() < 0.5 else {}
                        yes: dict[str, Any] = {"kind": "approve-once"}
                        no: dict[str, Any] = {"kind": "reject", **feedback}
                        changed = {**yes, "modifiedArgs": {"a": 3, "command": "echo changed", "text": "changed"}}
                        others = [no, changed, {"kind": "user-not-available"}, {"kind": "cancelled"}]
                        made.decide(payload, chance.choice([yes, yes, yes, yes, *others]))
                    case events.ExternalToolRequested() if chance.random() < 0.8:
                        _answer(made, payload, chance)
                    case _:
                        pass
            await made.client.news()
    await made.session.abort("user_initiated")


def _answer(made: MadeSession, request: events.ExternalToolRequested, chance: random.Random) -> None:
    kind = chance.choice(["success", "failure", "rejected", "denied", "timeout", "odd", "error", "plain", "bad"])
    match kind:
        case "error":
            made.answer_tool(request, error="the secret of the handler")
        case "plain":
            made.answer_tool(request, {"any": ["value", None]})
        case "bad":
            made.answer_tool(request, {"textResultForLlm": 3, "resultType": []})
        case _:
            made.answer_tool(request, {"textResultForLlm": f"it was {kind}", "resultType": kind})
    # A second answer changes nothing.
    assert not made.answer_tool(request, "again")


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
async def test_every_call_has_one_result_no_process_remains_and_every_provider_accepts_the_next_request(
    first: int, tmp_path: Path
) -> None:
    failures: list[Exception] = []

    async def run(seed: int) -> None:
        try:
            folder = tmp_path / str(seed)
            folder.mkdir()
            await _run_sequence(seed, folder)
        except Exception as error:
            error.add_note(f"seed {seed}")
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        for seed in range(first, first + AT_ONCE):
            tasks.start_soon(run, seed)
    if failures:
        raise ExceptionGroup("sequences that failed", failures)


async def _run_sequence(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    # The mark is also a number of seconds, which `sleep` adds to its other arguments.
    mark = f"0.{uuid.uuid4().int}"
    protocol: ToolProtocol = "xml" if seed % 3 == 0 else "native"
    whim = Whim(chance, mark, protocol)
    async with anyio.create_task_group() as tasks:
        made = _session(tasks, whim, protocol, folder)
        for _ in range(2):
            made.send("go")
            await _deal_with(made, chance)
            made.client.events.clear()
        whim.turns = 0
        await made.ask("And now?")
        await made.session.close(grace_s=0.25)
        await until(lambda: not _running(mark))
        _check(made, whim, xml=protocol == "xml")
        tasks.cancel_scope.cancel()


def _check(made: MadeSession, whim: Whim, *, xml: bool) -> None:
    logged = [events.decode_payload(line["type"], line["data"]) for line in map(json.loads, made.log.lines)]
    called = [
        call.tool_call_id
        for each in logged
        if isinstance(each, events.AssistantMessage)
        for call in each.tool_requests
    ]
    begun = [each.tool_call_id for each in logged if isinstance(each, events.ToolExecutionStart)]
    ended = [each.tool_call_id for each in logged if isinstance(each, events.ToolExecutionComplete)]
    assert sorted(ended) == sorted(called) == sorted(begun)

    again = Conversation()
    for payload in logged:
        again.apply(payload)
    assert again.messages() == made.session.conversation.messages()
    assert again.open_calls() == []

    last = whim.asked[-1]
    assert "secret" not in repr(last.messages)
    for name in PROVIDERS:
        body = load_adapter(name).request(ENDPOINT, replace(last, settings={})).body
        check_calls(name, body)
        assert not xml or {kind for kind, _ in steps(body)} <= {"user", "assistant"}


def _session(tasks: TaskGroup, whim: Whim, protocol: ToolProtocol, folder: Path) -> MadeSession:
    return make_session(
        tasks,
        script=whim,
        settings=SessionSettings(cwd=folder),
        tools=[ADD],
        builtin=[BASH, CRASH, WAIT],
        model_info=ModelInfo(MODEL, tool_protocol=protocol),
        declared=declared(whim.mark),
    )


def _running(mark: str) -> list[int]:
    """Return the processes that have ``mark`` among their arguments."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                if mark.encode() in Path("/proc", name, "cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                pass
    return found
