"""Diagnostics of changes over the real wire, from a language server on pygls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.parts import (
    DONE,
    NOTED,
    edit,
    language_servers,
    project_with,
    results,
    results_of,
    word_config,
)
from tests.support.limits import WAIT_S
from tests.support.server import running_server, scripted
from tests.tools.session import until

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


@pytest.mark.parametrize("at_end", [[], ["stay"]], ids=["ends", "is ended"])
async def test_an_idle_server_ends_and_starts_again_with_the_next_change(at_end: list[str], tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "use one\n"})
    turns = [edit("a.words", "use one", "use two"), DONE, edit("a.words", "use two", "use three"), DONE]
    async with running_server(tmp_path, config=word_config(project, *at_end, idle_s=0.25)) as server:
        session = await server.wire.create(scripted(*turns), workingDirectory=str(project))
        assert "unknown name two" in results_of(await server.wire.prompt(session))[0]
        await until(lambda: not language_servers(server), WAIT_S)
        assert "unknown name three" in results_of(await server.wire.prompt(session))[0]


async def test_servers_end_with_their_session_and_when_the_configuration_is_read_again_by_force(
    tmp_path: Path,
) -> None:
    project = project_with(tmp_path, {"a.words": "use one\n"})
    turns = [edit("a.words", "use one", "use two"), DONE, edit("a.words", "use two", "use three"), DONE]
    async with running_server(tmp_path, config=word_config(project)) as server:
        session = await server.wire.create(scripted(*turns), workingDirectory=str(project))
        await server.wire.prompt(session)
        assert language_servers(server)
        await server.wire.call("session.lsp.initialize", {"sessionId": session})
        assert language_servers(server)
        await server.wire.call("session.lsp.initialize", {"sessionId": session, "force": True})
        await until(lambda: not language_servers(server), WAIT_S)
        assert "unknown name three" in results_of(await server.wire.prompt(session))[0]
        await server.wire.call("session.destroy", {"sessionId": session})
        await until(lambda: not language_servers(server), WAIT_S)


async def test_no_server_starts_if_they_are_switched_off_or_nothing_confines_them_in_a_foreign_folder(
    tmp_path: Path,
) -> None:
    for name, change in {
        "off": ("[lsp]", "[lsp]\nenabled = false"),
        "foreign": ("trusted_folders", '[sandbox]\nmode = "off"\n[environment]\npass'),
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        project = project_with(folder, {"a.words": "use one\n"})
        async with running_server(folder, config=word_config(project).replace(*change, 1)) as server:
            texts = await results(server.wire, project, edit("a.words", "one", "two"))
            assert texts == ["File a.words updated with changes."]
            assert not language_servers(server)
