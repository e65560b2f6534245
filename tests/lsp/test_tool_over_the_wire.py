"""The tool ``lsp`` over the real wire, with a language server on pygls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.parts import DONE, edit, project_with, results, results_of, word_config
from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

FILES = {"a.words": "def one\ndef two\nuse one\n", "b.words": "use two\n\nuse one\n"}


def lsp(call_id: str, operation: str, path: str, **more: Any) -> JsonObject:
    return calls("lsp", call_id, operation=operation, path=path, **more)


async def test_definitions_uses_and_symbols_are_found_without_a_change(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    async with running_server(tmp_path, config=word_config(project)) as server:
        texts = await results(
            server.wire,
            project,
            lsp("1", "definition", "b.words", symbol="one"),
            lsp("2", "references", "a.words", symbol="one", line=1),
            lsp("3", "symbols", "a.words"),
            lsp("4", "definition", "a.words", symbol="on"),
            lsp("5", "symbols", "c.words"),
            lsp("6", "symbols", "a.other"),
        )
    assert texts == [
        "a.words:1: def one",
        "a.words:1: def one\na.words:3: use one\nb.words:3: use one",
        "1: variable one\n2: variable two",
        "a.words: there is no `on`.",
        "Path c.words does not exist. Please provide a valid path. Did you mean b.words or a.words?",
        "The language server failed: there is none for a.other.",
    ]


async def test_files_outside_are_neither_shown_nor_renamed_through_a_link(tmp_path: Path) -> None:
    project = project_with(tmp_path, {**FILES, "d.words": "use three\n"})
    outside = tmp_path / "outside.words"
    outside.write_text("def three\nuse three\n")
    (project / "c.words").symlink_to(outside)
    # The language server sees the file.
    config = word_config(project) + '\n[sandbox]\nmode = "off"\n'
    async with running_server(tmp_path, config=config) as server:
        texts = await results(
            server.wire,
            project,
            lsp("1", "definition", "d.words", symbol="three"),
            lsp("2", "rename", "d.words", symbol="three", new_name="four"),
        )
    assert texts[0] == f"{outside}:1"
    assert "outside of the session's folders" in texts[1]
    assert outside.read_text() == "def three\nuse three\n"


async def test_the_tool_is_offered_where_a_server_is_configured_or_runs(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    table = word_config(project).partition("[lsp.words]")
    (tmp_path / "home").mkdir()
    in_json = (
        f'{{"lspServers": {{"words": {{"command": {table[2].split("command = ")[1].splitlines()[0]}, "args":'
        f' {table[2].split("args = ")[1].splitlines()[0]}, "fileExtensions": {{".words": "words"}}}}}}}}'
    )
    (tmp_path / "home" / "lsp-config.json").write_text(in_json)
    async with running_server(tmp_path, config=table[0]) as server:
        turns = [edit("a.words", "use one", "use two"), DONE]
        session = await server.wire.create(scripted(*turns), workingDirectory=str(project))
        assert "lsp" not in await tool_names(server.wire, session)
        await server.wire.prompt(session)
        assert "lsp" in await tool_names(server.wire, session)


async def test_the_tool_is_not_offered_if_servers_are_switched_off(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    async with running_server(tmp_path, config=word_config(project, enabled=False)) as server:
        session = await server.wire.create(scripted(DONE), workingDirectory=str(project))
        assert "lsp" not in await tool_names(server.wire, session)


async def tool_names(wire: Any, session: str) -> list[str]:
    found = await wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
    return [tool["name"] for tool in found["tools"]]


async def test_a_rename_changes_all_files(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    config = word_config(project)
    async with running_server(tmp_path, config=config) as server:
        (text,) = await results(server.wire, project, lsp("1", "rename", "b.words", symbol="one", new_name="won"))
    assert text.startswith(f"Changed 2 files:\n{project}/a.words\n{project}/b.words")
    assert (project / "a.words").read_text() == "def won\ndef two\nuse won\n"
    assert (project / "b.words").read_text() == "use two\n\nuse won\n"


async def test_a_rename_does_not_tell_old_errors_that_have_the_new_name(tmp_path: Path) -> None:
    files = {"a.words": "use one\ndef two\nwarn one\n", "b.words": "use one\nuse other\n"}
    project = project_with(tmp_path, files)
    async with running_server(tmp_path, config=word_config(project, warnings=True)) as server:
        texts = await results(
            server.wire,
            project,
            lsp("1", "rename", "b.words", symbol="one", new_name="won"),
            lsp("2", "rename", "a.words", symbol="two", new_name="won"),
            lsp("3", "rename", "a.words", symbol="won", new_name="last"),
        )
    assert [text.partition("may have brought:")[2] for text in texts] == ["", "", ""]
    assert (project / "a.words").read_text() == "use last\ndef last\nwarn one\n"


async def test_a_rename_tells_no_old_error_that_depends_on_several_of_its_files(tmp_path: Path) -> None:
    project = project_with(tmp_path, {"a.words": "def one\n", "b.words": "call one\n", "c.words": "call one\n"})
    async with running_server(tmp_path, config=word_config(project)) as server:
        texts = await results(
            server.wire,
            project,
            edit("a.words", "def one", "def one\ndef two"),
            lsp("1", "rename", "a.words", symbol="one", new_name="won"),
            lsp("2", "symbols", "a.words"),
            edit("b.words", "call won", "call won\ncall two", "3"),
        )
    assert [text.partition("may have brought:\n")[2] for text in texts[:3]] == ["", "", ""]
    assert "b.words:2:6: missing argument" in texts[3]


@pytest.mark.parametrize("rule", ["write(**/a.words)", "write(**/b.words)"])
async def test_a_rename_of_which_one_file_is_forbidden_changes_none(rule: str, tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    config = word_config(project).replace("[permissions]", f'[permissions]\ndeny = ["{rule}"]')
    async with running_server(tmp_path, config=config) as server:
        await results(server.wire, project, lsp("1", "rename", "b.words", symbol="one", new_name="won"))
    assert {name: (project / name).read_text() for name in FILES} == FILES


async def test_plan_mode_allows_questions_and_refuses_a_rename(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    turns = [
        lsp("1", "rename", "b.words", symbol="one", new_name="won"),
        lsp("2", "definition", "b.words", symbol="one"),
        DONE,
    ]
    async with running_server(tmp_path, config=word_config(project)) as server:
        session = await server.wire.create(scripted(*turns), workingDirectory=str(project))
        await server.wire.call("session.mode.set", {"sessionId": session, "mode": "plan"})
        refused, found = results_of(await server.wire.prompt(session))
    assert "plan mode" in refused
    assert found == "a.words:1: def one"
    assert (project / "a.words").read_text() == FILES["a.words"]
