"""Validate pictures by their structure, without decoding pixels.

Providers refuse a whole request for one picture that is broken, mislabelled or too large, and each later request of
the conversation with it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Final

HEAD_BYTES: Final = 12

MAX_SIDE: Final = 8000
"""The longest side of a picture, in pixels, that all providers accept."""

MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
"""The largest picture."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers without a segment."""

MAX_PARTS: Final = 20_000
"""Limit of the chunks or segments of a picture. A picture of 5 MiB has a few hundred; each takes time."""


class PictureError(ValueError):
    """The picture cannot be sent; the message gives the reason."""


def image_type(head: bytes) -> str | None:
    """Return the type of an image that models accept, given its first :data:`HEAD_BYTES`; ``None`` for others."""
    if head.startswith(_PNG):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def check_picture(content: bytes) -> str:
    """Return the media type of a picture that all providers accept.

    Raises:
        PictureError: ``content`` is not a whole PNG, JPEG, GIF or WebP file, or is too large.
    """
    mime_type = image_type(content[:HEAD_BYTES])
    if mime_type is None:
        raise PictureError("not a PNG, JPEG, GIF or WebP picture")
    if len(content) > MAX_IMAGE_BYTES:
        raise PictureError(f"too large: {len(content)} bytes, at most {MAX_IMAGE_BYTES}")
    try:
        width, height = _READERS[mime_type](content)
    except (IndexError, PictureError):
        raise PictureError("broken: the file is damaged or incomplete") from None
    if not (width and height):
        raise PictureError("broken: it has no pixels")
    if max(width, height) > MAX_SIDE:
        raise PictureError(f"too large: {width}x{height} pixels, at most {MAX_SIDE} on a side")
    return mime_type


def _read_png(content: bytes) -> tuple[int, int]:
    """Read all chunks of a PNG: https://www.w3.org/TR/png-3/#5Chunk-layout."""
    if content[12:16] != b"IHDR":
        raise PictureError("no header")
    place = len(_PNG)
    has_pixels = False
    for _ in range(MAX_PARTS):
        end = place + 12 + int.from_bytes(content[place : place + 4], "big")
        kind = content[place + 4 : place + 8]
        if end > len(content) or zlib.crc32(content[place + 4 : end - 4]) != int.from_bytes(
            content[end - 4 : end], "big"
        ):
            raise PictureError("damaged chunk")
        if kind == b"IEND" and has_pixels:
            break
        has_pixels = has_pixels or kind == b"IDAT"
        place = end
    else:
        raise PictureError("too many chunks")
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def _read_jpeg(content: bytes) -> tuple[int, int]:
    """Read the segments of a JPEG up to its pixels: https://www.w3.org/Graphics/JPEG/itu-t81.pdf, annex B."""
    size: tuple[int, int] | None = None
    place = 2
    for _ in range(MAX_PARTS):
        if content[place] != 0xFF:
            raise PictureError("no marker")
        marker = content[place + 1]
        if marker == 0xFF:  # padding
            place += 1
        elif marker in _JPEG_ALONE:
            place += 2
        elif marker == 0xDA:  # the pixels, up to the marker for the end
            if size is None or content.find(b"\xff\xd9", place) < 0:
                raise PictureError("incomplete")
            return size
        else:
            if marker in _JPEG_FRAMES:
                height, width = content[place + 5 : place + 7], content[place + 7 : place + 9]
                size = int.from_bytes(width, "big"), int.from_bytes(height, "big")
            place += 2 + int.from_bytes(content[place + 2 : place + 4], "big")
    raise PictureError("too many segments")


def _read_gif(content: bytes) -> tuple[int, int]:
    """Read the header of a GIF, which has to be followed by an image and the trailer."""
    if b"\x2c" not in content[13:] or not content.rstrip(b"\0").endswith(b"\x3b"):
        raise PictureError("incomplete")
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _read_webp(content: bytes) -> tuple[int, int]:
    """Read the first chunk of a WebP: https://developers.google.com/speed/webp/docs/riff_container."""
    if 8 + int.from_bytes(content[4:8], "little") > len(content) or len(content) < 30:
        raise PictureError("incomplete")
    match content[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(content[24:27], "little"), 1 + int.from_bytes(content[27:30], "little")
        case b"VP8L" if content[20] == 0x2F:
            bits = int.from_bytes(content[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 " if content[23:26] == b"\x9d\x01\x2a":
            width, height = content[26:28], content[28:30]
            return int.from_bytes(width, "little") & 0x3FFF, int.from_bytes(height, "little") & 0x3FFF
        case _:
            raise PictureError("no picture")


_READERS: Final[Mapping[str, Callable[[bytes], tuple[int, int]]]] = {
    "image/png": _read_png,
    "image/jpeg": _read_jpeg,
    "image/gif": _read_gif,
    "image/webp": _read_webp,
}
