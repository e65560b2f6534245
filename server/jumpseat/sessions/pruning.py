"""Delete sessions that have not changed for a long time."""

from __future__ import annotations

import time
from collections.abc import Container
from dataclasses import dataclass, field

import anyio.to_thread

from jumpseat.errors import SessionInUseError, SessionNotFoundError
from jumpseat.sessions.registry import SessionRegistry


@dataclass(slots=True)
class Pruned:
    """The result of pruning: the size in bytes of each removed session, and the old sessions that were skipped.

    In a dry run, ``sizes`` are those of the sessions that would be removed.
    """

    sizes: dict[str, int] = field(default_factory=dict[str, int])
    skipped: list[str] = field(default_factory=list[str])


async def prune(
    registry: SessionRegistry, older_than_s: float, excluded: Container[str], *, named_too: bool, dry_run: bool
) -> Pruned:
    """Delete the sessions that have not changed for ``older_than_s``; in a dry run, only return them.

    Sessions in ``excluded`` are not considered. Sessions that are open, here or in another process, or named
    (unless ``named_too``), are skipped.
    """
    before_s = time.time() - older_than_s
    pruned = await anyio.to_thread.run_sync(_find_prunable, registry, before_s, excluded, named_too)
    for session_id in [] if dry_run else list(pruned.sizes):
        # A session may have been opened while the folders were measured.
        if registry.is_open(session_id) or not await _delete(registry, session_id):
            del pruned.sizes[session_id]
            pruned.skipped.append(session_id)
    return pruned


async def _delete(registry: SessionRegistry, session_id: str) -> bool:
    """Delete a session; returns ``False`` if another process has it open."""
    try:
        await registry.delete(session_id)
    except SessionInUseError:
        return False
    except SessionNotFoundError:
        # Deleted meanwhile.
        pass
    return True


def _find_prunable(registry: SessionRegistry, before_s: float, excluded: Container[str], named_too: bool) -> Pruned:
    pruned = Pruned()
    for folder in registry.store.iter_stored():
        session_id, changed_s = folder.path.name, folder.log.changed_s()
        if session_id in excluded or changed_s is None or changed_s > before_s:
            continue
        workspace = folder.read_workspace()
        named = workspace is not None and workspace.user_named
        if registry.is_open(session_id) or folder.in_use() or (named and not named_too):
            pruned.skipped.append(session_id)
        else:
            pruned.sizes[session_id] = folder.size_bytes()
    return pruned
