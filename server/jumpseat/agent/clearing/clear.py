"""Clear old results of tools from the conversation of a session, before it has to be compacted.

Clearing changes the request from the first cleared result on, which a provider's cache then has no longer. It is
therefore done seldom and for many results at once; in between, requests only grow. ``session.truncation`` has the
lines that take the place of the results: live and resumed sessions derive the same conversation from that event.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import anyio.lowlevel

from jumpseat.agent.blocks import ToolMessage
from jumpseat.agent.clearing.calls import note_for
from jumpseat.agent.clearing.plan import Clearing, clearable_tokens, plan_clearing
from jumpseat.agent.clock import new_id
from jumpseat.agent.conversation.tokens import TokenEstimate
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelRequest
from jumpseat.agent.session.compactor import MIN_FREED_SHARE, WORKING_WINDOW
from jumpseat.agent.session.session import Session
from jumpseat.system.log_fields import fields
from jumpseat_protocol import events

log = logging.getLogger(__name__)

TARGET_SHARE: Final = 0.25
"""The share of the context down to which old results are cleared, too, if stale ones are not enough."""


async def clear_results(
    session: Session, resolved: ResolvedModel, request: ModelRequest, estimate: TokenEstimate
) -> bool:
    """Clear results of tools that ``request`` contains, if that frees enough.

    Returns:
        Whether the conversation changed, so that the request has to be built again.
    """
    context = min(resolved.known.prompt_limit, WORKING_WINDOW)
    used = session.compactor.apply_calibration(estimate.total)
    # In estimated tokens, as all sizes of results.
    scale = estimate.total / max(1, used)
    needed = round((used - TARGET_SHARE * context) * scale)
    if clearable_tokens(request.messages) < MIN_FREED_SHARE * context * scale:
        return False
    planned = plan_clearing(request.messages, needed, str(session.settings.cwd))
    freed = sum(clearing.freed for clearing in planned)
    if freed < MIN_FREED_SHARE * context * scale:
        return False
    notes = await _write_notes(session, planned)
    if not notes:
        return False
    session.emit(
        events.SessionTruncation(
            token_limit=resolved.known.token_limit,
            pre_truncation_tokens_in_messages=estimate.conversation,
            pre_truncation_messages_length=estimate.messages,
            post_truncation_tokens_in_messages=estimate.conversation - freed,
            post_truncation_messages_length=estimate.messages,
            tokens_removed_during_truncation=freed,
            messages_removed_during_truncation=0,
            performed_by="clearing",
            cleared_results=notes,
        )
    )
    log.info(
        "results cleared", extra=fields(session=session.id, results=len(notes), tokens_before=used, freed=freed)
    )
    return True


async def _write_notes(session: Session, planned: Sequence[Clearing]) -> dict[str, str]:
    """Return the note for each result by the id of its call, after saving what no other call shows.

    A result that cannot be saved stays.
    """
    folder = session.settings.options.large_output.output_dir or None
    # Those of a request may be shortened for its model.
    whole = {
        result.tool_use_id: result
        for message in session.conversation.messages()
        if isinstance(message, ToolMessage)
        for result in message.results
    }
    notes: dict[str, str] = {}
    for clearing in planned:
        result = whole[clearing.call.id]
        saved: str | None = None
        if clearing.must_be_saved:
            # One file at a time: other sessions of the process go on in between.
            await anyio.lowlevel.checkpoint()
            data = result.text.encode("utf-8", "replace")
            try:
                saved = session.storage.save_output(f"cleared-{new_id()}.txt", data, folder)
            except OSError:
                continue
        notes[clearing.call.id] = note_for(clearing.call, result, clearing.reason, saved)
    return notes
