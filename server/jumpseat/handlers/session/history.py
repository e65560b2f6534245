"""``session.history.*``: truncate and compact the history of a session."""

from __future__ import annotations

from jumpseat.agent.compaction import compaction
from jumpseat.agent.compaction.summary import AUTOMATIC_TRIGGERS
from jumpseat.errors import StoreError
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionSnapshotRewind
from jumpseat_protocol.history import (
    CompactionAbortedResult,
    CompactionCancelledResult,
    CompactParams,
    CompactResult,
    ContextWindow,
    SummaryResult,
    TruncateParams,
    TruncateResult,
)
from jumpseat_protocol.sessions import SessionParams


def truncate(ctx: Context, params: TruncateParams) -> TruncateResult:
    """Remove an event and all later ones, from the log and from the conversation, and delete their checkpoints.

    Files that tools have changed are not restored."""
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
    """Summarize the conversation with the model, and continue from the summary."""
    session = ctx.registry.live(params.session_id)
    result = await compaction.compact(
        session, params.trigger, (params.custom_instructions or "").strip() or None, params.token_limit
    )
    if not result.success:
        return CompactResult(success=False, tokens_removed=0, messages_removed=0)
    return CompactResult(
        success=True,
        tokens_removed=result.tokens_removed or 0,
        messages_removed=result.messages_removed or 0,
        summary_content=result.summary_content,
        context_window=ContextWindow(
            token_limit=result.token_limit or 0,
            current_tokens=result.post_compaction_tokens or 0,
            messages_length=(result.pre_compaction_messages_length or 0) - (result.messages_removed or 0),
            system_tokens=result.system_tokens or 0,
            conversation_tokens=result.conversation_tokens or 0,
            tool_definitions_tokens=result.tool_definitions_tokens or 0,
        ),
    )


def cancel_background_compaction(ctx: Context, params: SessionParams) -> CompactionCancelledResult:
    """Cancel a running compaction that the server started on its own."""
    compactor = ctx.registry.live(params.session_id).compactor
    automatic = compactor.trigger in AUTOMATIC_TRIGGERS
    return CompactionCancelledResult(cancelled=automatic and compactor.cancel())


def abort_manual_compaction(ctx: Context, params: SessionParams) -> CompactionAbortedResult:
    """Cancel a running compaction that a client requested."""
    compactor = ctx.registry.live(params.session_id).compactor
    requested = compactor.trigger in compaction.REQUESTED_TRIGGERS
    return CompactionAbortedResult(aborted=requested and compactor.cancel())


async def summarize_for_handoff(ctx: Context, params: SessionParams) -> SummaryResult:
    """Return a summary of the conversation for another agent or person. The conversation does not change."""
    return SummaryResult(summary=await compaction.summarize_for_handoff(ctx.registry.live(params.session_id)))
