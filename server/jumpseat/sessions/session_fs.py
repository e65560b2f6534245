"""Open sessions that are stored in the virtual file system of their client."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from jumpseat.agent.session.session import Session
from jumpseat.errors import StoreError
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionError

if TYPE_CHECKING:
    from jumpseat.store.session_fs.file_system import FileSystem
    from jumpseat.store.session_fs.storage import ClientStorage
    from jumpseat_protocol.session_fs import SetFsProviderParams


async def new_storage(ctx: Context, session_id: str) -> ClientStorage | None:
    """Return the storage of a new session; ``None`` if the client has no file system for it.

    Raises:
        InvalidRequestError: the client has stored a session with this id.
        StoreError: the client fails.
    """
    params = ctx.connection.session_fs
    if params is None:
        return None
    from jumpseat.store.session_fs.storage import ClientStorage

    return await ClientStorage.new(_file_system(ctx, params, session_id), ctx.registry.tasks)


async def stored_session(ctx: Context, session_id: str) -> ClientStorage | None:
    """Return the storage of a session that is not live; ``None`` if the client has no file system.

    Raises:
        SessionNotFoundError: the client has not stored a session with this id.
        StoreError: the client fails.
    """
    params = ctx.connection.session_fs
    if params is None or await ctx.registry.find_live(session_id) is not None:
        return None
    from jumpseat.store.session_fs.storage import ClientStorage

    return await ClientStorage.stored(_file_system(ctx, params, session_id), ctx.registry.tasks)


def _file_system(ctx: Context, params: SetFsProviderParams, session_id: str) -> FileSystem:
    from jumpseat.store.session_fs.file_system import FileSystem, Provider

    provider = Provider(
        root=params.session_state_path,
        windows=params.conventions == "windows",
        sqlite=params.capabilities is not None and bool(params.capabilities.sqlite),
    )
    return FileSystem(ctx.connection, provider, session_id)


def initial_cwd(ctx: Context) -> Path | None:
    """Return the working directory that the client gives its sessions; ``None`` if it has no file system."""
    params = ctx.connection.session_fs
    if params is None:
        return None
    cwd = Path(params.initial_cwd)
    return cwd if cwd.is_absolute() else Path.cwd()


def announce_failures(session: Session, storage: ClientStorage) -> None:
    """Tell the clients of a session when it cannot be stored."""

    def announce(message: str) -> None:
        session.emit(SessionError(error_type="persistence", message=message), ephemeral=True)

    storage.client_files.on_failure = announce


def take_over(ctx: Context, session: Session) -> None:
    """Store a live session through this client if the one that has stored it is gone."""
    from jumpseat.store.session_fs.storage import ClientStorage

    storage = ctx.registry.storage(session)
    if isinstance(storage, ClientStorage) and not storage.file_system.client.connected:
        storage.file_system.client = ctx.connection
        storage.client_files.retry()


async def store_opening(ctx: Context, session: Session, storage: ClientStorage) -> None:
    """Wait until a new session is stored, and give it up if that fails.

    Raises:
        StoreError: the client fails.
    """
    try:
        await storage.state.flush()
    except StoreError as error:
        storage.discard()
        await ctx.registry.abandon(session)
        raise StoreError(f"session construction failed: {error}") from None


async def fork_session(ctx: Context, session_id: str, up_to: str | None, name: str | None) -> str:
    """Copy a live or stored session where it is stored, and return the id of the copy.

    Raises:
        SessionNotFoundError: there is no such session.
        InvalidRequestError: there is no event ``up_to``, or the session has never had a prompt.
        UnsupportedError: the session is in the file system of another client.
        StoreError: the copy cannot be made.
    """
    if ctx.connection.session_fs is None:
        return ctx.registry.fork(session_id, up_to, name)
    from jumpseat.store.session_fs.storage import ClientStorage

    live = await ctx.registry.find_live(session_id)
    source = ctx.registry.storage(live) if live is not None else await stored_session(ctx, session_id)
    new_id = str(uuid.uuid4())
    fork = await new_storage(ctx, new_id)
    if not isinstance(source, ClientStorage) or fork is None:
        return ctx.registry.fork(session_id, up_to, name)
    try:
        await source.copy_to(fork, up_to, name, ctx.registry.creator)
    finally:
        fork.discard()
        if live is None:
            source.discard()
    return new_id


async def delete_session(ctx: Context, session_id: str) -> None:
    """Close a session and delete what is stored of it.

    Raises:
        SessionNotFoundError: there is no such session.
        SessionInUseError: another process owns the session.
        StoreError: the client that stores the session fails.
    """
    storage = await stored_session(ctx, session_id)
    if storage is None:
        await ctx.registry.delete(session_id)
    else:
        await storage.delete()
