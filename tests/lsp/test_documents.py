"""What a language server says is reported once its last text is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from jumpseat.lsp.documents import Document, Documents

pytestmark = pytest.mark.anyio

FILE = Path("/project/a.words")


async def test_what_a_server_said_about_a_file_that_is_changing_is_reported_when_it_knows_the_last_text() -> None:
    documents = Documents(warnings=False)
    documents.open[FILE] = Document(FILE, "words", "use a\n")
    documents.push(FILE, 1, [])
    await documents.begin()
    span = types.Range(types.Position(0, 4), types.Position(0, 5))
    documents.push(FILE, 1, [types.Diagnostic(span, "unknown word", types.DiagnosticSeverity.Error)])
    assert await documents.take({FILE}) == []
    # The next change begins, and the last one has brought something.
    await documents.begin()
    assert await documents.take({FILE}) == []
    assert [(path, found.message) for path, found in await documents.take()] == [(FILE, "unknown word")]
    assert await documents.take() == []
