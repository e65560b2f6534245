"""``store_memory``: store a fact for later sessions. Offered while the session keeps memories."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jumpseat.agent.memories import Memory, MemoryScope
from jumpseat.agent.session.session import Session
from jumpseat.errors import StoreError
from jumpseat.tools.memories import Fact, Line
from jumpseat.tools.session_tool import Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import MemoryPermission


class StoreMemoryArgs(ToolArgs):
    fact: Fact = Field(max_length=500, description="One sentence that stays true")
    subject: Line = Field("", max_length=80)
    citations: Line = Field("", max_length=300, description="Where it is seen: path:line, or what the user said")
    reason: Line = Field("", max_length=300, description="Why it will matter")
    scope: MemoryScope = Field("repository", description="user: true wherever the user works")


def _permission(session: Session, resources: Resources, args: StoreMemoryArgs) -> MemoryPermission:
    return MemoryPermission(
        fact=args.fact,
        subject=args.subject or None,
        citations=args.citations or None,
        reason=args.reason or None,
        scope=args.scope,
        repo_nwo=resources.memories.repository(session.settings) if args.scope == "repository" else None,
    )


async def _run(session: Session, resources: Resources, ctx: ToolContext, args: StoreMemoryArgs) -> ToolOutcome:
    hide = session.services.secrets
    memory = Memory(hide(args.fact), hide(args.subject), hide(args.citations), args.scope)
    try:
        resources.memories.store(session.settings, memory, hide(args.reason))
    except StoreError as error:
        return failure(f"Nothing was stored: {error}.")
    return ToolOutcome("Stored. Later sessions will see it.")


TOOL: Final = SessionTool(
    name="store_memory",
    description="Remember a fact for later sessions: conventions, commands, preferences. No secrets.",
    args=StoreMemoryArgs,
    position=240,
    run=_run,
    intention=lambda args: f"Remember: {args.fact}",
    permission=_permission,
    is_offered=lambda session, resources: resources.memories.enabled(session.settings),
)
