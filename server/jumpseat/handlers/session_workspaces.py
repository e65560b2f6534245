"""``session.workspaces.*``: the session's folder and the files that clients keep in it."""

from __future__ import annotations

import uuid

from jumpseat.handlers.context import Context
from jumpseat_protocol.events import SessionWorkspaceFileChanged
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import (
    CheckpointInfo,
    CheckpointParams,
    CheckpointResult,
    CheckpointsResult,
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
