"""Delete sessions that have not changed for a long time."""

from __future__ import annotations

import time
from collections.abc import Container

from jumpseat.errors import SessionInUseError, SessionNotFoundError
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.session.pruning import Pruned


async def prune(
    registry: SessionRegistry, older_than_s: float, excluded: Container[str], *, named_too: bool, dry_run: bool
) -> Pruned:
    """Delete the sessions that have not changed for ``older_than_s``; in a dry run, only return them.

    Sessions in ``excluded`` are not considered. Sessions that are open, here or in another process, or named
    (unless ``named_too``), are skipped.
    """
    pruned = await registry.store.find_prunable(
        time.time() - older_than_s,
        named_too=named_too,
        concerns=lambda session_id: session_id not in excluded,
        is_open=registry.is_open,
    )
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
