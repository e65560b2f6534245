"""``session.workspaces.*``: a session's folder, the files that clients keep there, and git changes."""

from __future__ import annotations

import uuid

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat.store.git_diff import FileChange, GitError, Repository
from jumpseat_protocol.events import SessionWorkspaceFileChanged
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import (
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
    """What ``workspace.yaml`` says, and where it is."""
    folder = ctx.registry.folder(ctx.registry.live(params.session_id))
    workspace = folder.workspace
    return WorkspaceResult(workspace=workspace.wire() if workspace else None, path=str(folder.path))


def list_files(ctx: Context, params: SessionParams) -> FilesResult:
    """All of them, in all folders."""
    return FilesResult(files=ctx.registry.folder(ctx.registry.live(params.session_id)).files.names())


def read_file(ctx: Context, params: FileParams) -> FileResult:
    """One of them."""
    files = ctx.registry.folder(ctx.registry.live(params.session_id)).files
    return FileResult(content=files.read(params.path))


def create_file(ctx: Context, params: FileCreateParams) -> None:
    """Write one, with the folders on the way; an existing one is replaced."""
    session = ctx.registry.live(params.session_id)
    is_new = ctx.registry.folder(session).files.write(params.path, params.content)
    session.emit(SessionWorkspaceFileChanged(operation="create" if is_new else "update", path=params.path))


def list_checkpoints(ctx: Context, params: SessionParams) -> CheckpointsResult:
    """The summaries that compactions have made."""
    found = ctx.registry.folder(ctx.registry.live(params.session_id)).checkpoints.list()
    return CheckpointsResult(
        checkpoints=[CheckpointInfo(number=one.number, title=one.title, filename=one.path.name) for one in found]
    )


def read_checkpoint(ctx: Context, params: CheckpointParams) -> CheckpointResult:
    """One of them."""
    folder = ctx.registry.folder(ctx.registry.live(params.session_id))
    return CheckpointResult(content=folder.checkpoints.read(params.number))


def save_large_paste(ctx: Context, params: LargePasteParams) -> LargePasteResult:
    """Keep a text that is too long for a prompt as a file of its own, which a prompt can name."""
    session = ctx.registry.live(params.session_id)
    files = ctx.registry.folder(session).files
    name = f"paste-{uuid.uuid4().hex[:12]}.txt"
    files.write(name, params.content)
    session.emit(SessionWorkspaceFileChanged(operation="create", path=name))
    size = len(params.content.encode())
    return LargePasteResult(saved=SavedPaste(file_path=str(files.root / name), filename=name, size_bytes=size))


async def diff(ctx: Context, params: DiffParams) -> DiffResult:
    """As asked for, or else what is not staged. What a session itself has changed is not kept track of."""
    session = ctx.registry.live(params.session_id)
    if params.include_contents and params.mode != "session":
        raise InvalidRequestError("includeContents goes with the mode 'session' only")
    if not session.settings.host_git:
        raise InvalidRequestError("git is switched off for this session")
    repository = await Repository.of(session.settings.cwd)
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
                result.mode, result.is_fallback, result.changes = "branch", False, _wire(changes)
                return result
        elif params.mode == "session":
            result.unavailable_reason = "file-change-tracking-disabled"
        result.changes = _wire(await repository.unstaged(ignore_whitespace=params.ignore_whitespace))
    except GitError as error:
        raise InvalidRequestError(f"the changes cannot be told: {error}") from None
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


def _wire(changes: list[FileChange]) -> list[DiffFileChange]:
    return [
        DiffFileChange(
            path=one.path,
            diff=one.diff,
            change_type=one.type,
            old_path=one.old_path,
            is_truncated=one.is_truncated or None,
        )
        for one in changes
    ]
