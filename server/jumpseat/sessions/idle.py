"""The activity of live sessions in numbers, and the closing of sessions that no client has used for a while."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import anyio
from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.sessions.registry import SessionRegistry

CHECKS: Final = 4
"""The number of checks in the time after which a session is closed."""


class IdleSessions:
    """The sessions without clients, and the times since when they have none.

    A session counts as idle if no client is attached, and nothing runs but what waits for a client. Sessions with
    clients or schedules are not closed, because they are relied on.
    """

    def __init__(self, registry: SessionRegistry, timeout_s: float) -> None:
        self._registry = registry
        self._timeout_s = timeout_s
        self._since: dict[str, float] = {}

    async def run(self) -> None:
        """Close sessions until cancelled."""
        while True:
            await anyio.sleep(self._timeout_s / CHECKS)
            await self.check(anyio.current_time())

    async def check(self, now: float) -> None:
        """Close the sessions that have been idle for the time-out at ``now``, in seconds of any clock."""
        idle = {session.id: session for session in self._registry.live_sessions() if _is_idle(session)}
        self._since = {session_id: self._since.get(session_id, now) for session_id in idle}
        for session_id, since in self._since.items():
            session = idle[session_id]
            # A client may have come while another session was closed.
            if now - since >= self._timeout_s and _is_idle(session):
                await self._registry.close(session)


def _is_idle(session: Session) -> bool:
    if len(session.schedules):
        return False
    return not len(session.clients) and (not session.working or session.waits_for_absent_client())


class Activity(Struct, frozen=True):
    """The number of live sessions, of those that run a prompt, of waiting prompts, and of open questions."""

    sessions: int = 0
    running: int = 0
    waiting: int = 0
    questions: int = 0


def activity_of(sessions: Iterable[Session]) -> Activity:
    """Count what ``sessions`` do."""
    found = list(sessions)
    return Activity(
        len(found),
        running=sum(session.working for session in found),
        waiting=sum(len(items) for session in found for items in session.queue.waiting()),
        questions=sum(
            len(session.clients.external_calls.open()) + len(session.permissions.questions.pending.open())
            for session in found
        ),
    )
