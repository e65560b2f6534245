"""Compressed bodies are decompressed in pieces of bounded size."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator

import pytest

from jumpseat.parsing.decompression import PIECE_BYTES, DecompressionError, decompress

pytestmark = pytest.mark.anyio

TEXT = b"The quick brown fox jumps over the lazy dog. " * 10_000


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


BODIES = {
    "gzip": gzip.compress(TEXT),
    "X-GZip ": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "Deflate": raw_deflate(TEXT),
    "identity": TEXT,
    "": TEXT,
    "utf-8, gzip": gzip.compress(TEXT),
}


@pytest.mark.parametrize("size", [1, 1000, 1 << 20], ids=["by byte", "in parts", "at once"])
@pytest.mark.parametrize("encoding", [*BODIES])
async def test_each_compression_is_undone_wherever_chunks_end(encoding: str, size: int) -> None:
    body = BODIES[encoding] if size > 1 or len(BODIES[encoding]) < 10_000 else BODIES["gzip"]
    encoding = encoding if body is BODIES[encoding] else "gzip"
    pieces = [piece async for piece in decompress(chunks(body, size), encoding)]
    assert b"".join(pieces) == TEXT


@pytest.mark.thorough
@pytest.mark.parametrize(("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_few_bytes_never_become_a_large_piece(encoding: str, compress: type[bytes]) -> None:
    bomb = compress(bytes(50_000_000))
    sizes = [len(piece) async for piece in decompress(chunks(bomb, len(bomb)), encoding)]
    assert max(sizes) <= PIECE_BYTES
    assert sum(sizes) == 50_000_000


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", b"no gzip"), ("deflate", b"\xff\xff"), ("gzip, gzip", gzip.compress(gzip.compress(TEXT)))],
)
async def test_invalid_data_and_compressed_compressions_are_refused(encoding: str, body: bytes) -> None:
    with pytest.raises(DecompressionError):
        [piece async for piece in decompress(chunks(body, 100), encoding)]


async def test_a_few_bytes_after_the_end_are_ignored_and_an_endless_body_is_refused() -> None:
    body = gzip.compress(TEXT)
    pieces = [piece async for piece in decompress(chunks(body + b"\0" * 1000, 100), "gzip")]
    assert b"".join(pieces) == TEXT
    with pytest.raises(DecompressionError):
        [piece async for piece in decompress(chunks(body + b"\0" * 1_000_000, 1000), "gzip")]
