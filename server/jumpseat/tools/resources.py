"""The parts of the server that tools of one session are made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from jumpseat.agent.memories import Memories
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Skills
from jumpseat_protocol.sessions import CustomAgentConfig


class Database(Protocol):
    """A session's SQLite database."""

    async def run(self, query: str) -> tuple[str, bool]:
        """Run SQL statements; return their results as text, and whether the table of todos has changed.

        Raises:
            StoreError: a statement failed; the message is for the model.
        """
        ...


class Resources(Struct, frozen=True):
    """``database`` returns the database of a session, ``None`` if its storage has none.

    ``find_agents`` reads the custom agents in files. ``read_plan`` returns the plan of a session,
    ``None`` if there is none; it may raise ``StoreError``.
    """

    database: Callable[[Session], Database | None]
    read_plan: Callable[[Session], Awaitable[str | None]]
    skills: Callable[[Session], Skills]
    find_agents: Callable[[SessionSettings], Awaitable[list[CustomAgentConfig]]]
    memories: Memories
