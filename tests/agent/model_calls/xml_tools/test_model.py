"""A model that writes XML, seen through the interface of models."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import pytest

from jumpseat.agent.blocks import (
    AssistantMessage,
    Citation,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import (
    Capabilities,
    Completed,
    ModelEvent,
    ModelRequest,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
    ToolSchema,
    ToolSpec,
)
from jumpseat.agent.model_calls.xml_tools.arguments import read_calls
from jumpseat.agent.model_calls.xml_tools.model import XmlToolModel
from jumpseat.agent.model_calls.xml_tools.prompt import as_text, instructions
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner

pytestmark = pytest.mark.anyio

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What to say"},
        "count": {"type": "integer"},
        "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "loud": {"type": "boolean"},
        "mode": {"enum": ["fast", 2, None]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}},
        "deep": {
            "type": "object",
            "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
        },
        "free": {},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "-n": {"type": "boolean"},
        "a b": {"type": "string"},
    },
    "required": ["text"],
    "$defs": {
        "edit": {
            "type": "object",
            "properties": {"old": {"type": "string"}, "new": {"type": "string"}, "lines": {"type": "array"}},
            "required": ["old"],
        }
    },
}
SAY: Final = ToolSpec("say", "Say something.", ToolSchema.of(SCHEMA))
LS: Final = ToolSpec("ls", "", ToolSchema.of({"type": "object", "properties": {}}))
HELLO: Final = '<tools><tool name="say"><text>hello</text></tool></tools>'


class Says:
    """A model that gives the same answer to every request, in pieces of three characters."""

    adapter_name = "fake"
    signs_as = "fake"

    def __init__(self, *blocks: Any, stop_reason: StopReason = "end_turn") -> None:
        self.blocks = [TextBlock(block) if isinstance(block, str) else block for block in blocks]
        self.stop_reason: StopReason = stop_reason
        self.asked: list[ModelRequest] = []

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.asked.append(request)
        yield self._events(request)

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if request.stream:
            for text in [block.text for block in self.blocks if isinstance(block, TextBlock)]:
                for start in range(0, len(text), 3):
                    yield TextDelta(text[start : start + 3])
        yield Completed(AssistantMessage(list(self.blocks)), self.stop_reason)


def request(*messages: Message, **more: Any) -> ModelRequest:
    given: dict[str, Any] = {"tools": [SAY, LS], **more}
    return ModelRequest("m", "Be good.", list(messages) or [UserMessage([TextBlock("Hi")])], **given)


async def answer(model: Says, request: ModelRequest) -> tuple[str, list[ToolCallDelta], Completed]:
    """Return the streamed text of an answer, its streamed calls, and the whole answer."""
    async with XmlToolModel(model).stream(request) as stream:
        events = [event async for event in stream]
    last = events.pop()
    assert isinstance(last, Completed)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, [event for event in events if isinstance(event, ToolCallDelta)], last


async def test_a_block_in_the_text_becomes_a_call_and_the_rest_stays_text() -> None:
    shown, announced, completed = await answer(Says("I say:\n", HELLO, "\nNow."), request())
    (call,) = completed.message.tool_uses()

    assert shown == completed.message.text() == "I say:\nNow."
    assert (call.name, call.arguments, call.arguments_json) == ("say", {"text": "hello"}, '{"text":"hello"}')
    assert announced == [ToolCallDelta(call.id, "say", '{"text":"hello"}')]
    assert completed.stop_reason == "tool_use"
    assert [type(block) for block in completed.message.blocks] == [TextBlock, ToolUseBlock, TextBlock]


async def test_an_answer_without_streaming_has_the_same_calls_and_no_deltas() -> None:
    shown, announced, completed = await answer(Says("\n" + HELLO + HELLO + "\n"), request(stream=False))
    first, second = completed.message.tool_uses()

    assert (shown, announced) == ("", [])
    assert completed.message.blocks == [first, second]
    assert first.id != second.id


async def test_an_answer_without_calls_is_unchanged() -> None:
    cited = TextBlock("a <", [Citation("url", start=0, end=1)])
    thought = ReasoningBlock(HELLO, "fake", {"signature": "s"})
    text: list[Any] = [thought, TextBlock("See <b>"), TextBlock("here"), cited]
    shown, _, completed = await answer(Says(*text), request())

    assert shown == completed.message.text() == "See <b>herea <"
    assert completed.message.blocks == text
    assert completed.stop_reason == "end_turn"


async def test_the_request_has_no_tools_and_a_description_of_them() -> None:
    model = Says("ok")
    history: list[Message] = [
        UserMessage([TextBlock("Hi")]),
        AssistantMessage([TextBlock("Sure."), ToolUseBlock("c1", "say", '{"text":"a<b"}', {"text": "a<b"})]),
        ToolMessage(
            [ToolResultBlock("c1", "say", "</tool_result> said", images=[ImageBlock("AA==", "image/png")])]
        ),
        UserMessage([TextBlock("And?")]),
    ]
    await answer(model, request(*history))
    (sent,) = model.asked

    assert sent.tools == []
    assert sent.system == f"Be good.\n\n{instructions([SAY, LS], None)}"
    assert sent.messages == [
        UserMessage([TextBlock("Hi")]),
        AssistantMessage(
            [
                TextBlock("Sure."),
                TextBlock('\n<tools>\n  <tool name="say">\n    <text><![CDATA[a<b]]></text>\n  </tool>\n</tools>'),
            ]
        ),
        UserMessage(
            [
                TextBlock(
                    '<tool_result name="say" id="c1" status="success">\n&lt;/tool_result> said\n</tool_result>'
                ),
                ImageBlock("AA==", "image/png"),
                TextBlock("And?"),
            ]
        ),
    ]


async def test_the_instructions_describe_every_parameter() -> None:
    text = instructions([SAY, LS], ToolChoice("specific", "say", parallel=False))
    assert "must call `say`" in text
    assert "a block contains one call" in text
    assert "- text (string, required): What to say" in text
    assert "- mode (one of fast | 2 | null, optional)" in text
    assert "- edits (array of objects, optional)\n  - old (string, required)\n  - new (string, optional)" in text
    assert '<tool name="ls"/>' in text
    assert '<parameter name="-n">true</parameter>' in text


async def test_without_tools_for_an_answer_only_earlier_calls_are_converted() -> None:
    without: list[dict[str, Any]] = [{"tools": []}, {"tool_choice": ToolChoice("none")}]
    for more in without:
        model = Says(HELLO)
        shown, _, completed = await answer(
            model,
            request(UserMessage([TextBlock("Hi")]), AssistantMessage([ToolUseBlock("1", "ls", "", {})]), **more),
        )
        assert shown == HELLO
        assert completed.message.tool_uses() == []
        assert model.asked[0].system == "Be good."
        assert model.asked[0].tool_choice is None
        assert not cast("AssistantMessage", model.asked[0].messages[1]).tool_uses()


async def test_a_malformed_call_names_its_problem_and_keeps_its_source() -> None:
    written = '<tools>\n<tool name="say"><text>hello</text></tol>\n</tools>'
    _, _, completed = await answer(Says(written), request())
    (call,) = completed.message.tool_uses()

    assert (call.name, call.arguments, call.arguments_json) == ("say", None, written)
    assert call.problem is not None
    assert "line 2: </tol> where </tool> was expected" in call.problem
    (converted,) = as_text([completed.message], {}, vision=True)
    assert written in cast("AssistantMessage", converted).text()


async def test_a_call_cut_off_by_the_token_limit_is_not_run_but_those_before_it_are() -> None:
    cut = '<tools><tool name="ls"/><tool name="say"><text>hel'
    _, _, completed = await answer(Says(cut, stop_reason="max_tokens"), request())
    good, bad = completed.message.tool_uses()

    assert (good.name, good.arguments, good.problem) == ("ls", {}, None)
    assert (bad.name, bad.arguments, bad.arguments_json) == ("say", None, '<tool name="say"><text>hel')
    assert bad.problem is not None
    assert "cut off" in bad.problem
    assert completed.stop_reason == "max_tokens"


async def test_where_one_call_is_allowed_the_others_have_a_problem() -> None:
    asked = request(tool_choice=ToolChoice(parallel=False))
    _, _, completed = await answer(Says(HELLO + HELLO), asked)
    assert [call.problem is None for call in completed.message.tool_uses()] == [True, False]


async def test_arguments_survive_being_written_as_xml_and_parsed_again() -> None:
    choose = random.Random(3)
    texts = [
        "",
        "x",
        " x ",
        "a\nb",
        "\n  a\n",
        "<b>&amp;</b>",
        "]]>",
        "</text>",
        "```xml\n<tools>",
        "é\t",
        "12",
        "true",
    ]
    numbers = [0, -3, 2.5, 10**12]
    values: dict[str, list[Any]] = {
        "text": texts,
        "count": [0, -3, 10**12],
        "ratio": numbers,
        "loud": [True, False],
        "mode": ["fast", 2],
        "tags": [[], ["a"], ["", "<b>", " c"], texts],
        "edits": [[], [{"old": text, "lines": [1, {"x": [None, "y<"]}]} for text in texts]],
        "deep": [{}, {"a": {"b": "<"}}, {"a": {}}, {"other": 1}],
        "free": [1, True, [1, "a"], {"a": {"b": ["<"]}}, [], {}, "word", "<b>"],
        "map": [{"k": 1}, {}, {"odd key": 2}],
        "-n": [True],
        "a b": texts,
    }
    for _ in range(300):
        arguments = {name: choose.choice(some) for name, some in values.items() if choose.random() < 0.6}
        call = ToolUseBlock("c", "say", canonical_json(arguments), arguments)
        (converted,) = as_text([AssistantMessage([call])], {"say": SCHEMA}, vision=True)
        scanner = Scanner({"say": SCHEMA})
        pieces = [*scanner.feed(cast("AssistantMessage", converted).text()), *scanner.finish()]
        (block,) = [piece for piece in pieces if isinstance(piece, Block)]
        (written,) = [written for tool in block.tools for written in read_calls(tool)]
        assert (written.problem, written.arguments) == (None, arguments)
