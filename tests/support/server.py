"""The real server in a process of its own, driven over its raw wire.

::

    async with running_server(tmp_path) as server:                       # stdio: server.wire is the connection
        session = await server.wire.create(scripted({"text": "hello"}))
        await server.wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        await server.wire.event("session.idle")

    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire:
        await wire.send(b"anything at all")

The process is forked from one that has imported the server already, because hundreds of tests start one; how the
executable itself begins is tested with the SDKs, the editors and the terminal. Nothing here is shared with the
product: frames are cut by hand and checked strictly, so that a fault in the framing code cannot hide itself. Every
wait is bounded. Leaving :func:`running_server` ends the server (stdin is closed, or SIGTERM over TCP) and fails
where it hangs, exits with another code than expected, shows a traceback on stderr, or leaves a process behind.
"""

from __future__ import annotations

import json
import os
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

from tests.support.forked import SERVER, ForkedProcess, fork

JsonObject: TypeAlias = dict[str, Any]

EXIT_S: Final = 5.0
"""When a server that is to exit counts as hanging. Its contract is half a second, which the benchmarks measure."""
WAIT_S: Final = 10.0
"""How long a test waits for one message before it fails."""

_MARK: Final = "SERVER_UNDER_TEST"
_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")
_MOMENT: Final = 10_000
"""How often a process is looked at that seems to begin another program."""
_MAX_FRAME_BYTES: Final = 256 * 1024 * 1024


def scripted(*turns: JsonObject) -> JsonObject:
    """A provider that says ``turns``, one per call of the model."""
    return {"type": "scripted", "script": {"turns": list(turns)}}


def calls(name: str, call_id: str = "call-1", **arguments: Any) -> JsonObject:
    """A turn that calls one tool."""
    return {"tool_calls": [{"id": call_id, "name": name, "arguments": arguments}]}


