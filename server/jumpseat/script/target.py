"""The server that a script is played with: any command that speaks JSON-RPC on its stdin and stdout."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final, Literal, Protocol, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, Process

from jumpseat.adapters.wire import as_object
from jumpseat.process_groups import kill_group
from jumpseat.script.checks import Checks
from jumpseat.script.patterns import ScriptError, shown
from jumpseat.script.steps import Framing
from jumpseat.script.types import TypeChecks
from jumpseat_protocol.framing import FrameDecoder, FramingError, encode_frame

Direction: TypeAlias = Literal["->", "<-"]

EXIT_S: Final = 5.0
"""How long a server may take to end when its client has hung up."""
GONE_S: Final = 0.5
"""A server that has closed its output is given so long to end before it counts as gone."""
_KEPT_STDERR_BYTES: Final = 16 * 1024
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of the conversation."""

    direction: Direction
    message: Any


class Decoder(Protocol):
    """Cuts what arrives into bodies."""

    def feed(self, data: bytes) -> Sequence[bytes | FramingError]: ...


class _Lines:
    """One JSON value a line, as in ACP."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line for line in lines if line.strip()]


class Target:
    """A running server. All that goes over the wire is kept in ``heard``, all that is wrong in ``problems``."""

    def __init__(self, process: Process, framing: Framing, *, checked: bool) -> None:
        self.heard: list[Heard] = []
        self.problems: list[str] = []
        self.checks = Checks()
        self.ended = anyio.Event()
        self._process = process
        self._framing = framing
        self._checked = checked
        self._decoder: Decoder = FrameDecoder() if framing == "content-length" else _Lines()
        self._news = anyio.Event()
        self._stderr = b""
        self._last_id = 0
        self._types: TypeChecks | None = None

    def use_schema(self) -> None:
        """Judge the types of all messages from here on."""
        self._types = TypeChecks()

    @property
    def stderr(self) -> str:
        """The end of what the server wrote there."""
        return self._stderr.decode("utf-8", "replace")

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    @property
    def pid(self) -> int:
        return self._process.pid

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def incoming(self, since: int = 0) -> list[Any]:
        """What the server has sent from a position in ``heard`` on."""
        return [one.message for one in self.heard[since:] if one.direction == "<-"]

    # --- out ----------------------------------------------------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; ``jsonrpc`` is added where it is missing."""
        message = {"jsonrpc": "2.0", **message}
        self.heard.append(Heard("->", message))
        self.checks.sent(message)
        if self._types is not None:
            self._types.sent(message)
        body = json.dumps(message, ensure_ascii=False).encode()
        await self.write(encode_frame(body) if self._framing == "content-length" else body + b"\n")

    async def write(self, data: bytes) -> None:
        """Write bytes as they are. A server that has gone does not read them, which shows elsewhere."""
        assert self._process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._process.stdin.send(data)

    async def ask(self, method: str, params: Any = None, seconds: float = 10) -> dict[str, Any] | None:
        """Send a request and wait for its whole answer; ``None`` where none comes in time."""
        request_id, since = self.new_id(), len(self.heard)
        await self.send({"id": request_id, "method": method, **({} if params is None else {"params": params})})
        found: list[dict[str, Any]] = []

        def look() -> bool:
            answers = (as_object(one) for one in self.incoming(since))
            found[:] = [one for one in answers if "method" not in one and one.get("id") == request_id]
            return bool(found)

        await self.until(look, seconds)
        return found[0] if found else None

    async def call(self, method: str, params: Any = None, seconds: float = 10) -> Any:
        """Send a request and return its result.

        Raises:
            AssertionError: the answer is an error, or did not come.
        """
        answer = await self.ask(method, params, seconds)
        if answer is None:
            raise AssertionError(f"{method}: no answer within {seconds:g} s; stderr: {self.stderr[-500:]}")
        if "error" in answer:
            raise AssertionError(f"{method}: {shown(answer['error'], 400)}")
        return answer.get("result")

    # --- in -----------------------------------------------------------------------------------------------------

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait for news until ``done``; ``False`` where the time is up or the server has gone before."""
        with anyio.move_on_after(seconds):
            while not done():
                if self.ended.is_set():
                    return done()
                await self._news.wait()
        return done()

    async def read(self) -> None:
        """Collect messages until the server closes its output."""
        assert self._process.stdout is not None
        try:
            async for chunk in self._process.stdout:
                for body in self._decoder.feed(chunk):
                    self._take(body)
                self._tell()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        else:
            # Its exit code belongs to what is said of it.
            with anyio.move_on_after(GONE_S):
                await self._process.wait()
        finally:
            self.ended.set()
            self._tell()

    async def read_stderr(self) -> None:
        """Keep the end of stderr."""
        stream: ByteReceiveStream | None = self._process.stderr
        assert stream is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stream:
                self._stderr = (self._stderr + chunk)[-_KEPT_STDERR_BYTES:]

    def _take(self, body: bytes | FramingError) -> None:
        if isinstance(body, FramingError):
            self._complain(f"broken frame: {body.message}")
            return
        try:
            message = json.loads(body)
        except ValueError:
            self._complain(f"a body that is not JSON: {shown(body[:80].decode('utf-8', 'replace'))}")
            return
        self.heard.append(Heard("<-", message))
        typed = self._types.received(message) if self._types is not None else []
        for problem in [*self.checks.received(message), *typed]:
            self._complain(problem)

    def _complain(self, problem: str) -> None:
        if self._checked:
            self.problems.append(problem)

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # --- the end ------------------------------------------------------------------------------------------------

    async def hang_up(self, seconds: float = EXIT_S) -> int | None:
        """Close the server's input and wait for its exit code; ``None`` where it does not go by itself."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        with anyio.move_on_after(seconds):
            return await self._process.wait()
        return None

    async def kill(self) -> None:
        """End the server's process, and what it started, without asking."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                kill_group(self._process.pid)
            await self._process.wait()

    async def close(self) -> None:
        """Leave nothing behind."""
        await self.kill()
        await self._process.aclose()


@asynccontextmanager
async def running(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str | None] | None = None,
    *,
    framing: Framing = "content-length",
    checked: bool = True,
) -> AsyncGenerator[Target]:
    """Start a server whose files are all in ``folder``; it is gone when this is left.

    Of our environment it has little more than the path; ``env`` comes on top, ``None`` takes a variable out.

    Raises:
        ScriptError: the command cannot be run.
    """
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    environ: dict[str, str | None] = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environ |= {"HOME": str(folder), "COPILOT_HOME": str(home), **(env or {})}
    try:
        process = await anyio.open_process(
            command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={name: value for name, value in environ.items() if value is not None},
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        raise ScriptError(f"could not run {command[0]!r}: {error.strerror or error}") from None
    target = Target(process, framing, checked=checked)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(target.read)
        tasks.start_soon(target.read_stderr)
        try:
            yield target
        except Exception as error:
            # Raised below, or the task group would wrap it.
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await target.close()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
