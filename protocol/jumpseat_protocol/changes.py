"""``jumpseat.changes.*``: the changes that the file tools of a session have made, by prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel

ChangedFileState = Literal["as-left", "changed-since", "not-kept"]
"""State of a file since the prompt changed it. The earlier content of a ``not-kept`` file was too large."""


class ChangedFile(WireModel):
    """A file that tools changed while a prompt ran. ``diff`` is a unified diff, empty for ``not-kept`` files."""

    path: str
    """The path, relative to the working directory."""
    state: ChangedFileState
    """Whether the change can be undone."""
    diff: str
    """The change as a unified diff."""


class PromptChanges(WireModel):
    """``interaction_id`` is that of the prompt's events; ``prompt`` is its text, shortened to one line."""

    interaction_id: str
    prompt: str
    """The text of the prompt in one line."""
    files: list[ChangedFile]
    """The files that changed."""


class ChangesListParams(WireModel):
    """``limit`` is the number of prompts."""

    session_id: str
    limit: int = Field(default=1, ge=1, le=100)
    """The most prompts to return."""


class ChangesListResult(WireModel):
    """The latest prompts that changed files, the latest first; without those that were undone."""

    prompts: list[PromptChanges]
    """The prompts, the latest first."""


class ChangesFilesParams(WireModel):
    """``interaction_id`` is that of one prompt; without it, the files of the whole session are meant."""

    session_id: str
    interaction_id: str | None = None
    """The prompt whose changes are meant; all of them by default."""


class SetFile(WireModel):
    """A file that was changed, once or several times. ``state`` is ``None`` if the session is not open.

    ``added`` and ``removed`` count lines. ``diff`` compares the file before the first change with the one after the
    last; it is empty for binary files, and where it is too long or the earlier content was not kept.
    """

    path: str
    """The absolute path."""
    change: Literal["created", "modified", "deleted"]
    """What happened to the file."""
    state: ChangedFileState | None = None
    """Whether the change can be undone."""
    added: int = 0
    """How many lines were added."""
    removed: int = 0
    """How many lines were removed."""
    diff: str = ""
    """The change as a unified diff."""


class ChangesFilesResult(WireModel):
    """The files that are not as before, by path; without changes that were undone."""

    files: list[SetFile]
    """The files, by path."""


class ChangesUndoFilesParams(ChangesFilesParams):
    """Without ``path``, all changes of the prompt or the session are undone."""

    path: PathText | None = None
    """The absolute path of the only file to undo."""


class LeftFile(WireModel):
    """A file that an undo has not touched. ``reason`` continues a sentence that begins with the path."""

    path: str
    """The absolute path."""
    reason: str
    """Why the file was left alone."""


class ChangesUndoFilesResult(WireModel):
    """``left`` are files that are not as the changes left them, or whose earlier content was not kept."""

    undone: list[str]
    """The files that are as before."""
    left: list[LeftFile]
    """The files that were not touched."""


class ChangesUndoResult(WireModel):
    """``prompt`` is ``None`` if there is nothing to undo.

    ``undone`` are the paths of files that are again as they were before the prompt, ``left`` those of files that
    were not touched, because they are not as the prompt left them, or their earlier content was not kept.
    """

    prompt: str | None = None
    """The prompt that was undone."""
    undone: list[str] = Field(default_factory=list)
    """The files that are as before."""
    left: list[str] = Field(default_factory=list)
    """The files that were not touched."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.changes.list": Method(
        ChangesListParams, ChangesListResult, "List the prompts that changed files, with the changes."
    ),
    "jumpseat.changes.undo": Method(
        SessionParams, ChangesUndoResult, "Undo the changes of the latest prompt that changed files."
    ),
    "jumpseat.changes.files": Method(
        ChangesFilesParams, ChangesFilesResult, "Return the files that a session or a prompt has changed."
    ),
    "jumpseat.changes.undoFiles": Method(
        ChangesUndoFilesParams, ChangesUndoFilesResult, "Undo the changes of a session or a prompt, or of one file."
    ),
}
