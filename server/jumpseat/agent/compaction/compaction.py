"""Compact a conversation: replace it by a summary that the session's own model writes.

Functions over a session. The session works on while a summary is made, and waits for it only if the context is full
or the user requested it. A compaction ends with ``session.compaction_complete``; ``conversation.py`` derives the
new conversation from that event.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from jumpseat.agent.compaction.summary import TOO_LONG, SummaryTask, make_summary
from jumpseat.agent.conversation import tokens
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelRequest
from jumpseat.agent.model_calls.requests import build_request, find_model, system_message
from jumpseat.agent.session import limits
from jumpseat.agent.session.compactor import CompactionPolicy
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import (
    InvalidRequestError,
    JumpseatError,
    ProviderError,
    SessionNotFoundError,
    StoreError,
)
from jumpseat.system.log_fields import fields
from jumpseat_protocol import events

log = logging.getLogger(__name__)

REQUESTED_TRIGGERS: Final = ("manual", "model_switch")
"""The triggers of compactions that a client requested. Prompts wait for these."""

MIN_MESSAGES: Final = 3
"""The minimum number of prompts and answers for an automatic compaction: the first prompt is not enough."""

MIN_GROWTH: Final = 0.1
"""The share of the prompt limit by which a conversation must grow before the next automatic compaction."""

MAX_FILES: Final = 50
"""The most changed files that are added to a summary which does not name them."""

_TITLE: Final = re.compile(r"<checkpoint_title>((?:(?!<checkpoint_title>).)*?)</checkpoint_title>", re.DOTALL)

UNTITLED: Final = "Conversation so far"


# --- when -------------------------------------------------------------------------------------------------------


async def compact_if_needed(
    session: Session, resolved: ResolvedModel, request: ModelRequest, estimate: tokens.TokenEstimate
) -> bool:
    """Start a compaction if ``request`` fills the context, and wait for it if the context is full.

    Returns:
        Whether the conversation changed, so that the request has to be built again.
    """
    compactor, policy = session.compactor, session.compaction_policy
    limit = resolved.known.prompt_limit
    used = compactor.apply_calibration(estimate.total)
    min_size = 0 if compactor.last_size is None else compactor.last_size + MIN_GROWTH * limit
    if (
        policy.enabled
        and compactor.trigger is None
        and (used >= policy.background * limit or _is_outgrown(policy, limit, request, estimate))
        and len(session.conversation) >= MIN_MESSAGES
        and session.conversation.has_answers
        and estimate.conversation >= min_size
    ):
        _start(session, SummaryTask("threshold", resolved, request, estimate, resolved.known.token_limit))
    full = used >= policy.exhaustion * limit
    if compactor.trigger is None or not (full or compactor.trigger in REQUESTED_TRIGGERS):
        return False
    before = session.conversation.compactions
    await compactor.wait_until_idle()
    return session.conversation.compactions != before


def _is_outgrown(
    policy: CompactionPolicy, limit: int, request: ModelRequest, estimate: tokens.TokenEstimate
) -> bool:
    """Return whether calls and cleared results alone take so much that a summary pays."""
    most = policy.most_remaining(limit)
    if most is None or estimate.conversation < most:
        return False
    # Most sessions end before.
    from jumpseat.agent.clearing.plan import remaining_tokens

    return remaining_tokens(request.messages) >= most


async def compact_after_refusal(session: Session, resolved: ResolvedModel, request: ModelRequest) -> bool:
    """Compact the conversation after the provider refused ``request`` as too long.

    Returns:
        Whether the conversation changed.
    """
    if not session.compaction_policy.enabled or not _can_shrink(session, resolved, request):
        return False
    before = session.conversation.compactions
    # One that has begun in the background may fail, where this one drops what cannot be summarized.
    await session.compactor.wait_until_idle()
    if session.conversation.compactions == before:
        estimate = tokens.of_request(request)
        _start(session, SummaryTask(TOO_LONG, resolved, request, estimate, resolved.known.token_limit))
        await session.compactor.wait_until_idle()
    return session.conversation.compactions != before


def _can_shrink(session: Session, resolved: ResolvedModel, request: ModelRequest) -> bool:
    """Return whether a compaction would help: there are answers to summarize, or long unanswered prompts to cut."""
    conversation = session.conversation
    if conversation.has_answers:
        return True
    short = replace(request, messages=conversation.after_compaction("", resolved.known.token_limit))
    return tokens.of_request(short).conversation < tokens.of_request(request).conversation // 2


async def compact(
    session: Session, trigger: str = "manual", instructions: str | None = None, limit: int | None = None
) -> events.SessionCompactionComplete:
    """Compact the conversation on request, and wait for it. ``instructions`` are added to the summary prompt.

    ``limit`` replaces the context window of the model, in tokens.

    Raises:
        InvalidRequestError: a prompt or another compaction is running, or there is nothing to compact.
        JumpseatError: the session is closed, has used up its limits, or its model is not available.
    """
    _check_can_compact(session)
    resolved = await find_model(session)
    system = await system_message(session)
    _check_can_compact(session)
    request = build_request(session, Prompt(""), system, resolved)
    # A requested compaction replaces an automatic one.
    session.compactor.cancel()
    window = limit or resolved.known.token_limit
    outcome = _start(
        session, SummaryTask(trigger, resolved, request, tokens.of_request(request), window, instructions)
    )
    try:
        await session.compactor.wait_until_idle()
    except anyio.get_cancelled_exc_class():
        if not outcome:
            session.compactor.cancel()
        raise
    return outcome[0]


def _check_can_compact(session: Session) -> None:
    if session.queue.closed:
        raise SessionNotFoundError(session.id)
    if session.queue.prompting:
        raise InvalidRequestError("cannot compact while a prompt is running: wait for the prompt, or abort it")
    if session.compactor.trigger in REQUESTED_TRIGGERS:
        raise InvalidRequestError("the conversation is already being compacted")
    if not session.conversation.has_answers:
        raise InvalidRequestError("there is nothing to compact yet")
    limits.check(session)


async def summarize_for_handoff(session: Session) -> str:
    """Return a summary of the conversation for another agent or person; empty if there is no conversation.

    Raises:
        JumpseatError: the model gave no summary.
    """
    if not len(session.conversation):
        return ""
    resolved = await find_model(session)
    request = build_request(session, Prompt(""), await system_message(session), resolved)
    estimate = tokens.of_request(request)
    text = await make_summary(
        session, SummaryTask("handoff", resolved, request, estimate, resolved.known.token_limit)
    )
    return session.services.secrets(text)


# --- one compaction ---------------------------------------------------------------------------------------------


def _start(session: Session, task: SummaryTask) -> list[events.SessionCompactionComplete]:
    """Publish the start of a compaction and start it. Its outcome is added to the returned list.

    Raises:
        StoreError: the start cannot be written to the log.
    """
    outcome: list[events.SessionCompactionComplete] = []
    estimate = task.estimate
    # Nothing may be published between building the request and this event, which marks the end of the summary.
    session.emit(
        events.SessionCompactionStart(
            trigger=task.trigger,
            model=task.resolved.wire_name,
            current_tokens=estimate.total,
            system_tokens=estimate.system,
            conversation_tokens=estimate.conversation,
            tool_definitions_tokens=estimate.tools,
            token_limit=task.limit,
        )
    )
    session.compactor.start(
        task.trigger,
        partial(_run, session, task, outcome),
        lambda: _fail(session, task, outcome, events.COMPACTION_CANCELLED),
    )
    return outcome


async def _run(session: Session, task: SummaryTask, outcome: list[events.SessionCompactionComplete]) -> None:
    try:
        summary = await make_summary(session, task)
        # A cancellation may arrive after the answer, but before it was used.
        await anyio.lowlevel.checkpoint_if_cancelled()
        _succeed(session, task, outcome, summary)
    except JumpseatError as error:
        # Not the error itself: a provider's explanation may quote the conversation.
        log.warning("compaction failed", extra=fields(session=session.id, error=error.error_type))
        is_of_provider = isinstance(error, ProviderError)
        text = (error.explanation if is_of_provider else None) or str(error)
        _fail(session, task, outcome, text, error.status if is_of_provider else None)
    except Exception:
        log.exception("session %s: compaction failed", session.id)
        _fail(session, task, outcome, "internal error")


def _succeed(
    session: Session, task: SummaryTask, outcome: list[events.SessionCompactionComplete], summary: str
) -> None:
    # Imported with the first summary.
    from jumpseat.agent.clearing.plan import changed_files

    changed = changed_files(task.request.messages, str(session.settings.cwd))
    text = session.services.secrets(with_changed_files(summary, changed))
    title = found.group(1).strip() if (found := _TITLE.search(text)) else UNTITLED
    conversation = session.conversation
    # Including messages added since the start, which stay.
    before = tokens.of_request(replace(task.request, messages=conversation.messages()))
    after = tokens.of_request(replace(task.request, messages=conversation.after_compaction(text, task.limit)))
    number, path = session.services.store_checkpoint(session, title, text)
    payload = events.SessionCompactionComplete(
        success=True,
        trigger=task.trigger,
        custom_instructions=task.instructions,
        summary_content=text,
        checkpoint_number=number,
        checkpoint_path=path,
        pre_compaction_tokens=before.total,
        pre_compaction_messages_length=before.messages,
        post_compaction_tokens=after.total,
        tokens_removed=max(0, before.total - after.total),
        messages_removed=max(0, before.messages - after.messages),
        system_tokens=after.system,
        conversation_tokens=after.conversation,
        tool_definitions_tokens=after.tools,
        token_limit=task.limit,
        compaction_tokens_used=task.used,
    )
    session.emit(payload)
    outcome.append(payload)
    log.info(
        "conversation compacted",
        extra=fields(
            session=session.id, trigger=task.trigger, tokens_before=before.total, tokens_after=after.total
        ),
    )
    session.compactor.last_size = after.conversation
    session.emit(
        events.SessionUsageInfo(
            current_tokens=after.total,
            messages_length=after.messages,
            token_limit=task.limit,
            system_tokens=after.system,
            conversation_tokens=after.conversation,
            tool_definitions_tokens=after.tools,
        )
    )


def with_changed_files(summary: str, changed: Sequence[str]) -> str:
    """Add the changed files that a summary does not name, the latest :data:`MAX_FILES` at most."""
    lost = [path for path in changed if path.rpartition("/")[2] not in summary][-MAX_FILES:]
    return summary if not lost else "\n".join([summary, "", "<changed_files>", *lost, "</changed_files>"])


def _fail(
    session: Session,
    task: SummaryTask,
    outcome: list[events.SessionCompactionComplete],
    error: str,
    status: int | None = None,
) -> None:
    if outcome:
        # The compaction has already ended: cancelled, or successfully.
        return
    payload = events.SessionCompactionComplete(
        success=False,
        trigger=task.trigger,
        error=error,
        status_code=status,
        custom_instructions=task.instructions,
        pre_compaction_tokens=task.estimate.total,
        pre_compaction_messages_length=task.estimate.messages,
        token_limit=task.limit,
        compaction_tokens_used=task.used if task.used.output_tokens else None,
    )
    outcome.append(payload)
    if error != events.COMPACTION_CANCELLED:
        session.compactor.last_size = task.estimate.conversation
    try:
        session.emit(payload)
    except StoreError as refused:
        log.error("session %s: cannot write the end of a compaction to the log: %s", session.id, refused)
