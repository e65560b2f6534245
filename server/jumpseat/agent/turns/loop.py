"""Running one prompt: model call, tool calls, model call, until the model has nothing more to ask for.

Functions over a session; all they do shows in its events. A prompt ends in one of three ways: the model is done
(or a tool call was rejected), a model call failed for good (``session.error``), or the run was cancelled
(``abort``). The session says ``session.idle`` after each.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Literal, TypeAlias

import anyio
import anyio.lowlevel

from jumpseat.agent.clock import utc_now
from jumpseat.agent.compaction.compaction import make_room, make_room_for
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.attachments import complete_attachments
from jumpseat.agent.conversation.portability import check_capability, check_portability
from jumpseat.agent.conversation.prompt import wrap_prompt_in_thread
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.model_calls.answer import publish_answer
from jumpseat.agent.model_calls.auto_mode import CAUSE, SwitchToAutoError
from jumpseat.agent.model_calls.hosted_tools import warn_of_missing
from jumpseat.agent.model_calls.model_call import Answer, ask_model, report_error
from jumpseat.agent.model_calls.requests import build_request, find_model, system_message
from jumpseat.agent.model_calls.structured import RESPONSE_FORMAT, problems_of, repair_request
from jumpseat.agent.session import limits
from jumpseat.agent.session.queue import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.agent.session.skill_calls import invoked_skill, load_skill
from jumpseat.errors import JumpseatError, ProviderContextError, ProviderError, ResponseFormatError, StoreError
from jumpseat_protocol import events

log = logging.getLogger(__name__)


async def run_prompt(session: Session, prompt: Prompt) -> None:
    """Run ``prompt`` to its end. Raises nothing but cancellation; what goes wrong becomes ``session.error``."""
    open_turn: str | None = None
    try:
        session.emit(events.PendingMessagesModified())
        await _say(session, prompt, turn_id=None)
        agent = session.settings.custom_agent
        system = await system_message(session)
        stopped_before = False
        turn = 0
        while True:
            # A model that answers at once and tools that fail at once would leave no moment for anybody else.
            await anyio.lowlevel.checkpoint()
            turn_id = open_turn = str(turn)
            session.emit(events.TurnStart(turn_id=turn_id, interaction_id=prompt.interaction_id))
            if turn > 0:
                for steering in session.queue.take_steering():
                    await _say(session, steering, turn_id=turn_id)
                    _join(prompt, steering)
            if agent is not (agent := session.settings.custom_agent):
                # Another one was selected while the prompt runs: from here on it is that one's.
                system = await system_message(session)
            outcome = await _take_turn(session, prompt, system, turn_id)
            open_turn = None
            session.emit(events.TurnEnd(turn_id=turn_id))
            if outcome == "done" and not session.queue.has_steering():
                said = await session.hooks.agent_stop(session.transcript_path, again=stopped_before)
                if said.decision == "block":
                    stopped_before = True
                    session.add_context(said.reason or "Go on.")
                elif not session.queue.has_steering():
                    return
            elif outcome == "refused" and not session.queue.has_steering():
                return
            turn += 1
            # Where model and tools answer at once, nobody else would ever run, not even who wants to abort this.
            await anyio.lowlevel.checkpoint()
    except anyio.get_cancelled_exc_class():
        try:
            session.record_abort()
            if open_turn is not None:
                session.emit(events.TurnEnd(turn_id=open_turn))
        except StoreError as error:
            log.error("session %s: its abort is not in the log: %s", session.id, error)
        raise
    except Exception as exc:
        _fail(session, prompt, open_turn, exc)


def _join(prompt: Prompt, steering: Prompt) -> None:
    """Let ``prompt`` go on as the one that was slipped in wants it, and end for both."""
    prompt.headers = {**prompt.headers, **steering.headers}
    if steering.response_format is not None:
        prompt.response_format, prompt.repaired = steering.response_format, False
    if steering.tool_choice is not None:
        prompt.tool_choice, prompt.called = steering.tool_choice, False
    if steering.hosted_tools is not None:
        prompt.hosted_tools = steering.hosted_tools
    prompt.run.steered_by.append(steering.run)


async def _say(session: Session, prompt: Prompt, turn_id: str | None) -> None:
    """Put a prompt into the conversation, as the hooks would have it."""
    await session.tools.look(prompt.text)
    attachments = await complete_attachments(prompt.attachments, session.settings.cwd)
    submitted = await session.hooks.user_prompt_submitted(prompt.text)
    text = await wrap_prompt_in_thread(
        session.tools.expand_mentions(
            submitted.modified_prompt if submitted.modified_prompt is not None else prompt.text
        ),
        attachments,
        utc_now(),
        session.settings.cwd,
    )
    transformed = await session.hooks.user_prompt_transformed(prompt.text, text)
    contexts = [submitted.additional_context]
    if session.start_source is not None:
        source, session.start_source = session.start_source, None
        contexts.append((await session.hooks.session_start(source, prompt.text)).additional_context)
    for context in contexts:
        if context:
            session.add_context(context)
    session.emit(
        events.UserMessage(
            content=prompt.text,
            message_id=prompt.id,
            transformed_content=transformed.modified_transformed_prompt or text,
            attachments=attachments or None,
            agent_mode=prompt.agent_mode or "interactive",
            delivery=prompt.delivery,
            interaction_id=prompt.interaction_id,
            turn_id=turn_id,
        )
    )
    _add_invoked_skill(session, prompt.text)
    limits.tell(session)


def _add_invoked_skill(session: Session, prompt: str) -> None:
    """Tell the model what the skill says whose slash command a prompt begins with."""
    skill = invoked_skill(session, prompt)
    if skill is None:
        return
    try:
        source, context = load_skill(session, skill, "user-invoked")
    except StoreError as error:
        problem = f"The skill {skill.name!r} cannot be loaded: {error}."
        session.emit(events.SessionWarning(warning_type="skill", message=problem))
    else:
        session.add_context(context, source)


TurnOutcome: TypeAlias = Literal["again", "done", "refused"]
"""After a turn: the model is to be called again, has nothing more to ask for, or was refused a call."""


async def _take_turn(session: Session, prompt: Prompt, system: str, turn_id: str) -> TurnOutcome:
    """One model call and the tool calls of its answer."""
    resolved, request, estimate, answer = await _answered(session, prompt, system, turn_id)
    message = publish_answer(session, prompt, resolved, estimate, answer, turn_id)
    prompt.run.answer = message
    calls = answer.completed.message.tool_uses()
    if not calls:
        if answer.completed.stop_reason == "pause_turn":
            return "again"
        return "done" if _fits(session, prompt, request, answer.completed) else "again"
    return "refused" if await session.tools.run(calls, turn_id) else "again"


async def _answered(
    session: Session, prompt: Prompt, system: str, turn_id: str
) -> tuple[ResolvedModel, ModelRequest, tokens.TokenEstimate, Answer]:
    """The answer of the model, which may become another one on the way, and the request that it was given."""
    too_long = False
    while True:
        limits.check(session)
        try:
            await session.tools.ready()
            resolved = await find_model(session)
        except JumpseatError as error:
            await report_error(session, error, recoverable=False)
            raise
        # An abort may have come just when the model was found.
        await anyio.lowlevel.checkpoint_if_cancelled()
        request = build_request(session, prompt, system, resolved)
        if turn_id != "0" and session.conversation.ends_in_summary:
            request = replace(request, unasked=True)
        estimate = tokens.of_request(request)
        if await make_room(session, resolved, request, estimate):
            continue
        compactions = session.conversation.compactions
        _tell_portability(session, resolved, request)
        warn_of_missing(session, prompt, resolved, request.hosted_tools)
        _tell_capability(session, resolved, request)
        try:
            answer = await ask_model(session, prompt, resolved, request, turn_id)
        except SwitchToAutoError as switch:
            session.use_model(switch.model, None, cause=CAUSE)
        except ProviderContextError:
            # Meanwhile it may have become another conversation already.
            if session.conversation.compactions != compactions:
                continue
            request = build_request(session, prompt, system, resolved)
            if too_long or not await make_room_for(session, resolved, request):
                raise
            too_long = True
        else:
            prompt.called = True
            if answer.completed.usage is not None:
                session.compactor.learn(estimate.total, answer.completed.usage.input_tokens)
            if session.conversation.compactions != compactions:
                estimate = tokens.of_request(replace(request, messages=session.conversation.messages()))
            return resolved, request, estimate, answer


def _fits(session: Session, prompt: Prompt, request: ModelRequest, completed: Completed) -> bool:
    """Whether the last answer has the form that was asked for; the model is told once where it has not.

    Raises:
        ResponseFormatError: it was told already, or refused.
    """
    if request.response_format is None:
        return True
    problems = problems_of(completed.message.text(), request.response_format.schema)
    if not problems:
        return True
    if completed.stop_reason == "refusal":
        raise ResponseFormatError("the model refused to answer in the form that was asked for")
    if completed.stop_reason == "content_filter":
        raise ResponseFormatError("a filter of the provider ended the answer before it had the form asked for")
    if prompt.repaired:
        raise ResponseFormatError(f"the answer does not fit the schema that was asked for: {'; '.join(problems)}")
    prompt.repaired = True
    session.add_context(repair_request(problems), source=RESPONSE_FORMAT)
    return False


def _tell_portability(session: Session, resolved: ResolvedModel, request: ModelRequest) -> None:
    """Tell the user what the model cannot be given as it was, where that is new."""
    family = resolved.model.signs_as
    found = check_portability(request.messages, family, vision=request.vision)
    # Another provider that is given as little is news too.
    if found and (family, found) != session.portability:
        text = found.sentence(resolved.info.id)
        session.emit(events.SessionWarning(warning_type="portability", message=text))
    session.portability = family, found


def _tell_capability(session: Session, resolved: ResolvedModel, request: ModelRequest) -> None:
    """Tell the user what the model is asked for that it is known not to do, where that is new. It is asked all the
    same: what is known may be old."""
    found = check_capability(request, resolved.known)
    if found and found != session.capability:
        session.emit(events.SessionWarning(warning_type="capability", message=found))
    session.capability = found


def _fail(session: Session, prompt: Prompt, open_turn: str | None, exc: Exception) -> None:
    if isinstance(exc, ProviderError):
        text = f"Execution failed: {exc}"
        if exc.attempts > 1:
            text += f" (tried {exc.attempts} times)"
        payload = events.SessionError(
            error_type=exc.error_type, message=text, status_code=exc.status, error_code=exc.code
        )
    elif isinstance(exc, JumpseatError):
        payload = events.SessionError(error_type=exc.error_type, message=f"Execution failed: {exc}")
    else:
        log.error("session %s: internal error in a turn", session.id, exc_info=exc)
        payload = events.SessionError(error_type="internal", message="Execution failed: internal error")
    payload.originating_message_id = prompt.id
    try:
        if open_turn is not None:
            session.emit(events.TurnEnd(turn_id=open_turn))
    except JumpseatError:
        log.debug("session %s: the end of a failed turn could not be written", session.id)
    prompt.run.error = session.fail(payload)
