"""Memories: facts that a model stores for later sessions, for a repository or for the user."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from jumpseat.agent.settings import SessionSettings

MemoryScope: TypeAlias = Literal["repository", "user"]


class Memory(Struct, frozen=True):
    """A remembered fact. ``citations`` name its sources; ``score`` is its votes in favour minus those against."""

    fact: str
    subject: str = ""
    citations: str = ""
    scope: MemoryScope = "repository"
    score: int = 1


class Memories(Protocol):
    """The memories of all sessions."""

    def enabled(self, settings: SessionSettings) -> bool:
        """Return whether memories are enabled for the session."""
        ...

    def repository(self, settings: SessionSettings) -> str | None:
        """Return the repository that the session works in as ``owner/name``; ``None`` if it is unknown."""
        ...

    def recall(self, settings: SessionSettings) -> list[Memory]:
        """Return the memories for the session's repository and user, those with the highest score first."""
        ...

    def store(self, settings: SessionSettings, memory: Memory, reason: str) -> None:
        """Store a memory; storing a known fact again is a vote for it.

        Raises:
            StoreError: the memory cannot be written.
        """
        ...

    def vote(self, settings: SessionSettings, memory: Memory, vote: int, reason: str) -> None:
        """Add ``vote``, 1 or -1, to a memory's score; a memory whose score reaches zero is deleted.

        Raises:
            StoreError: the change cannot be written.
        """
        ...
