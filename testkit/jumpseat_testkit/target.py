"""The server under test: a command that speaks JSON-RPC on its stdin and stdout, or an address."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct

from jumpseat_protocol.envelope import FrameDecoder, FramingError, encode_frame
from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.links import CLOSED, Link, Pipes, connect
from jumpseat_testkit.patterns import ScriptError, preview
from jumpseat_testkit.protocols import PROTOCOLS, Framing, is_missing
from jumpseat_testkit.protocols import Protocol as WireProtocol
from jumpseat_testkit.running import end_group

if TYPE_CHECKING:
    from jumpseat_testkit.schema_checks import SchemaChecks

Direction: TypeAlias = Literal["->", "<-"]

EXIT_S: Final = 5.0
"""Time limit for a server to exit after its input was closed, in seconds."""
GONE_S: Final = 0.5
"""Time limit for a server to exit after it has closed its output, in seconds."""
CONNECT_S: Final = 20.0
"""Time limit for a server to listen at its address, in seconds."""
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


class _Messages:
    """The messages of a WebSocket, which need no splitting."""

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        return [data]


DECODERS: Final[Mapping[Framing, Callable[[], Decoder]]] = {
    "content-length": FrameDecoder,
    "lines": _Lines,
    "messages": _Messages,
}


Interfere: TypeAlias = Callable[["Target", dict[str, Any]], Awaitable[bool]]
"""Called before a message is sent; returns whether the conversation ends in its place."""


class PlayStoppedError(Exception):
    """The conversation was ended on purpose."""


class Target:
    """A running server. ``traffic`` has all messages in both directions, ``problems`` all violations.

    ``process`` is ``None`` for a server that somebody else has started.
    """

    def __init__(
        self, process: Process | None, link: Link, protocol: WireProtocol, framing: Framing, *, checked: bool
    ) -> None:
        self.traffic: list[WireMessage] = []
        self.problems: list[str] = []
        self.checks = protocol.rules()
        self.feed = protocol.feed
        self.ended = anyio.Event()
        self.interfere: Interfere | None = None
        self._process = process
        self._link = link
        self.framing: Framing = framing
        self._checked = checked
        self._decoder = DECODERS[framing]()
        self._changed = anyio.Event()
        self._stderr = b""
        self._last_id = 0
        self._schema_checks: SchemaChecks | None = None

    def use_schema(self) -> None:
        """Validate all further messages against the protocol's schema."""
        from jumpseat_testkit.schema_checks import SchemaChecks

        self._schema_checks = SchemaChecks()

    @property
    def stderr(self) -> str:
        """The end of the server's stderr, at most 16 KiB."""
        return self._stderr.decode("utf-8", "replace")

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.returncode

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def incoming(self, since: int = 0) -> list[Any]:
        """Return the server's messages from the position ``since`` in ``traffic`` on."""
        return [message.message for message in self.traffic[since:] if message.direction == "<-"]

    # --- out ----------------------------------------------------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message, with ``jsonrpc`` added if it is missing.

        Raises:
            PlayStoppedError: ``interfere`` has ended the conversation in the place of the message.
        """
        message = {"jsonrpc": "2.0", **message}
        if (interfere := self.interfere) is not None:
            self.interfere = None
            if await interfere(self, message):
                raise PlayStoppedError
            self.interfere = interfere
        await self.post(message)

    async def post(self, message: dict[str, Any]) -> None:
        """Send a whole message; nobody interferes."""
        self.traffic.append(WireMessage("->", message))
        self.checks.sent(message)
        if self._schema_checks is not None:
            self._schema_checks.sent(message)
        await self.write(encode_message(message, self.framing))

    async def write(self, data: bytes) -> None:
        """Write bytes unchanged. A closed pipe is ignored: the exit of the server is reported elsewhere."""
        with suppress(*CLOSED):
            await self._link.send(data)

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
        try:
            async for chunk in self._link:
                for body in self._decoder.feed(chunk):
                    self._receive(body)
                self._notify()
        except CLOSED:
            pass
        else:
            # The exit code is part of failure messages.
            with anyio.move_on_after(GONE_S):
                await self._gone()
        finally:
            self.ended.set()
            self._notify()

    async def read_stderr(self) -> None:
        """Keep the end of stderr."""
        stream: ByteReceiveStream | None = None if self._process is None else self._process.stderr
        if stream is None:
            return
        with suppress(*CLOSED):
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
        """Close the server's input and return its exit code, or ``None`` if it runs on after ``seconds``.

        The exit code of a server that somebody else has started is 0 once it has closed the connection.
        """
        with suppress(*CLOSED):
            await self._link.close_input()
        with anyio.move_on_after(seconds):
            return await self._gone()
        return None

    async def _gone(self) -> int:
        if self._process is not None and isinstance(self._link, Pipes):
            return await self._process.wait()
        # A server with a port serves others after its client has left.
        await self.ended.wait()
        return 0

    async def kill(self) -> None:
        """Kill the server and the processes that it started, or close the connection to that of somebody else."""
        if self._process is None:
            await self._link.close()
        elif self._process.returncode is None:
            end_group(self._process.pid)
            await self._process.wait()

    async def close(self) -> None:
        """Kill the server and close its pipes."""
        await self.kill()
        await self._link.close()
        if self._process is not None:
            await self._process.aclose()


def encode_message(message: Any, framing: Framing) -> bytes:
    """Return a message as it is sent."""
    body = json.dumps(message, ensure_ascii=False).encode()
    if framing == "content-length":
        return encode_frame(body)
    return body + b"\n" if framing == "lines" else body


def _in_full(command: Sequence[str], folder: Path) -> list[str]:
    """Return a command for another working folder: with full paths of the files that it names here.

    Files of ``folder`` come first. The name of a program without a folder is left for ``PATH``.
    """

    def full(word: str) -> str:
        with suppress(OSError, ValueError):
            if not (folder / word).exists() and Path(word).is_file():
                return os.path.abspath(word)
        return word

    program, *words = command
    return [full(program) if os.path.dirname(program) else program, *map(full, words)]


async def _start(
    command: Sequence[str], folder: Path, env: Mapping[str, str | None] | None, *, piped: bool
) -> Process:
    if is_missing(command):
        raise ScriptError("expected the command of the server to test (`server` in the script, or --server)")
    command = _in_full(command, folder)
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    environ: dict[str, str | None] = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environ |= {"HOME": str(folder), "COPILOT_HOME": str(home), **(env or {})}
    try:
        return await anyio.open_process(
            command,
            stdin=PIPE if piped else DEVNULL,
            stdout=PIPE if piped else DEVNULL,
            stderr=PIPE,
            env={name: value for name, value in environ.items() if value is not None},
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        raise ScriptError(f"cannot run {command[0]!r}: {error.strerror or error}") from None


@asynccontextmanager
async def running_server(
    command: Sequence[str] | None,
    folder: Path,
    env: Mapping[str, str | None] | None = None,
    *,
    protocol: WireProtocol = PROTOCOLS["copilot"],
    framing: Framing | None = None,
    url: str | None = None,
    checked: bool = True,
) -> AsyncGenerator[Target]:
    """Run a server with ``folder`` as its working and home directory, and kill it on exit.

    From the current environment, the server inherits little more than ``PATH``; ``env`` adds variables, or removes
    those whose value is ``None``. With ``url``, the messages go there instead of through the server's pipes; then
    ``command`` may be ``None`` for a server that is already running.

    Raises:
        ScriptError: the command cannot be run, or nobody listens at the address.
    """
    process = await _start(command, folder, env, piped=url is None) if command is not None else None
    try:
        link: Link = (
            await connect(url, CONNECT_S, lambda: process is not None and process.returncode is not None)
            if url is not None
            else Pipes(_as_process(process))
        )
    except BaseException:
        if process is not None:
            end_group(process.pid)
            await process.aclose()
        raise
    web = url is not None and not url.startswith("tcp:")
    target = Target(process, link, protocol, "messages" if web else framing or protocol.framing, checked=checked)
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


def _as_process(process: Process | None) -> Process:
    if process is None:
        raise ScriptError("expected a command or an address of the server")
    return process
