"""``vote_memory``: confirm or reject a stored fact. Offered while the session keeps memories."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.errors import StoreError
from jumpseat.tools.memories import Fact, Line, find_memory
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import MemoryPermission


class VoteMemoryArgs(ToolArgs):
    fact: Fact = Field(description="Word for word")
    direction: Literal["upvote", "downvote"] = Field(description="downvote what is not true")
    reason: Line = Field("", max_length=300)


def _permission(session: Session, resources: Resources, args: VoteMemoryArgs) -> MemoryPermission:
    memory = find_memory(resources.memories, session, args.fact)
    return MemoryPermission(
        fact=args.fact,
        action="vote",
        direction=args.direction,
        reason=args.reason or None,
        scope=memory.scope if memory is not None else None,
    )


async def _run(session: Session, resources: Resources, ctx: ToolContext, args: VoteMemoryArgs) -> ToolOutcome:
    memory = find_memory(resources.memories, session, args.fact)
    if memory is None:
        return failure("There is no such memory. Give the fact word for word.")
    vote = 1 if args.direction == "upvote" else -1
    try:
        resources.memories.vote(session.settings, memory, vote, session.services.secrets(args.reason))
    except StoreError as error:
        return failure(f"Nothing was changed: {error}.")
    return ToolOutcome("Counted." if memory.score + vote > 0 else "Counted. The memory is forgotten.")


TOOL: Final = SessionTool(
    name="vote_memory",
    description="Confirm a memory that held, or take back one that did not.",
    args=VoteMemoryArgs,
    position=250,
    run=_run,
    intention=lambda args: f"{args.direction.capitalize()} the memory: {args.fact}",
    permission=_permission,
    is_offered=lambda session, resources: resources.memories.enabled(session.settings),
)
