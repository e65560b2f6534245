"""The sessions that one client has opened; they are opened again when their owners are gone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from jumpseat.cluster.relay.event_feed import Feed
from jumpseat.cluster.relay.resent_prompts import SentPrompts
from jumpseat.cluster.relay.session_calls import LEAVING, OPENING, Call
from jumpseat.rpc.connection import Connection

log = logging.getLogger(__name__)

REOPEN_S: Final = 600.0
"""Time in which a session is opened again for a client whose replica is gone."""
AGAIN_S: Final = 0.5


class ClientSessions:
    """The opened sessions of a client. ``resume`` queues a request of this server that resumes a session.

    Its arguments are the method and the params with which the client has opened the session, and the session's id.
    It is ``None`` for a relayed client, whose own replica opens its sessions again.
    """

    def __init__(
        self, tasks: TaskGroup, connection: Connection, resume: Callable[[str, dict[str, Any], str], Call] | None
    ) -> None:
        self.sent = SentPrompts()
        """The prompts of the client."""
        self._tasks = tasks
        self._connection = connection
        self._resume = resume
        self._opened: dict[str, tuple[str, dict[str, Any]]] = {}
        self._feeds: dict[str, Feed] = {}
        self._reopening: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._opened)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._opened

    def __getitem__(self, session_id: str) -> tuple[str, dict[str, Any]]:
        """Return the method and the params with which the client has opened a session."""
        return self._opened[session_id]

    def clear(self) -> None:
        """Forget all sessions: the client has hung up."""
        self._opened.clear()

    def forget(self, session_id: str) -> None:
        """Forget a session that the client has left, or that is deleted."""
        self._opened.pop(session_id, None)
        if (feed := self._feeds.pop(session_id, None)) is not None:
            feed.end()

    def feed(self, session_id: str) -> Feed:
        """Return the events of a session on their way to the client."""
        feed = self._feeds.get(session_id)
        if feed is None:
            forget = lambda: self.sent.forget(session_id)  # noqa: E731
            feed = self._feeds[session_id] = Feed(self._connection, session_id, forget)
        return feed

    def find_feed(self, session_id: str) -> Feed | None:
        """Return the events of a session; ``None`` if the client has never opened it."""
        return self._feeds.get(session_id)

    def fed_by(self, source: object) -> list[str]:
        """Return the sessions whose events come from a source."""
        return [session_id for session_id, feed in self._feeds.items() if feed.comes_from(source)]

    def remember_when_done(self, call: Call) -> None:
        """Note the effect of a request when it has succeeded."""
        call.later.add_done_callback(lambda later: None if later.exception() else self._remember(call))

    def _remember(self, call: Call) -> None:
        self.sent.note(call)
        session_id = call.session_id
        if call.method in LEAVING:
            self.forget(session_id)
        elif call.method in OPENING:
            if not (call.made_id and call.method == "session.resume"):
                # Openings by this server leave some options out.
                self._opened[session_id] = (call.method, call.params)
            if not self.feed(session_id).flows:
                # It has moved again meanwhile.
                self.move(session_id)

    def move(self, session_id: str) -> None:
        """Open a session again for the client, wherever its owner is now."""
        if (feed := self._feeds.get(session_id)) is not None:
            feed.cut()
        if (
            self._resume is not None
            and session_id in self._opened
            and self._connection.connected
            and session_id not in self._reopening
        ):
            self._reopening.add(session_id)
            self._tasks.start_soon(self._open_again, session_id, self._resume)

    async def _open_again(self, session_id: str, resume: Callable[[str, dict[str, Any], str], Call]) -> None:
        try:
            with anyio.move_on_after(REOPEN_S):
                while session_id in self._opened and self._connection.connected:
                    if self.feed(session_id).flows:
                        # The client has resumed the session itself.
                        return
                    call = resume(*self._opened[session_id], session_id)
                    await call.wait()
                    if self.feed(session_id).flows:
                        return
                    log.info("session %s: cannot be opened again yet: %s", session_id, call.later.exception())
                    await anyio.sleep(AGAIN_S)
        finally:
            self._reopening.discard(session_id)
