"""The frame decoder: streams split anywhere, invalid headers, and the frames after them."""

from __future__ import annotations

import random

import pytest

from jumpseat_protocol.envelope import MAX_HEADER_BYTES, FrameDecoder, FramingError, encode_frame

BODIES = [
    b"{}",
    b'{"text":"gr\xc3\xbc\xc3\x9fe"}',
    b"x" * 5000,
    b"Content-Length: 3\r\n\r\nabc",
    b"\r\n\r\n",
    b"\0",
]


def decode(
    data: bytes, sizes: list[int] | None = None, *, max_body_bytes: int = 1 << 20
) -> list[bytes | FramingError]:
    """Feed ``data`` to a new decoder, in pieces of ``sizes`` or whole, and return all items."""
    decoder = FrameDecoder(max_body_bytes)
    out: list[bytes | FramingError] = []
    for size in sizes or [len(data)]:
        out += decoder.feed(data[:size])
        data = data[size:]
    assert not data
    return out


def cuts(length: int, dice: random.Random) -> list[int]:
    """Return random sizes with the sum ``length``; many are tiny, some are zero."""
    sizes: list[int] = []
    while length > 0:
        size = min(length, dice.choice([0, 1, 1, 2, 3, 7, 19, 64, 1000]))
        sizes.append(size)
        length -= size
    return sizes


def test_a_frame_has_exactly_the_header_that_the_sdks_read() -> None:
    assert encode_frame("ü".encode()) == b"Content-Length: 2\r\n\r\n\xc3\xbc"


def test_bodies_are_complete_and_in_order() -> None:
    assert decode(b"".join(map(encode_frame, BODIES))) == BODIES


def test_bodies_are_complete_wherever_the_stream_is_split() -> None:
    for seed in range(50):
        dice = random.Random(seed)
        bodies = dice.choices(BODIES, k=8)
        data = b"".join(map(encode_frame, bodies))
        assert decode(data, cuts(len(data), dice)) == bodies, f"seed {seed}"


def test_a_body_is_returned_with_its_last_byte() -> None:
    data = encode_frame(b"body")
    decoder = FrameDecoder()
    for end in range(len(data) - 1):
        assert list(decoder.feed(data[end : end + 1])) == []
    assert list(decoder.feed(data[-1:])) == [b"body"]


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 4\r\n\r\n",
        b"CONTENT-LENGTH:4\r\n\r\n",
        b"Content-Length\t:\t4  \r\n\r\n",
        b"Content-Type: text/plain\r\nContent-Length: 4\r\ncontent-type: y\r\n\r\n",
    ],
)
def test_a_header_is_read_in_any_case_and_beside_the_type(header: bytes) -> None:
    assert decode(header + b"body") == [b"body"]


FOREIGN = "a header line is neither Content-Length nor Content-Type"
INVALID = [
    (b"Hello: world\r\n\r\n", FOREIGN),
    (b"\r\n\r\n", "header without Content-Length"),
    (b"Content-Type: text/plain\r\n\r\n", "header without Content-Length"),
    (b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n", "header with two Content-Length lines"),
    (b"X-Content-Length: 4\r\n\r\n", FOREIGN),
    (b"Content-Length: 4\r\nX: y\r\n\r\n", FOREIGN),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", FOREIGN),
    (b"Content-Length: -1\r\n\r\n", "Content-Length is not a number of bytes: '-1'"),
    (b"Content-Length: +4\r\n\r\n", "Content-Length is not a number of bytes: '+4'"),
    (b"Content-Length: 0x4\r\n\r\n", "Content-Length is not a number of bytes: '0x4'"),
    ("Content-Length: ٤\r\n\r\n".encode(), "Content-Length is not a number of bytes: '��'"),
    (b"Content-Length: 0\r\n\r\n", "Content-Length is 0, expected a message"),
    (b"Content-Length: 1048577\r\n\r\n", "message of 1048577 bytes is larger than the limit of 1048576"),
]


@pytest.mark.parametrize(("header", "message"), INVALID)
def test_an_invalid_header_is_reported_once_and_the_next_frame_is_found(header: bytes, message: str) -> None:
    data = header + b'{"its": "body"}' + encode_frame(b"next")
    assert decode(data) == [FramingError(message), b"next"]


def test_invalid_headers_between_frames_cost_no_frame_wherever_the_stream_is_split() -> None:
    for seed in range(1000, 1050):
        dice = random.Random(seed)
        data, expected = b"", list[bytes | FramingError]()
        for number in range(8):
            if dice.random() < 0.5:
                header, message = dice.choice(INVALID)
                data += header + b"{some: body}" * dice.randrange(3)
                expected.append(FramingError(message))
            # A valid frame after each one: after an invalid header, bytes are skipped up to the next length.
            body = b"%d" % number
            data += encode_frame(body)
            expected.append(body)
        assert decode(data, cuts(len(data), dice)) == expected, f"seed {seed}"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("before", "message"),
    [
        (b"printed ", FOREIGN),
        (b"\x00", FOREIGN),
        (b"Content-Type: " + b"x" * MAX_HEADER_BYTES, f"header longer than {MAX_HEADER_BYTES} bytes"),
    ],
)
def test_a_message_behind_other_bytes_on_its_line_is_found_wherever_the_stream_is_split(
    before: bytes, message: str
) -> None:
    data = before + encode_frame(b"found") + encode_frame(b"next")
    for size in (1, 7, len(before), len(data)):
        chunks = (data[at : at + size] for at in range(0, len(data), size))
        decoder = FrameDecoder()
        assert [item for chunk in chunks for item in decoder.feed(chunk)] == [
            FramingError(message),
            b"found",
            b"next",
        ], size


@pytest.mark.parametrize("start", [b"Content-Length: 5", b"content-length:", b"content-type: text/"])
def test_an_endless_header_is_dropped_and_the_next_frame_is_found(start: bytes) -> None:
    decoder = FrameDecoder()
    out = list(decoder.feed(start + b"x" * (MAX_HEADER_BYTES + 1)))
    assert out == [FramingError(f"header longer than {MAX_HEADER_BYTES} bytes")]
    assert list(decoder.feed(encode_frame(b"next"))) == [b"next"]


@pytest.mark.parametrize(
    "start", [b"H", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"Content-Length 5", b"content-typex", b"\n", b" "]
)
def test_a_foreign_header_line_is_reported_before_it_ends(start: bytes) -> None:
    assert decode(start) == [FramingError(FOREIGN)]
    assert decode(b"Content-Length: 4\r\n" + start) == [FramingError(FOREIGN)]


def test_a_limit_applies_from_the_next_header_on() -> None:
    decoder = FrameDecoder(max_body_bytes=1)
    items = decoder.feed(encode_frame(b"1") + encode_frame(b"22"))
    assert next(items) == b"1"
    decoder.max_body_bytes = 2
    assert list(items) == [b"22"]


def test_endless_garbage_is_reported_once_and_not_buffered() -> None:
    decoder = FrameDecoder()
    out = [item for _ in range(100) for item in decoder.feed(b"x" * 65536)]
    assert len(out) == 1
    assert list(decoder.feed(encode_frame(b"next"))) == [b"next"]


def test_a_body_of_the_maximum_size_is_accepted() -> None:
    assert decode(encode_frame(b"x" * 100), max_body_bytes=100) == [b"x" * 100]
