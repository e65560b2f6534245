"""``vote_memory``: confirm or reject a stored fact. Offered while the session keeps memories."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

from pydantic import Field

from jumpseat.agent.memories import Memories
from jumpseat.agent.session.session import Session
from jumpseat.errors import StoreError
from jumpseat.tools.memories import Fact, Line, find_memory
from jumpseat.tools.resources import Resources
from jumpseat.tools.session_tool import SessionTool
from jumpseat.tools.tool import Described, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import MemoryPermission


class VoteMemoryArgs(ToolArgs):
    fact: Fact = Field(description="Word for word")
    direction: Literal["upvote", "downvote"] = Field(description="downvote what is not true")
    reason: Line = Field("", max_length=300)


TOOL: Final = Described(
    name="vote_memory",
    description="Confirm a memory that held, or take back one that did not.",
    args=VoteMemoryArgs,
    position=250,
)


def source(session: Session, resources: Resources) -> SessionTool:
    """Return the session's tool."""
    memories = resources.memories
    return SessionTool(
        TOOL.bound(
            partial(_run, session, memories),
            lambda args: f"{args.direction.capitalize()} the memory: {args.fact}",
            lambda _ctx, args: _permission(session, memories, args),
        ),
        lambda: memories.enabled(session.settings),
    )


def _permission(session: Session, memories: Memories, args: VoteMemoryArgs) -> MemoryPermission:
    memory = find_memory(memories, session, args.fact)
    return MemoryPermission(
        fact=args.fact,
        action="vote",
        direction=args.direction,
        reason=args.reason or None,
        scope=memory.scope if memory is not None else None,
    )


async def _run(session: Session, memories: Memories, ctx: ToolContext, args: VoteMemoryArgs) -> ToolOutcome:
    memory = find_memory(memories, session, args.fact)
    if memory is None:
        return failure("There is no such memory. Give the fact word for word.")
    vote = 1 if args.direction == "upvote" else -1
    try:
        memories.vote(session.settings, memory, vote, session.services.secrets(args.reason))
    except StoreError as error:
        return failure(f"Nothing was changed: {error}.")
    return ToolOutcome("Counted." if memory.score + vote > 0 else "Counted. The memory is forgotten.")
