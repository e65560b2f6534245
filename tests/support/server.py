"""The real server in a process of its own, driven over its raw wire.

::

    async with running_server(tmp_path) as server:                       # stdio: server.wire is the connection
        session = await server.wire.create(scripted({"text": "hello"}))
        await server.wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        await server.wire.event("session.idle")

    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire:
        await wire.send(b"anything at all")

The process is forked from one that has already imported the server, because more than a thousand tests start one;
:mod:`tests.support.forked` has the same for SDKs, editors and shells. No code is shared with the product: frames
are parsed here, strictly, so that a fault in the framing code cannot hide itself. Every wait is bounded. Leaving
:func:`running_server` ends the server (by closing stdin, or by SIGTERM over TCP) and fails if the server hangs,
exits with an unexpected code, writes a traceback to stderr, or leaves a process behind.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Final, TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, ByteStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.stapled import StapledByteStream

from tests.support.forked import SERVER, ForkedProcess, fork, preload
from tests.support.limits import WAIT_S

JsonObject: TypeAlias = dict[str, Any]

EXIT_S: Final = 60.0
"""Seconds until a server that is exiting counts as hanging. The benchmarks measure the contract, half a second."""

READABLE: Final = "[environment]\nreadable = true\n"
"""The ``config.toml`` of a server whose ``/proc`` entries a test reads: otherwise only root could."""

_MARK: Final = "SERVER_UNDER_TEST"
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")
_ENVIRON_READS: Final = 10_000
"""The number of attempts to read an empty environment: the process may be in the middle of ``exec``."""
_MAX_FRAME_BYTES: Final = 256 * 1024 * 1024


def scripted(*turns: JsonObject) -> JsonObject:
    """Return a scripted provider whose model answers with ``turns``, one per call."""
    return {"type": "scripted", "script": {"turns": list(turns)}}


def calls(name: str, call_id: str = "call-1", **arguments: Any) -> JsonObject:
    """Return a scripted turn that calls one tool."""
    return {"tool_calls": [{"id": call_id, "name": name, "arguments": arguments}]}


def frame(message: Any) -> bytes:
    """Return ``message`` (JSON values, or the bytes of a body) with its header."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Wire:
    """One connection. Every received message is kept in ``messages``; waiting for one never removes it."""

    def __init__(self, stream: ByteStream) -> None:
        self.messages: list[JsonObject] = []
        self.problem: str | None = None
        """The fault in the bytes that the server sent, if any."""
        self.ended = anyio.Event()
        """Set when the server has closed the connection."""
        self.wait_s = WAIT_S
        """Seconds to wait for one message."""
        self._stream = stream
        self._sending = anyio.Lock()
        self._news = anyio.Event()
        self._may_read = anyio.Event()
        self._may_read.set()
        self._last_id = 0

    # --- sending --------------------------------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        """Write bytes unchanged."""
        with anyio.fail_after(self.wait_s):
            async with self._sending:
                await self._stream.send(data)

    def encode(self, message: JsonObject) -> bytes:
        """Encode a message for this wire."""
        return frame(message)

    async def receive(self, stream: BufferedByteReceiveStream) -> bytes:
        """Read the body of the next message from this wire."""
        head = await stream.receive_until(b"\r\n\r\n", 100)
        name, _, length = head.partition(b": ")
        assert name == b"Content-Length", f"expected only Content-Length, the header that the SDKs read: {head!r}"
        return await stream.receive_exactly(int(length))

    def check(self, message: JsonObject) -> None:
        """Validate a message of the server; raises ``AssertionError``."""

    async def ask(self, method: str, params: Any = None) -> int:
        """Send a request without waiting; returns its id, for :meth:`response`."""
        request_id = self.new_id()
        await self.send(self.encode(request(request_id, method, params)))
        return request_id

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def end(self) -> None:
        """Send nothing more, and go on reading."""
        assert isinstance(self._stream, anyio.abc.SocketStream)
        await self._stream.send_eof()

    async def hang_up(self) -> None:
        """Close the connection abruptly."""
        await anyio.aclose_forcefully(self._stream)

    # --- receiving ------------------------------------------------------------------------------------------------

    async def until(self, fits: Callable[[JsonObject], bool], *, since: int = 0, what: str = "") -> JsonObject:
        """Wait for the first message from position ``since`` on that ``fits``; fails after ``wait_s``."""
        position = since
        with anyio.move_on_after(self.wait_s):
            while True:
                for message in self.messages[position:]:
                    if fits(message):
                        return message
                position = len(self.messages)
                if self.ended.is_set():
                    break
                await self._news.wait()
        state = self.problem or ("the connection has ended" if self.ended.is_set() else f"after {self.wait_s} s")
        recent = [_short(message) for message in self.messages[-20:]]
        raise AssertionError(f"no {what or 'such message'}: {state}; last messages: {recent}")

    async def wait_for_message_at(self, position: int) -> None:
        """Wait, without a time limit, until there is a message at ``position``."""
        while len(self.messages) <= position:
            await self._news.wait()

    async def response(self, request_id: Any) -> JsonObject:
        """Wait for the response to a request, with its id and its result or error."""
        return await self.until(
            lambda message: "method" not in message and message.get("id") == request_id,
            what=f"response {request_id!r}",
        )

    async def call(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result; an error fails the test."""
        answer = await self.response(await self.ask(method, params))
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    async def answer(self, request: JsonObject, result: Any) -> None:
        """Send the result of a request of the server."""
        await self.send(self.encode({"jsonrpc": "2.0", "id": request["id"], "result": result}))

    async def error_of(self, method: str, params: Any = None) -> JsonObject:
        """Send a request that must fail and return the error."""
        answer = await self.response(await self.ask(method, params))
        assert "result" not in answer, f"{method} was not refused: {answer['result']}"
        return answer["error"]

    async def event(self, kind: str, *, session: str | None = None, since: int = 0, **data: Any) -> JsonObject:
        """Wait for the first session event of a type whose data has these values (camelCase names)."""

        def fits(message: JsonObject) -> bool:
            if message.get("method") != "session.event":
                return False
            params, event = message["params"], message["params"]["event"]
            return (
                event["type"] == kind
                and session in (None, params["sessionId"])
                and all(event["data"].get(name) == value for name, value in data.items())
            )

        notification = await self.until(fits, since=since, what=f"event {kind} {data or ''}")
        event: JsonObject = notification["params"]["event"]
        return event

    def events(self, session: str | None = None, *, since: int = 0) -> list[JsonObject]:
        """Return the session events received so far."""
        return [
            message["params"]["event"]
            for message in self.messages[since:]
            if message.get("method") == "session.event" and session in (None, message["params"]["sessionId"])
        ]

    async def check_alive(self) -> None:
        """Fail unless a ``ping`` is answered."""
        assert (await self.call("ping", {"message": "still there"}))["message"] == "pong: still there"

    # --- sessions -----------------------------------------------------------------------------------------------

    async def create(self, provider: JsonObject | None, **options: Any) -> str:
        """Create a session; returns its id."""
        return (await self.call("session.create", {"provider": provider, **options}))["sessionId"]

    async def prompt(self, session: str, text: str = "go", **more: Any) -> list[JsonObject]:
        """Send a prompt and wait for the end of its run; returns the session's events from the prompt on."""
        since = len(self.messages)
        await self.call("session.send", {"sessionId": session, "prompt": text, **more})
        await self.event("session.idle", session=session, since=since)
        return self.events(session, since=since)

    def stop_reading(self) -> None:
        """Stop reading from the connection after the current message."""
        self._may_read = anyio.Event()

    def resume_reading(self) -> None:
        self._may_read.set()

    # --- reading ---------------------------------------------------------------------------------------------

    async def read(self) -> None:
        """Collect messages until the end of the stream; runs as a task beside the test."""
        stream = BufferedByteReceiveStream(self._stream)
        try:
            while True:
                await self._may_read.wait()
                message = json.loads(await self.receive(stream))
                assert message["jsonrpc"] == "2.0"
                assert "method" in message or ("result" in message) != ("error" in message), message
                self.check(message)
                self.messages.append(message)
                self._notify()
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        except (AssertionError, ValueError, KeyError, anyio.DelimiterNotFound) as error:
            self.problem = f"broken output of the server: {error}"
        finally:
            self.ended.set()
            self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class RunningServer:
    """A server process. ``expect_exit`` is the exit code that :func:`running_server` expects at the end."""

    def __init__(self, process: Process | ForkedProcess, home: Path, mark: str) -> None:
        self.home = home
        self.port: int | None = None
        """The port of a TCP server; ``None`` over stdio."""
        self.expect_exit = 0
        self.process = process
        self.mark = mark
        assert process.stdout is not None
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._wire: Wire | None = None
        self._stderr = bytearray()
        self._heard = anyio.Event()

    @property
    def wire(self) -> Wire:
        """The connection over stdio."""
        assert self._wire is not None, "a TCP server has no stdio connection; use connect()"
        return self._wire

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    @asynccontextmanager
    async def connect(
        self, *, token: str | None = None, handshake: bool = True, host: str = "127.0.0.1"
    ) -> AsyncGenerator[Wire]:
        """Open a TCP connection that is read in the background; closed at the end."""
        assert self.port is not None
        wire = Wire(await anyio.connect_tcp(host, self.port))
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.read)
            try:
                if handshake:
                    await wire.call("connect", {"token": token} if token else {})
                yield wire
            except Exception as error:
                # Raised below, or the task group would wrap it.
                failure = error
            finally:
                await wire.hang_up()
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        assert wire.problem is None, wire.problem

    def log_of(self, session: str) -> Path:
        """Return the path of the session's log."""
        return self.home / "session-state" / session / "events.jsonl"

    async def wait_until_logs_are_closed(self) -> None:
        """Wait until the server has no session log open; fails after :data:`WAIT_S`."""
        with anyio.fail_after(WAIT_S):
            while any(name.endswith("events.jsonl") for name in self._open_files()):
                await self.wire.check_alive()

    def _open_files(self) -> list[str]:
        names: list[str] = []
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                names.append(str(link.readlink()))
        return names

    def rss_bytes(self) -> int:
        """Return the resident memory of the server, in bytes."""
        pages = Path("/proc", str(self.process.pid), "statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def descendants(self) -> list[int]:
        """Return the ids of running processes that the server has started, directly or indirectly."""
        return [pid for pid in _marked(self.mark) if pid != self.process.pid]

    async def announced_port(self, within_s: float = WAIT_S) -> int:
        """Read the port of a TCP server from its first line."""
        return int((await self.next_line(within_s)).removeprefix("jumpseat listening on port "))

    async def next_line(self, within_s: float = WAIT_S) -> str:
        """Read the next line of a TCP server's stdout."""
        with anyio.fail_after(within_s):
            return (await self._stdout.receive_until(b"\n", 1000)).decode()

    async def close_stdin(self) -> None:
        """Close the server's stdin, as a host on stdio does when it exits."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server, unless it has already ended."""
        # Not through the process object: its method polls the exit code first, which asyncio would then miss.
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    async def exit_code(self, within_s: float = EXIT_S) -> int:
        """Wait for the exit code; fails if the process takes longer than ``within_s``."""
        with anyio.move_on_after(within_s):
            return await self.process.wait()
        raise AssertionError(f"the server still runs after {within_s} s; its stderr: {self.stderr}")

    async def kill(self) -> None:
        """Kill the server with SIGKILL, then the processes that it had started."""
        self.signal(signal.SIGKILL)
        await self.exit_code(WAIT_S)
        self.expect_exit = -signal.SIGKILL
        for pid in self.descendants():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def read_stderr(self) -> None:
        """Collect the server's stderr; runs as a task beside the test."""
        stream: ByteReceiveStream | None = self.process.stderr
        assert stream is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for chunk in stream:
                self._stderr += chunk
                self._heard.set()
                self._heard = anyio.Event()

    async def found_in_stderr(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait until stderr has a match of a pattern, and return it."""
        with anyio.fail_after(WAIT_S):
            while (found := pattern.search(self.stderr)) is None:
                await self._heard.wait()
        return found

    async def end(self) -> None:
        """End the server as its host would; fails if processes are left or the exit code is unexpected."""
        if self.process.returncode is None:
            if self.port is None:
                await self.close_stdin()
            else:
                self.signal(signal.SIGTERM)
        code = await self.exit_code()
        if left := self.descendants():
            # A process that was killed just now may take a moment to disappear.
            with anyio.move_on_after(EXIT_S):
                for pid in left:
                    await wait_until_gone(pid)
            left = self.descendants()
            assert not left, f"processes left behind: {left}"
        assert code == self.expect_exit, f"exit code {code}; stderr: {self.stderr}"

    def attach(self, wire: Wire) -> None:
        """Make ``wire`` the stdio connection."""
        self._wire = wire

    async def __aenter__(self) -> RunningServer:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Kill the server if it still runs, whatever has failed."""
        with anyio.CancelScope(shield=True):
            if self.process.returncode is None:
                await self.kill()
            await self.process.aclose()


@asynccontextmanager
async def running_server(
    folder: Path,
    *,
    tcp: bool = False,
    token: str | None = None,
    without_token: Sequence[str] = ("--no-token",),
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    config: str | None = None,
    file_limit_blocks: int | None = None,
    file_handles: int | None = None,
    handshake: bool = True,
    limit_s: float = 120,
    start_s: float = WAIT_S,
    wire: Callable[[ByteStream], Wire] = Wire,
    name: str = "jumpseat",
) -> AsyncGenerator[RunningServer]:
    """Start the server with ``folder/home`` as its home and ``folder`` as its working directory.

    ``config`` becomes its ``config.toml``. ``file_limit_blocks`` is the largest file it may write, in blocks of
    512 bytes (to simulate a full disk), ``file_handles`` the number of files that it may have open. Over TCP,
    clients present ``token``; without it, the server is started with the arguments ``without_token``. Over stdio
    the connection is opened and, with ``handshake``, ``connect`` is called. ``limit_s`` limits the whole block,
    ``start_s`` the start of a TCP server, in seconds. ``wire`` makes the connection over stdio. ``name`` is the
    name that the command is invoked by.
    """
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (home / "config.toml").write_text(config)
    mark = uuid.uuid4().hex
    environ = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environ |= {"HOME": str(folder), "COPILOT_HOME": str(home), _MARK: mark}
    environ |= {"COPILOT_CONNECTION_TOKEN": token} if token else {}
    environ |= env or {}
    listening = ["--port", "0", *(() if token else without_token)]
    argv = ["--headless", *(listening if tcp else ["--stdio"]), *args]
    # The first test that needs a server imports it, while other workers wait.
    preload(SERVER)
    with anyio.fail_after(limit_s):
        limits = {"-f": file_limit_blocks, "-n": file_handles}
        given = [f"ulimit {option} {limit}; " for option, limit in limits.items() if limit is not None]
        if given or any(name.startswith("PYTHON") for name in environ):
            process = await _start(argv, environ, folder, stdin=not tcp, limits="".join(given))
        else:
            process = await fork(SERVER, [name, *argv], environ, folder, stdin=not tcp)
        failure: Exception | None = None
        async with RunningServer(process, home, mark) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(server.read_stderr)
            if not tcp:
                assert process.stdin is not None
                assert process.stdout is not None
                server.attach(wire(StapledByteStream(process.stdin, process.stdout)))
                tasks.start_soon(server.wire.read)
            try:
                if tcp:
                    server.port = await server.announced_port(start_s)
                elif handshake:
                    await server.wire.call("connect", {})
                yield server
                await server.end()
            except Exception as error:
                # Raised below, or the task group would wrap it.
                error.add_note(f"stderr of the server:\n{server.stderr}")
                failure = error
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        assert tcp or server.wire.problem is None, server.wire.problem
        assert "Traceback" not in server.stderr, server.stderr


async def _start(
    argv: Sequence[str], environ: Mapping[str, str], cwd: Path, *, stdin: bool, limits: str
) -> Process:
    command = [str(Path(sys.executable).with_name("jumpseat")), *argv]
    if limits:
        # Python 3.11 does not notice a truncated bytecode file that it wrote, and cannot start afterwards.
        environ = {**environ, "PYTHONDONTWRITEBYTECODE": "1"}
        command = ["sh", "-c", f'{limits}exec "$@"', "sh", *command]
    return await anyio.open_process(
        command, stdin=PIPE if stdin else DEVNULL, stdout=PIPE, stderr=PIPE, env=environ, cwd=cwd
    )


def request(request_id: Any, method: str, params: Any = None) -> JsonObject:
    """Return a JSON-RPC request, without ``params`` if they are ``None``."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else message | {"params": params}


async def wait_until_gone(pid: int) -> None:
    """Wait for the end of any process, not only of a child; fails after :data:`WAIT_S`."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(WAIT_S):
            await anyio.wait_readable(process)
    finally:
        os.close(process)


def _marked(mark: str) -> list[int]:
    """Return the ids of running processes with ``mark`` in their environment."""
    wanted = f"{_MARK}={mark}".encode()
    found: list[int] = []
    # Names instead of paths: there are hundreds of processes, and each server looks through all of them.
    for name in os.listdir("/proc"):
        # A process may end at any time.
        with suppress(OSError):
            if name.isdigit() and wanted in _environ(name).split(b"\0"):
                found.append(int(name))
    return found


def _environ(pid: str) -> bytes:
    """Return the environment of a process. It is empty for a moment during ``exec``."""
    for _ in range(_ENVIRON_READS):
        if environ := _read(f"/proc/{pid}/environ"):
            return environ
        state, parent = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()[:2]
        # Processes that have ended have no environment, nor have the kernel's, which all have the same parent.
        if state in b"ZX" or parent in (b"0", b"2"):
            break
        # A process with arguments has completed its exec: its environment is final.
        if _read(f"/proc/{pid}/cmdline"):
            return _read(f"/proc/{pid}/environ")
    return b""


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _short(message: JsonObject) -> str:
    if message.get("method") == "session.event":
        return str(message["params"]["event"]["type"])
    return json.dumps(message)[:200]
