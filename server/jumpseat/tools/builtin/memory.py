"""``store_memory`` and ``vote_memory``: facts for later sessions, in sessions that keep any.

What is known is told to the model with the system message. Each fact and each vote is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from jumpseat.agent.memories import Memories, Memory, MemoryScope
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import StoreError
from jumpseat.tools.tool import BuiltinTool, Described, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import MemoryPermission

TOLD: Final = 1200
"""Characters of memories that a system message holds."""


def _says_something(text: str) -> str:
    if not text:
        raise PydanticCustomError("empty", "is to say something")
    return text


def _one_line(text: str) -> str:
    # A memory is a line of the system message: it must not look like more.
    return " ".join(text.split()).replace("</memories", "memories")


Line = Annotated[str, AfterValidator(_one_line)]
Fact = Annotated[Line, AfterValidator(_says_something)]


class StoreMemoryArgs(ToolArgs):
    fact: Fact = Field(max_length=500, description="One sentence that stays true")
    subject: Line = Field("", max_length=80)
    citations: Line = Field("", max_length=300, description="Where it is seen: path:line, or what the user said")
    reason: Line = Field("", max_length=300, description="Why it will matter")
    scope: MemoryScope = Field("repository", description="user: true wherever the user works")


class VoteMemoryArgs(ToolArgs):
    fact: Fact = Field(description="As it is told")
    direction: Literal["upvote", "downvote"] = Field(description="downvote what is not true")
    reason: Line = Field("", max_length=300)


STORE_MEMORY: Final = Described(
    name="store_memory",
    description="Remember a fact for later sessions: conventions, commands, preferences. No secrets.",
    args=StoreMemoryArgs,
)
VOTE_MEMORY: Final = Described(
    name="vote_memory",
    description="Confirm a memory that held, or take back one that did not.",
    args=VoteMemoryArgs,
)


class MemoryTools:
    """The tools of one session, there while it keeps memories."""

    def __init__(self, session: Session, memories: Memories) -> None:
        self._session = session
        self._memories = memories
        self._tools: tuple[BuiltinTool[Any], ...] = (
            STORE_MEMORY.bound(self._store, lambda args: f"Remember: {args.fact}", self._store_permission),
            VOTE_MEMORY.bound(
                self._vote,
                lambda args: f"{args.direction.capitalize()} the memory: {args.fact}",
                self._vote_permission,
            ),
        )

    def tools(self) -> Mapping[str, BuiltinTool[Any]]:
        return {tool.name: tool for tool in self._tools} if self._memories.enabled(self._session.settings) else {}

    async def ready(self) -> None:
        """They always are."""

    async def close(self, grace_s: float) -> None:
        """Nothing is running."""

    def _store_permission(self, _ctx: ToolContext, args: StoreMemoryArgs) -> MemoryPermission:
        return MemoryPermission(
            fact=args.fact,
            subject=args.subject or None,
            citations=args.citations or None,
            reason=args.reason or None,
            scope=args.scope,
            repo_nwo=self._memories.repository(self._session.settings) if args.scope == "repository" else None,
        )

    def _vote_permission(self, _ctx: ToolContext, args: VoteMemoryArgs) -> MemoryPermission:
        known = self._known(args.fact)
        return MemoryPermission(
            fact=args.fact,
            action="vote",
            direction=args.direction,
            reason=args.reason or None,
            scope=known.scope if known is not None else None,
        )

    async def _store(self, ctx: ToolContext, args: StoreMemoryArgs) -> ToolOutcome:
        hide = self._session.services.secrets
        memory = Memory(hide(args.fact), hide(args.subject), hide(args.citations), args.scope)
        try:
            self._memories.store(self._session.settings, memory, hide(args.reason))
        except StoreError as error:
            return failure(f"Nothing was stored: {error}.")
        return ToolOutcome("Stored. Later sessions are told of it.")

    async def _vote(self, ctx: ToolContext, args: VoteMemoryArgs) -> ToolOutcome:
        known = self._known(args.fact)
        if known is None:
            return failure("There is no such memory. Give the fact word for word.")
        vote = 1 if args.direction == "upvote" else -1
        try:
            self._memories.vote(self._session.settings, known, vote, self._session.services.secrets(args.reason))
        except StoreError as error:
            return failure(f"Nothing was changed: {error}.")
        return ToolOutcome("Counted." if known.score + vote > 0 else "Counted. The memory is forgotten.")

    def _known(self, fact: str) -> Memory | None:
        found = self._memories.recall(self._session.settings)
        return next((memory for memory in found if memory.fact == fact), None)


def remembered(memories: Memories, settings: SessionSettings) -> str:
    """What the system message of a session says of its memories; nothing where there are none."""
    lines: list[str] = []
    size = 0
    for one in memories.recall(settings) if memories.enabled(settings) else []:
        subject = f"{one.subject}: " if one.subject else ""
        line = f"- {subject}{one.fact}{f' ({one.citations})' if one.citations else ''}"
        size += len(line) + 1
        if size > TOLD:
            break
        lines.append(line)
    if not lines:
        return ""
    head = "Noted in earlier sessions; true then, so check before you rely on it:"
    return "\n".join(["<memories>", head, *lines, "</memories>"])
