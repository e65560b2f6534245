"""Reasoning between tags at the beginning of a text."""

from __future__ import annotations

import json

import pytest

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Completed, ModelRequest, ReasoningDelta, TextDelta

LOCAL = Endpoint(base_url="http://localhost:8080/v1")
ANSWERS = [
    ("<think>\nHm, 2+2.\n</think>\n\nFour.", "Hm, 2+2.", "Four."),
    ("\n<think></think>Four.", "", "Four."),
    ("[THINK]Hm[/THINK]Four.", "Hm", "Four."),
    ("<thinking>a </think> b</thinking>\nFour.", "a </think> b", "Four."),
    ("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Four.", "Hm", "Four."),
    ("<think>Cut off in the mid", "Cut off in the mid", ""),
    ("Four. A <think> tag.", "", "Four. A <think> tag."),
    ("<thin", "", "<thin"),
    ("<thinker>Rodin</thinker>", "", "<thinker>Rodin</thinker>"),
    ("The tag `</think>`\nends a thought.", "", "The tag `</think>`\nends a thought."),
]


def decoder_for(endpoint: Endpoint) -> Decoder:
    return load_adapter("openai_compatible").decoder_at(endpoint, ModelRequest("m", "", [], stream=True))


def decode(decoder: Decoder, pieces: list[str]) -> tuple[str, str, Completed]:
    """Return the deltas of the reasoning and of the text, and the whole answer."""
    chunks: list[JsonObject] = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    events = [event for chunk in chunks for event in decoder.feed(None, json.dumps(chunk))] + decoder.finish()
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    completed = events[-1]
    assert isinstance(completed, Completed)
    return reasoning, text, completed


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("written", "thought", "answer"), ANSWERS)
def test_a_block_at_the_beginning_is_reasoning_wherever_the_text_is_split(
    written: str, thought: str, answer: str, size: int
) -> None:
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    reasoning, text, completed = decode(decoder_for(LOCAL), pieces)
    assert (reasoning.strip(), text) == (thought, answer)
    assert (completed.message.reasoning(), completed.message.text()) == (thought, answer)


def test_an_end_tag_alone_separates_the_reasoning_in_the_whole_answer() -> None:
    _, text, completed = decode(decoder_for(LOCAL), ["Hm, 2+2.\n</think>\n\nFour."])
    assert text == "Hm, 2+2.\n</think>\n\nFour."
    assert (completed.message.reasoning(), completed.message.text()) == ("Hm, 2+2.", "Four.")


def test_the_option_leaves_the_tags_in_the_text() -> None:
    written = ANSWERS[0][0]
    endpoint = Endpoint(base_url=LOCAL.base_url, options={"think_tags": False})
    _, text, completed = decode(decoder_for(endpoint), [written])
    assert (text, completed.message.text()) == (written, written)
