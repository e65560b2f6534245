"""What a language server says is reported once its last text is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from jumpseat.lsp.catalogue import DEFAULTS, LanguageServer
from jumpseat.lsp.documents import Document, Documents
from jumpseat.lsp.run import Run
from jumpseat.lsp.work import Work

pytestmark = pytest.mark.anyio

FILE = Path("/project/a.words")
BUILD = "rust-analyzer/flycheck/0"


def error(line: int, message: str) -> types.Diagnostic:
    span = types.Range(types.Position(line, 4), types.Position(line, 5))
    return types.Diagnostic(span, message, types.DiagnosticSeverity.Error)


@pytest.mark.parametrize("is_repaired", [False, True], ids=["hidden", "repaired"])
async def test_an_old_error_that_an_error_has_hidden_is_not_new_when_it_comes_back(is_repaired: bool) -> None:
    documents = Documents(warnings=False)
    document = documents.open[FILE] = Document(FILE, "words", "use a\nuse b\n")
    documents.push(FILE, 1, [error(1, "unknown b")])

    async def change(text: str, *errors: types.Diagnostic) -> list[str]:
        await documents.begin()
        document.text = text
        documents.change(FILE)
        documents.push(FILE, 1, errors)
        return [found.message for _, found in await documents.take()]

    first = [] if is_repaired else [error(0, "no name")]
    assert await change("use\nuse b\n", *first) == [found.message for found in first]
    assert await change("use c\nuse b\n", error(1, "unknown b")) == (["unknown b"] if is_repaired else [])
    # Another line with the same error is new.
    assert await change("use b\nuse b\n", error(0, "unknown b"), error(1, "unknown b")) == ["unknown b"]


async def test_what_a_server_said_about_a_file_that_is_changing_is_reported_when_it_knows_the_last_text() -> None:
    documents = Documents(warnings=False)
    documents.open[FILE] = Document(FILE, "words", "use a\n")
    documents.push(FILE, 1, [])
    await documents.begin()
    documents.push(FILE, 1, [error(0, "unknown word")])
    assert await documents.take({FILE}) == []
    # The next change begins, and the last one has brought something.
    await documents.begin()
    assert await documents.take({FILE}) == []
    assert [(path, found.message) for path, found in await documents.take()] == [(FILE, "unknown word")]
    assert await documents.take() == []


async def test_what_a_build_of_the_text_before_finds_is_not_told_and_old_errors_stay_old() -> None:
    documents = Documents(warnings=False)
    document = documents.open[FILE] = Document(FILE, "words", "use a\nuse b\n")
    work = Work(documents)
    work.tells_builds_apart = True

    async def change(text: str) -> None:
        await documents.begin()
        document.text = text
        work.changed()

    async def end_build(*errors: types.Diagnostic) -> list[str]:
        documents.push(FILE, None, errors)
        work.progressed(BUILD, "ended")
        await work.until_checked(lambda: False)
        return [found.message for _, found in await documents.take()]

    old = error(1, "unknown b")
    work.progressed(BUILD, "begun")
    assert await end_build(old) == []
    await change("use no\nuse a\nuse b\n")
    work.progressed(BUILD, "begun")
    # The change is taken back before its build has ended, which is cancelled then.
    await change("use a\nuse b\n")
    documents.push(FILE, None, [error(0, "unknown no"), error(2, "unknown b")])
    assert await documents.take() == []
    assert await end_build(error(0, "unknown no"), error(2, "unknown b")) == []
    work.progressed(BUILD, "begun")
    assert await end_build(old) == []
    await change("use c\nuse b\n")
    work.progressed(BUILD, "begun")
    assert await end_build(error(0, "unknown c"), old) == ["unknown c"]


@pytest.mark.parametrize("is_built", [False, True], ids=["without build file", "with one"])
async def test_where_packages_begin_is_not_believed_without_a_build_file(is_built: bool, tmp_path: Path) -> None:
    if is_built:
        (tmp_path / "pom.xml").touch()
    run = Run(LanguageServer("jdtls", "jdtls", DEFAULTS["jdtls"], {}), tmp_path, warnings=False)
    span = types.Range(types.Position(0, 8), types.Position(0, 12))
    package = types.Diagnostic(
        span, "another package", types.DiagnosticSeverity.Error, code="536871240", source="Java"
    )
    run.published(tmp_path / "A.java", None, [package, error(1, "unknown word")])
    found = [one.message for one in run.documents.file(tmp_path / "A.java").pushed]
    assert found == (["another package"] if is_built else []) + ["unknown word"]
