"""One message per line: the framing of the Agent Client Protocol."""

from __future__ import annotations

from jumpseat_protocol.envelope import FramingError, LineDecoder


def test_lines_are_split_wherever_the_chunks_end() -> None:
    data = b'{"a": 1}\r\n\n  \n{"b": 2}\n{"c": 3'
    for size in (1, 3, len(data)):
        decoder = LineDecoder()
        found = [line for start in range(0, len(data), size) for line in decoder.feed(data[start : start + size])]
        assert found == [b'{"a": 1}', b'{"b": 2}']
        assert decoder.feed(b"}\n") == [b'{"c": 3}']


def test_a_line_that_is_too_long_is_dropped_with_one_error() -> None:
    decoder = LineDecoder(max_body_bytes=10)
    found = decoder.feed(b"x" * 8) + decoder.feed(b"x" * 8) + decoder.feed(b"x" * 8) + decoder.feed(b"\nok\n")
    assert found == [FramingError("line longer than the limit of 10 bytes"), b"ok"]
    whole = LineDecoder(max_body_bytes=10).feed(b"x" * 24 + b"\nok\n")
    assert whole == found
