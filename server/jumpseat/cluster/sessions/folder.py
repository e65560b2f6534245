"""The working copy of a session: an ordinary folder whose changes are also stored in JetStream.

Reads use the folder. The owner of the session writes to both. When a session is opened, its folder is made from its
records, so that it has the changes of earlier owners.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import anyio.to_thread

from jumpseat.cluster.sessions.lease import Lease
from jumpseat.cluster.sessions.ownership import Ownerships
from jumpseat.cluster.sessions.records import LOG, Record
from jumpseat.errors import SessionInUseError, StoreError
from jumpseat.store.session.event_log import FileEventLog, LogSyncer, Replay
from jumpseat.store.session.files import WorkspaceFiles
from jumpseat.store.session.ownership import Ownership
from jumpseat.store.session.sessions import SessionFolder
from jumpseat.store.session.state_files import DiskFiles
from jumpseat.store.session.storage import WORKSPACE
from jumpseat.store.session.workspace import Workspace
from jumpseat.system.file_trees import delete_folder, walk
from jumpseat.system.private_files import write_new_file
from jumpseat_protocol.events import Event, ToolExecutionComplete

MIRRORED: Final = ("files", "temp")
"""The folders whose files others than the server may write: the session's model and its clients."""
_DATABASE: Final = "session.db"

State: TypeAlias = tuple[int, int]
"""The time and the size of a file."""


class ReplicatedFiles(DiskFiles):
    """The small files of a session. ``lease`` returns the lease; without one, the folder is only read."""

    def __init__(self, root: Path, lease: Callable[[], Lease | None], on_workspace: Callable[[], None]) -> None:
        super().__init__(root)
        self._lease = lease
        self._on_workspace = on_workspace

    def write(self, name: str, data: bytes) -> None:
        super().write(name, data)
        self._store(Record("file", data, name))
        if name == WORKSPACE:
            self._on_workspace()

    def append(self, name: str, data: bytes) -> int:
        size = super().append(name, data)
        self._store(Record("append", data, name))
        return size

    def remove(self, name: str) -> bool:
        existed = super().remove(name)
        if existed:
            self._store(Record("remove", b"", name))
        return existed

    async def flush(self) -> None:
        if (lease := self._lease()) is not None:
            await lease.wait()

    def _store(self, record: Record) -> None:
        if (lease := self._lease()) is None:
            return
        try:
            lease.store(record)
        except StoreError as error:
            raise OSError(errno.EROFS, str(error)) from None


class ReplicatedLog(FileEventLog):
    """The log of a session: events are in the file at once, and announced when they are in JetStream."""

    __slots__ = ("_has_files", "_lease", "_mirror")

    def __init__(
        self,
        path: str,
        syncer: LogSyncer,
        on_quiet: Callable[[], None],
        lease: Callable[[], Lease | None],
        mirror: Callable[[], None],
        has_files: Callable[[], bool],
    ) -> None:
        super().__init__(path, syncer, on_quiet)
        self._has_files = has_files
        self._lease = lease
        self._mirror = mirror

    @property
    def announcements(self) -> Lease | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._lease()

    def append(self, event: Event) -> None:
        lease = self._lease()
        if lease is None or lease.lost:
            raise StoreError("cannot write the session log: another replica has taken over the session")
        super().append(event)
        lease.store(Record("events", event.encode() + b"\n"))
        if isinstance(event.payload, ToolExecutionComplete):
            lease.note_result(event.payload.tool_call_id)

    async def flush(self) -> None:
        """Queue the changes that the model's tools have made to files. The end of the run is announced behind."""
        if self._has_files():
            await anyio.to_thread.run_sync(self._mirror)

    async def save(self) -> None:
        if (lease := self._lease()) is not None:
            await lease.wait()

    def truncate(self, event_id: str) -> tuple[Replay, int] | None:
        cut = super().truncate(event_id)
        if cut is not None and (lease := self._lease()) is not None:
            lease.store(Record("cut", event_id.encode()))
        return cut


