"""The process of a script that calls tools: its start, its calls, its limits and its end.

Calls come over the standard output of the process, and their results go to its standard input; the program in
``script_program.py`` keeps both from the script and from what the script starts. The process and its group end with
the run, and with them all calls that are still open.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, cast

import anyio
import orjson
from anyio.abc import Process, TaskGroup
from msgspec import Struct

from jumpseat.agent.blocks import JsonObject
from jumpseat.errors import JumpseatError
from jumpseat.system.process_groups import kill_group, start_group
from jumpseat.tools.shell.process import DRAIN_S, KILL_WAIT_S, OutputBuffer, group_runs

PROGRAM: Final = Path(__file__).with_name("script_program.py")

OWN_S: Final = 60.0
"""Time limit of a script, without the time in which it waits for calls."""
WHOLE_S: Final = 1800.0
"""Time limit of a script with its calls, which may have no end."""

MAX_CALLS: Final = 200
MAX_REQUESTS: Final = 1000
"""Limit of the calls that run, of those that do not, and of questions for help."""
AT_ONCE: Final = 16
MAX_REQUEST_BYTES: Final = 1024 * 1024
MAX_REQUESTS_BYTES: Final = 4 * 1024 * 1024
"""All calls of a script together, since each is stored."""
OUTPUT_BYTES: Final = 1024 * 1024
"""The output that is kept; the oldest is dropped first."""
MAX_OUTPUT_BYTES: Final = 64 * 1024 * 1024
"""The output after which a script is ended, since reading it takes time from others."""

_PIECE_BYTES: Final = 64 * 1024


class ScriptEnd(Struct, frozen=True):
    """The end of a script: its output, and the problem in words if it did not end well."""

    output: str
    problem: str | None = None


class CallTool(Protocol):
    """Runs a call of a tool; returns its text, and whether it succeeded."""

    def __call__(self, name: str, arguments: JsonObject, /) -> Awaitable[tuple[str, bool]]: ...


def program_of(interpreter: str) -> list[str]:
    """Return the command line of the program, which reads the script; blocks on the disk."""
    return [interpreter, "-I", "-S", "-u", "-X", "utf8", "-c", PROGRAM.read_text(encoding="utf-8")]


class ScriptProcess:
    """A run of one script. ``call`` runs its calls, ``describe`` returns the text of its ``help()``.

    The script itself may run for ``own_s`` seconds, and for ``whole_s`` with its calls.
    """

    def __init__(
        self,
        call: CallTool,
        describe: Callable[[str | None], str],
        own_s: float = OWN_S,
        whole_s: float = WHOLE_S,
    ) -> None:
        self._call = call
        self._describe = describe
        self._output = OutputBuffer(OUTPUT_BYTES)
        self._calls = 0
        self._requests = 0
        self._at_once = anyio.CapacityLimiter(AT_ONCE)
        self._clock = _Clock(own_s, whole_s)
        self._replying = anyio.Lock()
        self._problem: str | None = None
        self._error: JumpseatError | None = None

    async def run(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        script: str,
        tools: Mapping[str, Sequence[str]],
        *,
        alone: bool = False,
    ) -> ScriptEnd:
        """Run a script; ``tools`` are the names of the tools with those of their arguments.

        ``alone``, it has a user namespace of its own.

        Raises:
            OSError: the process cannot be started.
            JumpseatError: a call raised it.
        """
        if sys.platform == "win32":
            raise OSError("scripts are not available on Windows")
        pipes: list[int] = []
        try:
            for _ in range(3):
                pipes += os.pipe()
            input_read, input_write, calls_read, calls_write, output_read, output_write = pipes
            process = await start_group(
                argv, Path("/"), environ, stdin=input_read, stdout=calls_write, stderr=output_write
            )
            for fd in (input_read, calls_write, output_write):
                os.close(fd)
                pipes.remove(fd)
            for fd in pipes:
                os.set_blocking(fd, False)
            start = orjson.dumps({"script": script, "tools": tools, "alone": alone and _counts_by_namespace()})
            await self._follow(process, start, input_write, calls_read, output_read)
        finally:
            for fd in pipes:
                os.close(fd)
        if self._error is not None:
            raise self._error
        return ScriptEnd(self._output.text(final=True), self._problem)

    async def _follow(self, process: Process, start: bytes, replies: int, calls: int, output: int) -> None:
        drained = anyio.Event()
        try:
            async with anyio.create_task_group() as streams:
                streams.start_soon(self._read_output, output, drained)
                async with anyio.create_task_group() as running:
                    running.start_soon(self._read_calls, calls, replies, running)
                    running.start_soon(self._reply, replies, start)
                    with self._clock.scope as scope:
                        await process.wait()
                    if scope.cancelled_caught and self._problem is None and self._error is None:
                        self._problem = f"The script was ended after {self._clock.reason}."
                    elif process.returncode and self._problem is None:
                        self._problem = f"The script ended with exit code {process.returncode}."
                    # Calls that are still open end with the script.
                    running.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await _end(process)
                # A process that has left the group may hold the pipe open.
                with anyio.move_on_after(DRAIN_S):
                    await drained.wait()
                streams.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)

    async def _read_output(self, fd: int, drained: anyio.Event) -> None:
        size = 0
        while data := await _read(fd):
            self._output.append(data)
            size += len(data)
            if size > MAX_OUTPUT_BYTES:
                self._stop(f"The script printed more than {MAX_OUTPUT_BYTES} bytes.")
                break
        drained.set()

    async def _read_calls(self, fd: int, replies: int, running: TaskGroup) -> None:
        rest, size = bytearray(), 0
        while data := await _read(fd):
            rest += data
            size += len(data)
            if size > MAX_REQUESTS_BYTES:
                return self._stop(f"The calls of the script were larger than {MAX_REQUESTS_BYTES} bytes together.")
            while (end := rest.find(b"\n")) >= 0:
                line = bytes(rest[:end])
                del rest[: end + 1]
                self._requests += 1
                if self._requests > MAX_REQUESTS:
                    return self._stop(f"The script made more than {MAX_REQUESTS} requests.")
                if not await self._take(line, replies, running):
                    return self._stop("The script wrote something else than calls to its connection.")
            if len(rest) > MAX_REQUEST_BYTES:
                return self._stop(f"A call of the script was larger than {MAX_REQUEST_BYTES} bytes.")
        return None

    async def _take(self, line: bytes, replies: int, running: TaskGroup) -> bool:
        """Begin the call in a line; return whether the line has the form of one."""
        try:
            found: Any = orjson.loads(line)
        except ValueError:
            return False
        if not isinstance(found, dict):
            return False
        request = cast("dict[str, Any]", found)
        match request:
            case {"id": int(number), "call": str(name), "arguments": dict()}:
                self._calls += 1
                if self._calls <= MAX_CALLS:
                    arguments = cast("JsonObject", request["arguments"])
                    running.start_soon(self._answer, number, name, arguments, replies)
                    return True
                reply = {"error": f"This call did not run: a script makes at most {MAX_CALLS} calls"}
            case {"id": int(number), "help": str() | None as name}:
                reply = {"text": self._describe(name)}
            case _:
                return False
        await self._reply(replies, orjson.dumps({"id": number, **reply}))
        return True

    async def _answer(self, number: int, name: str, arguments: JsonObject, replies: int) -> None:
        try:
            with self._clock.paused():
                async with self._at_once:
                    text, ok = await self._call(name, arguments)
        except JumpseatError as error:
            self._error = error
            self._clock.scope.cancel()
            return
        reply = orjson.dumps({"id": number, "text" if ok else "error": text}, default=str)
        await self._reply(replies, reply)

    async def _reply(self, fd: int, line: bytes) -> None:
        async with self._replying:
            rest = memoryview(line + b"\n")
            # The script may have ended.
            with suppress(BrokenPipeError):
                while rest:
                    try:
                        rest = rest[os.write(fd, rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(fd)

    def _stop(self, problem: str) -> None:
        self._problem = problem
        self._clock.scope.cancel()


class _Clock:
    """Limits the time of a script itself, which stands still while calls run, and the whole time."""

    def __init__(self, own_s: float, whole_s: float) -> None:
        self.scope = anyio.CancelScope()
        self._own_s, self._whole_s = own_s, whole_s
        self._left_s = own_s
        self._end = anyio.current_time() + whole_s
        self._waiting = 0
        self._set()

    @property
    def reason(self) -> str:
        """Return the limit that has been reached, in words."""
        if self.scope.deadline == self._end:
            return f"{self._whole_s:g} seconds with its calls"
        return f"{self._own_s:g} seconds"

    def _set(self) -> None:
        self.scope.deadline = min(anyio.current_time() + self._left_s, self._end)

    def paused(self) -> _Pause:
        return _Pause(self)

    def pause(self) -> None:
        if self._waiting == 0:
            self._left_s = max(0.0, self.scope.deadline - anyio.current_time())
            self.scope.deadline = self._end
        self._waiting += 1

    def go_on(self) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            self._set()


class _Pause:
    def __init__(self, clock: _Clock) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        self._clock.pause()

    def __exit__(self, *_: object) -> None:
        self._clock.go_on()


def _counts_by_namespace() -> bool:
    """Return whether the kernel counts threads in each user namespace, as Linux does since 5.14."""
    if sys.platform != "linux":
        return False
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})", os.uname().release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= (5, 14)


async def _read(fd: int) -> bytes:
    """Return the next piece, empty at the end."""
    while True:
        await anyio.wait_readable(fd)
        try:
            return os.read(fd, _PIECE_BYTES)
        except BlockingIOError:
            continue


async def _end(process: Process) -> None:
    """End the process and its group with SIGKILL: a script has nothing to save. Bounded."""
    if process.returncode is not None and not group_runs(process.pid):
        return
    with suppress(ProcessLookupError, PermissionError):
        kill_group(process.pid)
    with anyio.move_on_after(KILL_WAIT_S):
        await process.wait()
        while group_runs(process.pid):  # noqa: ASYNC110 - the system notifies only parents
            await anyio.sleep(0.01)
