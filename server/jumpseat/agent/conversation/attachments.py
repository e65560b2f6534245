"""Complete the attachments of a prompt before it is logged: a name for each, the content of images.

Clients may omit the names, but typed SDKs cannot parse the event of a prompt without them. Images are stored in the
log because a client may delete a file, such as a screenshot, as soon as the prompt has run, and a resumed session
must send the same content again.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from jumpseat.agent.conversation.media import HEAD_BYTES, image_type
from jumpseat.system.regular_files import read_regular, read_whole

MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
"""Larger images are treated like other files."""
TIMEOUT_S: Final = 5.0
"""The longest time that a prompt waits for the disk."""

_PATHS: Final = {"file": "path", "directory": "path", "selection": "filePath"}


async def complete_attachments(attachments: list[dict[str, Any]], cwd: Path) -> list[dict[str, Any]]:
    """Add a ``displayName`` to each attachment, and ``image: {data, mimeType}`` to files that are images.

    ``data`` is base64-encoded. Images that cannot be read in :data:`TIMEOUT_S` are left out.
    """
    named = [_add_name(item) for item in attachments]
    if any(item.get("type") == "file" for item in named):
        with anyio.move_on_after(TIMEOUT_S):
            return await anyio.to_thread.run_sync(_add_images, named, cwd, abandon_on_cancel=True)
    return named


def _add_name(item: dict[str, Any]) -> dict[str, Any]:
    path = item.get(_PATHS.get(str(item.get("type")), ""))
    if not isinstance(path, str) or isinstance(item.get("displayName"), str):
        return item
    return {**item, "displayName": Path(path).name or path}


def _add_images(attachments: list[dict[str, Any]], cwd: Path) -> list[dict[str, Any]]:
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
        mime_type = image_type(read_regular(path, HEAD_BYTES))
        if mime_type is None:
            return None
        data = read_whole(path, MAX_IMAGE_BYTES)
    except (OSError, ValueError):
        # Missing, unreadable, too large or an invalid path: the model gets the path, as of any file.
        return None
    return {"data": base64.b64encode(data).decode("ascii"), "mimeType": mime_type}
