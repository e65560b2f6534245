"""A server run as a child process: find, start and end it, and keep its last stderr output."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.stapled import StapledByteStream

from jumpseat_client.errors import HandshakeError

STDERR_BYTES = 64 * 1024
EXIT_S = 2.0
"""Seconds for the server to exit after its stdin is closed, and again after it is told to terminate."""

_ERROR = "error: "


class ServerProcess:
    """A running server process. ``stream`` is its stdin and stdout."""

    def __init__(self, process: Process, on_stderr: Callable[[bytes], None] | None = None) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stream = StapledByteStream(process.stdin, process.stdout)
        self._process = process
        self._on_stderr = on_stderr
        self._stderr = bytearray()
        self._stderr_read = anyio.Event()

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        env: Mapping[str, str | None],
        cwd: str | os.PathLike[str] | None,
        *,
        start_new_session: bool = False,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> ServerProcess:
        """Start ``command`` with our own environment updated by ``env``; ``None`` removes a variable.

        ``on_stderr`` is called with the stderr output of the server as it arrives.

        Raises:
            HandshakeError: the executable could not be run.
        """
        merged = {name: value for name, value in {**os.environ, **env}.items() if value is not None}
        try:
            process = await anyio.open_process(
                command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=merged,
                cwd=cwd,
                start_new_session=start_new_session,
            )
        except OSError as error:
            raise HandshakeError(f"could not run {command[0]!r}: {error}") from error
        return cls(process, on_stderr)

    @property
    def stderr_text(self) -> str:
        """The last :data:`STDERR_BYTES` of the server's stderr output."""
        return self._stderr.decode("utf-8", "replace")

    async def read_stderr(self) -> None:
        """Read stderr until the server closes it, and keep its end."""
        stderr: ByteReceiveStream | None = self._process.stderr
        assert stderr is not None
        try:
            async for chunk in stderr:
                if self._on_stderr is not None:
                    self._on_stderr(chunk)
                self._stderr += chunk
                del self._stderr[:-STDERR_BYTES]
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            self._stderr_read.set()

    async def explain_end(self) -> str:
        """Describe why stdout ended. Waits at most a second for the exit code and the rest of stderr."""
        with anyio.move_on_after(1):
            await self._process.wait()
            await self._stderr_read.wait()
        code = self._process.returncode
        how = "closed its output" if code is None else f"exited with code {code}"
        stderr = self.stderr_text.strip()
        return f"the server {how}" + (f"; its stderr ends with:\n{stderr}" if stderr else "")

    @property
    def refusal(self) -> str | None:
        """The reason that the ended server gave in its last line, ``error: REASON``; ``None`` without such."""
        last = self.stderr_text.strip().rpartition("\n")[2]
        return last.removeprefix(_ERROR) if self._process.returncode and last.startswith(_ERROR) else None

    async def end(self) -> None:
        """Wait for the exit after stdin was closed; terminate, then kill a server that does not exit."""
        for last_resort in (self._process.terminate, self._process.kill):
            with anyio.move_on_after(EXIT_S):
                await self._process.wait()
                break
            last_resort()
        await self._process.wait()

    async def close(self) -> None:
        """Close the pipes of the ended process."""
        await self._process.aclose()


def find_server() -> list[str]:
    """Return the command of the ``jumpseat`` executable: next to this interpreter, else on ``PATH``.

    Raises:
        HandshakeError: no executable was found.
    """
    beside = str(Path(sys.executable).parent)
    found = shutil.which("jumpseat", path=os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise HandshakeError("no `jumpseat` executable found: install jumpseat, or pass `command`")
    return [found]
