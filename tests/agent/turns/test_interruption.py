"""An aborted answer: what the model and the clients are told of it afterwards, over the real wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.conversation.conversation import INTERRUPTED, SUMMARY_REQUEST
from jumpseat.agent.conversation.prompt import REMINDER, REMINDER_AFTER_ABORT
from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply
from tests.support.provided import at, says, send_prompt, serving
from tests.support.server import JsonObject, Wire, running_server

pytestmark = pytest.mark.anyio


def chat_stream(*deltas: JsonObject) -> Reply:
    """Return a streamed chat completion that stops in the middle."""
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return event_stream(*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), ending="hang")


def half_call(index: int = 0) -> JsonObject:
    function = {"name": "view", "arguments": '{"path": "/et'}
    return {"tool_calls": [{"index": index, "id": "call_1", "type": "function", "function": function}]}


async def interrupt(
    wire: Wire, session: str, prompt: str = "Write an essay", *, after: str = "assistant.message_delta", **data: Any
) -> list[JsonObject]:
    """Send a prompt, abort it after an event of the type ``after``, and return the events of the run."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": prompt})
    await wire.event(after, session=session, since=since, **data)
    await wire.call("session.abort", {"sessionId": session})
    await wire.event("session.idle", session=session, since=since, aborted=True)
    return wire.events(session, since=since)


def dialogue(request: Any) -> list[tuple[str, Any]]:
    """Return the roles and contents of a chat request without the system message, prompts without their date."""
    return [
        (message["role"], undated(message.get("content")))
        for message in request.json["messages"]
        if message["role"] not in ("system", "developer")
    ]


def undated(content: Any) -> Any:
    return content.partition("</current_datetime>\n\n")[2] or content if isinstance(content, str) else content


ESSAY = ("user", f"Write an essay\n\n{REMINDER}")
CONTINUE = ("user", f"Continue where you stopped\n\n{REMINDER_AFTER_ABORT}")


async def test_the_model_gets_what_was_shown_and_is_told_once_that_it_is_cut_off(tmp_path: Path) -> None:
    begun = chat_stream({"content": "It was a dark "}, {"content": "and sto"}, half_call())
    async with serving(tmp_path, begun, says("rmy night."), says("Yes.")) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m", streaming=True, keepInterruptedAnswers=True)
        events = await interrupt(wire, session, after="assistant.tool_call_delta")
        continued = await send_prompt(wire, provider, session, "Continue where you stopped")
        later = await send_prompt(wire, provider, session, "Is that all?")

    kept = next(event["data"] for event in events if event["type"] == "assistant.message")
    assert (kept["content"], kept["toolRequests"], kept["interrupted"]) == ("It was a dark and sto", [], True)
    assert kept["messageId"] == next(
        event["data"]["messageId"] for event in events if event["type"] == "assistant.message_delta"
    )
    assert dialogue(continued) == [ESSAY, ("assistant", "It was a dark and sto"), CONTINUE]
    assert dialogue(later)[3:] == [("assistant", "rmy night."), ("user", f"Is that all?\n\n{REMINDER}")]


async def test_a_client_without_the_option_gets_no_message_and_its_model_only_the_note(tmp_path: Path) -> None:
    async with serving(tmp_path, chat_stream({"content": "It was"}), says("Sure.")) as (server, provider):
        session = await server.wire.create(at(provider), model="m", streaming=True)
        events = await interrupt(server.wire, session)
        continued = await send_prompt(server.wire, provider, session, "Continue where you stopped")

    assert "assistant.message" not in [event["type"] for event in events]
    assert dialogue(continued) == [ESSAY, CONTINUE]


async def test_an_interrupted_answer_outlives_the_process(tmp_path: Path) -> None:
    async with ModelServer(chat_stream({"content": "It was a dark"}), says("Sure.")) as provider:
        async with running_server(tmp_path) as server:
            options = {"model": "m", "streaming": True, "keepInterruptedAnswers": True}
            session = await server.wire.create(at(provider), **options)
            await interrupt(server.wire, session)
        async with running_server(tmp_path) as server:
            wire = server.wire
            await wire.call("session.resume", {"sessionId": session, "provider": at(provider), "model": "m"})
            history = (await wire.call("session.getMessages", {"sessionId": session}))["events"]
            continued = await send_prompt(wire, provider, session, "Continue where you stopped")

    shown = [event["data"] for event in history if event["type"] == "assistant.message"]
    assert [(message["content"], message["interrupted"]) for message in shown] == [("It was a dark", True)]
    assert dialogue(continued) == [ESSAY, ("assistant", "It was a dark"), CONTINUE]


