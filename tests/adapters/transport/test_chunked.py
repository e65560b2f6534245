"""The chunked transfer coding, whole and in pieces, and what is not chunks."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumpseat.adapters.transport.chunked import LONGEST_LINE, ChunkedDecoder
from jumpseat.adapters.transport.errors import RemoteProtocolError
from tests.support.cases import check_each

MALFORMED = {
    "no number": b"x\r\n",
    "an empty size": b"\r\n",
    "a sign": b"+1\r\na\r\n",
    "an underscore": b"1_0\r\n",
    "a space before the size": b" 1\r\na\r\n",
    "a huge size": b"f" * 17 + b"\r\n",
    "a chunk that goes on": b"1\r\nab\r\n",
    "a line without end": b"1;" + b"x" * LONGEST_LINE,
    "trailers without end": b"0\r\n" + b"a: b\r\n" * LONGEST_LINE,
}


def encoded(contents: list[bytes], trailers: bytes = b"") -> bytes:
    chunks = b"".join(b"%x;name=value\r\n%s\r\n" % (len(content), content) for content in contents)
    return chunks + b"0\r\n" + trailers + b"\r\n"


@given(st.lists(st.binary(min_size=1, max_size=300)), st.lists(st.integers(0, 2000), max_size=20))
def test_the_content_does_not_depend_on_how_the_chunks_are_cut(contents: list[bytes], cuts: list[int]) -> None:
    stream = encoded(contents, b"Digest: x\r\n") + b"rest"
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    decoder = ChunkedDecoder()

    received = [decoder.feed(stream[start:end]) for start, end in pairwise(places)]

    assert b"".join(received) == b"".join(contents)
    assert decoder.ended
    assert b"rest".endswith(decoder.rest)


@given(st.lists(st.sampled_from([b"0", b"1", b"a", b"A", b"\r\n", b"\r", b"\n", b";x", b" "]), max_size=20))
def test_content_is_that_which_h11_decodes(parts: list[bytes]) -> None:
    stream = b"".join(parts)
    decoder, reference = ChunkedDecoder(), h11.Connection(h11.CLIENT)
    reference.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    reference.send(h11.EndOfMessage())
    reference.receive_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + stream)
    reference.next_event()
    try:
        content = decoder.feed(stream)
    except RemoteProtocolError:
        with pytest.raises(h11.RemoteProtocolError):
            list(iter(reference.next_event, h11.NEED_DATA))
        return
    expected = bytearray()
    with suppress(h11.RemoteProtocolError):
        while isinstance(event := reference.next_event(), h11.Data):
            expected += event.data

    assert content == expected


def test_what_is_no_chunk_is_refused() -> None:
    def refuse(stream: bytes) -> None:
        decoder = ChunkedDecoder()
        pieces = (stream[start : start + 4096] for start in range(0, len(stream), 4096))
        with pytest.raises(RemoteProtocolError):
            deque(map(decoder.feed, pieces), maxlen=0)

    check_each(MALFORMED, refuse)
