"""Diagnostics of changes over the real wire, from a language server on pygls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.parts import NOTED, edit, project_with, results, word_config
from tests.support.server import running_server

pytestmark = pytest.mark.anyio


async def test_the_result_of_an_edit_has_the_errors_that_it_brought_in_all_files_and_no_old_ones(
    tmp_path: Path,
) -> None:
    files = {"a.words": "use old\ndef one\ndef two\n", "b.words": "use older\nuse one\nuse two\n"}
    project = project_with(tmp_path, files)
    async with running_server(tmp_path, config=word_config(project)) as server:
        first, second, third = await results(
            server.wire,
            project,
            edit("a.words", "def one", "# moved down\ndef oneself"),
            edit("b.words", "use two", "use two\nuse missing", "call-2"),
            edit("a.words", "def oneself", "def one", "call-3"),
        )
    assert first == (
        f"File a.words updated with changes.\n{NOTED}b.words:2:5: unknown name one (words unknown)\n  2. use one"
    )
    assert second.endswith(f"{NOTED}b.words:4:5: unknown name missing (words unknown)\n  4. use missing")
    assert third == "File a.words updated with changes."
