"""The table of well-known models: matching of names, and defaults for missing facts."""

from __future__ import annotations

import tomllib
from typing import Final

import pytest
from msgspec.structs import replace

from jumpseat.adapters.models.known_models import KnownModels, fact_files
from jumpseat.agent.model import ModelInfo, Price
from tests.support.cases import all_cases

KNOWN = KnownModels()


KNOWN_NAMES: Final[list[tuple[str, str]]] = [
    ("gpt-5", "gpt-5"),
    ("GPT-5", "gpt-5"),
    ("gpt-5-2025-08-07", "gpt-5"),
    ("openai/gpt-5", "gpt-5"),
    ("openrouter/openai/gpt-5-mini", "gpt-5-mini"),
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
    ("claude-sonnet-4-20250514", "claude-sonnet-4-0"),
    ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
    ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ("publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
    ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
    ("gemini-2.0-flash-001", "gemini-2.0-flash"),
    ("mistral-large-latest", "mistral-large-latest"),
    ("llama3.3:latest", "llama-3.3-70b-instruct"),
    ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct"),
]


def test_a_name_is_found_with_or_without_date_and_vendor() -> None:
    with all_cases() as case:
        for name, entry in KNOWN_NAMES:
            with case(name):
                found = KNOWN.find(name)
                assert found is not None
                assert found.id == entry


UNKNOWN_NAMES: Final[list[str]] = [
    "",
    "gpt-5-minimal",
    "gpt-5-",
    "my-gpt-5",
    "gpt-4o-audio-preview-2024-12-17",
    "gpt-5-chat-latest",
    "gemini-2.5-flash-preview-tts",
    "ft:gpt-4o:me::1",
    "somebody/gpt-5",
    "openai/claude-opus-4-1",
    "gpt-5/tuned",
    "openai/gpt-5:free",
    "unsloth/Llama-3.3-70B-Instruct-GGUF",
]


def test_a_similar_name_is_not_found() -> None:
    with all_cases() as case:
        for name in UNKNOWN_NAMES:
            with case(repr(name)):
                assert KNOWN.find(name) is None


def test_every_entry_of_the_file_is_valid_and_found_by_its_names() -> None:
    vendors = tomllib.loads("\n".join(path.read_text() for path in fact_files()))
    names: list[str] = []
    for vendor, table in vendors.items():
        for name, entry in table["models"].items():
            for known_name in (name, *entry.get("also", ())):
                found = KNOWN.find(known_name)
                assert found is not None
                assert (found.id, found.vendor) == (name, vendor)
                assert KNOWN.find(f"{table['prefixes'][0]}/{known_name}") == found
                names.append(known_name)
            window = entry.get("context")
            assert all(limit <= window for limit in (entry.get("input"), entry.get("output")) if limit), name
            assert entry["reasoning"] or "efforts" not in entry, name
    assert len(set(names)) == len(names)
    assert names == [name.lower() for name in names]


def test_given_facts_win_over_known_ones() -> None:
    given = ModelInfo("work/m", vision=False, tools=False, reasoning_efforts=(), max_output_tokens=10)
    filled = KNOWN.complete(given, "gpt-5", "openai")
    assert filled == replace(
        given,
        vendor="openai",
        reasoning=True,
        context_window=400_000,
        max_prompt_tokens=272_000,
        price=Price(1.25, 10, 0.125),
    )


def test_an_unknown_model_is_unchanged() -> None:
    info = ModelInfo("work/m", "M", context_window=5)
    assert KNOWN.complete(info, "m", "openai") is info


def test_known_limits_of_another_context_window_are_not_used() -> None:
    filled = KNOWN.complete(ModelInfo("m", context_window=8_000), "gpt-5", "openai")
    assert (filled.context_window, filled.max_prompt_tokens, filled.max_output_tokens) == (8_000, None, None)


@pytest.mark.parametrize("adapter", ["ollama", "githubmodels"])
def test_only_capabilities_are_known_for_hosts_with_their_own_limits(adapter: str) -> None:
    filled = KNOWN.complete(ModelInfo("m"), "openai/gpt-4o", adapter)
    assert filled == ModelInfo("m", vendor="openai", vision=True, tools=True, reasoning=False)
