"""A stream of bytes between two replicas over NATS, in order, nothing lost and nothing twice while both live.

NATS may lose messages where a connection breaks. Frames are numbered and kept until they are acknowledged; they are
sent again after a gap, a reconnect, or a while without an acknowledgement.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

import anyio
from anyio.abc import TaskGroup

from jumpseat.cluster.nats.jetstream import JetStream

_HEAD: Final = struct.Struct(">cQQ")
"""The kind of a frame, its number (of an acknowledgement: 0), and the number of the next frame that is expected."""
DATA: Final = b"D"
ACK: Final = b"A"
NAK: Final = b"N"
CLOSE: Final = b"C"
RESET: Final = b"R"
RESET_FRAME: Final = _HEAD.pack(RESET, 0, 0)
"""The answer to a frame of a tunnel that has ended here."""
ACK_FRAMES: Final = 32
"""Frames after which an acknowledgement is sent at once."""
ACK_S: Final = 0.1
RESEND_S: Final = 1.0
RESENT_FRAMES: Final = 16
CLOSING_S: Final = 10.0
"""Time in which the other end may still acknowledge the end."""


class Tunnel:
    """One end of a stream of bytes. ``on_data`` takes what arrives; ``on_close`` is called once, at the end.

    ``here`` is the subject where this end listens, ``there`` that of the other end.
    """

    def __init__(
        self,
        stream: JetStream,
        tasks: TaskGroup,
        here: str,
        there: str,
        on_data: Callable[[bytes], None],
        on_close: Callable[[], object],
    ) -> None:
        self._stream = stream
        self._tasks = tasks
        self._here = here
        self._there = there
        self._on_data = on_data
        self._on_close = on_close
        self._unsent: deque[tuple[int, bytes]] = deque()
        self._unacked: deque[tuple[int, bytes]] = deque()
        self._unacked_bytes = 0
        self._next = 1
        self._expected = 1
        self._acked = 1
        self._reported = 0
        self._progress_s = 0.0
        self._sending = False
        self._timing = False
        self.closed = False
        self._sent = anyio.Event()
        self.on_less: Callable[[], None] = lambda: None
        """Called when frames are acknowledged."""

    @property
    def waiting_bytes(self) -> int:
        """Return the number of bytes that the other end has not acknowledged."""
        return self._unacked_bytes

    async def wait_until_sent(self) -> None:
        """Wait until the other end has acknowledged everything, also the end itself, or is gone."""
        while self._unacked:
            self._sent = anyio.Event()
            await self._sent.wait()

    def send(self, data: bytes) -> None:
        """Queue bytes."""
        most = self._stream.most_bytes
        for start in range(0, len(data), most):
            self._queue(DATA, data[start : start + most])

    def close(self) -> None:
        """Tell the other end, after everything that is queued, and end."""
        if not self.closed:
            self._queue(CLOSE, b"")
            self.lose()

    def keep_alive(self) -> None:
        """Let the other end answer if it has ended."""
        if not self.closed:
            self._answer(ACK)

    def abandon(self) -> None:
        """End at once, because the other end seems to be gone, and tell it in case it is not."""
        if not self.closed:
            self._tasks.start_soon(self._stream.send, self._there, RESET_FRAME)
            self.lose()

    def lose(self) -> None:
        """End at once, because the other end is gone."""
        if not self.closed:
            self.closed = True
            self._on_close()

    def receive(self, frame: bytes) -> None:
        """Take a message of the other end."""
        if len(frame) < _HEAD.size:
            return
        kind, number, acked = _HEAD.unpack_from(frame)
        if kind == RESET:
            self._unacked.clear()
            self._sent.set()
            self.lose()
            return
        self._forget(acked)
        if kind == NAK:
            self._resend()
            return
        if kind == ACK:
            return
        if number < self._expected:
            # Sent twice: the acknowledgement was lost.
            self._answer(ACK)
            return
        if number > self._expected:
            # Behind a gap, which is reported once.
            if self._reported != self._expected:
                self._reported = self._expected
                self._answer(NAK)
            return
        self._expected += 1
        if kind == CLOSE:
            self._answer(ACK)
            self.lose()
            return
        if not self.closed:
            self._on_data(frame[_HEAD.size :])
        if self._expected - self._acked >= ACK_FRAMES:
            self._answer(ACK)
        else:
            self._keep_time()

    def resend(self) -> None:
        """Send again what is not acknowledged: the connection to NATS was broken."""
        self._resend()

    # --- sending --------------------------------------------------------------------------------------------------

    def _queue(self, kind: bytes, data: bytes) -> None:
        if self.closed:
            return
        entry = (self._next, kind + data)
        self._next += 1
        self._unacked.append(entry)
        self._unacked_bytes += len(data)
        self._unsent.append(entry)
        self._send_soon()
        self._keep_time()

    def _resend(self, most: int | None = None) -> None:
        # Frames that were not sent yet follow.
        first = self._unsent[0][0] if self._unsent else self._next
        again = [entry for entry in islice(self._unacked, most) if entry[0] < first]
        self._unsent.extendleft(reversed(again))
        self._send_soon()

    def _send_soon(self) -> None:
        if not self._sending and self._unsent:
            self._sending = True
            self._tasks.start_soon(self._send)

    async def _send(self) -> None:
        try:
            while self._unsent:
                number, content = self._unsent.popleft()
                self._acked = self._expected
                frame = _HEAD.pack(content[:1], number, self._expected) + content[1:]
                await self._stream.send(self._there, frame, self._here)
        finally:
            self._sending = False

    def _answer(self, kind: bytes) -> None:
        self._acked = self._expected
        self._tasks.start_soon(self._stream.send, self._there, _HEAD.pack(kind, 0, self._expected), self._here)

    def _forget(self, acked: int) -> None:
        forgotten = False
        while self._unacked and self._unacked[0][0] < acked:
            _, content = self._unacked.popleft()
            self._unacked_bytes -= len(content) - 1
            forgotten = True
        if forgotten:
            self._progress_s = asyncio.get_running_loop().time()
            self.on_less()
        if not self._unacked:
            self._sent.set()

    def _keep_time(self) -> None:
        """Acknowledge and repeat after a while, until there is nothing left to wait for."""
        if not self._timing:
            self._timing = True
            self._progress_s = asyncio.get_running_loop().time()
            self._tasks.start_soon(self._time)

    async def _time(self) -> None:
        try:
            left_s = CLOSING_S
            while (self._unacked or self._acked != self._expected) and left_s > 0:
                await anyio.sleep(ACK_S)
                left_s -= ACK_S if self.closed else 0
                if self._acked != self._expected:
                    self._answer(ACK)
                now = asyncio.get_running_loop().time()
                if self._unacked and now - self._progress_s > RESEND_S:
                    self._progress_s = now
                    # A replica that is paused would get everything many times.
                    self._resend(RESENT_FRAMES)
        finally:
            self._timing = False


def needs_reset(frame: bytes) -> bool:
    """Return whether the sender of a frame has to learn that the tunnel has ended here."""
    return frame[:1] in (DATA, ACK, CLOSE)


class TunnelTransport(asyncio.WriteTransport):
    """A tunnel as the transport of a :class:`jumpseat.rpc.transport.Wire`."""

    def __init__(self, tunnel: Tunnel, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._tunnel = tunnel
        self._protocol = protocol
        self._high = self._low = 1 << 20
        self._paused = False
        tunnel.on_less = self._resume

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._tunnel.send(bytes(data))
        if not self._paused and self._tunnel.waiting_bytes > self._high:
            self._paused = True
            self._protocol.pause_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else self._high
        self._low = low if low is not None else self._high // 4

    def get_write_buffer_size(self) -> int:
        return self._tunnel.waiting_bytes

    def close(self) -> None:
        self._tunnel.close()

    def abort(self) -> None:
        self._tunnel.close()

    def _resume(self) -> None:
        if self._paused and self._tunnel.waiting_bytes <= self._low:
            self._paused = False
            self._protocol.resume_writing()
