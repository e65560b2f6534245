"""A folder full of pipes, devices, loops, huge files and strange names stops no session and no other client."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import anyio.to_thread
import pytest

from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

YOLO = ("--yolo",)
CONFIGURATION = (
    *("AGENTS.md", ".github/copilot-instructions.md", ".mcp.json", ".github/mcp.json", ".jumpseat/config.toml"),
    *(".jumpseat/tools/x.toml", ".jumpseat/adapters/x.toml", ".github/skills/x/SKILL.md", ".github/agents/x.md"),
    *("plain.txt", "picture.png"),
)
# Git itself waits for pipes in the places of these, for as long as its time limit allows.
OF_GIT = (".git/HEAD", ".git/config", ".git/commondir", ".gitignore")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    # Without the right to make devices, a link leads to one.
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except OSError:
        make_endless(path)


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


def make_unreadable(path: Path) -> None:
    path.write_text("x")
    path.chmod(0)


def make_folder(path: Path) -> None:
    path.mkdir()


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": make_fifo,
    "device": make_device,
    "endless": make_endless,
    "loop": make_loop,
    "huge": make_huge,
    "unreadable": make_unreadable,
    "folder": make_folder,
}


def fill(folder: Path, make: Callable[[Path], None]) -> None:
    for name in CONFIGURATION if make is make_fifo else (*CONFIGURATION, *OF_GIT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make(folder / name)


@pytest.mark.parametrize("kind", [*KINDS])
async def test_no_kind_of_file_in_place_of_a_file_that_is_read_stops_anything(tmp_path: Path, kind: str) -> None:
    project = tmp_path / "project"
    await anyio.to_thread.run_sync(fill, project, KINDS[kind])
    turns: list[JsonObject] = [
        calls("view", path="plain.txt"),
        calls("view", path="picture.png"),
        calls("edit", path="plain.txt", old_str="a", new_str="b"),
        calls("grep", pattern="x"),
        calls("glob", pattern="**/*"),
        calls("bash", command="ls */* .git/*"),
        {"text": "done"},
    ]
    async with running_server(tmp_path, args=YOLO, config=f'trusted_folders = ["{project}"]') as server:
        wire = server.wire
        before = server.rss_bytes()
        session = await wire.create(
            scripted(*turns), workingDirectory=str(project), enableConfigDiscovery=True, pluginDirectories=["."]
        )
        attached = [{"type": "file", "path": "plain.txt"}, {"type": "file", "path": "picture.png"}]
        attached += [{"type": "directory", "path": "."}, {"type": "directory", "path": "plain.txt"}]
        found = await wire.prompt(session, attachments=attached)
        for method in ("session.skills.reload", "session.metadata.contextInfo", "session.workspaces.diff"):
            # A repository whose files are no files is none, so there may be an error.
            await wire.response(await wire.ask(method, {"sessionId": session}))
        await wire.check_alive()
        assert server.rss_bytes() - before < 200 << 20
    assert [event for event in found if event["type"] == "session.error"] == []
    assert sum(event["type"] == "tool.execution_complete" for event in found) == len(turns) - 1


STRANGE = [b"new\nline", b"\xff\xfe", b"a" * 255, b"-rf", b"tab\t", b"\xed\xa0\xbd", b"a b", b"'\"`$(x)"]


def fill_with_strange_names(project: Path) -> None:
    (project / "many").mkdir(parents=True)
    for name in STRANGE:
        Path(os.fsdecode(os.path.join(os.fsencode(project), name))).write_text("needle")
    for number in range(20_000):
        (project / "many" / str(number)).touch()


async def test_strange_names_and_very_many_files_are_listed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    await anyio.to_thread.run_sync(fill_with_strange_names, project)
    turns = [calls("view", path="."), calls("view", path="many"), calls("grep", pattern="needle"), {"text": "done"}]
    async with running_server(tmp_path, args=YOLO) as server:
        session = await server.wire.create(scripted(*turns), workingDirectory=str(project))
        found = await server.wire.prompt(session, attachments=[{"type": "directory", "path": "many"}])
        await server.wire.check_alive()
    results = [event["data"]["result"]["content"] for event in found if event["type"] == "tool.execution_complete"]
    assert all(name.decode("utf-8", "replace") in results[0] for name in STRANGE)
    assert "many/" in results[0]
    assert results[1].startswith("Output too large")
    prompt = next(event for event in found if event["type"] == "user.message")
    assert "many (more than 10000 items)" in prompt["data"]["transformedContent"]
