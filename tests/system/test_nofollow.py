"""Files are opened where they were approved: links that appear later are not followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jumpseat.agent.buffer_history import BufferHistory
from jumpseat.sandbox.configuration_files import move_away, restore
from jumpseat.sandbox.places import link_settings
from jumpseat.system.nofollow import CAN_WALK, LinkInPathError, create_file, open_place, replace_file
from jumpseat.tools.workspace_files import Files
from tests.tools.session import call, tool_session

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not CAN_WALK, reason="this system cannot open so")]

ELSEWHERE = "it now resolves to a different location than when permission was given"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("project/sub", "outside"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text(f"{folder}\n")
    return tmp_path / "project"


def swap_folder(project: Path) -> None:
    (project / "sub").rename(project / "old")
    (project / "sub").symlink_to(project.parent / "outside")


def swap_file(project: Path) -> None:
    (project / "sub" / "file").unlink()
    (project / "sub" / "file").symlink_to(project.parent / "outside" / "file")


@pytest.mark.parametrize("swap", [swap_folder, swap_file])
async def test_a_link_created_after_the_approval_is_not_followed(
    project: Path, swap: Callable[[Path], None]
) -> None:
    outside = project.parent / "outside"
    path = project / "sub" / "file"
    swap(project)
    for tool, arguments in (("view", {}), ("edit", {"old_str": "outside", "new_str": "changed"})):
        async with tool_session(project) as ctx:
            ctx.files.settle(path, path)
            outcome = await call(ctx, tool, path="sub/file", **arguments)
        assert (outcome.ok, outcome.text) == (False, f"Path sub/file cannot be accessed: {ELSEWHERE}.")
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_text() == "outside\n"


@pytest.mark.parametrize("name", ["sub/new", "sub/deep/new"])
async def test_nothing_is_created_behind_a_link_that_appears_later(project: Path, name: str) -> None:
    swap_folder(project)
    async with tool_session(project) as ctx:
        ctx.files.settle(project / name, project / name)
        outcome = await call(ctx, "create", path=name, file_text="x")
    assert outcome.text == f"Path {name} cannot be accessed: {ELSEWHERE}."
    assert os.listdir(project.parent / "outside") == ["file"]


async def test_a_path_is_opened_where_it_resolved_at_the_approval(project: Path) -> None:
    (project / "link").symlink_to(project / "sub")
    async with tool_session(project) as ctx:
        ctx.files.settle(project / "link" / "file", project / "sub" / "file")
        (project / "link").unlink()
        (project / "link").symlink_to(project.parent / "outside")
        assert (await call(ctx, "view", path="link/file")).text == "1. project/sub\n2. "
        await call(ctx, "edit", path="link/file", old_str="project/sub", new_str="changed")
    assert (project / "sub" / "file").read_text() == "changed\n"
    assert (project.parent / "outside" / "file").read_text() == "outside\n"


class Editor:
    """An editor that opens paths as programs do: with all links followed."""

    def __init__(self) -> None:
        self.history = BufferHistory()

    async def read(self, path: Path) -> str:
        return f"unsaved: {path.read_text()}"  # noqa: ASYNC240 - of a test

    async def write(self, path: Path, text: str) -> bool:
        path.write_text(text)  # noqa: ASYNC240 - of a test
        return True


@pytest.mark.parametrize("name", ["sub/file", "sub/new", "sub/deep/new"])
async def test_an_editor_is_not_sent_through_a_link_that_appears_later(project: Path, name: str) -> None:
    swap_folder(project)
    path, files = project / name, Files(Editor())
    files.settle(path, path)
    await files.open(path)
    assert files.unsaved(path) is None
    for act in (files.replace(path, b"x", 0o644), files.create(path, b"x")):
        with pytest.raises((LinkInPathError, FileExistsError)):
            await act
    assert os.listdir(project.parent / "outside") == ["file"]
    assert (project.parent / "outside" / "file").read_text() == "outside\n"


def test_former_contents_are_not_restored_behind_a_link(project: Path) -> None:
    swap_folder(project)
    with pytest.raises(LinkInPathError):
        restore(str(project / "sub" / "settings"), b"x")
    assert move_away(str(project / "sub" / "file"), [project], project.parent / "target") is None
    assert os.listdir(project.parent / "outside") == ["file"]


def test_settings_are_not_linked_behind_a_link_in_a_cache(project: Path) -> None:
    home = project.parent / "home"
    (home / ".cargo").mkdir(parents=True)
    (home / ".cargo" / "config.toml").write_text("")
    (project / "cargo").symlink_to(project.parent / "outside")
    link_settings(project, {}, home)
    assert os.listdir(project.parent / "outside") == ["file"]


def create_empty(path: Path) -> None:
    create_file(path, b"")


def replace_with_nothing(path: Path) -> None:
    replace_file(path, b"", 0o644)


@pytest.mark.parametrize("act", [open_place, create_empty, replace_with_nothing])
@pytest.mark.parametrize("name", ["link/x", "sub/link/x", "loop/x"])
def test_no_link_on_the_way_is_followed(project: Path, name: str, act: Callable[[Path], object]) -> None:
    (project / "link").symlink_to("sub")
    (project / "sub" / "link").symlink_to("..")
    (project / "loop").symlink_to("loop")
    with pytest.raises(LinkInPathError):
        act(project / name)


def test_a_file_in_place_of_a_folder_is_named_in_the_error(project: Path) -> None:
    with pytest.raises(FileExistsError) as raised:
        create_file(project / "sub" / "file" / "deep" / "new", b"")
    assert raised.value.filename == str(project / "sub" / "file")


def test_a_folder_that_may_be_entered_but_not_listed_can_be_passed(project: Path) -> None:
    (project / "sub").chmod(0o311)
    try:
        with open(open_place(project / "sub" / "file"), "rb") as file:
            assert file.read() == b"project/sub\n"
    finally:
        (project / "sub").chmod(0o755)


def test_the_root_and_pipes_are_opened_at_once(project: Path) -> None:
    os.mkfifo(project / "pipe")
    for path in (Path("/"), project / "pipe"):
        os.close(open_place(path))


def test_a_failed_write_leaves_no_temporary_file(project: Path) -> None:
    (project / "sub" / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(project / "sub" / "folder", b"x", 0o644)
    assert sorted(os.listdir(project / "sub")) == ["file", "folder"]
