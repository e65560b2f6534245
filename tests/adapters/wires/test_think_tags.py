"""Reasoning between tags at the beginning of a text."""

from __future__ import annotations

import json

import pytest

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.blocks import JsonObject, Message, TextBlock, UserMessage
from jumpseat.agent.model import Completed, ModelRequest, ReasoningDelta, TextDelta
from tests.support.cases import check_each

LOCAL = Endpoint(base_url="http://localhost:8080/v1")
WIRES = ("openai_compatible", "openai_responses", "anthropic", "ollama")
OWN_SERVERS = {"openai_responses": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
ANSWERS = [
    ("<think>\nHm, 2+2.\n</think>\n\nFour.", "Hm, 2+2.", "Four."),
    ("\n<think></think>Four.", "", "Four."),
    ("[THINK]Hm[/THINK]Four.", "Hm", "Four."),
    ("<thinking>a </think> b</thinking>\nFour.", "a </think> b", "Four."),
    ("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Four.", "Hm", "Four."),
    (
        "<|channel|>analysis<|message|>One<|end|><|start|>assistant<|channel|>analysis<|message|>Two<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.view<|message|>{}<|call|>",
        "One\n\nTwo",
        "<|start|>assistant<|channel|>commentary to=functions.view<|message|>{}<|call|>",
    ),
    ("<|start|>assistant<|channel|>final<|message|>Four.", "", "Four."),
    ("<think>Cut off in the mid", "Cut off in the mid", ""),
    ("Four. A <think> tag.", "", "Four. A <think> tag."),
    ("<thin", "", "<thin"),
    ("<thinker>Rodin</thinker>", "", "<thinker>Rodin</thinker>"),
    ("The tag `</think>`\nends a thought.", "", "The tag `</think>`\nends a thought."),
]


def decoder_for(endpoint: Endpoint, wire: str = WIRES[0]) -> Decoder:
    return load_adapter(wire).decoder_at(endpoint, ModelRequest("m", "", [], stream=True))


def written(wire: str, pieces: list[str]) -> list[tuple[str | None, JsonObject]]:
    """Return an answer with a text in pieces, as the servers of a wire write it."""
    match wire:
        case "anthropic":
            deltas = [{"index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces]
            begin = ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
            end = ("message_delta", {"delta": {"stop_reason": "end_turn"}})
            return [
                ("message_start", {"message": {"content": []}}),
                begin,
                *(("content_block_delta", delta) for delta in deltas),
                ("content_block_stop", {"index": 0}),
                end,
                ("message_stop", {}),
            ]
        case "openai_responses":
            item = {"type": "message", "content": [{"type": "output_text", "text": "".join(pieces)}]}
            deltas = [{"output_index": 0, "content_index": 0, "delta": piece} for piece in pieces]
            return [
                *(("response.output_text.delta", delta) for delta in deltas),
                ("response.output_item.done", {"output_index": 0, "item": item}),
                ("response.completed", {"response": {"status": "completed", "output": [item]}}),
            ]
        case "ollama":
            lines: list[JsonObject] = [{"message": {"content": piece}, "done": False} for piece in pieces]
            return [(None, line) for line in [*lines, {"message": {"content": ""}, "done": True}]]
        case _:
            chunks: list[JsonObject] = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
            chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            return [(None, chunk) for chunk in chunks]


def decode(decoder: Decoder, pieces: list[str], wire: str = WIRES[0]) -> tuple[str, str, Completed]:
    """Return the deltas of the reasoning and of the text, and the whole answer."""
    events = [
        event
        for name, chunk in written(wire, pieces)
        for event in decoder.feed(name, json.dumps(chunk if name is None else {"type": name, **chunk}))
    ] + decoder.finish()
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    completed = next(event for event in reversed(events) if isinstance(event, Completed))
    return reasoning, text, completed


@pytest.mark.parametrize("wire", WIRES)
def test_a_block_at_the_beginning_is_reasoning_on_each_wire_wherever_the_text_is_split(wire: str) -> None:
    for content, thought, answer in ANSWERS:
        halves = [[content[:at], content[at:]] for at in range(1, len(content))]
        for pieces in ([content], [*content], *halves):
            reasoning, text, completed = decode(decoder_for(LOCAL, wire), pieces, wire)
            assert (reasoning.strip(), text) == (thought.replace("\n\n", ""), answer), pieces
            assert (completed.message.reasoning(), completed.message.text()) == (thought, answer), pieces


@pytest.mark.parametrize("wire", WIRES)
def test_reasoning_from_tags_is_not_sent_back(wire: str) -> None:
    adapter = load_adapter(wire)
    _, _, completed = decode(decoder_for(LOCAL, wire), ["<think>", "Hm", "</think>", "Four."], wire)
    history: list[Message] = [
        UserMessage([TextBlock("2+2?")]),
        completed.message,
        UserMessage([TextBlock("And 3+3?")]),
    ]
    body = json.dumps(adapter.request(LOCAL, ModelRequest("m", "", history, stream=True)).body)
    assert "Four." in body
    assert "Hm" not in body


@pytest.mark.parametrize("wire", OWN_SERVERS)
def test_the_servers_that_mark_reasoning_themselves_are_taken_at_their_word(wire: str) -> None:
    decoder = decoder_for(Endpoint(base_url=OWN_SERVERS[wire]), wire)
    _, text, completed = decode(decoder, ["<think>a</think>b"], wire)
    assert (text, completed.message.text()) == ("<think>a</think>b", "<think>a</think>b")


@pytest.mark.parametrize(
    ("content", "thought", "answer"),
    [
        ("analysisHm, 2+2.assistantfinalFour.", "Hm, 2+2.", "Four."),
        (
            "analysisHm.assistantcommentary to=functions.view json{}",
            "Hm.",
            "assistantcommentary to=functions.view json{}",
        ),
        ("<|channel|>final<|message|>Four.<|return|>", "", "Four."),
        ("analysis of the code: fine", "", "analysis of the code: fine"),
    ],
)
def test_remains_of_harmony_are_separated_in_the_whole_answer(content: str, thought: str, answer: str) -> None:
    _, _, completed = decode(decoder_for(LOCAL), [content])
    assert (completed.message.reasoning(), completed.message.text()) == (thought, answer)


@pytest.mark.parametrize("tail", ["<|return|>", "<|end|>", ""])
def test_the_last_mark_of_harmony_is_not_shown_wherever_the_text_is_split(tail: str) -> None:
    content = f"<|channel|>final<|message|>Four. <|re is no mark.{tail}"
    halves = [[content[:at], content[at:]] for at in range(1, len(content))]
    for pieces in ([content], [*content], *halves):
        _, text, completed = decode(decoder_for(LOCAL), pieces)
        assert text == completed.message.text() == "Four. <|re is no mark.", pieces


LONE_ENDS = {
    "a line of its own": ("Hm, 2+2.\n</think>\n\nFour.", "Hm, 2+2.", "Four."),
    "the same line": ("Hm, 2+2. </think> Four.", "Hm, 2+2.", "Four."),
    "no blank": ("Hm, 2+2.</think>four", "Hm, 2+2.", "four"),
    "no sentence": ("so it is 4</think>\n\nFour.", "so it is 4", "Four."),
    "at once": ("\n</think>\n\nFour.", "", "Four."),
    "with code": (
        "Call `f()`.\n```\nf()\n```\nDone.\n</think>\n`f()`",
        "Call `f()`.\n```\nf()\n```\nDone.",
        "`f()`",
    ),
    "words": ("hidden</think>visible", "hidden", "visible"),
    "words and a call": ("I look</think>\n<tool_call>", "I look", "<tool_call>"),
    "a paragraph": ("so it is 4 </think>\n\nFour.", "so it is 4", "Four."),
    "a tag that is mentioned before": (
        "`</think>` comes next.\n</think>\nFour.",
        "`</think>` comes next.",
        "Four.",
    ),
    "another tag": ("Hm.\n</seed:think>\nFour.", "Hm.", "Four."),
    "no answer": ("Hm.\n</think>", "Hm.", ""),
}
MENTIONS = [
    "The tag `</think>`\nends a thought.",
    "The tag </think> ends a thought.",
    "The tag is:</think>\n\nIt ends a thought.",
    "Write </think>\nafter it.",
    "It is a tag. </think> ends a thought.",
    "A thought ends with this:\n</think>\nThat is all.",
    "Use <think>a</think>\nfor it.",
    "See the end (</think>).",
    'It is called "</think>"\nand more.',
    "```\na.\n</think>\nb\n```\nDone.",
    "There is </think>, and there is more.",
    "<thinker>a.</thinker>\nb",
]


def test_an_end_tag_alone_ends_a_thought_that_the_prompt_has_begun() -> None:
    def check(case: tuple[str, str, str]) -> None:
        content, thought, answer = case
        _, _, completed = decode(decoder_for(LOCAL), [content])
        assert (completed.message.reasoning(), completed.message.text()) == (thought, answer)

    check_each(LONE_ENDS, check)


def test_an_end_tag_that_is_mentioned_ends_no_thought() -> None:
    def check(content: str) -> None:
        _, _, completed = decode(decoder_for(LOCAL), [content])
        assert (completed.message.reasoning(), completed.message.text()) == ("", content)

    check_each({content: content for content in MENTIONS}, check)


def test_an_end_tag_alone_separates_the_reasoning_in_the_whole_answer() -> None:
    _, text, completed = decode(decoder_for(LOCAL), ["Hm, 2+2.\n</think>\n\nFour."])
    assert text == "Hm, 2+2.\n</think>\n\nFour."
    assert (completed.message.reasoning(), completed.message.text()) == ("Hm, 2+2.", "Four.")


@pytest.mark.parametrize("wire", WIRES)
def test_after_such_an_answer_or_with_the_option_an_answer_begins_as_reasoning(wire: str) -> None:
    adapter = load_adapter(wire)
    _, _, first = decode(decoder_for(LOCAL, wire), ["Hm</think>Four."], wire)
    assert (first.message.reasoning(), first.message.text()) == ("Hm", "Four.")
    history: list[Message] = [UserMessage([TextBlock("2+2?")]), first.message]
    learned = ModelRequest("m", "", history, stream=True)
    assert "Hm" not in json.dumps(adapter.request(LOCAL, learned).body)
    option = Endpoint(base_url=LOCAL.base_url, options={"think_tags": "opened"})
    for endpoint, request in ((LOCAL, learned), (option, ModelRequest("m", "", [], stream=True))):
        for content, thought, answer in (
            ("Hm\n</think>\n\nSix. </think> is a tag.", "Hm", "Six. </think> is a tag."),
            ("No thought.", "", "No thought."),
        ):
            for pieces in ([content], [*content]):
                decoder = adapter.decoder_at(endpoint, request)
                _, text, completed = decode(decoder, pieces, wire)
                assert text == completed.message.text() == answer
                assert completed.message.reasoning() == thought


def test_the_option_leaves_the_tags_in_the_text() -> None:
    written = ANSWERS[0][0]
    endpoint = Endpoint(base_url=LOCAL.base_url, options={"think_tags": False})
    _, text, completed = decode(decoder_for(endpoint), [written])
    assert (text, completed.message.text()) == (written, written)
