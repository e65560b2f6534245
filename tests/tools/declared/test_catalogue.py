"""The catalogue of declared tools, except for parts that tests over the wire cover."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from jumpseat.declared.places import project_folder
from jumpseat.tools.declared.catalogue import ToolCatalogue
from jumpseat.tools.declared.declarations import Declarations
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio


@pytest.mark.thorough
async def test_a_file_that_never_finishes_delays_reading_for_a_limited_time(tmp_path: Path) -> None:
    home = tmp_path / "tools"
    home.mkdir()
    os.mkfifo(tmp_path / "fifo")
    (home / "a.toml").write_text('cmds = [["true"]]\n')
    (home / "b.py").write_text(f"with open({str(tmp_path / 'fifo')!r}) as file:\n    file.read()\n")
    catalogue = ToolCatalogue({}, tmp_path, lambda _path: False, read_within_s=1)
    try:
        with anyio.fail_after(WAIT_S):
            await catalogue.refresh(tmp_path)
            # It is not read again before it has changed.
            await catalogue.refresh(tmp_path)
    finally:
        (tmp_path / "fifo").write_text("")

    problems = {tool.name: tool.problem for tool in catalogue.known(tmp_path).values()}
    assert problems == {"a": None, "b": f"{home / 'b.py'}: reading it takes too long"}


@pytest.mark.thorough
async def test_a_file_that_never_finishes_does_not_block_the_others(tmp_path: Path) -> None:
    home = tmp_path / "tools"
    home.mkdir()
    os.mkfifo(tmp_path / "fifo")
    (home / "a.py").write_text(
        f"with open({str(tmp_path / 'fifo')!r}) as file:\n    file.read()\nTOOL = {{'cmds': [['true']]}}\n"
    )
    (home / "b.py").write_text('TOOL = {"cmds": [["true"]]}\n')
    (home / "c.toml").write_text('cmds = ["true"]\n')
    catalogue = ToolCatalogue({}, tmp_path, lambda _path: False, read_within_s=1)
    try:
        problems = {tool.name: tool.problem for tool in await catalogue.read_all(None)}
    finally:
        # Ends the thread, which the worker would otherwise wait for when it exits.
        (tmp_path / "fifo").write_text("")
    assert problems == {"a": f"{home / 'a.py'}: reading it takes too long", "b": None, "c": None}
    # The file is used once it has been read.
    with anyio.fail_after(WAIT_S):
        while (await catalogue.read_all(None))[0].problem is not None:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("tools", ["3", "None", "'ab'", "[3]", "{1: 2}", "[lambda: exit()]"])
async def test_a_file_with_an_invalid_list_of_tools_does_not_affect_others(tmp_path: Path, tools: str) -> None:
    home = tmp_path / "tools"
    home.mkdir()
    (home / "a.py").write_text(f"TOOLS = {tools}\n")
    (home / "b.toml").write_text('cmds = ["true"]\n')
    found = await ToolCatalogue({}, tmp_path, lambda _path: False).read_all(None)
    assert [tool.problem is None for tool in sorted(found, key=lambda tool: tool.where)] == [False, True]


async def test_the_first_declaration_of_a_name_is_used(tmp_path: Path) -> None:
    project = tmp_path / "project" / ".jumpseat" / "tools"
    project.mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    for folder in (project, tmp_path / "tools"):
        for name in ("all", "files"):
            (folder / f"{name}.toml").write_text('cmds = [["true"]]\n')
    (tmp_path / "tools" / "home.toml").write_text('cmds = [["true"]]\n')
    tables = {name: {"cmds": [["true"]]} for name in ("all", "home")}
    catalogue = ToolCatalogue(tables, tmp_path, lambda _path: True)
    await catalogue.refresh(project.parents[1])
    known = catalogue.known(project.parents[1])

    assert {name: tool.origin for name, tool in known.items()} == {
        "all": "project",
        "files": "project",
        "home": "configuration",
    }
    # Tools of the user stay known to a session that moves to a folder that has not been read.
    assert catalogue.known(tmp_path).keys() == {"all", "files", "home"}


def test_project_tools_are_searched_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".jumpseat" / "tools").mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "plain").mkdir()

    assert project_folder(tmp_path / "plain", "tools") == tmp_path / ".jumpseat" / "tools"
    assert project_folder(tmp_path / "repository", "tools") is None
    # The home folder of the user is not a project.
    assert project_folder(tmp_path, "tools", tmp_path / ".jumpseat") is None


async def test_without_declarations_the_catalogue_is_not_loaded(tmp_path: Path) -> None:
    declarations = Declarations({}, tmp_path, {}, is_trusted=lambda _path: False, built_in=["view"])
    await declarations.read(tmp_path)

    assert not declarations.may_exist(tmp_path, ["view"])
    assert "catalogue" not in vars(declarations)
