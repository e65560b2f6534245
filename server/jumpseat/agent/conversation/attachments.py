"""Complete the attachments of a prompt before it is logged: a name for each, the content of images.

Clients may omit the names, but typed SDKs cannot parse the event of a prompt without them. Images are stored in the
log because a client may delete a file, such as a screenshot, as soon as the prompt has run, and a resumed session
must send the same content again.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread

from jumpseat.agent.blocks import DocumentBlock, ImageBlock, TextBlock
from jumpseat.agent.conversation.pictures import (
    HEAD_BYTES,
    MAX_IMAGE_BYTES,
    PictureError,
    check_picture,
    image_type,
)
from jumpseat.system.regular_files import read_regular, read_whole

PDF_HEAD_BYTES: Final = 1024
"""A PDF document has its mark among these first bytes."""

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

IMAGE_TOKENS: Final = 1000
"""The estimated size of an image or a file, in tokens."""


def check_media(data: str, mime_type: str) -> str:
    """Return the type under which base64-encoded ``data`` can be sent to models.

    Raises:
        PictureError: no model can receive it; the message is the reason.
    """
    declared = normalized_type(mime_type)
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise PictureError("not valid base64") from None
    if image_type(content[:HEAD_BYTES]) is not None:
        return check_picture(content)
    if declared in _TEXT_TYPES or declared.endswith(("+json", "+xml")):
        # This includes SVG, which models read as text.
        return "text/plain"
    if declared in IMAGE_TYPES:
        return check_picture(content)
    if declared.startswith("image/"):
        raise PictureError(f"an image of type {declared}")
    if declared == "application/pdf" and b"%PDF" not in content[:PDF_HEAD_BYTES]:
        raise PictureError("not a PDF document")
    return declared


def normalized_type(mime_type: str) -> str:
    """Normalize a media type: no parameters, lower case, its registered name."""
    plain = mime_type.partition(";")[0].strip().lower()
    return OTHER_NAMES.get(plain, plain)


def user_block(data: str, mime_type: str, name: str | None) -> TextBlock | ImageBlock | DocumentBlock:
    """Return the block for base64-encoded ``data``: an image, a document, or a note if models cannot receive it."""
    try:
        shown = check_media(data, mime_type)
    except PictureError as problem:
        return TextBlock(media_note(name or normalized_type(mime_type), str(problem)))
    return ImageBlock(data, shown, label=name) if shown in IMAGE_TYPES else DocumentBlock(data, shown, title=name)


def media_note(name: str, problem: str) -> str:
    """Return the text that replaces a picture or document which is not sent."""
    return f"[{name} is left out: {problem}]"


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


_MENTION: Final = re.compile(r"@\{([^{}\s]{1,100})\}")
_MENTION_IN_WORDS: Final = re.compile(rf"(\b[Tt]he )?{_MENTION.pattern}( tool\b)?")


def mentions(text: str) -> list[str]:
    """Return the mentioned names in order."""
    return _MENTION.findall(text) if "@{" in text else []


def expand_mentions(text: str, expansion: Callable[[str], str | None]) -> str:
    """Replace each mention by the result of ``expansion`` for its name, unless that is ``None``.

    ``the`` before and ``tool`` after a mention are not repeated.
    """

    def expanded(match: re.Match[str]) -> str:
        before, name, after = match.groups(default="")
        words = expansion(name)
        if words is None:
            return match[0]
        return f"{before}{words.removeprefix('the ') if before else words}".removesuffix(after) + after

    return _MENTION_IN_WORDS.sub(expanded, text) if "@{" in text else text


def reference(item: dict[str, Any]) -> str | None:
    """Return the line for an attachment of a ``github_*`` type; ``None`` for all others.

    Recorded conversations fix the form of ``github_reference``; the other types follow it. An unknown type is
    represented by its URL.
    """
    kind = str(item.get("type"))
    if not kind.startswith("github_"):
        return None
    url = f"({item.get('url')})"
    match kind:
        case "github_reference":
            what = f"#{item.get('number')} - {item.get('title')}"
            return f"{what} [{item.get('referenceType')}] [{item.get('state')}] {url}"
        case "github_commit":
            return f"{_repository(item)}@{str(item.get('oid'))[:12]} - {item.get('message')} [commit] {url}"
        case "github_release":
            return f"{_repository(item)} {item.get('tagName')} - {item.get('name')} [release] {url}"
        case "github_actions_job":
            result = f" [{item['conclusion']}]" if item.get("conclusion") else ""
            what = f"{item.get('workflowName')} / {item.get('jobName')} #{item.get('jobId')}"
            return f"{_repository(item)} - {what} [job]{result} {url}"
        case "github_repository":
            ref = f"@{item['ref']}" if item.get("ref") else ""
            about = f" - {item['description']}" if item.get("description") else ""
            return f"{_repository(item)}{ref}{about} [repository] {url}"
        case "github_file":
            return f"{_place(item)} [file] {url}"
        case "github_snippet":
            lines = _object(item.get("lineRange"))
            return f"{_place(item)} lines {lines.get('start')}-{lines.get('end')} [snippet] {url}"
        case "github_file_diff":
            sides = [_place(_object(side)) for side in (item.get("base"), item.get("head")) if side]
            return f"{' -> '.join(sides)} [diff] {url}"
        case "github_tree_comparison":
            base, head = _object(item.get("base")), _object(item.get("head"))
            ends = f"{base.get('revision')}...{head.get('revision')}"
            return f"{_repository(base)} {ends} [comparison] {url}"
        case _:
            return str(item.get("url"))


def _place(item: dict[str, Any]) -> str:
    """Return ``owner/name@ref:path``."""
    return f"{_repository(item)}@{item.get('ref')}:{item.get('path')}"


def _repository(item: dict[str, Any]) -> str:
    repo = _object(item.get("repo"))
    return f"{repo.get('owner')}/{repo.get('name')}"


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
