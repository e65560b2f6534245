"""What is attached to a prompt, as it is written down with it: each with a name, pictures with their content.

Typed SDKs cannot read the event of a prompt whose attachments have no names, though clients may leave them out.
Pictures are shown to models that see. They go into the log because a client may remove its file as soon as the
prompt has run, a screenshot say, and a resumed session must send what was sent before.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from jumpseat.agent.conversation.media import HEAD_BYTES, picture_type

PICTURE_BYTES: Final = 10 * 1024 * 1024
"""Larger ones are files like any other."""
PATIENCE_S: Final = 5.0
"""How long a prompt waits for the disk."""

_PATHS: Final = {"file": "path", "directory": "path", "selection": "filePath"}


async def as_logged(attachments: list[dict[str, Any]], cwd: Path) -> list[dict[str, Any]]:
    """``attachments`` with a ``displayName`` each, and ``image: {data, mimeType}`` for files that are pictures."""
    named = [_named(item) for item in attachments]
    if any(item.get("type") == "file" for item in named):
        with anyio.move_on_after(PATIENCE_S):
            return await anyio.to_thread.run_sync(_with_pictures, named, cwd, abandon_on_cancel=True)
    return named


def _named(item: dict[str, Any]) -> dict[str, Any]:
    path = item.get(_PATHS.get(str(item.get("type")), ""))
    if not isinstance(path, str) or isinstance(item.get("displayName"), str):
        return item
    return {**item, "displayName": Path(path).name or path}


def _with_pictures(attachments: list[dict[str, Any]], cwd: Path) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for item in attachments:
        image = _image(item, cwd)
        shown.append(item if image is None else {**item, "image": image})
    return shown


def _image(item: dict[str, Any], cwd: Path) -> dict[str, str] | None:
    if item.get("type") != "file" or not isinstance(item.get("path"), str):
        return None
    path = cwd / item["path"]
    try:
        # A pipe must not be waited for.
        if not path.is_file() or path.stat().st_size > PICTURE_BYTES:
            return None
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            mime_type = picture_type(head)
            if mime_type is None:
                return None
            data = head + file.read(PICTURE_BYTES)
    except (OSError, ValueError):
        # Missing, unreadable, or no path at all: the model is told of it as of any file.
        return None
    return {"data": base64.b64encode(data).decode("ascii"), "mimeType": mime_type}
