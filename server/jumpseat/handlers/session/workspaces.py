"""``session.workspaces.*``: a session's folder, the files that clients keep there, and git changes."""

from __future__ import annotations

import uuid

from jumpseat.errors import InvalidRequestError
from jumpseat.git import GitError
from jumpseat.sessions.context import Context
from jumpseat.store.git_diff import FileChange, Repository
from jumpseat_protocol.events import SessionWorkspaceFileChanged
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.workspaces import (
    CheckpointInfo,
    CheckpointParams,
    CheckpointResult,
    CheckpointsResult,
    DiffFileChange,
    DiffParams,
    DiffResult,
    FileCreateParams,
    FileParams,
    FileResult,
    FilesResult,
    LargePasteParams,
    LargePasteResult,
    SavedPaste,
    WorkspaceResult,
)


def get_workspace(ctx: Context, params: SessionParams) -> WorkspaceResult:
    """Return the content of ``workspace.yaml``, and the path of the session's folder."""
    folder = ctx.registry.folder(ctx.registry.live(params.session_id))
    workspace = folder.workspace
    return WorkspaceResult(workspace=workspace.wire() if workspace else None, path=str(folder.path))


def list_files(ctx: Context, params: SessionParams) -> FilesResult:
    """Return the paths of all files, relative to the files folder."""
    return FilesResult(files=ctx.registry.folder(ctx.registry.live(params.session_id)).files.names())


def read_file(ctx: Context, params: FileParams) -> FileResult:
    """Read a workspace file."""
    files = ctx.registry.folder(ctx.registry.live(params.session_id)).files
    return FileResult(content=files.read(params.path))


def create_file(ctx: Context, params: FileCreateParams) -> None:
    """Write a workspace file, creating its parent folders. An existing file is replaced."""
    session = ctx.registry.live(params.session_id)
    is_new = ctx.registry.folder(session).files.write(params.path, params.content)
    session.emit(SessionWorkspaceFileChanged(operation="create" if is_new else "update", path=params.path))


def list_checkpoints(ctx: Context, params: SessionParams) -> CheckpointsResult:
    """Return the checkpoints: summaries that compaction has written."""
    found = ctx.registry.folder(ctx.registry.live(params.session_id)).checkpoints.list()
    return CheckpointsResult(
        checkpoints=[
            CheckpointInfo(number=checkpoint.number, title=checkpoint.title, filename=checkpoint.path.name)
            for checkpoint in found
        ]
    )


def read_checkpoint(ctx: Context, params: CheckpointParams) -> CheckpointResult:
    """Read a checkpoint."""
    folder = ctx.registry.folder(ctx.registry.live(params.session_id))
    return CheckpointResult(content=folder.checkpoints.read(params.number))


def save_large_paste(ctx: Context, params: LargePasteParams) -> LargePasteResult:
    """Save a text that is too long for a prompt as a file, which a prompt can mention."""
    session = ctx.registry.live(params.session_id)
    files = ctx.registry.folder(session).files
    name = f"paste-{uuid.uuid4().hex[:12]}.txt"
    files.write(name, params.content)
    session.emit(SessionWorkspaceFileChanged(operation="create", path=name))
    size = len(params.content.encode())
    return LargePasteResult(saved=SavedPaste(file_path=str(files.root / name), filename=name, size_bytes=size))


async def diff(ctx: Context, params: DiffParams) -> DiffResult:
    """Return the changes in the requested mode, or the unstaged changes if that mode is not available.

    Changes by the session itself are not tracked.

    Raises:
        InvalidRequestError: git is disabled for this session, or failed.
    """
    session = ctx.registry.live(params.session_id)
    if params.include_contents and params.mode != "session":
        raise InvalidRequestError("includeContents requires the mode 'session'")
    if not session.settings.host_git:
        raise InvalidRequestError("git is disabled for this session")
    repository = await Repository.find(session.settings.cwd, ctx.registry.reading_sandbox(session))
    result = DiffResult(
        requested_mode=params.mode, mode="unstaged", changes=[], is_fallback=params.mode != "unstaged"
    )
    try:
        if params.mode == "branch":
            result.base_branch = await repository.default_branch()
            changes = await _since_branching(
                repository, result.base_branch, ignore_whitespace=params.ignore_whitespace
            )
            if changes is not None:
                result.mode, result.is_fallback, result.changes = "branch", False, _changes_to_wire(changes)
                return result
        elif params.mode == "session":
            result.unavailable_reason = "file-change-tracking-disabled"
        result.changes = _changes_to_wire(await repository.unstaged(ignore_whitespace=params.ignore_whitespace))
    except GitError as error:
        raise InvalidRequestError(f"cannot compute the diff: {error}") from None
    return result


async def _since_branching(
    repository: Repository, branch: str | None, *, ignore_whitespace: bool
) -> list[FileChange] | None:
    if branch is None:
        return None
    try:
        return await repository.since_branching(branch, ignore_whitespace=ignore_whitespace)
    except GitError:
        return None


def _changes_to_wire(changes: list[FileChange]) -> list[DiffFileChange]:
    return [
        DiffFileChange(
            path=change.path,
            diff=change.diff,
            change_type=change.type,
            old_path=change.old_path,
            is_truncated=change.is_truncated or None,
        )
        for change in changes
    ]
