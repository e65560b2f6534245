"""Find the sessions that have not changed for a long time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

if TYPE_CHECKING:
    from jumpseat.store.session.event_log import FileEventLog
    from jumpseat.store.session.workspace import Workspace


class StoredFolder(Protocol):
    """The folder of a session."""

    path: Path

    @property
    def log(self) -> FileEventLog: ...

    def read_workspace(self) -> Workspace | None: ...

    def in_use(self) -> bool: ...

    def size_bytes(self) -> int: ...


class Pruned(Struct):
    """The result of pruning: the size in bytes of each removed session, and the old sessions that were skipped.

    In a dry run, ``sizes`` are those of the sessions that would be removed.
    """

    sizes: dict[str, int] = field(default_factory=dict[str, int])
    skipped: list[str] = field(default_factory=list[str])


def find_prunable(
    folders: Iterable[StoredFolder],
    before_s: float,
    *,
    named_too: bool,
    concerns: Callable[[str], bool],
    is_open: Callable[[str], bool] = lambda _session_id: False,
) -> Pruned:
    """Find the sessions that have not changed since ``before_s``, in Unix time, and that ``concerns`` accepts.

    Sessions that are open, for ``is_open`` or in another process, or named (unless ``named_too``), are skipped.
    """
    pruned = Pruned()
    for folder in folders:
        session_id, changed_s = folder.path.name, folder.log.changed_s()
        if changed_s is None or changed_s > before_s or not concerns(session_id):
            continue
        workspace = folder.read_workspace()
        named = workspace is not None and workspace.user_named
        if is_open(session_id) or folder.in_use() or (named and not named_too):
            pruned.skipped.append(session_id)
        else:
            pruned.sizes[session_id] = folder.size_bytes()
    return pruned
