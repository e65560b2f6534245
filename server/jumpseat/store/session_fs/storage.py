"""The storage of a session in a virtual file system."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

import anyio
from anyio.abc import TaskGroup

from jumpseat.errors import InvalidRequestError, SessionNotFoundError, StoreError
from jumpseat.store.session.checkpoints import FILE as PLAN
from jumpseat.store.session.checkpoints import FOLDER as CHECKPOINTS
from jumpseat.store.session.client_metadata import FILE as CLIENT_METADATA
from jumpseat.store.session.file_changes import FILE as CHANGES
from jumpseat.store.session.forks import copy_small_files, events_of_fork, log_of_fork, workspace_of_fork
from jumpseat.store.session.options import FILE as OPTIONS
from jumpseat.store.session.storage import OBJECTIVE, WORKSPACE, SessionStorage
from jumpseat.store.session.workspace import Workspace
from jumpseat.store.session_fs.database import ClientDatabase
from jumpseat.store.session_fs.database_copy import copy_database
from jumpseat.store.session_fs.file_system import FileSystem
from jumpseat.store.session_fs.files import ClientFiles
from jumpseat.store.session_fs.log import FILE as EVENTS
from jumpseat.store.session_fs.log import ClientEventLog
from jumpseat.store.session_fs.workspace_files import FOLDER as WORKSPACE_FILES
from jumpseat.store.session_fs.workspace_files import ClientWorkspaceFiles

log = logging.getLogger(__name__)

CLOSE_S: Final = 5.0
"""Time that a client has to store the last changes of a session that is closed."""
_FILES: Final = (WORKSPACE, OPTIONS, EVENTS, CLIENT_METADATA, CHANGES, OBJECTIVE)


class ClientStorage(SessionStorage):
    """A session that its client stores. Nothing prevents two processes from opening it: the client has to."""

    def __init__(self, file_system: FileSystem, tasks: TaskGroup) -> None:
        self.file_system = file_system
        self._files = ClientFiles(file_system, tasks)
        super().__init__(file_system.session_id, self._files)
        self._log = ClientEventLog(self._files)
        self._database = ClientDatabase(file_system) if file_system.provider.sqlite else None

    @classmethod
    async def new(cls, file_system: FileSystem, tasks: TaskGroup) -> ClientStorage:
        """Prepare the storage of a new session.

        Raises:
            InvalidRequestError: the client has stored a session with this id.
            StoreError: the client fails.
        """
        if await file_system.exists(file_system.provider.path(EVENTS)):
            raise InvalidRequestError(f"session {file_system.session_id!r} already exists")
        return cls(file_system, tasks)

    @classmethod
    async def stored(cls, file_system: FileSystem, tasks: TaskGroup) -> ClientStorage:
        """Read a stored session.

        Raises:
            SessionNotFoundError: the client has not stored a session with this id.
            StoreError: the client fails.
        """
        storage = cls(file_system, tasks)
        await storage._files.refresh(EVENTS)
        if not storage.log.exists():
            raise SessionNotFoundError(file_system.session_id)
        await storage._files.load([name for name in _FILES if name != EVENTS], CHECKPOINTS)
        return storage

    @property
    def shown_path(self) -> str:
        return self.file_system.provider.path()

    @property
    def files(self) -> ClientWorkspaceFiles:
        return ClientWorkspaceFiles(self.file_system)

    @property
    def log(self) -> ClientEventLog:
        return self._log

    @property
    def client_files(self) -> ClientFiles:
        """The small files."""
        return self._files

    @property
    def database(self) -> ClientDatabase | None:
        return self._database

    def save_output(self, name: str, data: bytes, folder: str | None) -> str:
        path = self.file_system.provider.path(folder or "temp", name)
        self._files.write_new(path, data)
        return path

    @property
    def virtual_files(self) -> ClientStorage:
        return self

    def covers(self, path: str) -> bool:
        """See :class:`jumpseat.agent.interfaces.VirtualFiles`, also for the next methods."""
        return self.file_system.provider.covers(path)

    async def load(self, path: str) -> bytes | list[str] | None:
        # The file may be one of the last changes.
        await self._files.flush()
        state = await self.file_system.stat(path)
        if state is None:
            return None
        if state.is_directory:
            entries = await self.file_system.entries(path)
            return sorted(f"{entry.name}/" if entry.type == "directory" else entry.name for entry in entries)
        content = await self.file_system.read(path)
        return None if content is None else content.encode("utf-8", "replace")

    async def save(self, path: str, content: bytes) -> None:
        name, text = self._changeable(path), content.decode("utf-8", "replace")
        if name == PLAN:
            await self.plan.write(text)
        else:
            try:
                await self.files.write(name.removeprefix(f"{WORKSPACE_FILES}/"), text)
            except InvalidRequestError as error:
                raise StoreError(str(error)) from None

    async def remove(self, path: str) -> None:
        name = self._changeable(path)
        if name == PLAN:
            await self.plan.remove()
        else:
            try:
                await self.files.remove(name.removeprefix(f"{WORKSPACE_FILES}/"), recursive=False, force=False)
            except InvalidRequestError as error:
                raise StoreError(str(error)) from None

    def _changeable(self, path: str) -> str:
        """Return the name of a file that tools may change.

        Raises:
            StoreError: they may not.
        """
        name = self.file_system.provider.relative(path) or ""
        if name != PLAN and not name.startswith(f"{WORKSPACE_FILES}/"):
            raise StoreError(f"{path} cannot be changed: only {PLAN} and files in {WORKSPACE_FILES}/ can")
        return name

    def claim(self) -> None:
        """Do nothing: only the client knows who else opens the session."""

    def release(self) -> None:
        """Do nothing."""

    def in_use(self) -> bool:
        return False

    def create(self, workspace: Workspace, *, is_new: bool = True) -> None:
        if is_new and self._log.exists():
            raise InvalidRequestError(f"session {self.session_id!r} already exists")
        self.write_workspace(workspace)

    async def close(self, *, keep: bool) -> None:
        self.note_time()
        with anyio.move_on_after(CLOSE_S), suppress(StoreError):
            await self._files.flush()
        if self._files.unsaved:
            log.error("session %s: closed before its client had stored its last changes", self.session_id)
        self.discard()

    def stop_storing(self) -> None:
        self._files.end()

    def discard(self) -> None:
        self._log.end()
        self._files.end()

    async def copy_to(
        self, fork: ClientStorage, up_to: str | None, name: str | None, created_by: str | None
    ) -> None:
        """Store a copy of the session: its events before ``up_to``, its plan, its files and its database.

        Raises:
            InvalidRequestError: there is no such event, or no prompt to copy.
            StoreError: the client fails. What was copied is removed, if it can be.
        """
        await self._files.refresh(PLAN)
        records = events_of_fork(self.session_id, self._log.read().records, up_to)
        old = self.workspace or self.read_workspace()
        try:
            fork.create(workspace_of_fork(old, fork.session_id, name, created_by))
            copy_small_files(self, fork, records)
            for path in await self.files.names():
                await fork.files.write(path, await self.files.read(path))
            if self._database is not None:
                await copy_database(self.file_system, fork.file_system)
            # The log comes last: a session without one does not exist.
            fork.state.write(EVENTS, b"".join(log_of_fork(records, fork.session_id)))
            await fork.state.flush()
        except (OSError, StoreError, InvalidRequestError) as error:
            fork.discard()
            with suppress(StoreError):
                await fork.delete()
            raise StoreError(f"cannot copy the session: {error}") from error
        fork.discard()

    async def delete(self) -> None:
        await self.file_system.remove(self.shown_path, recursive=True, force=True)
