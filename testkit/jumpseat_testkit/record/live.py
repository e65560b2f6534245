"""Stand between a client and its server, pass all bytes on unchanged, and keep the messages."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from subprocess import PIPE
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread

from jumpseat_protocol.envelope import FramingError
from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.links import CLOSED
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.protocols import Framing
from jumpseat_testkit.running import end_group
from jumpseat_testkit.target import DECODERS, Decoder

JsonObject: TypeAlias = dict[str, Any]

_CHUNK: Final = 65536
_QUIET_S: Final = 0.5
_EXIT_S: Final = 5.0


class Conversation:
    """The messages of a connection, in their order, by their directions."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, JsonObject]] = []
        self.changed = anyio.Event()

    def add(self, direction: str, message: Any) -> None:
        """Keep a message without the version of JSON-RPC."""
        fields = as_object(message)
        self.messages.append((direction, {name: value for name, value in fields.items() if name != "jsonrpc"}))
        self.changed.set()
        self.changed = anyio.Event()


class _Reader:
    """Reads messages from bytes of which the framing shows at the beginning."""

    def __init__(self, conversation: Conversation, direction: str) -> None:
        self._conversation = conversation
        self._direction = direction
        self._decoder: Decoder | None = None

    def feed(self, data: bytes) -> None:
        """Read what is complete; bytes that are no message are passed on, but not kept."""
        if self._decoder is None:
            framing: Framing = "content-length" if data[:1].upper() == b"C" else "lines"
            self._decoder = DECODERS[framing]()
        for body in self._decoder.feed(data):
            if not isinstance(body, FramingError):
                with suppress(ValueError):
                    self._conversation.add(self._direction, json.loads(body))


async def record_live(command: Sequence[str], write: Callable[[Conversation], None]) -> int:
    """Run a server for the client on standard input and output, and return its exit code.

    ``write`` is called whenever the conversation pauses, because clients often kill their server at the end.

    Raises:
        ScriptError: the command cannot be run.
    """
    try:
        process = await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=None, start_new_session=True)
    except OSError as error:
        raise ScriptError(f"cannot run {command[0]!r}: {error.strerror or error}") from None
    conversation = Conversation()

    async def to_server() -> None:
        assert process.stdin is not None
        reader = _Reader(conversation, "->")
        while data := await anyio.to_thread.run_sync(os.read, 0, _CHUNK, abandon_on_cancel=True):
            reader.feed(data)
            with suppress(*CLOSED):
                await process.stdin.send(data)
        await process.stdin.aclose()

    async def to_client() -> None:
        assert process.stdout is not None
        reader = _Reader(conversation, "<-")
        with suppress(*CLOSED):
            async for data in process.stdout:
                reader.feed(data)
                await anyio.to_thread.run_sync(_write_all, data)
        with anyio.move_on_after(_EXIT_S):
            await process.wait()
        tasks.cancel_scope.cancel()

    async def keep() -> None:
        while True:
            await conversation.changed.wait()
            paused = False
            while not paused:
                with anyio.move_on_after(_QUIET_S) as scope:
                    await conversation.changed.wait()
                paused = scope.cancelled_caught
            write(conversation)

    async def until_killed() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for task in (to_server, to_client, keep, until_killed):
            tasks.start_soon(task)
    code = 0
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            end_group(process.pid)
        code = await process.wait()
        await process.aclose()
    write(conversation)
    return max(code, 0)


def _write_all(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]
