"""Making room: what was said so far becomes a summary, which the session's own model writes.

Functions over a session. The session works on while a summary is made, and waits for it only where there is no room
left, or where its user asked for it. It ends in ``session.compaction_complete``; what the conversation is from then
on is worked out in ``conversation.py``.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio

from jumpseat.agent import tokens
from jumpseat.agent.blocks import AssistantMessage, Message, TextBlock, ToolMessage, UserMessage
from jumpseat.agent.conversation import SUMMARY_REQUEST
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest, ToolChoice, Usage
from jumpseat.agent.queue import Prompt
from jumpseat.agent.requests import build_request, find_model, system_message
from jumpseat.agent.session import Session
from jumpseat.agent.tool_protocol import able_to_call
from jumpseat.errors import InvalidRequestError, JumpseatError, ProviderContextError, ProviderError, StoreError
from jumpseat_protocol import events

log = logging.getLogger(__name__)

UNASKED: Final = ("threshold", "context_limit_retry")
"""The triggers of compactions that begin by themselves."""

ASKED_FOR: Final = ("manual", "model_switch")
"""Those of compactions that somebody waits for: prompts wait for them too."""

FEWEST_STEPS: Final = 3
"""A conversation with less than a prompt, an answer and another message has nothing to be summed up."""

GROWTH: Final = 0.1
"""The share of what the model can be given that a conversation has to grow by to be compacted again unasked."""

SHARES: Final = (1.0, 0.6, 0.3)
"""How much of what fits the model is asked to sum up, where it says that more is too long."""

LONGEST_OUTPUT: Final = 1500
"""Characters of a tool's output, where all of them do not fit."""

ASKED: Final = f"""\
{SUMMARY_REQUEST}: the summary and the user's own messages are all that is left of it then, and the work goes on \
from them.

Answer with the summary alone, as text. Do not call tools, and do not go on with the work now.
Whoever reads it knows nothing else, so name files, commands, values and decisions exactly. Leave out what did not \
matter in the end, and never write down passwords or keys. Use these sections, in this order:

<overview>
What the user wants in the end, and what for.
</overview>

<history>
What happened, in order: what was asked, what was done about it, what came of it, what the user corrected.
</history>

<work_done>
What is finished, with the files it is in, and what is begun and not finished.
</work_done>

<technical_details>
What was found out and decided: how things work here, what did not work and why, what the user and the project \
want kept to.
</technical_details>

<important_files>
The files that matter, each with what is in it and what was changed.
</important_files>

<next_steps>
What is to be done next; for work that was interrupted, where exactly it stands.
</next_steps>

<checkpoint_title>Two to six words for this summary</checkpoint_title>"""

UNTITLED: Final = "Conversation so far"


@dataclass(frozen=True, slots=True)
class _Task:
    """A summary that is to be made: why, of what, and by whom. ``limit`` is the model's context window."""

    trigger: str
    resolved: ResolvedModel
    request: ModelRequest
    weight: tokens.Weight
    limit: int
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class _Summary:
    text: str
    used: events.CompactionTokensUsed


# --- when -------------------------------------------------------------------------------------------------------


async def make_room(
    session: Session, resolved: ResolvedModel, request: ModelRequest, weight: tokens.Weight
) -> bool:
    """Begin a compaction where ``request`` fills the context, and wait for it where there is no room left.

    Returns:
        Whether the conversation has become another one, so that the request is to be built anew.
    """
    compactor, config = session.compactor, session.infinite_sessions
    limit = resolved.known.prompt_limit
    used = compactor.corrected(weight.total)
    if (
        config.enabled
        and compactor.trigger is None
        and used >= config.background_compaction_threshold * limit
        and len(session.conversation) >= FEWEST_STEPS
        and weight.conversation >= compactor.not_below
    ):
        _begin(session, _Task("threshold", resolved, request, weight, resolved.known.window))
    full = used >= config.buffer_exhaustion_threshold * limit
    if compactor.trigger is None or not (full or compactor.trigger in ASKED_FOR):
        return False
    before = session.conversation.compactions
    await compactor.over()
    return session.conversation.compactions != before


async def make_room_for(
    session: Session, resolved: ResolvedModel, request: ModelRequest, weight: tokens.Weight
) -> bool:
    """Compact the conversation because the provider says that ``request`` is too long.

    Returns:
        Whether the conversation is shorter now.
    """
    if not session.infinite_sessions.enabled or len(session.conversation) < FEWEST_STEPS:
        return False
    before = session.conversation.compactions
    if session.compactor.trigger is None:
        _begin(session, _Task("context_limit_retry", resolved, request, weight, resolved.known.window))
    await session.compactor.over()
    return session.conversation.compactions != before


