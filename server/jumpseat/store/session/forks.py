"""The parts of a session that every copy has, wherever it is stored: events, workspace and small files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import orjson
from msgspec.structs import replace

from jumpseat.agent.clock import utc_now
from jumpseat.errors import InvalidRequestError
from jumpseat.store.session.checkpoints import FILE as PLAN
from jumpseat.store.session.options import keep_options
from jumpseat.store.session.storage import BRIEF, SessionStorage
from jumpseat.store.session.workspace import Workspace


def events_of_fork(session_id: str, records: Iterable[dict[str, Any]], up_to: str | None) -> list[dict[str, Any]]:
    """Return the events of a session that a copy gets: all, or those before the event ``up_to``.

    Raises:
        InvalidRequestError: there is no such event, or no prompt to copy.
    """
    copied = list(records)
    if up_to is not None:
        place = next((place for place, record in enumerate(copied) if record.get("id") == up_to), None)
        if place is None:
            raise InvalidRequestError(f"Event {up_to} not found in session {session_id}")
        copied = copied[:place]
    if not any(record["type"] == "user.message" for record in copied):
        raise InvalidRequestError(f"Session {session_id} not found or has no persisted events")
    return copied


def workspace_of_fork(
    old: Workspace | None, session_id: str, name: str | None, created_by: str | None
) -> Workspace:
    """Return the workspace of a copy with a new id, which is a session of the token ``created_by``."""
    workspace = replace(old, id=session_id) if old else Workspace(session_id, cwd="", created_at="", updated_at="")
    workspace.created_at = workspace.updated_at = utc_now()
    workspace.created_by, workspace.usage, workspace.usage_days = created_by, None, None
    workspace.name, workspace.user_named = name or workspace.name, bool(name) or workspace.user_named
    return workspace


def log_of_fork(records: Sequence[dict[str, Any]], session_id: str) -> Iterator[bytes]:
    """Yield the lines of a copy's log, with its own id in ``session.start``."""
    return (_line(record, session_id) for record in records)


def _line(record: dict[str, Any], session_id: str) -> bytes:
    if record["type"] == "session.start" and isinstance(record.get("data"), dict):
        record = {**record, "data": {**record["data"], "sessionId": session_id}}
    return orjson.dumps(record) + b"\n"


def copy_small_files(source: SessionStorage, fork: SessionStorage, records: Sequence[dict[str, Any]]) -> None:
    """Copy the small files: the plan, the description of the project, and what belongs to the copied events.

    Raises:
        OSError: a file cannot be copied.
        StoreError: likewise.
    """
    if (plan := source.state.read(PLAN)) is not None:
        fork.state.write(PLAN, plan)
    if (brief := source.state.read(BRIEF)) is not None:
        # The requests of both begin alike.
        fork.state.write(BRIEF, brief)
    last = _last_checkpoint(records)
    source.checkpoints.copy_to(fork.checkpoints, last)
    fork.drop_checkpoints(last)
    if keep_options(source.state, fork.state):
        source.changes.copy_to(fork.changes, {str(record.get("id")) for record in records})


def _last_checkpoint(records: Sequence[dict[str, Any]]) -> int:
    """Return the number of the latest checkpoint in ``records``; 0 if there is none."""
    for record in reversed(records):
        data = record.get("data")
        if record["type"] == "session.compaction_complete" and isinstance(data, dict):
            number = cast("dict[str, Any]", data).get("checkpointNumber")
            if isinstance(number, int):
                return number
    return 0
