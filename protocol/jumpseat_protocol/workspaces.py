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
    path: str | None = None


class FileParams(WireModel):
    """``path`` is relative to the files folder of the session."""

    session_id: str
    path: PathText


class FileCreateParams(FileParams):
    content: str


class FilesResult(WireModel):
    files: list[str]


class FileResult(WireModel):
    content: str


class LargePasteParams(WireModel):
    session_id: str
    content: str


class SavedPaste(WireModel):
    file_path: str
    filename: str
    size_bytes: int


class LargePasteResult(WireModel):
    saved: SavedPaste


class CheckpointInfo(WireModel):
    number: int
    title: str
    filename: str


class CheckpointsResult(WireModel):
    checkpoints: list[CheckpointInfo]


class CheckpointParams(WireModel):
    session_id: str
    number: int


class CheckpointResult(WireModel):
    """``content`` is ``null`` if there is no such checkpoint."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("content",)

    content: str | None = None


class DiffParams(WireModel):
    """``include_contents`` requires the mode ``session``."""

    session_id: str
    mode: Literal["unstaged", "branch", "session"]
    ignore_whitespace: StrictBool = False
    include_contents: StrictBool = False


class DiffContents(WireModel):
    """The text of a file before and now; unset where there is no file."""

    before: str | None = None
    after: str | None = None


class DiffFileChange(WireModel):
    """``diff`` is a unified diff, empty if it was too long. Paths are relative to the working directory.

    ``contents`` is set for text files if the request wanted it.
    """

    path: str
    diff: str
    change_type: Literal["added", "modified", "deleted", "renamed"]
    old_path: str | None = None
    is_truncated: StrictBool | None = None
    contents: DiffContents | None = None


class DiffResult(WireModel):
    """``mode`` is that of ``changes``; with ``is_fallback``, it differs from ``requested_mode``."""

    requested_mode: Literal["unstaged", "branch", "session"]
    mode: Literal["unstaged", "branch", "session"]
    changes: list[DiffFileChange]
    base_branch: str | None = None
    is_fallback: StrictBool
    unavailable_reason: Literal["file-change-tracking-disabled", "session-busy"] | None = None


class DirectoryCreateParams(FileParams):
    """``recursive`` creates missing parents, too."""

    recursive: StrictBool = False


class PathRemoveParams(FileParams):
    """``recursive`` removes folders with their contents; with ``force``, the path need not exist."""

    recursive: StrictBool = False
    force: StrictBool = False


class PathRenameParams(WireModel):
    """Both paths are relative to the files folder of the session."""

    session_id: str
    source: PathText
    destination: PathText


class FileStatResult(WireModel):
    """``size`` is in bytes; times are in Unix milliseconds."""

    is_file: StrictBool
    is_directory: StrictBool
    size: int
    mtime_ms: float
    birthtime_ms: float


class SummaryAddParams(WireModel):
    session_id: str
    title: str = Field(min_length=1)
    content: str


class SummaryAddResult(WireModel):
    """``workspace`` is as in :class:`WorkspaceResult`."""

    summary: CheckpointInfo
    workspace: dict[str, Any] | None = None


class TruncateSummariesParams(WireModel):
    """``keep_count`` is the number of summaries that stay; the latest ones are removed."""

    session_id: str
    keep_count: int = Field(ge=0)


class WorkspaceContext(WireModel):
    """The members of a host's context that a workspace keeps; others are ignored."""

    git_root: PathText | None = None
    repository: str | None = None
    branch: str | None = None


class EnsureParams(WireModel):
    session_id: str
    context: WorkspaceContext | None = None


class UpdateMetadataParams(EnsureParams):
    name: str | None = None


METHODS: Final[Mapping[str, Method]] = {
    "session.workspaces.getWorkspace": Method(SessionParams, WorkspaceResult),
    "session.workspaces.listFiles": Method(SessionParams, FilesResult),
    "session.workspaces.readFile": Method(FileParams, FileResult),
    "session.workspaces.createFile": Method(FileCreateParams, None),
    "session.workspaces.listCheckpoints": Method(SessionParams, CheckpointsResult),
    "session.workspaces.readCheckpoint": Method(CheckpointParams, CheckpointResult),
    "session.workspaces.saveLargePaste": Method(LargePasteParams, LargePasteResult),
    "session.workspaces.diff": Method(DiffParams, DiffResult),
    "session.workspaces.ensure": Method(EnsureParams, WorkspaceResult),
    "session.workspaces.updateMetadata": Method(UpdateMetadataParams, WorkspaceResult),
    "session.workspaces.statFile": Method(FileParams, FileStatResult),
    "session.workspaces.createDirectory": Method(DirectoryCreateParams, None),
    "session.workspaces.removePath": Method(PathRemoveParams, None),
    "session.workspaces.renamePath": Method(PathRenameParams, None),
    "session.workspaces.addSummary": Method(SummaryAddParams, SummaryAddResult),
    "session.workspaces.truncateSummaries": Method(TruncateSummariesParams, WorkspaceResult),
    "session.workspace.listFiles": Method(SessionParams, FilesResult),
    "session.workspace.readFile": Method(FileParams, FileResult),
    "session.workspace.createFile": Method(FileCreateParams, None),
}
