"""Small whole pictures, because broken ones are not sent to models."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final


def png(width: int = 1, height: int = 1) -> bytes:
    """Return a black PNG."""
    rows = (b"\0" * ((width + 7) // 8 + 1)) * height
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


PNG: Final = png()
JPEG: Final = (
    b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    + b"\xff\xc0\0\x0b\x08\0\1\0\2\1\1\x11\0"
    + b"\xff\xda\0\x08xxxxxx..\xff\xd9"
)
GIF: Final = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
WEBP: Final = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
PNG_BASE64: Final = base64.b64encode(PNG).decode()
