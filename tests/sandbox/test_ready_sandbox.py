"""The sandbox that is started before its command is known: when a command gets it, and when it must not."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from jumpseat.tools.shell.shells import Shells
from tests.sandbox.parts import MECHANISMS, Confining, git, members, ready_namespaces
from tests.tools.session import until

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")]

NAMESPACE = "readlink /proc/self/ns/pid"


class Session:
    """Commands of one session, in a project that is a repository."""

    def __init__(self, confining: Confining, shells: Shells) -> None:
        self.project = confining.project
        self.user_home = Path(confining.environ["HOME"])
        self.environ = confining.environ
        self.shells = shells

    async def run(self, line: str, *, cwd: Path | None = None, **variables: str) -> str:
        shell = await self.shells.start(line, cwd=cwd or self.project, environ=self.environ | variables)
        await shell.wait()
        return "\n".join([shell.output().strip(), *shell.messages])

    async def ready(self) -> str:
        """Wait until a sandbox waits for a command of this project; return its namespace."""
        found: list[str] = []

        def waits() -> bool:
            found[:] = ready_namespaces(self.project)
            return bool(found)

        await until(waits)
        return found[0]


@asynccontextmanager
async def open_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **variables: str
) -> AsyncGenerator[Session, None]:
    """Open a session in which a first command has run. ``variables`` are added to the environment of all."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    confining = Confining(tmp_path / "project", tmp_path / "home", mechanism=MECHANISMS["bubblewrap"])
    confining.environ |= variables
    git(confining.project, "init", "-q")
    (Path(confining.environ["HOME"]) / ".ssh").mkdir()
    async with anyio.create_task_group() as tasks:
        shells = Shells(tasks, make_sandbox=lambda: confining.sandbox)
        session = Session(confining, shells)
        await session.run("true")
        yield session
        await shells.close()
        assert not ready_namespaces(session.project)


@pytest.fixture
async def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Session, None]:
    async with open_session(tmp_path, monkeypatch) as session:
        yield session


async def test_a_command_in_the_ready_sandbox_sees_what_it_would_see_in_a_new_one(session: Session) -> None:
    look = (
        "declare -p | grep -v -e BASHPID -e RANDOM -e SECONDS -e EPOCH -e SRANDOM -e '_='; echo $0 $# $$ $PPID;"
        " shopt; set -o; ulimit -a; umask; grep -e ^Sig -e ^Cap /proc/self/status; ls /proc/self/fd; pwd;"
        " cat /proc/$$/cmdline; printf '%s\\n' 'ü €😀 \\\\ \" \\n' ; echo \"$(</dev/stdin)\"; no-such-command"
    )
    await session.ready()
    ready = await session.run(look)
    await session.ready()
    # A variable makes the next sandbox a new one.
    new = await session.run(look, OTHER="x")
    assert "OTHER" in new
    assert [line for line in new.splitlines() if "OTHER" not in line] == ready.splitlines()


async def test_bash_warns_about_a_missing_locale_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_session(tmp_path, monkeypatch, LC_ALL="none.UTF-8") as session:
        namespace = await session.ready()
        warning, seen = (await session.run(NAMESPACE)).splitlines()
        assert "setlocale" in warning
        assert seen == namespace


async def test_commands_one_after_the_other_each_get_a_fresh_sandbox_that_was_ready(session: Session) -> None:
    for _ in range(3):
        namespace = await session.ready()
        assert await session.run(f"{NAMESPACE}; (setsid sleep 1000 &)") == namespace
        assert await session.run(NAMESPACE) != namespace


async def test_only_one_of_two_commands_gets_the_ready_sandbox(session: Session) -> None:
    namespace = await session.ready()
    seen: list[str] = []

    async def run() -> None:
        seen.append(await session.run(NAMESPACE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(run)
    assert len(set(seen)) == 2
    assert namespace in seen


async def test_files_that_appeared_while_the_sandbox_waited_are_protected(session: Session) -> None:
    await session.ready()
    git(session.project, "init", "-q", "nested")
    (session.project / ".mcp.json").write_text("{}")
    (session.user_home / ".netrc").write_text("the password")
    output = await session.run(
        f"echo evil >> nested/.git/config; echo evil > .mcp.json; cat {session.user_home}/.netrc"
    )
    assert "the password" not in output
    assert (session.project / ".mcp.json").read_text() == "{}"
    assert "evil" not in (session.project / "nested" / ".git" / "config").read_text()


async def test_files_that_were_replaced_while_the_sandbox_waited_are_protected(session: Session) -> None:
    config, keys = session.project / ".git" / "config", session.user_home / ".ssh"
    await session.ready()
    # Git writes a new file and renames it; its mount in the sandbox is gone with the former one.
    git(session.project, "config", "user.name", "n")
    await session.run("echo evil >> .git/config")
    assert "evil" not in config.read_text()

    await session.ready()
    keys.rmdir()
    keys.mkdir()
    (keys / "id").write_text("the key")
    output = await session.run(f"cat {keys}/id")
    assert "the key" not in output

    await session.ready()
    # The same file again: only its mount is gone.
    kept = config.with_name("kept")
    os.link(config, kept)
    config.unlink()
    kept.rename(config)
    await session.run("echo evil >> .git/config")
    assert "evil" not in config.read_text()


async def test_a_project_that_was_replaced_while_the_sandbox_waited_is_the_new_one(
    session: Session, tmp_path: Path
) -> None:
    await session.ready()
    session.project.rename(tmp_path / "former")
    shutil.copytree(tmp_path / "former", session.project)
    assert await session.run("echo evil > .git/hooks/x; echo new > file")
    assert (session.project / "file").read_text() == "new\n"
    assert not (tmp_path / "former" / "file").exists()
    assert not (session.project / ".git" / "hooks" / "x").exists()


async def test_a_working_directory_that_was_replaced_while_the_sandbox_waited_is_the_new_one(
    session: Session,
) -> None:
    folder = session.project / "folder"
    folder.mkdir()
    await session.run("true", cwd=folder)
    await session.ready()
    folder.rename(session.project / "former")
    folder.mkdir()
    await session.run("echo new > file", cwd=folder)
    assert (folder / "file").read_text() == "new\n"


async def test_commands_that_bash_might_read_differently_run_as_they_are(session: Session) -> None:
    await session.ready()
    assert await session.run("printf '\x01\x7f\x02' | od -An -tx1") == " 01 7f 02".strip()
    assert await session.run(f"echo {'x' * 10_000} | wc -c") == "10001"
    with pytest.raises(ValueError, match="null byte"):
        await session.run("echo \0")
    assert await session.run("echo again") == "again"


async def test_the_ready_sandbox_ends_with_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_session(tmp_path, monkeypatch) as session:
        namespace = await session.ready()
        assert members(namespace)
    await until(lambda: not members(namespace))
