"""``session.metadata.*``: what a session is, what it does, and where it works."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.agent.clock import iso_time
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat.handlers.session_options import agents_elsewhere
from jumpseat.store.git import working_directory_context
from jumpseat_protocol.events import SessionContextChanged, WorkingDirectoryContext
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import (
    ActivityResult,
    ContextChangeParams,
    EmptyResult,
    MetadataSnapshotResult,
    ProcessingResult,
    WorkingDirectoryParams,
    WorkingDirectoryResult,
)


def is_processing(ctx: Context, params: SessionParams) -> ProcessingResult:
    """Whether a prompt runs."""
    return ProcessingResult(processing=ctx.registry.live(params.session_id).queue.running)


def activity(ctx: Context, params: SessionParams) -> ActivityResult:
    """Whether there is something to wait for, or to abort."""
    running = ctx.registry.live(params.session_id).queue.running
    return ActivityResult(has_active_work=running, abortable=running)


def snapshot(ctx: Context, params: SessionParams) -> MetadataSnapshotResult:
    """All that lists and headers of a user interface show."""
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    folder = ctx.registry.folder(session)
    workspace = folder.workspace
    changed_s = folder.log.changed_s()
    return MetadataSnapshotResult(
        session_id=session.id,
        start_time=session.started_at,
        modified_time=iso_time(changed_s) if changed_s is not None else session.started_at,
        already_in_use=folder.in_use(),
        workspace_path=str(folder.path),
        working_directory=str(settings.cwd),
        current_mode=settings.mode,
        client_name=settings.client_name,
        selected_model=settings.model,
        summary=(workspace.name or workspace.summary) if workspace else None,
        workspace=workspace.wire() if workspace else None,
        session_limits=settings.session_limits.wire() if settings.session_limits else None,
    )


def set_working_directory(ctx: Context, params: WorkingDirectoryParams) -> WorkingDirectoryResult:
    """Work elsewhere from the next call on, also when the session is resumed."""
    session = ctx.registry.live(params.session_id)
    cwd = Path(params.working_directory)
    if not cwd.is_absolute() or not cwd.is_dir():
        raise InvalidRequestError(
            f"workingDirectory {params.working_directory!r} is not the absolute path of a directory"
        )
    ctx.registry.folder(session).move(working_directory_context(cwd, host_git=session.settings.host_git))
    session.settings.cwd = cwd
    agents_elsewhere(ctx, session.settings)
    session.agent_changed(session.settings.agent)
    ctx.mcp.begin(session)
    if (host := ctx.mcp.of(session)) is not None:
        host.tell_roots()
    return WorkingDirectoryResult(working_directory=str(cwd))


def record_context_change(ctx: Context, params: ContextChangeParams) -> EmptyResult:
    """Take a host's word for where the working directory stands in git, and pass it on.

    Where a session works is not for the host to say this way: a context of another directory is ignored.
    """
    session = ctx.registry.live(params.session_id)
    context = params.context
    if os.path.normpath(context.cwd) != os.path.normpath(session.settings.cwd):
        return EmptyResult()
    ctx.registry.folder(session).move(
        WorkingDirectoryContext(
            cwd=str(session.settings.cwd),
            git_root=context.git_root,
            branch=context.branch,
            repository=context.repository,
        )
    )
    session.emit(SessionContextChanged(**context.model_dump()))
    return EmptyResult()
