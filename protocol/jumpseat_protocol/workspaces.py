"""``session.workspaces.*``: a session's folder, the files that clients keep there, and git changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class WorkspaceResult(WireModel):
    """``workspace`` has the keys of ``workspace.yaml``, in snake_case."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("workspace",)

    workspace: dict[str, Any] | None = None
    """What is known of the workspace."""
    path: str | None = None
    """Its folder."""


class FileParams(WireModel):
    """``path`` is relative to the files folder of the session."""

    session_id: str
    path: PathText
    """The path, relative to the session's own files."""


class FileCreateParams(FileParams):
    content: str
    """The text."""


class FilesResult(WireModel):
    files: list[str]
    """The paths."""


class FileResult(WireModel):
    content: str
    """The text."""


class LargePasteParams(WireModel):
    session_id: str
    content: str
    """The text."""


class SavedPaste(WireModel):
    """A long pasted text, stored as a file of the session."""

    file_path: str
    """The absolute path of the file."""
    filename: str
    """The name of the file."""
    size_bytes: int
    """The size in bytes."""


class LargePasteResult(WireModel):
    saved: SavedPaste
    """The file."""


class CheckpointInfo(WireModel):
    """A summary of an earlier part of the conversation."""

    number: int
    """The number of the checkpoint."""
    title: str
    filename: str
    """The name of its file."""


class CheckpointsResult(WireModel):
    checkpoints: list[CheckpointInfo]
    """The checkpoints."""


class CheckpointParams(WireModel):
    session_id: str
    number: int
    """The number of the checkpoint."""


class CheckpointResult(WireModel):
    """``content`` is ``null`` if there is no such checkpoint."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("content",)

    content: str | None = None
    """The text, or ``null`` if there is no such checkpoint."""


class DiffParams(WireModel):
    """``include_contents`` requires the mode ``session``."""

    session_id: str
    mode: Literal["unstaged", "branch", "session"]
    """What to compare the files with."""
    ignore_whitespace: StrictBool = False
    """Whether changes of blanks are left out."""
    include_contents: StrictBool = False
    """Whether the texts are returned, too."""


class DiffContents(WireModel):
    """The text of a file before and now; unset where there is no file."""

    before: str | None = None
    """The text before."""
    after: str | None = None
    """The text now."""


class DiffFileChange(WireModel):
    """``diff`` is a unified diff, empty if it was too long. Paths are relative to the working directory.

    ``contents`` is set for text files if the request wanted it.
    """

    path: str
    """The path, relative to the working directory."""
    diff: str
    """The unified diff; empty if it was too long."""
    change_type: Literal["added", "modified", "deleted", "renamed"]
    """What happened to the file."""
    old_path: str | None = None
    """The path before."""
    is_truncated: StrictBool | None = None
    """Whether the diff was too long."""
    contents: DiffContents | None = None
    """The texts."""


class DiffResult(WireModel):
    """``mode`` is that of ``changes``; with ``is_fallback``, it differs from ``requested_mode``."""

    requested_mode: Literal["unstaged", "branch", "session"]
    """What was asked for."""
    mode: Literal["unstaged", "branch", "session"]
    """What the files were compared with."""
    changes: list[DiffFileChange]
    """The files that differ."""
    base_branch: str | None = None
    """The branch that the files were compared with."""
    is_fallback: StrictBool
    """Whether ``mode`` is not what was asked for."""
    unavailable_reason: Literal["file-change-tracking-disabled", "session-busy"] | None = None
    """Why there is nothing to compare with."""


class DirectoryCreateParams(FileParams):
    """``recursive`` creates missing parents, too."""

    recursive: StrictBool = False
    """Whether missing parents are created."""


class PathRemoveParams(FileParams):
    """``recursive`` removes folders with their contents; with ``force``, the path need not exist."""

    recursive: StrictBool = False
    """Whether a folder is removed with its contents."""
    force: StrictBool = False
    """Whether a missing path is no error."""


class PathRenameParams(WireModel):
    """Both paths are relative to the files folder of the session."""

    session_id: str
    source: PathText
    """The path now, relative to the session's own files."""
    destination: PathText
    """The new path."""


