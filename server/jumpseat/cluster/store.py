"""The sessions of a cluster, as the server's store sees them: lists come from the index, folders are copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from anyio.abc import TaskGroup

from jumpseat.cluster.folder import Leases, ReplicatedFolder
from jumpseat.cluster.index import Index, IndexEntry
from jumpseat.store.pruning import Pruned
from jumpseat.store.session_index import join
from jumpseat.store.session_table import Entry
from jumpseat.store.sessions import SessionFolder, SessionStore, context_of
from jumpseat.store.workspace import Workspace
from jumpseat_protocol.sessions import SessionMetadata


class DraftFolder(ReplicatedFolder):
    """A session that is written to its folder alone, and stored as a whole afterwards."""

    def create(self, workspace: Workspace, *, is_new: bool = True) -> None:
        SessionFolder.create(self, workspace, is_new=is_new)

    def release(self) -> None:
        SessionFolder.release(self)


class ClusterStore(SessionStore):
    """All sessions of a cluster. ``home`` has the working copies of this replica."""

    def __init__(self, home: Path, tasks: TaskGroup, leases: Leases, index: Index) -> None:
        super().__init__(home, tasks)
        self._leases = leases
        self._cluster_index = index
        # The copies that are being made.
        self._drafts: set[str] = set()

    def folder(self, session_id: str) -> ReplicatedFolder:
        path = super().folder(session_id).path
        if session_id in self._drafts:
            return DraftFolder(path, self._syncer, self.ownership, self._leases)
        return ReplicatedFolder(path, self._syncer, self.ownership, self._leases)

    def get_existing(self, session_id: str) -> ReplicatedFolder:
        folder = super().get_existing(session_id)
        assert isinstance(folder, ReplicatedFolder), "made by `folder`"
        return folder

    def fork(
        self, source: SessionFolder, session_id: str, up_to: str | None, name: str | None, created_by: str | None
    ) -> None:
        # Stored by :meth:`jumpseat.cluster.cluster.Cluster.store_fork`.
        self._drafts.add(session_id)
        super().fork(source, session_id, up_to, name, created_by)

    def has_draft(self, session_id: str) -> bool:
        """Return whether a copy was made in a folder, and is not stored yet."""
        return session_id in self._drafts

    def draft(self, session_id: str) -> ReplicatedFolder:
        """Return the folder of a copy that is about to be stored."""
        self._drafts.discard(session_id)
        return self.folder(session_id)

    def list_json(self, context: Mapping[str, str] | None = None) -> Sequence[bytes]:
        return (join(self._entries(context)),)

    def find(self, prefix: str) -> str | None:
        found = [entry.session_id for entry in self._seen_entries() if entry.session_id.startswith(prefix)]
        if prefix in found:
            return prefix
        return found[0] if len(found) == 1 else None

    async def sizes(self) -> dict[str, int]:
        return {entry.session_id: entry.size for entry in self._seen_entries()}

    async def in_use(self, session_ids: Iterable[str]) -> list[str]:
        owners = await self._leases.owners_elsewhere()
        seen = {entry.session_id for entry in self._seen_entries()} & owners
        return [session_id for session_id in session_ids if session_id in seen]

    def describe(self, session_id: str, modified_time: str) -> tuple[SessionMetadata, bool] | None:
        entry = self._cluster_index.get(session_id)
        if entry is None or (self._sees is not None and not self._sees(entry.created_by)):
            return None
        if entry.metadata is None:
            return SessionMetadata(session_id=session_id, start_time="", modified_time=modified_time), False
        return SessionMetadata.model_validate_json(entry.metadata), True

    async def find_prunable(
        self,
        before_s: float,
        *,
        named_too: bool,
        concerns: Callable[[str], bool] = lambda _session_id: True,
        is_open: Callable[[str], bool] = lambda _session_id: False,
    ) -> Pruned:
        pruned = Pruned()
        owners = await self._leases.owners_elsewhere()
        for entry in self._seen_entries():
            session_id = entry.session_id
            if entry.changed_ns > before_s * 1e9 or not concerns(session_id):
                continue
            if is_open(session_id) or session_id in owners or (entry.named and not named_too):
                pruned.skipped.append(session_id)
            else:
                pruned.sizes[session_id] = entry.size
        return pruned

    def _seen_entries(self) -> Iterator[IndexEntry]:
        sees = self._sees
        return (entry for entry in self._cluster_index.all() if sees is None or sees(entry.created_by))

    def _entries(self, context: Mapping[str, str] | None = None) -> Iterator[Entry]:
        entries = iter(self._cluster_index.entries())
        if (sees := self._sees) is not None:
            entries = (entry for entry in entries if sees(entry.created_by))
        if context:
            entries = (entry for entry in entries if context.items() <= context_of(entry).items())
        return entries
