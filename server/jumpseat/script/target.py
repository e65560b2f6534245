"""The server under test: any command that speaks JSON-RPC on its stdin and stdout."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final, Literal, Protocol, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct

from jumpseat.adapters.wire import as_object
from jumpseat.script.checks import Checks
from jumpseat.script.patterns import ScriptError, preview
from jumpseat.script.protocols import Framing
from jumpseat.script.schema_checks import SchemaChecks
from jumpseat.system.process_groups import kill_group
from jumpseat_protocol.envelope import FrameDecoder, FramingError, encode_frame

Direction: TypeAlias = Literal["->", "<-"]

EXIT_S: Final = 5.0
"""Time limit for a server to exit after its input was closed, in seconds."""
GONE_S: Final = 0.5
"""Time limit for a server to exit after it has closed its output, in seconds."""
_KEPT_STDERR_BYTES: Final = 16 * 1024
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")


class WireMessage(Struct, frozen=True):
    """A message of the conversation: ``->`` from the client, ``<-`` from the server."""

    direction: Direction
    message: Any


class Decoder(Protocol):
    """Splits received bytes into message bodies."""

    def feed(self, data: bytes) -> Iterable[bytes | FramingError]: ...


class _Lines:
    """Splits lines of JSON, as in ACP."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line for line in lines if line.strip()]


class Target:
    """A running server. ``traffic`` has all messages in both directions, ``problems`` all violations."""

    def __init__(self, process: Process, framing: Framing, *, checked: bool) -> None:
        self.traffic: list[WireMessage] = []
        self.problems: list[str] = []
        self.checks = Checks()
        self.ended = anyio.Event()
        self._process = process
        self._framing = framing
        self._checked = checked
        self._decoder: Decoder = FrameDecoder() if framing == "content-length" else _Lines()
        self._changed = anyio.Event()
        self._stderr = b""
        self._last_id = 0
        self._schema_checks: SchemaChecks | None = None

    def use_schema(self) -> None:
        """Validate all further messages against the protocol's schema."""
        self._schema_checks = SchemaChecks()

    @property
    def stderr(self) -> str:
        """The end of the server's stderr, at most 16 KiB."""
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
        """Return the server's messages from the position ``since`` in ``traffic`` on."""
        return [message.message for message in self.traffic[since:] if message.direction == "<-"]

    # --- out ----------------------------------------------------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message, with ``jsonrpc`` added if it is missing."""
        message = {"jsonrpc": "2.0", **message}
        self.traffic.append(WireMessage("->", message))
        self.checks.sent(message)
        if self._schema_checks is not None:
            self._schema_checks.sent(message)
        body = json.dumps(message, ensure_ascii=False).encode()
        await self.write(encode_frame(body) if self._framing == "content-length" else body + b"\n")

    async def write(self, data: bytes) -> None:
        """Write bytes unchanged. A closed pipe is ignored: the exit of the server is reported elsewhere."""
        assert self._process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._process.stdin.send(data)

    async def request(self, method: str, params: Any = None, seconds: float = 10) -> dict[str, Any] | None:
        """Send a request and return its response, or ``None`` if none is received within ``seconds``."""
        request_id, since = self.new_id(), len(self.traffic)
        await self.send({"id": request_id, "method": method, **({} if params is None else {"params": params})})
        found: list[dict[str, Any]] = []

        def has_answer() -> bool:
            answers = (as_object(message) for message in self.incoming(since))
            found[:] = [answer for answer in answers if "method" not in answer and answer.get("id") == request_id]
            return bool(found)

        await self.until(has_answer, seconds)
        return found[0] if found else None

    async def call(self, method: str, params: Any = None, seconds: float = 10) -> Any:
        """Send a request and return its result.

        Raises:
            AssertionError: the response is an error, or none was received within ``seconds``.
        """
        answer = await self.request(method, params, seconds)
        if answer is None:
            raise AssertionError(f"{method}: no response within {seconds:g} s; stderr: {self.stderr[-500:]}")
        if "error" in answer:
            raise AssertionError(f"{method}: {preview(answer['error'], 400)}")
        return answer.get("result")

    # --- in -----------------------------------------------------------------------------------------------------

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until ``done()``, checked after new messages.

        Returns its last result: ``False`` on time-out or if the server has exited.
        """
        with anyio.move_on_after(seconds):
            while not done():
                if self.ended.is_set():
                    return done()
                await self._changed.wait()
        return done()

    async def read(self) -> None:
        """Collect messages until the server closes its output."""
        assert self._process.stdout is not None
        try:
            async for chunk in self._process.stdout:
                for body in self._decoder.feed(chunk):
                    self._receive(body)
                self._notify()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        else:
            # The exit code is part of failure messages.
            with anyio.move_on_after(GONE_S):
                await self._process.wait()
        finally:
            self.ended.set()
            self._notify()

    async def read_stderr(self) -> None:
        """Keep the end of stderr."""
        stream: ByteReceiveStream | None = self._process.stderr
        assert stream is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stream:
                self._stderr = (self._stderr + chunk)[-_KEPT_STDERR_BYTES:]

    def _receive(self, body: bytes | FramingError) -> None:
        if isinstance(body, FramingError):
            self._report(f"broken frame: {body.message}")
            return
        try:
            message = json.loads(body)
        except ValueError:
            self._report(f"body is not JSON: {preview(body[:80].decode('utf-8', 'replace'))}")
            return
        self.traffic.append(WireMessage("<-", message))
        typed = self._schema_checks.received(message) if self._schema_checks is not None else []
        for problem in [*self.checks.received(message), *typed]:
            self._report(problem)

    def _report(self, problem: str) -> None:
        if self._checked:
            self.problems.append(problem)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # --- the end ------------------------------------------------------------------------------------------------

    async def close_input(self, seconds: float = EXIT_S) -> int | None:
        """Close the server's input and return its exit code, or ``None`` if it runs on after ``seconds``."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        with anyio.move_on_after(seconds):
            return await self._process.wait()
        return None

    async def kill(self) -> None:
        """Kill the server and the processes that it started."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                kill_group(self._process.pid)
            await self._process.wait()

    async def close(self) -> None:
        """Kill the server and close its pipes."""
        await self.kill()
        await self._process.aclose()


@asynccontextmanager
async def running_server(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str | None] | None = None,
    *,
    framing: Framing = "content-length",
    checked: bool = True,
) -> AsyncGenerator[Target]:
    """Run a server with ``folder`` as its working and home directory, and kill it on exit.

    From the current environment, the server inherits little more than ``PATH``; ``env`` adds variables, or removes
    those whose value is ``None``.

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
        raise ScriptError(f"cannot run {command[0]!r}: {error.strerror or error}") from None
    target = Target(process, framing, checked=checked)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(target.read)
        tasks.start_soon(target.read_stderr)
        try:
            yield target
        except Exception as error:
            # Raised below: the task group would wrap it in an exception group.
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await target.close()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