async def compact(
    session: Session, trigger: str = "manual", instructions: str | None = None, limit: int | None = None
) -> events.SessionCompactionComplete:
    """Compact the conversation because somebody asks for it. ``instructions`` are what they want of the summary.

    Raises:
        InvalidRequestError: a prompt runs, or there is nothing to compact.
        JumpseatError: the session's model cannot be had.
    """
    _check(session)
    resolved = await find_model(session)
    system = await system_message(session)
    _check(session)
    request = build_request(session, Prompt(""), system, resolved)
    # The user's own counts, and not one that has begun by itself.
    session.compactor.cancel()
    window = limit or resolved.known.window
    outcome = _begin(session, _Task(trigger, resolved, request, tokens.of_request(request), window, instructions))
    try:
        await session.compactor.over()
    except anyio.get_cancelled_exc_class():
        session.compactor.cancel()
        raise
    return outcome[-1]


def _check(session: Session) -> None:
    if session.prompting:
        raise InvalidRequestError("a prompt runs: wait for it, or abort it, before the conversation is compacted")
    if session.compactor.trigger in ASKED_FOR:
        raise InvalidRequestError("the conversation is being compacted already")
    if len(session.conversation) < 2:
        raise InvalidRequestError("there is nothing to compact yet")


async def summarise(session: Session) -> str:
    """A summary of the conversation as it is, for somebody else to go on with; empty where there is none.

    Raises:
        JumpseatError: the model gave none.
    """
    if not len(session.conversation):
        return ""
    resolved = await find_model(session)
    request = build_request(session, Prompt(""), await system_message(session), resolved)
    weight = tokens.of_request(request)
    made = await _summarise(session, _Task("handoff", resolved, request, weight, resolved.known.window))
    session.metrics.count_compaction(made.used)
    return session.around.secrets(made.text)


# --- one compaction ---------------------------------------------------------------------------------------------


def _begin(session: Session, task: _Task) -> list[events.SessionCompactionComplete]:
    """Say that a compaction begins, and have it made. Its outcome is put into the list that is returned.

    Raises:
        StoreError: its beginning cannot be written down.
    """
    outcome: list[events.SessionCompactionComplete] = []
    weight = task.weight
    # Nothing may come between the building of the request and this event: it marks what the summary is about.
    session.emit(
        events.SessionCompactionStart(
            trigger=task.trigger,
            model=task.resolved.wire_name,
            current_tokens=weight.total,
            system_tokens=weight.system,
            conversation_tokens=weight.conversation,
            tool_definitions_tokens=weight.tools,
            token_limit=task.limit,
        )
    )
    session.compactor.start(
        task.trigger,
        partial(_run, session, task, outcome),
        lambda: _fail(session, task, outcome, events.COMPACTION_CANCELLED),
    )
    return outcome


async def _run(session: Session, task: _Task, outcome: list[events.SessionCompactionComplete]) -> None:
    try:
        made = await _summarise(session, task)
        session.metrics.count_compaction(made.used)
        _succeed(session, task, outcome, made)
    except JumpseatError as error:
        log.warning("session %s: it was not compacted: %s", session.id, error)
        _fail(session, task, outcome, str(error), error.status if isinstance(error, ProviderError) else None)
    except Exception:
        log.exception("session %s: a compaction failed", session.id)
        _fail(session, task, outcome, "internal error")


def _succeed(
    session: Session, task: _Task, outcome: list[events.SessionCompactionComplete], made: _Summary
) -> None:
    text = session.around.secrets(made.text)
    title = found.group(1).strip() if (found := _TITLE.search(text)) else UNTITLED
    number, path = session.around.keep_checkpoint(session, title, text)
    old = task.weight
    after = tokens.of_request(replace(task.request, messages=session.conversation.after_compaction(text)))
    payload = events.SessionCompactionComplete(
        success=True,
        trigger=task.trigger,
        custom_instructions=task.instructions,
        summary_content=text,
        checkpoint_number=number,
        checkpoint_path=path,
        pre_compaction_tokens=old.total,
        pre_compaction_messages_length=old.messages,
        post_compaction_tokens=after.total,
        tokens_removed=max(0, old.total - after.total),
        messages_removed=max(0, old.messages - after.messages),
        system_tokens=after.system,
        conversation_tokens=after.conversation,
        tool_definitions_tokens=after.tools,
        token_limit=task.limit,
        compaction_tokens_used=made.used,
    )
    session.emit(payload)
    outcome.append(payload)
    _wait_for_growth(session, task, after.conversation)
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
    task: _Task,
    outcome: list[events.SessionCompactionComplete],
    error: str,
    status: int | None = None,
) -> None:
    payload = events.SessionCompactionComplete(
        success=False,
        trigger=task.trigger,
        error=error,
        status_code=status,
        custom_instructions=task.instructions,
        pre_compaction_tokens=task.weight.total,
        pre_compaction_messages_length=task.weight.messages,
        token_limit=task.limit,
    )
    outcome.append(payload)
    _wait_for_growth(session, task, task.weight.conversation)
    try:
        session.emit(payload)
    except StoreError as refused:
        log.error("session %s: the end of a compaction is not in the log: %s", session.id, refused)


