"""Large messages are passed on as they are: neither joined nor copied."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Callable

import pytest

from jumpseat.rpc.transport import AT_ONCE_S, BUSY_BYTES, HEADERS, LINES, Framing, Wire
from jumpseat_protocol.envelope import FrameDecoder, FramingError, encode_frame

pytestmark = pytest.mark.anyio


class Recorder(asyncio.WriteTransport):
    """A transport that keeps everything that is written, as the objects that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[object] = []

    def write(self, data: object) -> None:
        self.written.append(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        pass


def connect(framing: Framing) -> tuple[Wire, Recorder]:
    def ignore(_item: bytes | FramingError) -> None:
        pass

    nothing: Callable[[], None] = lambda: None  # noqa: E731
    wire, recorder = Wire(ignore, ignore, nothing, framing), Recorder()
    wire.connection_made(recorder)
    return wire, recorder


@pytest.mark.parametrize("ends", ["stays", "ends", "is lost"])
async def test_others_are_served_between_the_messages_of_one_client_and_no_message_is_lost(ends: str) -> None:
    served: list[object] = []

    def take(body: bytes | FramingError) -> None:
        served.append(body)
        until = time.monotonic() + 2 * AT_ONCE_S
        while time.monotonic() < until:
            pass

    wire = Wire(take, take, lambda: served.append("closed"), LINES)
    wire.connection_made(Recorder())
    wire.data_received(b"1\n2\n3")
    wire.data_received(b"\n4\n")
    asyncio.get_running_loop().call_soon(served.append, "another")
    if ends == "ends":
        assert wire.eof_received()
    elif ends == "is lost":
        wire.connection_lost(None)
    for _ in range(8):
        await asyncio.sleep(0)

    # The first message came alone, and each of the others in a later turn of the loop.
    assert served[0] == b"1"
    assert served.index("another") < served.index(b"3")
    assert [item for item in served if isinstance(item, bytes)] == [b"1", b"2", b"3", b"4"]
    assert served[-1] == (b"4" if ends == "stays" else "closed")
    assert not wire.behind


@pytest.mark.parametrize(
    ("framing", "before", "after"), [(HEADERS, b"Content-Length: %d\r\n\r\n", b""), (LINES, b"", b"\n")]
)
async def test_the_parts_of_a_large_message_are_written_in_order(
    framing: Framing, before: bytes, after: bytes
) -> None:
    wire, recorder = connect(framing)
    body = b"x" * (BUSY_BYTES + 1)
    wire.send(b"first")
    wire.send(b"[", body, b"]")
    wire.send(b"last")
    await asyncio.sleep(0)

    sizes = [5, len(body) + 2, 4]
    headers = [before % size if before else b"" for size in sizes]
    written = b"".join(bytes(part) for part in recorder.written if isinstance(part, bytes))
    bodies = [b"first", b"[" + body + b"]", b"last"]
    assert written == b"".join(header + content + after for header, content in zip(headers, bodies, strict=True))


def test_a_large_message_is_copied_once_when_its_frame_is_read() -> None:
    size = 8 << 20
    decoder = FrameDecoder()
    frame = encode_frame(b"x" * size)
    *chunks, last = [frame[start : start + 65536] for start in range(0, len(frame), 65536)]
    assert all(list(decoder.feed(chunk)) == [] for chunk in chunks)
    tracemalloc.start()
    try:
        (body,) = decoder.feed(last)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body == b"x" * size
    # The buffer itself was there before.
    assert peak < 1.5 * size
