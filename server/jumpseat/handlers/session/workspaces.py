"""``session.workspaces.*``: a session's storage, the files that clients keep there, and git changes."""

from __future__ import annotations

import uuid

import anyio.to_thread

from jumpseat.agent.session.autopilot import Objective
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.changes import set_session_name
from jumpseat.sessions.context import Context
from jumpseat.sessions.rewinding import History
from jumpseat.sessions.session_diff import session_changes
from jumpseat.store.project.git_diff import DEFAULT_BRANCH, FileChange, Repository
from jumpseat.store.session.storage import SessionStorage
from jumpseat.system.git import GitError
from jumpseat_protocol.autopilot import (
    ObjectiveContent,
    ObjectiveDeleted,
    ObjectiveExists,
    ObjectiveWriteParams,
    ObjectiveWritten,
)
from jumpseat_protocol.events import (
    SessionAutopilotObjectiveChanged,
    SessionWorkspaceFileChanged,
    WorkingDirectoryContext,
)
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
    """Return the content of ``workspace.yaml``, and the path of the session's storage."""
    return _workspace(ctx.registry.storage(ctx.registry.live(params.session_id)))


async def ensure(ctx: Context, params: EnsureParams) -> WorkspaceResult:
    """Return the workspace, which every session has, after storing what the host knows about the repository."""
    storage = ctx.registry.storage(ctx.registry.live(params.session_id))
    await _store_context(storage, params.context)
    return _workspace(storage)


async def update_metadata(ctx: Context, params: UpdateMetadataParams) -> WorkspaceResult:
    """Store what the host knows about the repository, and name the session.

    Raises:
        InvalidRequestError: the name is empty.
    """
    session = ctx.registry.live(params.session_id)
    if params.name is not None:
        set_session_name(ctx, session, params.name, by_user=True)
    storage = ctx.registry.storage(session)
    await _store_context(storage, params.context)
    return _workspace(storage)


async def list_files(ctx: Context, params: SessionParams) -> FilesResult:
    """Return the paths of all files, relative to the files storage."""
    return FilesResult(files=await ctx.registry.storage(ctx.registry.live(params.session_id)).files.names())


async def read_file(ctx: Context, params: FileParams) -> FileResult:
    """Read a workspace file."""
    files = ctx.registry.storage(ctx.registry.live(params.session_id)).files
    return FileResult(content=await files.read(params.path))


async def create_file(ctx: Context, params: FileCreateParams) -> None:
    """Write a workspace file, creating its parent folders. An existing file is replaced."""
    session = ctx.registry.live(params.session_id)
    is_new = await ctx.registry.storage(session).files.write(params.path, params.content)
    session.emit(SessionWorkspaceFileChanged(operation="create" if is_new else "update", path=params.path))


async def stat_file(ctx: Context, params: FileParams) -> FileStatResult:
    """Return the kind, the size and the times of a file or storage.

    Raises:
        InvalidRequestError: there is no such path.
    """
    state = await ctx.registry.storage(ctx.registry.live(params.session_id)).files.stat(params.path)
    return FileStatResult(
        is_file=state.is_file,
        is_directory=state.is_directory,
        size=state.size,
        mtime_ms=state.mtime_ms,
        birthtime_ms=state.birthtime_ms,
    )


async def create_directory(ctx: Context, params: DirectoryCreateParams) -> None:
    """Create a storage. With ``recursive``, it may exist.

    Raises:
        InvalidRequestError: the folder exists, or its parent does not.
    """
    files = ctx.registry.storage(ctx.registry.live(params.session_id)).files
    await files.create_folder(params.path, recursive=params.recursive)


async def remove_path(ctx: Context, params: PathRemoveParams) -> None:
    """Remove a file or a storage.

    Raises:
        InvalidRequestError: there is no such path, or it is a folder with contents, without ``recursive``.
    """
    files = ctx.registry.storage(ctx.registry.live(params.session_id)).files
    await files.remove(params.path, recursive=params.recursive, force=params.force)


async def rename_path(ctx: Context, params: PathRenameParams) -> None:
    """Rename a file or a storage. An existing file is replaced by a file.

    Raises:
        InvalidRequestError: there is no such path, or the destination is in the way.
    """
    session = ctx.registry.live(params.session_id)
    replaced = await ctx.registry.storage(session).files.rename(params.source, params.destination)
    session.emit(SessionWorkspaceFileChanged(operation="update" if replaced else "create", path=params.destination))


async def add_summary(ctx: Context, params: SummaryAddParams) -> SummaryAddResult:
    """Store a summary as the next checkpoint. The conversation does not change."""
    session = ctx.registry.live(params.session_id)
    storage = ctx.registry.storage(session)
    checkpoint = storage.add_checkpoint(params.title, params.content, session.conversation.checkpoint)
    await storage.state.flush()
    summary = CheckpointInfo(number=checkpoint.number, title=checkpoint.title, filename=checkpoint.filename)
    return SummaryAddResult(summary=summary, workspace=storage.workspace.wire() if storage.workspace else None)


