"""The sessions of a cluster, as the server's store sees them: lists come from the index, folders are copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
from anyio.abc import TaskGroup

from jumpseat.cluster.sessions.folder import ReplicatedFolder
from jumpseat.cluster.sessions.index import Index, IndexEntry
from jumpseat.cluster.sessions.ownership import Ownerships
from jumpseat.store.session.daily_usage import Days, day_before, parse_days, sum_days
from jumpseat.store.session.index import join
from jumpseat.store.session.pruning import Pruned
from jumpseat.store.session.sessions import Places, SessionFolder, SessionStore
from jumpseat.store.session.table import Entry
from jumpseat.store.session.workspace import Workspace
from jumpseat_protocol.sessions import SessionMetadata


class DraftFolder(ReplicatedFolder):
    """A session that is written to its folder alone, and stored as a whole afterwards."""

    def create(self, workspace: Workspace, *, is_new: bool = True) -> None:
        SessionFolder.create(self, workspace, is_new=is_new)

    def release(self) -> None:
        SessionFolder.release(self)


class ClusterStore(SessionStore):
    """All sessions of a cluster. ``home`` has the working copies of this replica."""

    def __init__(self, home: Path, tasks: TaskGroup, ownerships: Ownerships, index: Index) -> None:
        super().__init__(home, tasks)
        self._ownerships = ownerships
        self._cluster_index = index
        # The copies that are being made.
        self._drafts: set[str] = set()

    def folder(self, session_id: str) -> ReplicatedFolder:
        path = super().folder(session_id).path
        made = DraftFolder if session_id in self._drafts else ReplicatedFolder
        return made(path, self._syncer, self.ownership, self._ownerships)

    def get_existing(self, session_id: str) -> ReplicatedFolder:
        folder = super().get_existing(session_id)
        assert isinstance(folder, ReplicatedFolder), "made by `folder`"
        return folder

    def fork(
        self, source: SessionFolder, session_id: str, up_to: str | None, name: str | None, created_by: str | None
    ) -> None:
        self._drafts.add(session_id)
        super().fork(source, session_id, up_to, name, created_by)

    async def store_fork(self, session_id: str) -> None:
        """Store a copy that :meth:`fork` has made in a folder; a client may have stored its copy itself.

        Raises:
            StoreError: it cannot be stored.
        """
        if session_id in self._drafts:
            self._drafts.discard(session_id)
            await self._ownerships.store_folder(session_id, self.folder(session_id))

    def list_json(self, context: Mapping[str, str] | None = None) -> Sequence[bytes]:
        return (join(self._entries(context)),)

    def find(self, prefix: str) -> str | None:
        sees, found = self._sees, self._cluster_index.beginning_with(prefix)
        seen = (session_id for session_id, created_by in found if sees is None or sees(created_by))
        first = next(seen, None)
        # The shortest id is the first.
        return first if first == prefix or next(seen, None) is None else None

    def _creators(self) -> list[str | None] | None:
        """Return whose sessions are seen; ``None`` for those of all."""
        sees = self._sees
        return None if sees is None else [name for name in self._cluster_index.creators() if sees(name)]

    async def sizes(self) -> dict[str, int]:
        return {entry.session_id: entry.size for entry in self._seen_entries()}

    async def usage_by_day(self, now_s: float, days: int) -> Days:
        sees = self._sees
        first_day, since_s = day_before(now_s, days)
        found = self._cluster_index.usages(int(since_s * 1e9))
        each = [usage async for created_by, usage in found if sees is None or sees(created_by)]
        return await anyio.to_thread.run_sync(lambda: sum_days(map(parse_days, each), first_day))

    async def in_use(self, session_ids: Iterable[str]) -> list[str]:
        owners = await self._ownerships.owned_elsewhere()
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
        concerns: Callable[[str], bool],
        is_open: Callable[[str], bool],
    ) -> Pruned:
        pruned = Pruned()
        owners = await self._ownerships.owned_elsewhere()
        for entry in self._seen_entries(int(before_s * 1e9)):
            session_id = entry.session_id
            if not concerns(session_id):
                continue
            if is_open(session_id) or session_id in owners or (entry.named and not named_too):
                pruned.skipped.append(session_id)
            else:
                pruned.sizes[session_id] = entry.size
        return pruned

    def _seen_entries(self, before_ns: int | None = None) -> Iterator[IndexEntry]:
        sees = self._sees
        entries = self._cluster_index.all() if before_ns is None else self._cluster_index.all(before_ns)
        return (entry for entry in entries if sees is None or sees(entry.created_by))

    async def prepare_list(self) -> None:
        """Do nothing: the index of the cluster is up to date."""

    def _entries(
        self, context: Mapping[str, str] | None = None, not_after_ns: int | None = None
    ) -> Iterator[Entry]:
        places = Places()
        cwds = None
        if context and "cwd" in context:
            cwds = [cwd for cwd in self._cluster_index.cwds() if places.same("cwd", context["cwd"], cwd)]
        entries = self._cluster_index.entries(self._creators(), cwds)
        return (entry for entry in entries if places.fit(context, entry)) if context else entries