def _wait_for_growth(session: Session, task: _Task, conversation: int) -> None:
    session.compactor.not_below = conversation + round(GROWTH * task.resolved.known.prompt_limit)


# --- the summary ------------------------------------------------------------------------------------------------

_TITLE: Final = re.compile(r"<checkpoint_title>(.*?)</checkpoint_title>", re.DOTALL)


async def _summarise(session: Session, task: _Task) -> _Summary:
    """Have the model sum up the request it would get; of one that is too long, as much of it as it can be given.

    Raises:
        JumpseatError: it gave no summary.
    """
    asked = f"{ASKED}\n\nThe user wants of this summary: {task.instructions}" if task.instructions else ASKED
    question = UserMessage([TextBlock(asked)])
    beside = task.weight.system + task.weight.tools + tokens.of_message(question)
    room = (
        task.resolved.known.prompt_limit
        * task.weight.total
        // max(1, session.compactor.corrected(task.weight.total))
    )
    if task.trigger == "context_limit_retry":
        # It does not fit, whatever is known of the model.
        room = min(room, round(0.6 * task.weight.total))
    refused: ProviderContextError | None = None
    for share in SHARES:
        messages = fitting(task.request.messages, round(share * room) - beside)
        request = replace(
            task.request, messages=[*messages, question], tool_choice=None, response_format=None, hosted_tools=[]
        )
        try:
            return await _ask(session, task, request)
        except ProviderContextError as error:
            refused = error
    raise refused or AssertionError("there is at least one share")


async def _ask(session: Session, task: _Task, request: ModelRequest) -> _Summary:
    """Ask for the summary; once more where the model goes on with its work instead.

    The first request has no choice of tools, because with one some providers do not use what they have cached.
    """
    started = time.monotonic()
    for choice in (None, ToolChoice("none")):
        completed = await _call(session, task.resolved, replace(request, tool_choice=choice))
        text = completed.message.text().strip()
        done = "<overview>" in text or not completed.message.tool_uses()
        if text and done and completed.stop_reason not in ("refusal", "content_filter"):
            usage = completed.usage or Usage()
            used = events.CompactionTokensUsed(
                input_tokens=usage.input_tokens or tokens.of_request(request).total,
                output_tokens=usage.output_tokens or tokens.of_answer(completed.message),
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                model=completed.model or task.resolved.wire_name,
                duration=int((time.monotonic() - started) * 1000),
                copilot_usage=events.CopilotUsage(total_nano_aiu=usage.nano_aiu) if usage.nano_aiu else None,
            )
            return _Summary(text, used)
    raise ProviderError("the model gave no summary of the conversation")


async def _call(session: Session, resolved: ResolvedModel, request: ModelRequest) -> Completed:
    policy, able = session.around.retry, able_to_call(resolved)
    attempt = 0
    while True:
        attempt += 1
        try:
            async with able.model.stream(request) as stream:
                async for event in stream:
                    if isinstance(event, Completed):
                        return event
        except ProviderError as error:
            wait_s = policy.wait_s(error, attempt)
            if wait_s is None:
                raise
        else:
            raise AssertionError("a model stream must end in Completed or raise")
        await anyio.sleep(wait_s)


def fitting(messages: Sequence[Message], room: int) -> list[Message]:
    """As much of ``messages`` as fits into ``room`` tokens, at least the last one; all as they are where they fit.

    Long outputs of tools are cut first, the oldest first; then whole messages go, from the oldest on.
    """
    kept = list(messages)
    weights = [tokens.of_message(one) for one in kept]
    over = sum(weights) - room
    for place, message in enumerate(kept):
        if over <= 0:
            return kept
        if isinstance(message, ToolMessage):
            kept[place] = _cut(message)
            over -= weights[place] - (lighter := tokens.of_message(kept[place]))
            weights[place] = lighter
    first = 0
    while over > 0 and first < len(kept) - 1:
        over -= weights[first]
        first += 1
        # Results go with their calls.
        while first < len(kept) - 1 and isinstance(kept[first], ToolMessage):
            over -= weights[first]
            first += 1
    kept = kept[first:]
    if first and isinstance(kept[0], AssistantMessage):
        kept.insert(0, UserMessage([TextBlock("[What was said before is left out here, because it is too long.]")]))
    return kept


def _cut(message: ToolMessage) -> ToolMessage:
    return ToolMessage(
        [
            replace(one, text=_shortened(one.text), images=[])
            if len(one.text) > LONGEST_OUTPUT or one.images
            else one
            for one in message.results
        ]
    )


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_OUTPUT:
        return text
    head, tail = LONGEST_OUTPUT * 2 // 3, LONGEST_OUTPUT // 3
    return f"{text[:head]}\n[{len(text) - head - tail} characters are left out here.]\n{text[-tail:]}"