async def truncate_summaries(ctx: Context, params: TruncateSummariesParams) -> WorkspaceResult:
    """Remove the latest checkpoints until ``keepCount`` are left."""
    storage = ctx.registry.storage(ctx.registry.live(params.session_id))
    kept = storage.checkpoints.list()[: params.keep_count]
    storage.drop_checkpoints(kept[-1].number if kept else 0)
    await storage.state.flush()
    return _workspace(storage)


def list_checkpoints(ctx: Context, params: SessionParams) -> CheckpointsResult:
    """Return the checkpoints: summaries that compaction has written."""
    found = ctx.registry.storage(ctx.registry.live(params.session_id)).checkpoints.list()
    return CheckpointsResult(
        checkpoints=[
            CheckpointInfo(number=checkpoint.number, title=checkpoint.title, filename=checkpoint.filename)
            for checkpoint in found
        ]
    )


def read_checkpoint(ctx: Context, params: CheckpointParams) -> CheckpointResult:
    storage = ctx.registry.storage(ctx.registry.live(params.session_id))
    return CheckpointResult(content=storage.checkpoints.read(params.number))


async def save_large_paste(ctx: Context, params: LargePasteParams) -> LargePasteResult:
    """Save a text that is too long for a prompt as a file, which a prompt can mention."""
    session = ctx.registry.live(params.session_id)
    files = ctx.registry.storage(session).files
    name = f"paste-{uuid.uuid4().hex[:12]}.txt"
    await files.write(name, params.content)
    session.emit(SessionWorkspaceFileChanged(operation="create", path=name))
    size = len(params.content.encode())
    return LargePasteResult(saved=SavedPaste(file_path=files.path(name), filename=name, size_bytes=size))


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
        if session.settings.options.enable_file_change_tracking and not session.working:
            result.mode, result.is_fallback = "session", False
            result.changes = await session_changes(
                session,
                await History.read(ctx.registry, session),
                ignore_whitespace=params.ignore_whitespace,
                include_contents=params.include_contents,
            )
            return result
        result.unavailable_reason = (
            "session-busy"
            if session.settings.options.enable_file_change_tracking
            else "file-change-tracking-disabled"
        )
    if not session.settings.options.enable_host_git_operations:
        raise InvalidRequestError("git is disabled for this session")
    repository = await Repository.find(session.settings.cwd, ctx.registry.own_programs(session))
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
                result.mode, result.is_fallback = "branch", False
                result.changes = await anyio.to_thread.run_sync(_changes_to_wire, changes)
                return result
        changes = await repository.unstaged(ignore_whitespace=params.ignore_whitespace)
        result.changes = await anyio.to_thread.run_sync(_changes_to_wire, changes)
    except GitError as error:
        raise InvalidRequestError(f"cannot compute the diff: {error}") from None
    return result


def read_autopilot_objective(ctx: Context, params: SessionParams) -> ObjectiveContent:
    session = ctx.registry.live(params.session_id)
    return ObjectiveContent(content=ctx.registry.storage(session).read_objective())


async def write_autopilot_objective(ctx: Context, params: ObjectiveWriteParams) -> ObjectiveWritten:
    """Replace the file of the objective; its content is up to the client."""
    session = ctx.registry.live(params.session_id)
    storage = ctx.registry.storage(session)
    written = ObjectiveWritten(operation="create" if storage.read_objective() is None else "update")
    storage.write_objective(params.content)
    await storage.state.flush()
    objective = Objective.decode(params.content)
    session.emit(
        SessionAutopilotObjectiveChanged(
            operation=written.operation,
            id=objective.id if objective is not None else None,
            status=objective.status if objective is not None else None,
        )
    )
    return written


async def delete_autopilot_objective(ctx: Context, params: SessionParams) -> ObjectiveDeleted:
    """Remove the objective, if there is one."""
    session = ctx.registry.live(params.session_id)
    existed = session.autopilot.clear_objective()
    await ctx.registry.storage(session).state.flush()
    return ObjectiveDeleted(deleted=existed)


def autopilot_objective_exists(ctx: Context, params: SessionParams) -> ObjectiveExists:
    session = ctx.registry.live(params.session_id)
    return ObjectiveExists(exists=ctx.registry.storage(session).read_objective() is not None)


def _workspace(storage: SessionStorage) -> WorkspaceResult:
    workspace = storage.workspace
    return WorkspaceResult(workspace=workspace.wire() if workspace else None, path=storage.shown_path)


async def _store_context(storage: SessionStorage, context: WorkspaceContext | None) -> None:
    if context is not None and storage.workspace is not None:
        known = storage.workspace
        storage.move(
            WorkingDirectoryContext(
                cwd=known.cwd,
                git_root=context.git_root or known.git_root,
                repository=context.repository or known.repository,
                branch=context.branch or known.branch,
            )
        )
        await storage.state.flush()


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
