"""Questions a session has put to its clients and not had answered yet. The first answer wins."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(slots=True)
class Pending(Generic[Q, A]):
    """One open question. ``question`` is kept so that clients that join later can be shown it."""

    id: str
    question: Q
    _answer: list[A] = field(default_factory=list[A])
    _answered: anyio.Event = field(default_factory=anyio.Event)

    async def answer(self) -> A:
        """Wait for the answer, as long as it takes."""
        await self._answered.wait()
        return self._answer[0]

    def settle(self, answer: A) -> None:
        if not self._answer:
            self._answer.append(answer)
            self._answered.set()


class PendingRequests(Generic[Q, A]):
    """All open questions of one kind."""

    def __init__(self) -> None:
        self._open: dict[str, Pending[Q, A]] = {}

    def ask(self, question: Q) -> Pending[Q, A]:
        """Register a question; whoever asks must :meth:`close` it whatever happens."""
        pending = Pending[Q, A](str(uuid.uuid4()), question)
        self._open[pending.id] = pending
        return pending

    def answer(self, request_id: str, answer: A) -> bool:
        """Settle a question; ``False`` where it is unknown or was answered before."""
        pending = self._open.pop(request_id, None)
        if pending is None:
            return False
        pending.settle(answer)
        return True

    def close(self, pending: Pending[Q, A]) -> None:
        """Forget a question: answers that come now are late."""
        self._open.pop(pending.id, None)

    def open(self) -> list[Pending[Q, A]]:
        return list(self._open.values())

    def close_all(self, answer: A) -> None:
        """Settle all open questions with the same answer."""
        for pending in list(self._open.values()):
            self.answer(pending.id, answer)
