"""``session/list``: the sessions that a person may resume, of either protocol, the last modified first."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any, Final

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import ListParams
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.sessions import SessionListFilter, SessionMetadata

PAGE: Final = 100


def list_sessions(ctx: AcpContext, params: ListParams) -> dict[str, Any]:
    """Return one page of sessions.

    Raises:
        InvalidRequestError: the cursor is invalid, or ``cwd`` is not an absolute path.
    """
    if params.cwd is not None and not Path(params.cwd).is_absolute():
        raise InvalidRequestError("cwd must be an absolute path")
    session_filter = SessionListFilter(cwd=params.cwd) if params.cwd is not None else None
    listed = [
        session
        for session in ctx.server.registry.list(session_filter)
        if session.resumable and session.context is not None and session.context.cwd
    ]
    # Also by id: sessions modified at the same time must not be on two pages, or on none.
    found = sorted(listed, key=_position, reverse=True)
    if params.cursor is not None:
        last = _decode(params.cursor)
        found = [session for session in found if _position(session) < last]
    answer: dict[str, Any] = {"sessions": [_session_info(session) for session in found[:PAGE]]}
    if len(found) > PAGE:
        answer["nextCursor"] = urlsafe_b64encode("\n".join(_position(found[PAGE - 1])).encode()).decode()
    return answer


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