class ReplicatedWorkspaceFiles(WorkspaceFiles):
    """The files that clients store in a session. ``mirror`` stores the changes."""

    def __init__(self, root: Path, mirror: Callable[[], None]) -> None:
        super().__init__(root)
        self._mirror = mirror

    async def write(self, name: str, content: str) -> bool:
        try:
            return await super().write(name, content)
        finally:
            await anyio.to_thread.run_sync(self._mirror)

    async def remove(self, name: str, *, recursive: bool, force: bool) -> None:
        try:
            await super().remove(name, recursive=recursive, force=force)
        finally:
            await anyio.to_thread.run_sync(self._mirror)

    async def rename(self, source: str, destination: str) -> bool:
        try:
            return await super().rename(source, destination)
        finally:
            await anyio.to_thread.run_sync(self._mirror)


class ReplicatedFolder(SessionFolder):
    """A session whose folder is a working copy."""

    def __init__(self, path: Path, syncer: LogSyncer, ownership: Ownership, ownerships: Ownerships) -> None:
        super().__init__(path, syncer, ownership)
        self._ownerships = ownerships
        self._seen: dict[str, State] = {}
        self.state = ReplicatedFiles(path, self._lease, lambda: ownerships.changed(self))
        self._log = ReplicatedLog(
            f"{path}/{LOG}", syncer, self.note_time, self._lease, self.mirror, self._has_files
        )

    def _lease(self) -> Lease | None:
        return self._ownerships.lease(self.session_id)

    @property
    def files(self) -> WorkspaceFiles:
        return ReplicatedWorkspaceFiles(self.path / "files", self.mirror)

    def save_output(self, name: str, data: bytes, folder: str | None) -> str:
        path = (Path(folder) if folder is not None else self.path / "temp") / name
        write_new_file(path, data)
        if path.is_relative_to(self.path) and (lease := self._lease()) is not None:
            relative = path.relative_to(self.path).as_posix()
            self._seen[relative] = _state(os.stat(path))
            lease.store(Record("file", data, relative))
        return str(path)

    def create(self, workspace: Workspace, *, is_new: bool = True) -> None:
        if self._lease() is None:
            raise SessionInUseError(self.session_id, None, "resume it to continue it here")
        super().create(workspace, is_new=is_new)

    def claim(self) -> None:
        if self._lease() is None:
            raise SessionInUseError(self.session_id, None, "another replica has it open")
        super().claim()

    def release(self) -> None:
        super().release()
        self._ownerships.release_soon(self.session_id)

    async def close(self, *, keep: bool) -> None:
        lease = self._lease()
        if lease is not None and not lease.lost and keep:
            await anyio.to_thread.run_sync(self.mirror)
            self.note_time()
        self.log.end()
        self._ownership.release(self.path)
        if keep or lease is None or lease.lost:
            await self._ownerships.release(self.session_id)
        else:
            await self._ownerships.remove(self.session_id)

    async def delete(self) -> None:
        await self._ownerships.remove(self.session_id)

    def remove(self) -> None:
        delete_folder(self.path)
        self._ownership.release(self.path)

    # --- the files that others write ------------------------------------------------------------------------------

    def mirror(self) -> None:
        """Queue the files that were changed, created or removed since the last look. May be called in threads."""
        lease = self._lease()
        if lease is None or lease.lost or lease.ended:
            return
        found = dict(self._states())
        for name, state in found.items():
            if self._seen.get(name) != state:
                self._store(lease, name)
        for name in self._seen.keys() - found.keys():
            lease.store(Record("remove", b"", name))
        self._seen = found

    def _has_files(self) -> bool:
        """Return whether there may be files that others have written. Most sessions have none."""
        return bool(self._seen) or any(os.path.exists(f"{self.path}/{name}") for name in (*MIRRORED, _DATABASE))

    def _store(self, lease: Lease, name: str) -> None:
        try:
            data = (self.path / name).read_bytes()
        except OSError:
            return
        lease.store(Record("file", data, name))

    def _states(self) -> Iterator[tuple[str, State]]:
        for top in MIRRORED:
            for folder, _, names in walk(self.path / top):
                for name in names:
                    path = os.path.join(folder, name)
                    try:
                        status = os.lstat(path)
                    except OSError:
                        continue
                    if os.path.isfile(path) and not os.path.islink(path):
                        yield Path(path).relative_to(self.path).as_posix(), _state(status)
        try:
            yield _DATABASE, _state(os.stat(self.path / _DATABASE))
        except OSError:
            return


def _state(status: os.stat_result) -> State:
    return status.st_mtime_ns, status.st_size
