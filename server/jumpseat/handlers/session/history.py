"""``session.history.*``: truncate, rewind, clear and compact the history of a session."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.agent.compaction import compaction
from jumpseat.agent.compaction.summary import AUTOMATIC_TRIGGERS
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.sessions import rewinding
from jumpseat.sessions.context import Context
from jumpseat_protocol.history import (
    ClearContextParams,
    ClearContextResult,
    CompactionAbortedResult,
    CompactionCancelledResult,
    CompactParams,
    CompactResult,
    ContextWindow,
    PreviewRewindParams,
    PreviewRewindResult,
    RewindParams,
    RewindPointsResult,
    RewindResult,
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
    try:
        ctx.registry.drop_checkpoints(session)
    except StoreError as error:
        return TruncateResult(
            events_removed=removed, checkpoint_cleanup_failed=True, checkpoint_cleanup_error=str(error)
        )
    return TruncateResult(events_removed=removed)


async def list_rewind_points(ctx: Context, params: SessionParams) -> RewindPointsResult:
    """Return the prompts to which the session can go back; none while a prompt runs."""
    session = ctx.registry.live(params.session_id)
    tracked = session.settings.options.enable_file_change_tracking
    if session.working:
        return RewindPointsResult(
            file_change_tracking_enabled=tracked, unavailable_reason="session-busy", points=[]
        )
    history = await rewinding.History.read(ctx.registry, session)
    points = await anyio.to_thread.run_sync(history.points)
    return RewindPointsResult(file_change_tracking_enabled=tracked, points=points)


async def preview_rewind(ctx: Context, params: PreviewRewindParams) -> PreviewRewindResult:
    """Return the changes of files that a rewind to a prompt would take back.

    Raises:
        InvalidRequestError: there is no such prompt.
    """
    session = ctx.registry.live(params.session_id)
    if not session.settings.options.enable_file_change_tracking:
        return PreviewRewindResult(available=False, reason="file-change-tracking-disabled", file_count=0, files=[])
    if session.working:
        return PreviewRewindResult(available=False, reason="session-busy", file_count=0, files=[])
    history = await rewinding.History.read(ctx.registry, session)
    files = await anyio.to_thread.run_sync(history.preview, params.event_id)
    return PreviewRewindResult(available=True, file_count=len(files), files=files)


async def rewind(ctx: Context, params: RewindParams) -> RewindResult:
    """Go back to the beginning of a prompt: remove it and all that follows, and restore the files if asked to.

    Files that were changed by others since are left alone, and named in the result.

    Raises:
        InvalidRequestError: the mode is unknown, or there is no such prompt.
    """
    session = ctx.registry.live(params.session_id)
    return await rewinding.rewind(ctx.registry, session, params.event_id, params.mode)


def clear_context(ctx: Context, params: ClearContextParams) -> ClearContextResult:
    """Remove the conversation while a tool call runs; the model continues with ``prompt`` alone.

    Raises:
        InvalidRequestError: no tool call runs, or the prompt is empty.
    """
    session = ctx.registry.live(params.session_id)
    if not params.prompt.strip():
        raise InvalidRequestError("prompt is empty, expected the first message of the new conversation")
    return ClearContextResult(messages_cleared=session.clear_context(Prompt(params.prompt)))


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
