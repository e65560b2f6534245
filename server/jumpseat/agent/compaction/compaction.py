"""Making room: what was said so far becomes a summary, which the session's own model writes.

Functions over a session. The session works on while a summary is made, and waits for it only where there is no room
left, or where its user asked for it. It ends in ``session.compaction_complete``; what the conversation is from then
on is worked out in ``conversation.py``.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel

from jumpseat.agent.compaction.summary import TOO_LONG, SummaryTask, make_summary
from jumpseat.agent.conversation import tokens
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelRequest
from jumpseat.agent.model_calls.requests import build_request, find_model, system_message
from jumpseat.agent.session import limits
from jumpseat.agent.session.queue import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import (
    InvalidRequestError,
    JumpseatError,
    ProviderError,
    SessionNotFoundError,
    StoreError,
)
from jumpseat_protocol import events

log = logging.getLogger(__name__)

REQUESTED_TRIGGERS: Final = ("manual", "model_switch")
"""Those of compactions that somebody waits for: prompts wait for them too."""

FEWEST_STEPS: Final = 3
"""Prompts and answers that a conversation has to have to be compacted unasked: the first prompt is not enough."""

GROWTH: Final = 0.1
"""The share of what the model can be given that a conversation has to grow by to be compacted again unasked."""

_TITLE: Final = re.compile(r"<checkpoint_title>(.*?)</checkpoint_title>", re.DOTALL)

UNTITLED: Final = "Conversation so far"


# --- when -------------------------------------------------------------------------------------------------------


async def make_room(
    session: Session, resolved: ResolvedModel, request: ModelRequest, estimate: tokens.TokenEstimate
) -> bool:
    """Begin a compaction where ``request`` fills the context, and wait for it where there is no room left.

    Returns:
        Whether the conversation has become another one, so that the request is to be built anew.
    """
    compactor, policy = session.compactor, session.compaction_policy
    limit = resolved.known.prompt_limit
    used = compactor.corrected(estimate.total)
    least = 0 if compactor.size_then is None else compactor.size_then + GROWTH * limit
    if (
        policy.enabled
        and compactor.trigger is None
        and used >= policy.background * limit
        and len(session.conversation) >= FEWEST_STEPS
        and session.conversation.has_answers
        and estimate.conversation >= least
    ):
        _begin(session, SummaryTask("threshold", resolved, request, estimate, resolved.known.window))
    full = used >= policy.exhaustion * limit
    if compactor.trigger is None or not (full or compactor.trigger in REQUESTED_TRIGGERS):
        return False
    before = session.conversation.compactions
    await compactor.over()
    return session.conversation.compactions != before


async def make_room_for(session: Session, resolved: ResolvedModel, request: ModelRequest) -> bool:
    """Compact the conversation because the provider says that ``request`` is too long.

    Returns:
        Whether the conversation is another one now.
    """
    if not session.compaction_policy.enabled or not _would_help(session, resolved, request):
        return False
    before = session.conversation.compactions
    if session.compactor.trigger is None:
        estimate = tokens.of_request(request)
        _begin(session, SummaryTask(TOO_LONG, resolved, request, estimate, resolved.known.window))
    await session.compactor.over()
    return session.conversation.compactions != before


def _would_help(session: Session, resolved: ResolvedModel, request: ModelRequest) -> bool:
    """Whether there is something to sum up, or prompts that never had an answer and can be made short."""
    conversation = session.conversation
    if conversation.has_answers:
        return True
    short = replace(request, messages=conversation.after_compaction("", resolved.known.window))
    return tokens.of_request(short).conversation < tokens.of_request(request).conversation // 2


async def compact(
    session: Session, trigger: str = "manual", instructions: str | None = None, limit: int | None = None
) -> events.SessionCompactionComplete:
    """Compact the conversation because somebody asks for it. ``instructions`` are what they want of the summary.

    Raises:
        InvalidRequestError: a prompt runs, or there is nothing to compact.
        JumpseatError: the session is closed, has used up its limits, or its model cannot be had.
    """
    _check(session)
    resolved = await find_model(session)
    system = await system_message(session)
    _check(session)
    request = build_request(session, Prompt(""), system, resolved)
    # The user's own counts, and not one that has begun by itself.
    session.compactor.cancel()
    window = limit or resolved.known.window
    outcome = _begin(
        session, SummaryTask(trigger, resolved, request, tokens.of_request(request), window, instructions)
    )
    try:
        await session.compactor.over()
    except anyio.get_cancelled_exc_class():
        if not outcome:
            session.compactor.cancel()
        raise
    return outcome[0]


def _check(session: Session) -> None:
    if session.queue.closed:
        raise SessionNotFoundError(session.id)
    if session.queue.prompting:
        raise InvalidRequestError("a prompt runs: wait for it, or abort it, before the conversation is compacted")
    if session.compactor.trigger in REQUESTED_TRIGGERS:
        raise InvalidRequestError("the conversation is being compacted already")
    if not session.conversation.has_answers:
        raise InvalidRequestError("there is nothing to compact yet")
    limits.check(session)


async def summarize_for_handoff(session: Session) -> str:
    """A summary of the conversation as it is, for somebody else to go on with; empty where there is none.

    Raises:
        JumpseatError: the model gave none.
    """
    if not len(session.conversation):
        return ""
    resolved = await find_model(session)
    request = build_request(session, Prompt(""), await system_message(session), resolved)
    estimate = tokens.of_request(request)
    text = await make_summary(session, SummaryTask("handoff", resolved, request, estimate, resolved.known.window))
    return session.services.secrets(text)


# --- one compaction ---------------------------------------------------------------------------------------------


def _begin(session: Session, task: SummaryTask) -> list[events.SessionCompactionComplete]:
    """Say that a compaction begins, and have it made. Its outcome is put into the list that is returned.

    Raises:
        StoreError: its beginning cannot be written down.
    """
    outcome: list[events.SessionCompactionComplete] = []
    estimate = task.estimate
    # Nothing may come between the building of the request and this event: it marks what the summary is about.
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
        # A cancellation may come when the answer is there and has not been looked at.
        await anyio.lowlevel.checkpoint_if_cancelled()
        _succeed(session, task, outcome, summary)
    except JumpseatError as error:
        log.warning("session %s: it was not compacted: %s", session.id, error)
        _fail(session, task, outcome, str(error), error.status if isinstance(error, ProviderError) else None)
    except Exception:
        log.exception("session %s: a compaction failed", session.id)
        _fail(session, task, outcome, "internal error")


def _succeed(
    session: Session, task: SummaryTask, outcome: list[events.SessionCompactionComplete], summary: str
) -> None:
    text = session.services.secrets(summary)
    title = found.group(1).strip() if (found := _TITLE.search(text)) else UNTITLED
    conversation = session.conversation
    # With what has come since it was begun: that stays.
    before = tokens.of_request(replace(task.request, messages=conversation.messages()))
    after = tokens.of_request(replace(task.request, messages=conversation.after_compaction(text, task.limit)))
    number, path = session.services.keep_checkpoint(session, title, text)
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
    session.compactor.size_then = after.conversation
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


def _fail(
    session: Session,
    task: SummaryTask,
    outcome: list[events.SessionCompactionComplete],
    error: str,
    status: int | None = None,
) -> None:
    if outcome:
        # It has ended already: cancelled, or well.
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
        session.compactor.size_then = task.estimate.conversation
    try:
        session.emit(payload)
    except StoreError as refused:
        log.error("session %s: the end of a compaction is not in the log: %s", session.id, refused)
