"""Memories as models see them: in the system message, and as arguments of ``store_memory`` and ``vote_memory``."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from jumpseat.agent.memories import Memories, Memory
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings

LISTED_CHARACTERS: Final = 1200
"""Characters of memories that a system message holds."""


def _not_empty(text: str) -> str:
    if not text:
        raise PydanticCustomError("empty", "expected a sentence, got an empty string")
    return text


def _one_line(text: str) -> str:
    # A memory is one line of the system message and must not look like more.
    return " ".join(text.split()).replace("</memories", "memories")


Line: TypeAlias = Annotated[str, AfterValidator(_one_line)]
Fact: TypeAlias = Annotated[Line, AfterValidator(_not_empty)]


def find_memory(memories: Memories, session: Session, fact: str) -> Memory | None:
    """Return the memory with exactly this fact, among those that the session can see."""
    found = memories.recall(session.settings)
    return next((memory for memory in found if memory.fact == fact), None)


def memory_section(memories: Memories, settings: SessionSettings) -> str:
    """Return the section of a session's system message that lists memories, empty if there are none."""
    lines: list[str] = []
    size = 0
    for memory in memories.recall(settings) if memories.enabled(settings) else []:
        subject = f"{memory.subject}: " if memory.subject else ""
        line = f"- {subject}{memory.fact}{f' ({memory.citations})' if memory.citations else ''}"
        size += len(line) + 1
        if size > LISTED_CHARACTERS:
            break
        lines.append(line)
    if not lines:
        return ""
    head = "Noted in earlier sessions; true then, so check before you rely on it:"
    return "\n".join(["<memories>", head, *lines, "</memories>"])
