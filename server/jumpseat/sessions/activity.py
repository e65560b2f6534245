"""What the live sessions of the process do, as numbers for metrics and ``jumpseat status``."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from jumpseat.agent.session.session import Session


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
