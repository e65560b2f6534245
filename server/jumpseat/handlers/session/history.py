"""``session.history.*`` and ``sessions.fork``: going back, in place or in a copy, and summing up."""

from __future__ import annotations

from jumpseat.agent.compaction import compaction
from jumpseat.agent.compaction.summary import UNASKED
from jumpseat.errors import StoreError
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionSnapshotRewind
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import (
    CompactionAbortedResult,
    CompactionCancelledResult,
    CompactParams,
    CompactResult,
    ContextWindow,
    SummaryResult,
    TruncateParams,
    TruncateResult,
)


def truncate(ctx: Context, params: TruncateParams) -> TruncateResult:
    """Remove an event and all later ones, also for the model. Of files, only the summaries of these go."""
    session = ctx.registry.live(params.session_id)
    removed = ctx.registry.truncate(session, params.event_id)
    session.emit(SessionSnapshotRewind(events_removed=removed, up_to_event_id=params.event_id))
    try:
        ctx.registry.drop_checkpoints(session)
    except StoreError as error:
        return TruncateResult(
            events_removed=removed, checkpoint_cleanup_failed=True, checkpoint_cleanup_error=str(error)
        )
    return TruncateResult(events_removed=removed)


async def compact(ctx: Context, params: CompactParams) -> CompactResult:
    """Have the model sum up the conversation, and go on from the summary. Waits for it."""
    session = ctx.registry.live(params.session_id)
    done = await compaction.compact(
        session, params.trigger, (params.custom_instructions or "").strip() or None, params.token_limit
    )
    if not done.success:
        return CompactResult(success=False, tokens_removed=0, messages_removed=0)
    return CompactResult(
        success=True,
        tokens_removed=done.tokens_removed or 0,
        messages_removed=done.messages_removed or 0,
        summary_content=done.summary_content,
        context_window=ContextWindow(
            token_limit=done.token_limit or 0,
            current_tokens=done.post_compaction_tokens or 0,
            messages_length=(done.pre_compaction_messages_length or 0) - (done.messages_removed or 0),
            system_tokens=done.system_tokens or 0,
            conversation_tokens=done.conversation_tokens or 0,
            tool_definitions_tokens=done.tool_definitions_tokens or 0,
        ),
    )


def cancel_background_compaction(ctx: Context, params: SessionParams) -> CompactionCancelledResult:
    """Stop a compaction that has begun by itself."""
    compactor = ctx.registry.live(params.session_id).compactor
    own = compactor.trigger in UNASKED
    return CompactionCancelledResult(cancelled=own and compactor.cancel())


def abort_manual_compaction(ctx: Context, params: SessionParams) -> CompactionAbortedResult:
    """Stop a compaction that somebody has asked for."""
    compactor = ctx.registry.live(params.session_id).compactor
    asked = compactor.trigger in compaction.ASKED_FOR
    return CompactionAbortedResult(aborted=asked and compactor.cancel())


async def summarize_for_handoff(ctx: Context, params: SessionParams) -> SummaryResult:
    """The conversation summed up for whoever takes over; it stays as it is."""
    return SummaryResult(summary=await compaction.summarise(ctx.registry.live(params.session_id)))
