"""``session/list`` and ``session/status``: the sessions that a person may resume, of either protocol."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import ListParams, SessionParams
from jumpseat.errors import InvalidRequestError, SessionNotFoundError
from jumpseat_protocol.sessions import SessionListFilter, SessionMetadata

PAGE: Final = 100


def list_sessions(ctx: AcpContext, params: ListParams) -> dict[str, Any]:
    """Return one page of sessions.

    Raises:
        InvalidRequestError: the cursor is invalid, ``cwd`` is not an absolute path, or ``archived`` is unknown.
    """
    if params.cwd is not None and not Path(params.cwd).is_absolute():
        raise InvalidRequestError("cwd must be an absolute path")
    if params.archived not in (None, "exclude", "include"):
        # No session is archived.
        raise InvalidRequestError(f"archived: {params.archived[:100]!r} is not supported")
    session_filter = SessionListFilter(cwd=params.cwd) if params.cwd is not None else None
    last = _decode(params.cursor) if params.cursor is not None else None
    latest = ctx.server.registry.latest(last[0] if last is not None else None, session_filter)
    found = _first(latest, last, PAGE + 1)
    answer: dict[str, Any] = {"sessions": [_session_info(session) for session in found[:PAGE]]}
    if len(found) > PAGE:
        answer["nextCursor"] = urlsafe_b64encode("\n".join(_position(found[PAGE - 1])).encode()).decode()
    return answer


def status(ctx: AcpContext, params: SessionParams) -> dict[str, Any]:
    """Return whether a session is live in this process, and in version 2 its state.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    registry = ctx.server.registry
    session = registry.get_live(params.session_id)
    if session is not None:
        waits = bool(session.open_questions())
        return ctx.editor.version.status("open", session.queue.running, waits)
    if registry.metadata(params.session_id) is None:
        raise SessionNotFoundError(params.session_id)
    return ctx.editor.version.status("saved")


def _first(latest: Iterable[bytes], last: tuple[str, str] | None, most: int) -> list[SessionMetadata]:
    """Return the first ``most`` sessions to list after a position.

    ``latest`` has the sessions in the order of their times: no others are read, there may be ten thousand.
    """
    found: list[SessionMetadata] = []
    for json in latest:
        session = SessionMetadata.model_validate_json(json)
        # Also by id: sessions modified at the same time must not be on two pages, or on none.
        if not session.resumable or not (session.context is not None and session.context.cwd):
            continue
        if last is not None and _position(session) >= last:
            continue
        if len(found) >= most and session.modified_time < found[most - 1].modified_time:
            break
        found.append(session)
    return sorted(found, key=_position, reverse=True)[:most]


def _position(session: SessionMetadata) -> tuple[str, str]:
    return session.modified_time, session.session_id


def _decode(cursor: str) -> tuple[str, str]:
    try:
        time, session_id = urlsafe_b64decode(cursor.encode()).decode().split("\n")
    except ValueError:
        raise InvalidRequestError(f"invalid cursor {cursor[:100]!r}") from None
    return time, session_id


def _session_info(session: SessionMetadata) -> dict[str, Any]:
    info = {
        "sessionId": session.session_id,
        "cwd": session.context.cwd if session.context is not None else "",
        "updatedAt": session.modified_time,
    }
    return info | ({"title": session.summary} if session.summary else {})
