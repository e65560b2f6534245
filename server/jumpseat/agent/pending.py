"""Questions to clients that are not answered yet. The first answer wins."""

from __future__ import annotations

from typing import Generic, TypeVar

import anyio
from msgspec import Struct, field

from jumpseat.agent.clock import new_id
from jumpseat_protocol.permissions import DecidedBy

Q = TypeVar("Q")
A = TypeVar("A")


class Pending(Struct, Generic[Q, A]):
    """An open question. ``question`` is kept for clients that join later; ``by`` is who has answered, if known."""

    id: str
    question: Q
    by: DecidedBy | None = None
    _answer: list[A] = field(default_factory=list[A])
    _answered: anyio.Event = field(default_factory=anyio.Event)

    async def answer(self) -> A:
        """Wait for the answer without a time limit."""
        await self._answered.wait()
        return self._answer[0]

    def settle(self, answer: A) -> None:
        if not self._answer:
            self._answer.append(answer)
            self._answered.set()


class PendingRequests(Generic[Q, A]):
    """The open questions of one kind."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        # Made with the first question: a session has eight kinds, and most sessions none of them.
        self._open: dict[str, Pending[Q, A]] | None = None

    def ask(self, question: Q, request_id: str | None = None) -> Pending[Q, A]:
        """Register a question, by default with a new id. The caller must :meth:`close` it in any case."""
        pending = Pending[Q, A](request_id or new_id(), question)
        if self._open is None:
            self._open = {}
        self._open[pending.id] = pending
        return pending

    def answer(self, request_id: str, answer: A, by: DecidedBy | None = None) -> bool:
        """Answer a question; return ``False`` if it is unknown or has been answered before."""
        pending = self._open.pop(request_id, None) if self._open else None
        if pending is None:
            return False
        pending.by = by
        pending.settle(answer)
        return True

    def close(self, pending: Pending[Q, A]) -> None:
        """Remove a question; later answers to it are rejected."""
        if self._open:
            self._open.pop(pending.id, None)

    def open(self) -> list[Pending[Q, A]]:
        return list(self._open.values()) if self._open else []

    def close_all(self, answer: A) -> None:
        """Give all open questions the same answer."""
        for pending in self.open():
            self.answer(pending.id, answer)
