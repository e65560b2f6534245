"""Read git repositories, never to change them: with the ``git`` command, or from git's own files.

A repository may come with settings that make git run programs. Those that looking at it could start are switched
off, and nothing waits for a person or for the network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import ByteReceiveStream

from jumpseat.system.regular_files import is_there, read_regular, upward
from jumpseat_protocol.events import WorkingDirectoryContext

if TYPE_CHECKING:
    from jumpseat.system.programs import OwnPrograms

MAX_OUTPUT_BYTES: Final = 32 * 1024 * 1024

SETTINGS: Final = ("core.quotePath=false", "core.fsmonitor=false", "safe.bareRepository=explicit")
ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
NO_FETCHING: Final = {"GIT_ALLOW_PROTOCOL": "none"}
"""Keeps versions of git that ignore ``GIT_NO_LAZY_FETCH`` from fetching a missing object, with a program that the
repository may name."""


class GitError(Exception):
    """git failed; the message is the last line that it wrote to its standard error."""


async def run_git(
    cwd: Path,
    *args: str,
    environ: Mapping[str, str],
    timeout_s: float,
    programs: OwnPrograms,
    may_fetch: bool = False,
) -> bytes:
    """Run ``git`` in ``cwd`` and return its standard output, cut at :data:`MAX_OUTPUT_BYTES`.

    ``environ`` is the environment of the process, and ``programs`` finds git there. The process is killed on
    cancellation, after ``timeout_s`` seconds and when it has written too much.

    Raises:
        GitError: git is missing, failed or took too long.
    """
    program = programs.find("git", environ)
    if program is None:
        raise GitError("git cannot be run: No such file or directory")
    command = [program, *(word for setting in SETTINGS for word in ("-c", setting)), *args]
    try:
        async with AsyncExitStack() as stack:
            files: tuple[int, ...] = ()
            if programs.confine is not None:
                command, files = await stack.enter_async_context(programs.confine(command, cwd))
            process = await anyio.open_process(
                command,
                cwd=cwd,
                env={**programs.environ(environ), **ENVIRONMENT, **({} if may_fetch else NO_FETCHING)},
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                pass_fds=files,
            )
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror or error}") from None
    output, errors = bytearray(), bytearray()
    with anyio.move_on_after(timeout_s) as scope:
        # Leaving the block early kills the process.
        async with process, anyio.create_task_group() as tasks:
            assert process.stdout is not None
            assert process.stderr is not None
            tasks.start_soon(_collect, process.stderr, errors)
            await _collect(process.stdout, output)
            if len(output) < MAX_OUTPUT_BYTES:
                await process.wait()
            else:
                process.kill()
    if scope.cancelled_caught:
        raise GitError("git took too long")
    if process.returncode != 0 and len(output) < MAX_OUTPUT_BYTES:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise GitError(lines[-1] if lines else f"git exited with {process.returncode}")
    return bytes(output[:MAX_OUTPUT_BYTES])


async def _collect(stream: ByteReceiveStream, into: bytearray) -> None:
    async for chunk in stream:
        into += chunk
        if len(into) >= MAX_OUTPUT_BYTES:
            return


LARGEST_BYTES: Final = 256 * 1024
"""Size to which a file of git is cut."""

_REMOTE: Final = re.compile(r"[/:]([^/:]+)/([^/]+?)(?:\.git)?/?$")


def git_root(folder: Path) -> Path | None:
    """Return the root of the repository or worktree that holds ``folder``; ``None`` if there is none."""
    for root in (folder, *folder.parents):
        try:
            if (root / ".git").is_file() or (root / ".git" / "HEAD").is_file():
                return root
        except OSError:
            continue
    return None


def working_directory_context(cwd: Path, *, host_git: bool = True) -> WorkingDirectoryContext:
    """Return ``cwd`` with its repository root, branch and ``owner/name``, as far as they are known.

    Without ``host_git``, only ``cwd`` is set.
    """
    context = WorkingDirectoryContext(cwd=str(cwd))
    if not host_git:
        return context
    # Most working directories have none, and each session looks for one.
    for folder in (Path(above) for above in upward(cwd) if is_there(f"{above}{os.sep}.git")):
        try:
            dot_git = git_folder(folder)
            if not (dot_git / "HEAD").is_file():
                continue
            context.git_root = str(folder)
            head = _read(dot_git / "HEAD").strip()
            if head.startswith("ref: refs/heads/"):
                context.branch = head.removeprefix("ref: refs/heads/")
            context.repository = _repository(dot_git)
        except (OSError, ValueError):
            pass
        return context
    return context


def git_folder(root: Path) -> Path:
    """Return the folder with git's files of the repository or worktree at ``root``.

    Raises:
        OSError: it cannot be found out.
        ValueError: ``.git`` is no file of git.
    """
    dot_git = root / ".git"
    # In a worktree or a submodule, a file names the real folder.
    return (root / _read(dot_git).removeprefix("gitdir:").strip()).resolve() if dot_git.is_file() else dot_git


def _read(path: Path) -> str:
    return read_regular(path, LARGEST_BYTES).decode()


def _repository(dot_git: Path) -> str | None:
    config = dot_git / "config"
    common = dot_git / "commondir"
    if common.is_file():
        config = dot_git / _read(common).strip() / "config"
    # Imported with the first repository of a process.
    import configparser

    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        # Git ignores indentation, the parser does not.
        parser.read_string("\n".join(line.strip() for line in _read(config).splitlines()))
        url = parser.get('remote "origin"', "url", fallback=None)
    except (OSError, ValueError, configparser.Error):
        return None
    found = _REMOTE.search(url or "")
    return f"{found.group(1)}/{found.group(2)}" if found else None
