"""Requests of clients about sessions: kinds of methods, their params, and the form of a request under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

import anyio
from msgspec import Struct

from jumpseat.cluster.sessions.missed_events import Seen
from jumpseat.rpc.json_rpc_peer import Later, ResponseError
from jumpseat.rpc.wire_errors import error_of
from jumpseat_protocol.envelope import ErrorObject

DELETING: Final = "sessions.bulkDelete"
OPENING: Final = frozenset({"session.create", "session.resume", "sessions.open"})


class OfMany(NamedTuple):
    """A method about the sessions in ``sessionIds``, at most ``most``; ``member`` of the result is about each."""

    member: str
    most: int | None = None


OF_MANY: Final[Mapping[str, OfMany]] = {
    DELETING: OfMany("freedBytes"),
    "sessions.getClientMetadata": OfMany("", 1000),
    "jumpseat.web.describe": OfMany("sessions", 200),
    "jumpseat.web.search": OfMany("matches", 200),
}
"""The methods about several sessions. Their handlers know the same limits."""
READING: Final = frozenset(
    {
        *OF_MANY,
        "session.getMetadata",
        "sessions.getMetadata",
        "sessions.fork",
        "sessions.getEventFilePath",
        "sessions.readPersistedEvents",
        "jumpseat.web.modelCalls",
        "jumpseat.changes.files",
        "jumpseat.runs.list",
    }
)
"""The methods that read a session without an owner, from a working copy that is made for them."""
ANSWERING: Final = "session.tools.handlePendingToolCall"
"""The method whose response promises that the answer is stored."""
LEAVING: Final = frozenset(
    {"session.detach", "session.destroy", "session.delete", "session.shutdown", "sessions.close"}
)
LISTING: Final = frozenset(
    {
        "session.list",
        "session.getLastId",
        "sessions.list",
        "sessions.findByPrefix",
        "sessions.getLastForContext",
        "sessions.listNonEmptySessionIds",
        "sessions.checkInUse",
        "sessions.enrichMetadata",
        "sessions.getSizes",
        "jumpseat.web.usage",
    }
)
"""The methods about the sessions of the whole cluster."""
SEEN: Final = "$seen"
SENT: Final = "$sent"
FEED: Final = "$feed"
"""Members of the params of requests that open a session, between replicas: see :class:`Call`."""
MOVED: Final = -32050
"""The error of a replica that does not own the session and has not carried out the request."""
MOVED_NOTE: Final = "$/moved"
"""The notification that a session has another owner."""
FEED_NOTE: Final = "$/feed"
"""The notification that the events of a session begin: its id, the number of the feed, the client's last item."""
END_NOTE: Final = "$/end"
"""The last notification of a replica that ends: the number of requests that it has received."""
_NOT_REPEATED: Final = ("model", "reasoningEffort", "workingDirectory", "agent", "cloud", "takeOver")
"""The options that a session stores itself: repeating those of the beginning would undo later changes."""


class Call(Struct, eq=False):
    """A request of a client about a session.

    ``serve`` is its handler here, ``again`` looks for the session's owner once more. ``made_id`` says that this
    server has chosen the session's id, or has made the request itself. For a request that opens a session, ``seen``
    is the last item that the client has received, ``sent`` its prompts that may be lost, ``feed`` the number of the
    :class:`~jumpseat.cluster.relay.event_feed.Feed` at the client's replica that begins with it, and ``turn`` that
    of the feed here. With ``taken``, the previous owner was killed.
    """

    method: str
    params: dict[str, Any]
    session_id: str
    serve: Callable[[Any], Any]
    later: Later
    scope: anyio.CancelScope
    again: Callable[[Call], None]
    made_id: bool = False
    seen: Seen | None = None
    sent: Any = None
    feed: int | None = None
    turn: int | None = None
    taken: bool = False
    attempts: int = 0

    async def wait(self) -> None:
        """Wait for the response."""
        done = anyio.Event()
        self.later.add_done_callback(lambda _: done.set())
        await done.wait()

    def try_again(self) -> None:
        """Look for the session's owner again: the request was not carried out."""
        self.again(self)

    def move(self, reason: str) -> None:
        """Send the request back to the client's replica."""
        self.later.fail(ErrorObject(code=MOVED, message=reason))

    def fail(self, error: Exception) -> None:
        """Respond with an error."""
        if isinstance(error, ResponseError):
            self.later.fail_with(error)
        else:
            self.later.fail(error_of(error))


def creates(method: str, params: Any) -> bool:
    """Return whether a request creates a session."""
    if method == "sessions.open":
        return isinstance(params, dict) and cast("dict[str, Any]", params).get("kind") == "create"
    return method == "session.create"


def session_of_call(method: str, params: Any) -> str | None:
    """Return the session that a request is about; ``None`` for other requests and for invalid params."""
    if not isinstance(params, dict):
        return None
    given = cast("dict[str, Any]", params)
    if method == "sessions.open" and given.get("kind") == "create":
        options = given.get("options")
        given = cast("dict[str, Any]", options) if isinstance(options, dict) else {}
    if method in OF_MANY:
        sessions = sessions_of_call(method, given)
        return sessions[0] if sessions is not None and len(sessions) == 1 else None
    session_id = given.get("sessionId")
    return session_id if isinstance(session_id, str) and session_id else None


def sessions_of_call(method: str, params: Mapping[str, Any]) -> list[str] | None:
    """Return the ids in a request about several sessions; ``None`` for other requests and invalid params."""
    given = params.get("sessionIds")
    if method not in OF_MANY or not isinstance(given, list):
        return None
    sessions = cast("list[Any]", given)
    return sessions if all(isinstance(session_id, str) and session_id for session_id in sessions) else None


def with_session(method: str, params: dict[str, Any], session_id: str) -> dict[str, Any]:
    """Return the params of a request that creates a session, with an id."""
    if method == "sessions.open":
        options: Any = params.get("options")
        return {**params, "options": {**(options if isinstance(options, dict) else {}), "sessionId": session_id}}
    return {**params, "sessionId": session_id}


def working_directory_of(method: str, params: Mapping[str, Any]) -> str | None:
    """Return the working directory that a client names for a session."""
    given: Any = params.get("options") if method == "sessions.open" else params
    cwd = cast("dict[str, Any]", given).get("workingDirectory") if isinstance(given, dict) else None
    return cwd if isinstance(cwd, str) and cwd else None


def tools_of(method: str, params: Mapping[str, Any]) -> set[str]:
    """Return the names of the tools that a client brings when it opens a session."""
    given: Any = params.get("options") if method == "sessions.open" else params
    tools: Any = cast("dict[str, Any]", given).get("tools") if isinstance(given, dict) else None
    return {
        str(cast("dict[str, Any]", tool).get("name"))
        for tool in cast("list[Any]", tools if isinstance(tools, list) else [])
        if isinstance(tool, dict)
    }


def opening_again(method: str, params: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """Return the params with which a client resumes a session that it has opened with ``params`` elsewhere."""
    given: Any = params.get("options") if method == "sessions.open" else params
    options = dict(cast("dict[str, Any]", given)) if isinstance(given, dict) else {}
    for name in _NOT_REPEATED:
        options.pop(name, None)
    return {**options, "sessionId": session_id, "disableResume": True}
