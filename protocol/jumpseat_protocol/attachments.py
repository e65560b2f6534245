"""The attachments of a prompt. They are stored and sent as received; this module validates the known types.

Fields that are newer than this server are not validated; other types are refused, except those of GitHub.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.wire import WireModel


def _base64(text: str) -> str:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        # The provider would reject it, and with it every later prompt of the session.
        raise ValueError("expected base64, without line breaks and without 'data:' before it") from None
    return text


class LineRange(WireModel):
    start: int
    """The first line, counted from 1."""
    end: int
    """The last line."""


class FileAttachment(WireModel):
    """``path`` is absolute, or relative to the session's working directory. Lines are numbered from 1."""

    path: PathText = Field(min_length=1)
    """The file, absolute or relative to the working directory."""
    line_range: LineRange | None = None
    """The lines that are meant."""


class DirectoryAttachment(WireModel):
    path: PathText = Field(min_length=1)
    """The folder, absolute or relative to the working directory."""


class Position(WireModel):
    line: int
    """The line, counted from 0."""
    character: int = 0
    """The character in the line, counted from 0."""


class Selection(WireModel):
    start: Position
    """Where it begins."""
    end: Position | None = None
    """Where it ends."""


class SelectionAttachment(WireModel):
    """Lines are numbered from 0."""

    file_path: PathText | None = None
    """The file, absolute or relative to the working directory."""
    display_name: str | None = None
    selection: Selection | None = None
    """The place in the file."""
    text: str
    """The text that is selected."""


class BlobAttachment(WireModel):
    """``data`` is base64; without it, ``omitted_reason`` is required."""

    data: Annotated[str, AfterValidator(_base64)] | None = None
    """The content in base64."""
    mime_type: str = Field(pattern="^[^/\\s]+/[^/\\s]+$")
    display_name: str | None = None
    omitted_reason: str | None = None
    """Why the content is missing."""


class GitHubReference(WireModel):
    number: int
    """The number of the issue or pull request."""
    title: str
    reference_type: str
    """What it is."""
    state: str
    """Its state."""
    url: str


class GitHubAttachment(WireModel):
    """Any other ``github_*`` attachment."""

    url: str


KINDS: Final[Mapping[str, type[WireModel]]] = {
    "file": FileAttachment,
    "directory": DirectoryAttachment,
    "selection": SelectionAttachment,
    "blob": BlobAttachment,
    "github_reference": GitHubReference,
}


def problem_of(attachment: Mapping[str, Any]) -> str | None:
    """Validate an attachment and return the first problem, without its values; ``None`` if it is valid."""
    kind = attachment.get("type")
    if not isinstance(kind, str):
        return "type: expected a string"
    model = KINDS.get(kind) or (GitHubAttachment if kind.startswith("github_") else None)
    if model is None:
        # Accepted, it would reach no model, and SDKs cannot parse the event of a prompt that has it.
        return f"type: unknown type {kind[:64]!r}, expected one of {', '.join(KINDS)} or another github_ type"
    try:
        checked = model.model_validate(attachment)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg'].removeprefix('Value error, ')}"
    if isinstance(checked, BlobAttachment) and checked.data is None and checked.omitted_reason is None:
        return "data: Field required"
    return None
