"""Decompress the bodies of HTTP responses piece by piece, because a few bytes can stand for gigabytes.

HTTP libraries decompress each chunk as a whole, and undo any number of nested compressions. The caller counts the
decompressed bytes, and stops reading at its limit.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from typing import Final

import anyio.lowlevel

ACCEPT_ENCODING: Final = "gzip, deflate"

PIECE_BYTES: Final = 64 * 1024
"""Largest piece of decompressed data."""

_TURN_BYTES: Final = 1024 * 1024
"""Decompressed data after which other tasks run."""

_MAX_TRAILING_BYTES: Final = 64 * 1024
"""Most bytes after the end of the compressed data, which are ignored."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_FORMATS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


class DecompressionError(Exception):
    """A body cannot be decompressed."""


async def decompress(stream: AsyncIterable[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """Yield the pieces of a body with the header ``Content-Encoding: encoding``.

    Encodings other than compressions are ignored, as HTTP libraries do.

    Raises:
        DecompressionError: the data is invalid, continues after its end, or is compressed more than once.
    """
    formats = [name for part in encoding.split(",") if (name := part.strip().lower()) in _FORMATS]
    if len(formats) > 1:
        raise DecompressionError("compressed more than once")
    decompressor = Decompressor(formats[0]) if formats else None
    size = 0
    async for chunk in stream:
        for piece in [chunk] if decompressor is None else decompressor.feed(chunk):
            size += len(piece)
            if size >= _TURN_BYTES:
                size = 0
                await anyio.lowlevel.checkpoint()
            yield piece


class Decompressor:
    """Decompresses one body; ``name`` is ``gzip``, ``x-gzip`` or ``deflate``."""

    def __init__(self, name: str) -> None:
        self._stream = zlib.decompressobj(_FORMATS[name])
        # Two formats go by the name of deflate; the first two bytes tell them apart.
        self._may_be_raw = name == "deflate"
        self._head = b""
        self._trailing_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the pieces that ``data``, the next part of the body, stands for.

        Raises:
            DecompressionError: the data is invalid, or continues after its end.
        """
        if self._stream.eof:
            # The stream would keep the data, and the caller count none of it.
            self._trailing_bytes += len(data)
            if self._trailing_bytes > _MAX_TRAILING_BYTES:
                raise DecompressionError("expected nothing after the end of the compressed data")
            return
        if self._may_be_raw:
            data = self._head = self._head + data
            if len(data) < 2:
                return
        while True:
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error:
                if not self._may_be_raw:
                    raise DecompressionError("expected data in the format of its Content-Encoding") from None
                self._stream, self._may_be_raw = zlib.decompressobj(-zlib.MAX_WBITS), False
                continue
            self._may_be_raw = False
            if piece:
                yield piece
            data = self._stream.unconsumed_tail
            # A full piece may be followed by data that the stream holds back.
            if self._stream.eof or (not data and len(piece) < PIECE_BYTES):
                return
