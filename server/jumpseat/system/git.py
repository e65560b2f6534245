"""Run ``git`` to read repositories, never to change them.

A repository may come with settings that make git run programs. Those that looking at it could start are switched
off, and nothing waits for a person or for the network.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream

MAX_OUTPUT_BYTES: Final = 32 * 1024 * 1024

_SETTINGS: Final = ("core.quotePath=false", "core.fsmonitor=false", "safe.bareRepository=explicit")
_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}


class GitError(Exception):
    """git failed; the message is the last line that it wrote to its standard error."""


Confine: TypeAlias = Callable[[Sequence[str], Path], Awaitable[list[str]]]
"""Returns the command line that runs a command in a folder, confined so that it can only read."""


async def run_git(
    cwd: Path, *args: str, environ: Mapping[str, str], timeout_s: float, confine: Confine | None = None
) -> bytes:
    """Run ``git`` in ``cwd`` and return its standard output, cut at :data:`MAX_OUTPUT_BYTES`.

    ``environ`` is the environment of the process; its ``PATH`` is where git is looked up. The process is killed on
    cancellation, after ``timeout_s`` seconds and when it has written too much. ``confine`` puts it into a sandbox.

    Raises:
        GitError: git is missing, failed or took too long.
    """
    program = shutil.which("git", path=environ.get("PATH"))
    if program is None:
        raise GitError("git cannot be run: No such file or directory")
    command = [program, *(word for setting in _SETTINGS for word in ("-c", setting)), *args]
    if confine is not None:
        command = await confine(command, cwd)
    try:
        process = await anyio.open_process(
            command, cwd=cwd, env={**environ, **_ENVIRONMENT}, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
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
