"""``session/list``: the sessions that were prompted, of either front door, the last changed first."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any, Final

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.translation.params import ListParams
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.sessions import SessionListFilter, SessionMetadata

PAGE: Final = 100


def list_sessions(door: AcpContext, params: ListParams) -> dict[str, Any]:
    """One page of them.

    Raises:
        InvalidRequestError: the cursor is none of ours, or the folder is not an absolute path.
    """
    if params.cwd is not None and not Path(params.cwd).is_absolute():
        raise InvalidRequestError("cwd must be an absolute path")
    wanted = SessionListFilter(cwd=params.cwd) if params.cwd is not None else None
    listed = [one for one in door.ctx.registry.list(wanted) if one.context is not None and one.context.cwd]
    # By id, too: sessions that changed at the same time must not be on two pages, or on none.
    found = sorted(listed, key=_place, reverse=True)
    if params.cursor is not None:
        last = _decoded(params.cursor)
        found = [one for one in found if _place(one) < last]
    answer: dict[str, Any] = {"sessions": [_shown(one) for one in found[:PAGE]]}
    if len(found) > PAGE:
        answer["nextCursor"] = urlsafe_b64encode("\n".join(_place(found[PAGE - 1])).encode()).decode()
    return answer


def _place(session: SessionMetadata) -> tuple[str, str]:
    return session.modified_time, session.session_id


def _decoded(cursor: str) -> tuple[str, str]:
    try:
        time, session_id = urlsafe_b64decode(cursor.encode()).decode().split("\n")
    except ValueError:
        raise InvalidRequestError("cursor is not one that this server has given") from None
    return time, session_id


def _shown(session: SessionMetadata) -> dict[str, Any]:
    shown = {
        "sessionId": session.session_id,
        "cwd": session.context.cwd if session.context is not None else "",
        "updatedAt": session.modified_time,
    }
    return shown | ({"title": session.summary} if session.summary else {})
