"""What a model has learnt for later sessions: one fact each, for a repository or for the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from jumpseat.agent.settings import SessionSettings

MemoryScope: TypeAlias = Literal["repository", "user"]


@dataclass(frozen=True, slots=True)
class Memory:
    """One fact. ``citations`` say where it was learnt, ``score`` is how often it held less how often not."""

    fact: str
    subject: str = ""
    citations: str = ""
    scope: MemoryScope = "repository"
    score: int = 1


class Memories(Protocol):
    """The memories of all sessions."""

    def enabled(self, settings: SessionSettings) -> bool:
        """Whether the session keeps any."""
        ...

    def repository(self, settings: SessionSettings) -> str | None:
        """The repository that the session works in, as ``owner/name``, where that is known."""
        ...

    def recall(self, settings: SessionSettings) -> list[Memory]:
        """Those that a session in this place has, what held most often first."""
        ...

    def store(self, settings: SessionSettings, memory: Memory, reason: str) -> None:
        """Keep one; a fact that is there already counts once more.

        Raises:
            StoreError: it cannot be written.
        """
        ...

    def vote(self, settings: SessionSettings, memory: Memory, vote: int, reason: str) -> None:
        """Count for or against one; what counts for nothing is forgotten.

        Raises:
            StoreError: it cannot be written.
        """
        ...