class FileStatResult(WireModel):
    """``size`` is in bytes; times are in Unix milliseconds."""

    is_file: StrictBool
    """Whether it is a file."""
    is_directory: StrictBool
    """Whether it is a folder."""
    size: int
    """The size in bytes."""
    mtime_ms: float
    """When it was changed, in ms since the epoch."""
    birthtime_ms: float
    """When it was created, in ms since the epoch."""


class SummaryAddParams(WireModel):
    session_id: str
    title: str = Field(min_length=1)
    content: str
    """The text of the summary."""


class SummaryAddResult(WireModel):
    """``workspace`` is as in :class:`WorkspaceResult`."""

    summary: CheckpointInfo
    """The summary's file."""
    workspace: dict[str, Any] | None = None
    """What is known of the workspace."""


class TruncateSummariesParams(WireModel):
    """``keep_count`` is the number of summaries that stay; the latest ones are removed."""

    session_id: str
    keep_count: int = Field(ge=0)
    """How many summaries stay."""


class WorkspaceContext(WireModel):
    """The members of a host's context that a workspace keeps; others are ignored."""

    git_root: PathText | None = None
    repository: str | None = None
    branch: str | None = None


class EnsureParams(WireModel):
    session_id: str
    context: WorkspaceContext | None = None
    """Where the session works."""


class UpdateMetadataParams(EnsureParams):
    name: str | None = None
    """The name of the session."""


METHODS: Final[Mapping[str, Method]] = {
    "session.workspaces.getWorkspace": Method(
        SessionParams, WorkspaceResult, "Return the folder of the session's own files."
    ),
    "session.workspaces.listFiles": Method(SessionParams, FilesResult, "List the session's own files."),
    "session.workspaces.readFile": Method(FileParams, FileResult, "Read one of the session's own files."),
    "session.workspaces.createFile": Method(FileCreateParams, None, "Write one of the session's own files."),
    "session.workspaces.listCheckpoints": Method(
        SessionParams, CheckpointsResult, "List the checkpoints that compactions have written."
    ),
    "session.workspaces.readCheckpoint": Method(CheckpointParams, CheckpointResult, "Read a checkpoint."),
    "session.workspaces.saveLargePaste": Method(
        LargePasteParams, LargePasteResult, "Keep a long text as a file, to name it in a prompt."
    ),
    "session.workspaces.diff": Method(
        DiffParams, DiffResult, "Return the changes of files in the working directory."
    ),
    "session.workspaces.ensure": Method(
        EnsureParams, WorkspaceResult, "Store what the host knows about the repository, and return the workspace."
    ),
    "session.workspaces.updateMetadata": Method(
        UpdateMetadataParams,
        WorkspaceResult,
        "Store what the host knows about the repository, and name the session.",
    ),
    "session.workspaces.statFile": Method(
        FileParams, FileStatResult, "Return the size and times of one of the session's own files."
    ),
    "session.workspaces.createDirectory": Method(
        DirectoryCreateParams, None, "Create a folder among the session's own files."
    ),
    "session.workspaces.removePath": Method(
        PathRemoveParams, None, "Remove one of the session's own files or folders."
    ),
    "session.workspaces.renamePath": Method(
        PathRenameParams, None, "Rename one of the session's own files or folders."
    ),
    "session.workspaces.addSummary": Method(SummaryAddParams, SummaryAddResult, "Add a summary as a checkpoint."),
    "session.workspaces.truncateSummaries": Method(
        TruncateSummariesParams, WorkspaceResult, "Remove the latest checkpoints."
    ),
    "session.workspace.listFiles": Method(
        SessionParams, FilesResult, "List the session's own files, for older clients."
    ),
    "session.workspace.readFile": Method(
        FileParams, FileResult, "Read one of the session's own files, for older clients."
    ),
    "session.workspace.createFile": Method(
        FileCreateParams, None, "Write one of the session's own files, for older clients."
    ),
}
