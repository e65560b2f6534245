"""``session.workspaces.*``: a session's folder, the files that clients keep there, and git changes."""

from __future__ import annotations

import stat
import uuid

from jumpseat.errors import InvalidRequestError
from jumpseat.git import GitError
from jumpseat.sessions.changes import set_session_name
from jumpseat.sessions.context import Context
from jumpseat.sessions.rewinding import History
from jumpseat.sessions.session_diff import session_changes
from jumpseat.store.git_diff import DEFAULT_BRANCH, FileChange, Repository
from jumpseat.store.sessions import SessionFolder
from jumpseat_protocol.events import SessionWorkspaceFileChanged, WorkingDirectoryContext
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.workspaces import (
    CheckpointInfo,
    CheckpointParams,
    CheckpointResult,
    CheckpointsResult,
    DiffFileChange,
    DiffParams,
    DiffResult,
    DirectoryCreateParams,
    EnsureParams,
    FileCreateParams,
    FileParams,
    FileResult,
    FilesResult,
    FileStatResult,
    LargePasteParams,
    LargePasteResult,
    PathRemoveParams,
    PathRenameParams,
    SavedPaste,
    SummaryAddParams,
    SummaryAddResult,
    TruncateSummariesParams,
    UpdateMetadataParams,
    WorkspaceContext,
    WorkspaceResult,
)


def get_workspace(ctx: Context, params: SessionParams) -> WorkspaceResult:
    """Return the content of ``workspace.yaml``, and the path of the session's folder."""
    return _workspace(ctx.registry.folder(ctx.registry.live(params.session_id)))


def ensure(ctx: Context, params: EnsureParams) -> WorkspaceResult:
    """Return the workspace, which every session has, after storing what the host knows about the repository."""
    folder = ctx.registry.folder(ctx.registry.live(params.session_id))
    _store_context(folder, params.context)
    return _workspace(folder)


def update_metadata(ctx: Context, params: UpdateMetadataParams) -> WorkspaceResult:
    """Store what the host knows about the repository, and name the session.

    Raises:
        InvalidRequestError: the name is empty.
    """
    session = ctx.registry.live(params.session_id)
    if params.name is not None:
        set_session_name(ctx, session, params.name, by_user=True)
    folder = ctx.registry.folder(session)
    _store_context(folder, params.context)
    return _workspace(folder)


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


def stat_file(ctx: Context, params: FileParams) -> FileStatResult:
    """Return the kind, the size and the times of a file or folder.

    Raises:
        InvalidRequestError: there is no such path.
    """
    state = ctx.registry.folder(ctx.registry.live(params.session_id)).files.stat(params.path)
    return FileStatResult(
        is_file=stat.S_ISREG(state.st_mode),
        is_directory=stat.S_ISDIR(state.st_mode),
        size=state.st_size,
        mtime_ms=state.st_mtime_ns / 1e6,
        # Not all systems know when a file was created.
        birthtime_ms=getattr(state, "st_birthtime", state.st_ctime) * 1000,
    )


def create_directory(ctx: Context, params: DirectoryCreateParams) -> None:
    """Create a folder. With ``recursive``, it may exist.

    Raises:
        InvalidRequestError: the folder exists, or its parent does not.
    """
    files = ctx.registry.folder(ctx.registry.live(params.session_id)).files
    files.create_folder(params.path, recursive=params.recursive)


def remove_path(ctx: Context, params: PathRemoveParams) -> None:
    """Remove a file or a folder.

    Raises:
        InvalidRequestError: there is no such path, or it is a folder with contents, without ``recursive``.
    """
    files = ctx.registry.folder(ctx.registry.live(params.session_id)).files
    files.remove(params.path, recursive=params.recursive, force=params.force)


def rename_path(ctx: Context, params: PathRenameParams) -> None:
    """Rename a file or a folder. An existing file is replaced by a file.

    Raises:
        InvalidRequestError: there is no such path, or the destination is in the way.
    """
    session = ctx.registry.live(params.session_id)
    replaced = ctx.registry.folder(session).files.rename(params.source, params.destination)
    session.emit(SessionWorkspaceFileChanged(operation="update" if replaced else "create", path=params.destination))


def add_summary(ctx: Context, params: SummaryAddParams) -> SummaryAddResult:
    """Store a summary as the next checkpoint. The conversation does not change."""
    session = ctx.registry.live(params.session_id)
    folder = ctx.registry.folder(session)
    checkpoint = folder.add_checkpoint(params.title, params.content, session.conversation.checkpoint)
    summary = CheckpointInfo(number=checkpoint.number, title=checkpoint.title, filename=checkpoint.path.name)
    return SummaryAddResult(summary=summary, workspace=folder.workspace.wire() if folder.workspace else None)


def truncate_summaries(ctx: Context, params: TruncateSummariesParams) -> WorkspaceResult:
    """Remove the latest checkpoints until ``keepCount`` are left."""
    folder = ctx.registry.folder(ctx.registry.live(params.session_id))
    kept = folder.checkpoints.list()[: params.keep_count]
    folder.drop_checkpoints(kept[-1].number if kept else 0)
    return _workspace(folder)


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

    Outside of a repository, there are no unstaged changes.

    Raises:
        InvalidRequestError: git is disabled for this session, or failed.
    """
    session = ctx.registry.live(params.session_id)
    if params.include_contents and params.mode != "session":
        raise InvalidRequestError("includeContents requires the mode 'session'")
    result = DiffResult(
        requested_mode=params.mode, mode="unstaged", changes=[], is_fallback=params.mode != "unstaged"
    )
    if params.mode == "session":
        if session.settings.file_tracking and not session.working:
            result.mode, result.is_fallback = "session", False
            result.changes = await session_changes(
                session,
                await History.read(ctx.registry, session),
                ignore_whitespace=params.ignore_whitespace,
                include_contents=params.include_contents,
            )
            return result
        result.unavailable_reason = (
            "session-busy" if session.settings.file_tracking else "file-change-tracking-disabled"
        )
    if not session.settings.host_git:
        raise InvalidRequestError("git is disabled for this session")
    repository = await Repository.find(session.settings.cwd, ctx.registry.reading_sandbox(session))
    if repository is None:
        result.base_branch = DEFAULT_BRANCH if params.mode == "branch" else None
        return result
    try:
        if params.mode == "branch":
            result.base_branch = await repository.default_branch()
            changes = await _since_branching(
                repository, result.base_branch, ignore_whitespace=params.ignore_whitespace
            )
            if changes is not None:
                result.mode, result.is_fallback, result.changes = "branch", False, _changes_to_wire(changes)
                return result
        result.changes = _changes_to_wire(await repository.unstaged(ignore_whitespace=params.ignore_whitespace))
    except GitError as error:
        raise InvalidRequestError(f"cannot compute the diff: {error}") from None
    return result


def _workspace(folder: SessionFolder) -> WorkspaceResult:
    workspace = folder.workspace
    return WorkspaceResult(workspace=workspace.wire() if workspace else None, path=str(folder.path))


def _store_context(folder: SessionFolder, context: WorkspaceContext | None) -> None:
    if context is not None and folder.workspace is not None:
        known = folder.workspace
        folder.move(
            WorkingDirectoryContext(
                cwd=known.cwd,
                git_root=context.git_root or known.git_root,
                repository=context.repository or known.repository,
                branch=context.branch or known.branch,
            )
        )


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
