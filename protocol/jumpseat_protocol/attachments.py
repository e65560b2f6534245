"""What a prompt may carry. Attachments travel as they came; here is what those of the known kinds must have.

Kinds that are newer than this server pass unchecked, and so do fields.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError

from jumpseat_protocol.wire import WireModel


def _base64(text: str) -> str:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        # A provider would refuse it, and with it every later prompt of the session.
        raise ValueError("expected base64, without line breaks and without 'data:' before it") from None
    return text


class LineRange(WireModel):
    start: int
    end: int


class FileAttachment(WireModel):
    """``path`` is absolute or relative to the session's working directory. Lines count from 1."""

    path: str = Field(min_length=1)
    line_range: LineRange | None = None


class DirectoryAttachment(WireModel):
    path: str = Field(min_length=1)


class Position(WireModel):
    line: int
    character: int = 0


class Selection(WireModel):
    start: Position
    end: Position | None = None


class SelectionAttachment(WireModel):
    """Lines count from 0."""

    file_path: str | None = None
    display_name: str | None = None
    selection: Selection | None = None
    text: str


class BlobAttachment(WireModel):
    """``omitted_reason`` says why there is no ``data``, in base64."""

    data: Annotated[str, AfterValidator(_base64)] | None = None
    mime_type: str = Field(pattern="^[^/\\s]+/[^/\\s]+$")
    display_name: str | None = None
    omitted_reason: str | None = None


class GitHubReference(WireModel):
    number: int
    title: str
    reference_type: str
    state: str
    url: str


class GitHubAttachment(WireModel):
    """What all other kinds of things on GitHub have in common."""

    url: str


KINDS: Final[Mapping[str, type[WireModel]]] = {
    "file": FileAttachment,
    "directory": DirectoryAttachment,
    "selection": SelectionAttachment,
    "blob": BlobAttachment,
    "github_reference": GitHubReference,
}


def problem_of(attachment: Mapping[str, Any]) -> str | None:
    """What is wrong with an attachment, without its values; ``None`` where nothing is."""
    kind = attachment.get("type")
    if not isinstance(kind, str):
        return "type: expected the name of a kind"
    model = KINDS.get(kind) or (GitHubAttachment if kind.startswith("github_") else None)
    if model is None:
        return None
    try:
        checked = model.model_validate(attachment)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg'].removeprefix('Value error, ')}"
    if isinstance(checked, BlobAttachment) and checked.data is None and checked.omitted_reason is None:
        return "data: Field required"
    return None
