"""Large messages of language servers: only their outline is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jumpseat.lsp.incoming import LARGEST_PART, TOO_LARGE, read_message

SPOT = {"line": 0, "character": 0}
PUBLISH = "textDocument/publishDiagnostics"


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def published(*diagnostics: Any) -> bytes:
    return message(method=PUBLISH, params={"uri": "file:///a", "version": 7, "diagnostics": list(diagnostics)})


def diagnostic(text: str) -> dict[str, Any]:
    return {"range": {"start": SPOT, "end": SPOT}, "message": text}


MANY = [diagnostic(str(number)) for number in range(100_000)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "diagnostics",
    [
        MANY,
        [diagnostic("\ud83d" + "x" * LARGEST_PART)],
        [{**diagnostic("a"), "data": "[" * LARGEST_PART}],
    ],
    ids=["many", "long", "with data"],
)
def test_diagnostics_that_are_too_large_count_as_too_many(diagnostics: list[Any]) -> None:
    read = read_message(published(*diagnostics), 20)
    assert read["method"] == PUBLISH
    assert (read["params"]["uri"], read["params"]["version"]) == ("file:///a", 7)
    assert len(read["params"]["diagnostics"]) == 21


def test_an_answer_that_is_too_large_is_an_error_of_that_request() -> None:
    answer = message(id=3, result=["x" * LARGEST_PART])
    assert read_message(answer, 20) == {"id": 3, "error": {"code": -32603, "message": TOO_LARGE}}


@pytest.mark.parametrize(
    "body",
    [
        message(method="workspace/configuration", id=1, params={"items": ["x" * LARGEST_PART]}),
        b'{"method": "%b", "params": %b' % (PUBLISH.encode(), b"[" * LARGEST_PART),
        b"[" * (LARGEST_PART + 1),
        b"[1]",
        message(method=PUBLISH, params={"uri": ["x" * LARGEST_PART]}),
    ],
    ids=["request", "nested", "no object", "array", "no URI"],
)
def test_other_large_messages_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_message(body, 20)
