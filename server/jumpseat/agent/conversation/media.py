"""Decide how attached bytes are sent to models. Pure functions.

An image in a conversation is sent with every later turn: if the provider rejects it, all of them fail. Image types
are therefore sniffed from the content; the declared type is not trusted.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from jumpseat.agent.blocks import DocumentBlock, ImageBlock, TextBlock

HEAD_BYTES: Final = 12

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The image types that all models with vision accept."""

OTHER_NAMES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
}

_TEXT_TYPES: Final = frozenset(
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
"""The estimated size of an image or a file, in tokens."""


def image_type(head: bytes) -> str | None:
    """Return the type of an image that models accept, given its first :data:`HEAD_BYTES`; ``None`` for others."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def sendable_image_type(data: str, mime_type: str) -> str | None:
    """Return the type under which base64-encoded ``data`` is sent as an image; ``None`` if it cannot be."""
    try:
        head = base64.b64decode(data[:_HEAD_CHARS])
    except (binascii.Error, ValueError):
        head = b""
    declared = normalized_type(mime_type)
    return image_type(head) or (declared if declared in IMAGE_TYPES and data else None)


def normalized_type(mime_type: str) -> str:
    """Normalize a media type: no parameters, lower case, its registered name."""
    plain = mime_type.partition(";")[0].strip().lower()
    return OTHER_NAMES.get(plain, plain)


def user_block(data: str, mime_type: str, name: str | None) -> TextBlock | ImageBlock | DocumentBlock:
    """Return the block for base64-encoded ``data``: an image, a document, or a note for an unsupported image."""
    if (shown := sendable_image_type(data, mime_type)) is not None:
        return ImageBlock(data, shown, label=name)
    declared = normalized_type(mime_type)
    if declared in _TEXT_TYPES or declared.endswith(("+json", "+xml")):
        # This includes SVG, which models read as text.
        return DocumentBlock(data, "text/plain", title=name)
    if declared.startswith("image/"):
        return TextBlock(image_placeholder(declared, name))
    return DocumentBlock(data, declared, title=name)


def image_placeholder(mime_type: str, name: str | None) -> str:
    """Return the text that replaces an unsupported image."""
    return f"[{name or 'image'}: an image of type {mime_type}, which cannot be shown to you]"