@pytest.mark.parametrize(
    ("deltas", "seen"),
    [
        # Blank text is held back: a tag of reasoning may follow.
        ([{"content": " \n\n"}, {"reasoning_content": "Hm"}], "assistant.reasoning_delta"),
        ([{"reasoning_content": "Let me think"}], "assistant.reasoning_delta"),
        ([half_call()], "assistant.tool_call_delta"),
    ],
    ids=["blank", "reasoning", "call"],
)
async def test_nothing_is_kept_of_an_answer_without_words(
    tmp_path: Path, deltas: list[JsonObject], seen: str
) -> None:
    async with serving(tmp_path, chat_stream(*deltas), says("Sure.")) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m", streaming=True, keepInterruptedAnswers=True)
        events = await interrupt(wire, session, after=seen)
        continued = await send_prompt(wire, provider, session, "Continue where you stopped")

    assert "assistant.message" not in [event["type"] for event in events]
    assert dialogue(continued) == [ESSAY, CONTINUE]


async def test_finished_calls_keep_their_results_when_a_later_one_is_interrupted(tmp_path: Path) -> None:
    names = ("quick", "slow")
    made = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}, "index": place}
        for place, name in enumerate(names)
    ]
    asks = json_reply({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": made}}]})
    tools: list[JsonObject] = [
        {"name": name, "description": name, "parameters": {}, "skipPermission": True} for name in names
    ]
    async with serving(tmp_path, asks, says("Sure.")) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m", tools=tools, keepInterruptedAnswers=True)
        here = {"sessionId": session}
        await wire.call("session.send", {**here, "prompt": "Write an essay"})
        quick = await wire.event("external_tool.requested", session=session, toolName="quick")
        await wire.event("external_tool.requested", session=session, toolName="slow")
        done = {**here, "requestId": quick["data"]["requestId"], "result": "42"}
        await wire.call("session.tools.handlePendingToolCall", done)
        await wire.event("tool.execution_complete", session=session, toolCallId="quick")
        await wire.call("session.abort", here)
        continued = await send_prompt(wire, provider, session, "Continue where you stopped")

    assert dialogue(continued)[2:] == [("tool", "42"), ("tool", INTERRUPTED), CONTINUE]


async def test_incomplete_thinking_is_not_sent_back_to_claude(tmp_path: Path) -> None:
    thinking = {"type": "thinking_delta", "thinking": "A night, then."}
    begun = claude_stream(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": thinking},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "It was "}},
    )
    content = [{"type": "text", "text": "a dark night."}]
    answer = json_reply(
        {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn", "usage": {}}
    )
    async with serving(tmp_path, begun, answer) as (server, provider):
        wire = server.wire
        claude = {"type": "anthropic", "baseUrl": provider.url, "apiKey": "sk-key"}
        session = await wire.create(claude, model="claude-m", streaming=True, keepInterruptedAnswers=True)
        await interrupt(wire, session)
        provider_request = await send_prompt(wire, provider, session, "Continue where you stopped")

    messages = provider_request.json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    blocks = messages[1]["content"]
    assert [(block["type"], block["text"]) for block in blocks] == [("text", "It was ")]


def claude_stream(*events: JsonObject) -> Reply:
    """Return a stream of the messages API that stops in the middle."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: JsonObject = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "m",
        "usage": usage,
    }
    start: JsonObject = {"type": "message_start", "message": message}
    pieces = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in (start, *events)]
    return event_stream(*pieces, ending="hang")


async def test_an_aborted_command_after_an_answer_interrupts_no_prompt(tmp_path: Path) -> None:
    def answer(request: SeenRequest) -> Reply:
        return event_stream(ending="hang") if SUMMARY_REQUEST.encode() in request.body else says("Hi")

    async with ModelServer(answer=answer) as provider, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(at(provider), model="m")
        await send_prompt(wire, provider, session, "Hello")
        since = len(wire.messages)
        await wire.call("session.commands.enqueue", {"sessionId": session, "command": "/compact"})
        await wire.event("session.compaction_start", session=session, since=since)
        await wire.call("session.abort", {"sessionId": session})
        await wire.event("session.idle", session=session, since=since, aborted=True)
        later = await send_prompt(wire, provider, session, "Is that all?")

    assert dialogue(later)[-1] == ("user", f"Is that all?\n\n{REMINDER}")
