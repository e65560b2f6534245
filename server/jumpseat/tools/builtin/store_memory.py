"""``store_memory``: store a fact for later sessions. Offered while the session keeps memories."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic import Field

from jumpseat.agent.memories import Memories, Memory, MemoryScope
from jumpseat.agent.session.session import Session
from jumpseat.errors import StoreError
from jumpseat.tools.memories import Fact, Line
from jumpseat.tools.resources import Resources
from jumpseat.tools.session_tool import SessionTool
from jumpseat.tools.tool import Described, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import MemoryPermission


class StoreMemoryArgs(ToolArgs):
    fact: Fact = Field(max_length=500, description="One sentence that stays true")
    subject: Line = Field("", max_length=80)
    citations: Line = Field("", max_length=300, description="Where it is seen: path:line, or what the user said")
    reason: Line = Field("", max_length=300, description="Why it will matter")
    scope: MemoryScope = Field("repository", description="user: true wherever the user works")


TOOL: Final = Described(
    name="store_memory",
    description="Remember a fact for later sessions: conventions, commands, preferences. No secrets.",
    args=StoreMemoryArgs,
    position=240,
)


def source(session: Session, resources: Resources) -> SessionTool:
    """Return the session's tool."""
    memories = resources.memories
    return SessionTool(
        TOOL.bound(
            partial(_run, session, memories),
            lambda args: f"Remember: {args.fact}",
            lambda _ctx, args: _permission(session, memories, args),
        ),
        lambda: memories.enabled(session.settings),
    )


def _permission(session: Session, memories: Memories, args: StoreMemoryArgs) -> MemoryPermission:
    return MemoryPermission(
        fact=args.fact,
        subject=args.subject or None,
        citations=args.citations or None,
        reason=args.reason or None,
        scope=args.scope,
        repo_nwo=memories.repository(session.settings) if args.scope == "repository" else None,
    )


async def _run(session: Session, memories: Memories, ctx: ToolContext, args: StoreMemoryArgs) -> ToolOutcome:
    hide = session.services.secrets
    memory = Memory(hide(args.fact), hide(args.subject), hide(args.citations), args.scope)
    try:
        memories.store(session.settings, memory, hide(args.reason))
    except StoreError as error:
        return failure(f"Nothing was stored: {error}.")
    return ToolOutcome("Stored. Later sessions will see it.")
