"""``session.completions.*``: completions of what a user types.

They are for clients that have asked for them with ``requestCompletions``: others have completions of their own.
"""

from __future__ import annotations

from jumpseat.commands.completions import TRIGGERS, complete
from jumpseat.sessions.context import Context
from jumpseat_protocol.completions import CompletionsParams, CompletionsResult, TriggerCharactersResult
from jumpseat_protocol.sessions import SessionParams


def get_trigger_characters(ctx: Context, params: SessionParams) -> TriggerCharactersResult:
    """Return the characters after which the client should ask for completions."""
    return TriggerCharactersResult(trigger_characters=list(TRIGGERS) if _are_wanted(ctx, params) else [])


async def request(ctx: Context, params: CompletionsParams) -> CompletionsResult:
    """Return the completions at the cursor, the best first."""
    if not _are_wanted(ctx, params):
        return CompletionsResult(items=[])
    session = ctx.registry.live(params.session_id)
    return CompletionsResult(items=await complete(ctx, session, params.text, params.offset))


def _are_wanted(ctx: Context, params: SessionParams) -> bool:
    attachment = ctx.registry.live(params.session_id).clients.get(ctx.connection)
    return attachment is not None and attachment.wants_completions
