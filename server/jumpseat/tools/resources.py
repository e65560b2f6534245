"""The parts of the server that tools of one session are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from jumpseat.agent.memories import Memories
from jumpseat.agent.session.session import Session
from jumpseat.agent.skills import Skills


class Database(Protocol):
    """A session's SQLite database."""

    async def run(self, query: str) -> tuple[str, bool]:
        """Run SQL statements; return their results as text, and whether the table of todos has changed.

        Raises:
            StoreError: a statement failed; the message is for the model.
        """
        ...


@dataclass(frozen=True, slots=True)
class Resources:
    """``read_text`` returns the text of a file, ``None`` if it does not exist; it may raise ``StoreError``."""

    database: Callable[[Session], Database]
    plan_path: Callable[[Session], Path]
    read_text: Callable[[Path], str | None]
    skills: Callable[[Session], Skills]
    memories: Memories
