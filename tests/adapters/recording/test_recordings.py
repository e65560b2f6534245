"""Streams of real providers, recorded by another client, checked against facts that were counted independently.

The recordings are not part of this repository. ``JUMPSEAT_RECORDINGS`` names a folder that contains them at any
depth, for example ``tests/adapters/http`` of https://github.com/olimorris/codecompanion.nvim. They lack the blank
lines between events, which these tests restore.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import orjson
import pytest

from jumpseat.adapters.providers import load_adapter
from tests.adapters.golden import Outcome, decode_stream, decode_whole
from tests.support.cases import all_cases

FOLDER: Final = os.environ.get("JUMPSEAT_RECORDINGS")

pytestmark = pytest.mark.skipif(not FOLDER, reason="JUMPSEAT_RECORDINGS does not name a folder of recordings")

LONDON_UK: Final = ("weather", {"location": "London, UK", "units": "celsius"})
PARIS_FRANCE: Final = ("weather", {"location": "Paris, France", "units": "celsius"})
LONDON: Final = ("weather", {"location": "London", "units": "celsius"})
PARIS: Final = ("weather", {"location": "Paris", "units": "celsius"})
DEFAULT: Final = ("weather_with_default", dict[str, Any]())
PARIS_FR: Final = {"location": "Paris, FR", "units": "fahrenheit"}
VERSION_FILE: Final = {
    "filepath": "/Users/Oli/Code/Neovim/codecompanion.nvim/version.txt",
    "start_line_number_base_zero": 0,
    "end_line_number_base_zero": -1,
}

Call: TypeAlias = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Fact:
    """Facts about one recording: characters of text and of reasoning, calls, the sum of input and output tokens.

    ``breaks`` are the boundaries between parts of reasoning, which become paragraphs. ``complete`` is false if the
    recording ends before the answer.
    """

    adapter: str
    file: str
    text: int = 0
    reasoning: int = 0
    calls: tuple[Call, ...] = ()
    tokens: int | None = None
    starts: str = ""
    breaks: int = 0
    complete: bool = True


FACTS: Final = [
    Fact("anthropic", "anthropic_streaming", 70, tokens=455 + 18, starts="Dynamic elegance"),
    Fact("anthropic", "anthropic_no_streaming", 90, tokens=439 + 21, starts="Dynamic elegance"),
    Fact("anthropic", "anthropic_reasoning_streaming", 64, 794, (), 484 + 208, "**Elegant simplicity**"),
    Fact("anthropic", "anthropic_reasoning_no_streaming", 109, 707, (), 900 + 226),
    Fact("anthropic", "anthropic_tools_streaming", 59, 0, (LONDON_UK, PARIS_FRANCE), 905 + 137),
    Fact(
        "anthropic",
        "anthropic_tools_no_params_streaming",
        59,
        0,
        (DEFAULT, ("weather_with_default", PARIS_FRANCE[1])),
        905 + 137,
    ),
    Fact("anthropic", "anthropic_tools_no_streaming", 86, 0, (LONDON_UK, PARIS_FRANCE), 916 + 144),
    Fact("anthropic", "anthropic_compaction_streaming", 36, 33, (), 60246 + 1808 + 69),
    Fact("anthropic", "anthropic_compaction_no_streaming", 36, 0, (), 1808 + 69),
    Fact("copilot", "copilot_streaming", 90, tokens=416, starts="**Elegant simplicity.**"),
    Fact("copilot", "copilot_no_streaming", 88, tokens=476, starts="**Dynamic elegance.**"),
    Fact("copilot", "copilot_tools_streaming", 220, 0, (LONDON_UK,), 470),
    Fact("copilot", "copilot_tools_no_streaming", 65, 0, (LONDON_UK,), 985),
    Fact(
        "copilot",
        "copilot_tools_streaming_reasoning",
        76,
        641,
        (("file_search", {"query": "**/quotes.lua"}),),
        6132,
    ),
    Fact("deepseek", "deepseek_streaming", 18, 705, (), 177, "Elegant simplicity"),
    Fact("deepseek", "deepseek_no_streaming", 19, 0, (), 15, "**Elegant syntax.**"),
    Fact("deepseek", "deepseek_streaming_reasoning_disabled", 15, 0, (), 14),
    Fact("deepseek", "deepseek_tools_streaming", 0, 141, (LONDON_UK, PARIS_FRANCE), 1504),
    Fact(
        "deepseek",
        "deepseek_tools_no_params_streaming",
        44,
        311,
        (DEFAULT, ("weather_with_default", PARIS_FRANCE[1])),
        1543,
    ),
    Fact("deepseek", "deepseek_tools_no_streaming", 0, 0, (LONDON, PARIS), 613),
    Fact("gemini", "gemini_streaming", 34, 0, (), 428, "Elegant, dynamic."),
    Fact("gemini", "gemini_no_streaming", 34, 0, (), 428, "Elegant, dynamic."),
    Fact("gemini", "gemini_tools_streaming", 0, 0, (LONDON, PARIS), 542),
    Fact(
        "gemini",
        "gemini_tools_no_params_streaming",
        0,
        0,
        (DEFAULT, ("weather_with_default", PARIS[1])),
        542,
    ),
    Fact("gemini", "gemini_tools_no_streaming", 0, 0, (LONDON_UK, PARIS_FRANCE), 78),
    Fact("gemini", "gemini_tools_thought_streaming", 0, 38, (("file_search", {"query": "README.md"}),), 5239),
    Fact("gemini_interactions", "gemini_interactions_streaming", 9, 0, (), 197, "AI works "),
    Fact("gemini_interactions", "gemini_interactions_non_streaming", 57, 0, (), 240, "There are 8 paws"),
    Fact("gemini_interactions", "gemini_interactions_reasoning_streaming", 67, 44, (), 530, "Based on the clues"),
    Fact("gemini_interactions", "gemini_interactions_structured_output", 313),
    Fact(
        "gemini_interactions",
        "gemini_interactions_tools_streaming",
        0,
        64,
        (("run_command", {"cmd": "ls -la"}),),
        3450,
    ),
    Fact(
        "gemini_interactions",
        "gemini_interactions_tools_turn1",
        calls=(("get_current_temperature", {"location": "London"}),),
    ),
    Fact(
        "gemini_interactions",
        "gemini_interactions_tools_completed",
        44,
        calls=(("get_current_temperature", {"location": "London"}),),
    ),
    Fact("gemini_interactions", "gemini_interactions_vision", 40, 0, (), 300, "The local image displays"),
    Fact("mistral", "mistral_streaming", 16, 0, (), 424, "Dynamic Language"),
    Fact("mistral", "mistral_no_streaming", 16, 0, (), 424, "Dynamic Language"),
    Fact("mistral", "mistral_thinking_streaming", 0, 16, complete=False),
    Fact(
        "mistral",
        "mistral_tools_streaming",
        0,
        0,
        (PARIS_FRANCE, ("weather", {"location": "London, United Kingdom", "units": "celsius"})),
        1439,
    ),
    Fact("mistral", "mistral_tools_no_streaming", 0, 0, (LONDON_UK, PARIS_FRANCE), 1441),
    Fact("ollama", "ollama_streaming", 27, 0, (), 403 + 8, "**Dynamic"),
    Fact("ollama", "ollama_no_streaming", 26, 0, (), 403 + 5, "Dynamic Scripting"),
    Fact("ollama", "ollama_reasoning_streaming", 27, 33, (), 403 + 8),
    Fact("ollama", "ollama_reasoning_no_streaming", 26, 33, (), 403 + 5),
    Fact("ollama", "ollama_tools_streaming", 0, 0, (LONDON_UK, ("weather", PARIS_FR)), 577 + 90),
    Fact("ollama", "ollama_tools_no_streaming", 0, 0, (LONDON_UK, ("weather", PARIS_FR)), 577 + 90),
    Fact(
        "ollama",
        "ollama_tools_no_params_streaming",
        0,
        0,
        (DEFAULT, ("weather_with_default", PARIS_FR)),
        577 + 90,
    ),
    Fact("openai", "openai_streaming", 82, 0, (), 412, "Dynamic, Flexible"),
    Fact("openai", "openai_no_streaming", 19, 0, (), 346, "Elegant simplicity."),
    Fact("openai", "openai_tools_streaming", 0, 0, (LONDON, PARIS), 532),
    Fact("openai", "openai_tools_no_params_streaming", 0, 0, (DEFAULT, ("weather_with_default", PARIS[1])), 532),
    Fact(
        "openai",
        "openai_tools_no_streaming",
        0,
        0,
        (("weather", {"location": "London, United Kingdom", "units": "celsius"}), PARIS_FRANCE),
        519,
    ),
    Fact("openai_responses", "openai_responses_streaming", 16, 0, (), 15, "Elegant language"),
    Fact("openai_responses", "openai_responses_no_streaming", 19, 0, (), 1005, "Dynamic, expressive"),
    Fact(
        "openai_responses",
        "openai_responses_reasoning_streaming",
        23,
        1980,
        (),
        1641,
        "Dynamic object-oriented",
        breaks=3,
    ),
    Fact("openai_responses", "openai_responses_reasoning_no_streaming", 18, 476, starts="Dynamic expressive"),
    Fact(
        "openai_responses",
        "openai_responses_tools_streaming",
        0,
        467,
        (("weather", {"location": "London, United Kingdom", "units": "celsius"}), PARIS_FRANCE),
        1251,
    ),
    Fact("openai_responses", "openai_responses_tools_no_streaming", calls=(LONDON_UK, PARIS_FRANCE)),
    Fact("openai_responses", "openai_responses_inline", 69, 31),
    Fact("openai_responses", "openai_responses_compaction_streaming", 18, 0, (), 50350, "Compacted response"),
    Fact("openai_responses", "openai_responses_compaction_no_streaming", 30, 0, (), 50350, "Here is the compacted"),
    Fact("openai_responses", "openai_responses_compaction_cancelled_streaming", 0, 30, complete=False),
    Fact("openrouter", "openrouter_reasoning_streaming", 19, 508, (), 2130),
    Fact("openrouter", "openrouter_reasoning_no_streaming", 20, 0, (), 2214, "Elegant, expressive."),
    Fact("openrouter", "openrouter_tools_streaming", 0, 412, (("read_file", VERSION_FILE),), 2908),
    Fact("openrouter", "openrouter_tools_no_streaming", 0, 391, (("read_file", VERSION_FILE),), 2901),
]


@pytest.mark.parametrize("adapter", sorted({fact.adapter for fact in FACTS}))
def test_recordings_decode_to_their_known_facts(adapter: str) -> None:
    facts = {f"{fact.file}.txt": fact for fact in FACTS if fact.adapter == adapter}
    missing = facts.keys() - _files().keys()
    if missing:
        pytest.skip(f"the folder of recordings has no {', '.join(sorted(missing))}")
    with all_cases() as case:
        for name, fact in facts.items():
            with case(name):
                for outcome in _decoded(fact, _files()[name].read_bytes()):
                    assert _said(fact, outcome) == {
                        "text": fact.text,
                        "reasoning": fact.reasoning + 2 * fact.breaks,
                        "calls": list(fact.calls),
                        "tokens": fact.tokens,
                        "starts": fact.starts,
                    }


def _decoded(fact: Fact, content: bytes) -> Iterator[Outcome]:
    """Decode a recording, by lines and split anywhere."""
    if content.startswith(b"{") and _is_one_object(content):
        outcome = decode_whole(load_adapter(fact.adapter), orjson.loads(content))
        assert outcome.error is None
        yield outcome
        return
    lines = _with_separators(fact, content.decode().splitlines())
    whole = b"".join(lines)
    chance = random.Random(fact.file)
    cuts = [sorted(chance.randrange(len(whole)) for _ in range(chance.randrange(1, 30))) for _ in range(20)]
    pieces = [lines] + [[whole[a:b] for a, b in pairwise([0, *cut, len(whole)])] for cut in cuts]
    for piece in pieces:
        yield decode_stream(load_adapter(fact.adapter), piece, lines=fact.adapter == "ollama")


def _said(fact: Fact, outcome: Outcome) -> dict[str, Any]:
    if not fact.complete:
        assert "in the middle of its answer" in str(outcome.error)
        joined = outcome.joined()
        calls = [(name, orjson.loads(text or "{}")) for name, text in joined["calls"].values()]
        return {
            "text": len(joined["text"]),
            "reasoning": len(joined["reasoning"]),
            "calls": calls,
            "tokens": None,
            "starts": fact.starts,
        }
    assert outcome.error is None
    completed = outcome.completed
    message, usage = completed.message, completed.usage
    assert all(use.id for use in message.tool_uses())
    return {
        "text": len(message.text()),
        "reasoning": len(message.reasoning()),
        "calls": [(use.name, use.arguments) for use in message.tool_uses()],
        "tokens": usage.input_tokens + usage.output_tokens if usage else None,
        "starts": message.text()[: len(fact.starts)],
    }


def _with_separators(fact: Fact, lines: list[str]) -> list[bytes]:
    """Return the lines of a stream as the provider sent them."""
    kept = [line for line in lines if line.strip()]
    end = "\r\n" if fact.adapter == "gemini" else "\n"
    if fact.adapter == "ollama":
        return [f"{line}{end}".encode() for line in kept if "[DONE]" not in line]
    written = [line + end + (end if line.startswith("data:") else "") for line in kept]
    if fact.adapter in ("openai", "copilot") and not kept[-1].endswith("[DONE]"):
        written.append(f"data: [DONE]{end}{end}")
    return [line.encode() for line in written]


@cache
def _files() -> dict[str, Path]:
    return {path.name: path for path in sorted(Path(FOLDER or "").rglob("*.txt"))}


def _is_one_object(content: bytes) -> bool:
    try:
        return isinstance(orjson.loads(content), dict)
    except orjson.JSONDecodeError:
        return False
