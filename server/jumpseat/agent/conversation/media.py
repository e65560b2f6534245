"""What attached bytes are, and as what models can be given them. Pure functions.

What goes into a conversation stays there: a picture that its provider refuses would fail every later turn too.
Bytes are therefore what they begin with, whatever they are said to be.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from jumpseat.agent.blocks import DocumentBlock, ImageBlock, TextBlock

HEAD_BYTES: Final = 12

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What all models with vision take."""

OTHER_NAMES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
}

_TEXTS: Final = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/sql",
        "application/toml",
        "application/typescript",
        "application/x-sh",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
_HEAD_CHARS: Final = HEAD_BYTES * 4 // 3


IMAGE_TOKENS: Final = 1000
"""What a picture or a file is taken for."""


def picture_type(head: bytes) -> str | None:
    """The media type of the formats that models take, by the first :data:`HEAD_BYTES`: extensions lie."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def shown_as(data: str, mime_type: str) -> str | None:
    """The media type under which models are shown base64 ``data`` as a picture, ``None`` where they are not."""
    try:
        head = base64.b64decode(data[:_HEAD_CHARS])
    except (binascii.Error, ValueError):
        head = b""
    told = plain_type(mime_type)
    return picture_type(head) or (told if told in PICTURES and data else None)


def plain_type(mime_type: str) -> str:
    """A media type without parameters, in lower case, by its usual name."""
    plain = mime_type.partition(";")[0].strip().lower()
    return OTHER_NAMES.get(plain, plain)


def user_block(data: str, mime_type: str, name: str | None) -> TextBlock | ImageBlock | DocumentBlock:
    """Attached bytes as a model is given them; of a picture that no model takes, that it is there."""
    if (shown := shown_as(data, mime_type)) is not None:
        return ImageBlock(data, shown, label=name)
    told = plain_type(mime_type)
    if told in _TEXTS or told.endswith(("+json", "+xml")):
        # Drawings among them: models read them as they are written.
        return DocumentBlock(data, "text/plain", title=name)
    if told.startswith("image/"):
        return TextBlock(not_shown(told, name))
    return DocumentBlock(data, told, title=name)


def not_shown(mime_type: str, name: str | None) -> str:
    """What a model is told in place of a picture."""
    return f"[{name or 'image'}: an image of type {mime_type}, which cannot be shown to you]"
