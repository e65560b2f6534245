"""What we send, read with the types of the providers' own SDKs, where those are installed.

Nothing of a body may be unknown to its provider: it must come out of the types as it went in.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest
from pydantic import TypeAdapter

from tests.adapters.golden import DATA

# The adapter, where its SDK keeps the type of a streamed and of a whole request, and what the types leave out.
TYPES: Final[list[tuple[str, str, str, str, frozenset[str]]]] = [
    (
        "mistral",
        "mistralai.client.models",
        "ChatCompletionStreamRequest",
        "ChatCompletionRequest",
        frozenset[str](),
    ),
    ("openrouter", "openrouter.components", "ChatRequest", "ChatRequest", frozenset[str]()),
    # Its client drops what its server takes: references in schemas, and ids of calls.
    (
        "ollama",
        "ollama._types",
        "ChatRequest",
        "ChatRequest",
        frozenset({"$ref", "id", "type", "index", "tool_call_id"}),
    ),
]


@pytest.mark.parametrize(("name", "module", "streamed", "whole", "left_out"), TYPES, ids=[one[0] for one in TYPES])
def test_requests_are_what_the_providers_own_types_describe(
    name: str, module: str, streamed: str, whole: str, left_out: frozenset[str]
) -> None:
    types = pytest.importorskip(module.partition(".")[0]) and importlib.import_module(module)
    for path in sorted((DATA / name / "requests").glob("*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))["body"]
        read = getattr(types, streamed if body["stream"] else whole).model_validate(body)
        written = read.model_dump(mode="json", by_alias=True, exclude_none=True)

        assert list(_lost(body, written, left_out)) == [], path.name


def _lost(sent: Any, kept: Any, left_out: frozenset[str], where: str = "") -> Iterator[str]:
    """Where ``kept`` is not what was sent."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        other = cast("dict[str, Any]", kept)
        for key, value in cast("dict[str, Any]", sent).items():
            if key in other:
                yield from _lost(value, other[key], left_out, f"{where}.{key}")
            elif key not in left_out:
                yield f"{where}.{key}"
    elif isinstance(sent, list) and isinstance(kept, list):
        pairs = zip(cast("list[Any]", sent), cast("list[Any]", kept), strict=True)
        for index, (one, same) in enumerate(pairs):
            yield from _lost(one, same, left_out, f"{where}[{index}]")
    elif sent != kept:
        yield f"{where}: {sent!r} became {kept!r}"


CHAT: Final = ("deepseek", "githubmodels", "huggingface", "kimi", "novita", "openai_compatible", "xai")

# Fields that these providers document and OpenAI does not have.
OWN_FIELDS: Final = frozenset({"thinking", "reasoning_content", "reasoning", "reasoning_details", "extra_content"})


@pytest.mark.parametrize("name", CHAT)
def test_chat_completions_are_what_openais_types_describe(name: str) -> None:
    params = pytest.importorskip("openai.types.chat.completion_create_params")

    strict = TypeAdapter[Any](params.CompletionCreateParamsStreaming)
    known = set(params.CompletionCreateParamsBase.__annotations__) | {"stream"}
    for path in sorted((DATA / name / "requests").glob("*.json")):
        body = json.loads(path.read_text(encoding="utf-8"))["body"]
        assert set(body) - known - OWN_FIELDS == set(), path.name
        strict.validate_python({**body, "stream": True})