def frame(message: Any) -> bytes:
    """``message`` (JSON values, or the bytes of a body) behind its header."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Wire:
    """One connection. All that arrives is kept in ``messages``; waiting never takes anything out of it."""

    def __init__(self, stream: ByteStream) -> None:
        self.messages: list[JsonObject] = []
        self.problem: str | None = None
        """What is wrong with the bytes the server sent, if anything."""
        self.ended = anyio.Event()
        """Set when the server has closed the connection."""
        self._stream = stream
        self._news = anyio.Event()
        self._may_read = anyio.Event()
        self._may_read.set()
        self._last_id = 0

    # --- out ----------------------------------------------------------------------------------------------------

    async def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        with anyio.fail_after(WAIT_S):
            await self._stream.send(data)

    def encode(self, message: JsonObject) -> bytes:
        """A message as it goes over this wire."""
        return frame(message)

    async def receive(self, stream: BufferedByteReceiveStream) -> bytes:
        """The next message as it comes over this wire."""
        head = await stream.receive_until(b"\r\n\r\n", 100)
        name, _, length = head.partition(b": ")
        assert name == b"Content-Length", f"not the one header the SDKs read: {head!r}"
        return await stream.receive_exactly(int(length))

    def check(self, message: JsonObject) -> None:
        """Judge a message of the server; raises ``AssertionError``."""

    async def ask(self, method: str, params: Any = None) -> int:
        """Send a request and do not wait; the id is for :meth:`response`."""
        request_id = self.new_id()
        await self.send(self.encode(request(request_id, method, params)))
        return request_id

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def hang_up(self) -> None:
        """Close the connection without a word."""
        await anyio.aclose_forcefully(self._stream)

    # --- in -----------------------------------------------------------------------------------------------------

    async def until(self, fits: Callable[[JsonObject], bool], *, since: int = 0, what: str = "") -> JsonObject:
        """The first message from position ``since`` on that ``fits``; fails after :data:`WAIT_S`."""
        position = since
        with anyio.move_on_after(WAIT_S):
            while True:
                for message in self.messages[position:]:
                    if fits(message):
                        return message
                position = len(self.messages)
                if self.ended.is_set():
                    break
                await self._news.wait()
        state = self.problem or ("the connection has ended" if self.ended.is_set() else f"after {WAIT_S} s")
        seen = [_short(message) for message in self.messages[-20:]]
        raise AssertionError(f"no {what or 'such message'}: {state}; last messages: {seen}")

    async def grown(self, position: int) -> None:
        """Wait, as long as it takes, until there is a message at ``position``."""
        while len(self.messages) <= position:
            await self._news.wait()

    async def response(self, request_id: Any) -> JsonObject:
        """The whole response to a request."""
        return await self.until(
            lambda one: "method" not in one and one.get("id") == request_id, what=f"response {request_id!r}"
        )

    async def call(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result; an error fails the test."""
        answer = await self.response(await self.ask(method, params))
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    async def answer(self, request: JsonObject, result: Any) -> None:
        """Answer a request of the server."""
        await self.send(self.encode({"jsonrpc": "2.0", "id": request["id"], "result": result}))

    async def refused(self, method: str, params: Any = None) -> JsonObject:
        """Send a request that must fail and return the error."""
        answer = await self.response(await self.ask(method, params))
        assert "result" not in answer, f"{method} was not refused: {answer['result']}"
        return answer["error"]

    async def event(self, kind: str, *, session: str | None = None, since: int = 0, **data: Any) -> JsonObject:
        """The first session event of a type whose data has these values (camelCase names)."""

        def fits(message: JsonObject) -> bool:
            if message.get("method") != "session.event":
                return False
            params, event = message["params"], message["params"]["event"]
            return (
                event["type"] == kind
                and session in (None, params["sessionId"])
                and all(event["data"].get(name) == value for name, value in data.items())
            )

        found = await self.until(fits, since=since, what=f"event {kind} {data or ''}")
        event: JsonObject = found["params"]["event"]
        return event

    def events(self, session: str | None = None, *, since: int = 0) -> list[JsonObject]:
        """The session events so far."""
        return [
            message["params"]["event"]
            for message in self.messages[since:]
            if message.get("method") == "session.event" and session in (None, message["params"]["sessionId"])
        ]

    async def alive(self) -> None:
        """Fail unless a ``ping`` is answered."""
        assert (await self.call("ping", {"message": "still there"}))["message"] == "pong: still there"

    # --- sessions -----------------------------------------------------------------------------------------------

    async def create(self, provider: JsonObject, **options: Any) -> str:
        """``session.create``; returns the session's id."""
        return (await self.call("session.create", {"provider": provider, **options}))["sessionId"]

    async def prompt(self, session: str, text: str = "go", **more: Any) -> list[JsonObject]:
        """Send a prompt and wait for the end of its run; returns the events of the session since then."""
        since = len(self.messages)
        await self.call("session.send", {"sessionId": session, "prompt": text, **more})
        await self.event("session.idle", session=session, since=since)
        return self.events(session, since=since)

    def stop_reading(self) -> None:
        """Take nothing more from the connection after the message that is being read."""
        self._may_read = anyio.Event()

    def go_on_reading(self) -> None:
        self._may_read.set()

    # --- the reader ---------------------------------------------------------------------------------------------

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
                self._tell()
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        except (AssertionError, ValueError, KeyError, anyio.DelimiterNotFound) as error:
            self.problem = f"broken output of the server: {error}"
        finally:
            self.ended.set()
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class RunningServer:
    """A server process. ``expect_exit`` is the exit code that leaving :func:`running_server` asks for."""

    def __init__(self, process: Process | ForkedProcess, home: Path, mark: str) -> None:
        self.home = home
        self.port: int | None = None
        """Where a TCP server listens; none over stdio."""
        self.expect_exit = 0
        self.process = process
        self.mark = mark
        self._wire: Wire | None = None
        self._stderr = bytearray()

    @property
    def wire(self) -> Wire:
        """The connection over stdio."""
        assert self._wire is not None, "a TCP server is reached with connect()"
        return self._wire

    @property
    def stderr(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    @asynccontextmanager
    async def connect(self, *, token: str | None = None, handshake: bool = True) -> AsyncGenerator[Wire]:
        """A new TCP connection, read in the background; hung up at the end."""
        assert self.port is not None
        wire = Wire(await anyio.connect_tcp("127.0.0.1", self.port))
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
        """The session's log on disk."""
        return self.home / "session-state" / session / "events.jsonl"

    async def lets_go_of_logs(self) -> None:
        """Wait until the server holds no session log open; fails after :data:`WAIT_S`."""
        with anyio.fail_after(WAIT_S):
            while any(name.endswith("events.jsonl") for name in self._open_files()):
                await self.wire.alive()

    def _open_files(self) -> list[str]:
        names: list[str] = []
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                names.append(str(link.readlink()))
        return names

    def rss_bytes(self) -> int:
        """Memory that the server holds now."""
        pages = Path("/proc", str(self.process.pid), "statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def descendants(self) -> list[int]:
        """Processes that were started by the server, directly or not, and still run."""
        return [pid for pid in _marked(self.mark) if pid != self.process.pid]

    async def close_stdin(self) -> None:
        """What a host that goes away does to a server on stdio."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server, and to nobody where it has ended already."""
        # Not by the process object: that looks for the exit code first, and takes it from asyncio.
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    async def exited(self, within_s: float = EXIT_S) -> int:
        """The exit code; fails where the process takes longer than ``within_s``."""
        with anyio.move_on_after(within_s):
            return await self.process.wait()
        raise AssertionError(f"the server still runs after {within_s} s; its stderr: {self.stderr}")

    async def kill(self) -> None:
        """SIGKILL, and the processes that the server could not take with it."""
        self.signal(signal.SIGKILL)
        await self.exited(WAIT_S)
        self.expect_exit = -signal.SIGKILL
        for pid in self.descendants():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def read_stderr(self) -> None:
        """Keep what the server writes to stderr; runs as a task beside the test."""
        stream: ByteReceiveStream | None = self.process.stderr
        assert stream is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for chunk in stream:
                self._stderr += chunk

    async def end(self) -> None:
        """End the server as its host would, and check how it ends."""
        if self.process.returncode is None:
            if self.port is None:
                await self.close_stdin()
            else:
                self.signal(signal.SIGTERM)
        code = await self.exited()
        # What was killed in the last moment may need another one to be gone.
        with anyio.move_on_after(EXIT_S):
            for pid in self.descendants():
                await gone(pid)
        left = self.descendants()
        assert not left, f"processes left behind: {left}"
        assert code == self.expect_exit, f"exit code {code}; stderr: {self.stderr}"

    def attach(self, wire: Wire) -> None:
        """Make ``wire`` the stdio connection."""
        self._wire = wire

    async def __aenter__(self) -> RunningServer:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Whatever has failed: nothing of the server outlives the test."""
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
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    config: str | None = None,
    file_limit_blocks: int | None = None,
    handshake: bool = True,
    limit_s: float = 30,
    wire: Callable[[ByteStream], Wire] = Wire,
) -> AsyncGenerator[RunningServer]:
    """Start the server with ``folder/home`` as its home and ``folder`` as its working directory.

    ``config`` becomes its ``config.toml``. ``file_limit_blocks`` is the largest file it may write, in blocks of
    512 bytes (a disk that is full). Over stdio the connection is made and, with ``handshake``, greeted.
    ``limit_s`` bounds all that is done with the server. ``wire`` makes the connection over stdio.
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
    argv = ["--headless", *(["--port", "0"] if tcp else ["--stdio"]), *args]
    with anyio.fail_after(limit_s):
        if file_limit_blocks is not None or any(name.startswith("PYTHON") for name in environ):
            process = await _start(argv, environ, folder, stdin=not tcp, file_limit_blocks=file_limit_blocks)
        else:
            process = await fork(SERVER, ["jumpseat", *argv], environ, folder, stdin=not tcp)
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
                    server.port = await _port(process)
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
    argv: Sequence[str], environ: Mapping[str, str], cwd: Path, *, stdin: bool, file_limit_blocks: int | None
) -> Process:
    command = [str(Path(sys.executable).with_name("jumpseat")), *argv]
    if file_limit_blocks is not None:
        # Python 3.11 does not notice that it wrote half of a module's bytecode, and cannot start from then on.
        environ = {**environ, "PYTHONDONTWRITEBYTECODE": "1"}
        command = ["sh", "-c", f'ulimit -f {file_limit_blocks}; exec "$@"', "sh", *command]
    return await anyio.open_process(
        command, stdin=PIPE if stdin else DEVNULL, stdout=PIPE, stderr=PIPE, env=environ, cwd=cwd
    )


async def _port(process: Process | ForkedProcess) -> int:
    assert process.stdout is not None
    stdout = BufferedByteReceiveStream(process.stdout)
    with anyio.fail_after(WAIT_S):
        line = await stdout.receive_until(b"\n", 1000)
    assert b"listening on port " in line, line
    return int(line.rsplit(b" ", 1)[1])


def request(request_id: Any, method: str, params: Any = None) -> JsonObject:
    """A JSON-RPC request; without ``params`` where there are none."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else message | {"params": params}


async def gone(pid: int) -> None:
    """Wait for the end of any process, not only of a child."""
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
    """The running processes that have ``mark`` in their environment."""
    wanted = f"{_MARK}={mark}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        # A process may end at any time.
        with suppress(OSError):
            if wanted in _environ(entry).split(b"\0"):
                found.append(int(entry.name))
    return found


def _environ(process: Path) -> bytes:
    """The environment of a process. It is empty for a moment while a program takes another's place in it."""
    for _ in range(_MOMENT):
        if environ := (process / "environ").read_bytes():
            return environ
        state, parent = (process / "stat").read_bytes().rpartition(b") ")[2].split()[:2]
        # It stays empty of what has ended, and of what belongs to the kernel: all of that has one parent.
        if state in b"ZX" or parent in (b"0", b"2"):
            break
        # It was empty before.
        if (process / "cmdline").read_bytes():
            return (process / "environ").read_bytes()
    return b""


def _short(message: JsonObject) -> str:
    if message.get("method") == "session.event":
        return str(message["params"]["event"]["type"])
    return json.dumps(message)[:200]
