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

from jumpseat.agent import limits
from jumpseat.agent.answer import publish_answer
from jumpseat.agent.attachments import as_logged
from jumpseat.agent.auto_mode import CAUSE, SwitchToAutoError
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.clock import utc_now
from jumpseat.agent.hosted_tools import beside_hosted, hosted_for_call, tell_missing
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.model_call import Answer, ask_model, tell_error
from jumpseat.agent.portability import check_capability, check_portability
from jumpseat.agent.prompt import wrapped
from jumpseat.agent.queue import Prompt
from jumpseat.agent.rewriting import as_sent
from jumpseat.agent.session import Session
from jumpseat.agent.skill_calls import called_by, load
from jumpseat.agent.structured import (
    RESPONSE_FORMAT,
    able_to_answer,
    format_for_call,
    problems_of,
    repair_request,
)
from jumpseat.agent.system_prompt import system_prompt, to_transform
from jumpseat.agent.tool_choice import choice_for_call
from jumpseat.agent.tool_protocol import able_to_call
from jumpseat.errors import ClientCallError, JumpseatError, ProviderError, ResponseFormatError, StoreError
from jumpseat_protocol import events
from jumpseat_protocol.sessions import SpecificToolChoice

log = logging.getLogger(__name__)


async def run_prompt(session: Session, prompt: Prompt) -> None:
    """Run ``prompt`` to its end. Raises nothing but cancellation; what goes wrong becomes ``session.error``."""
    open_turn: str | None = None
    try:
        session.emit(events.PendingMessagesModified())
        await _say(session, prompt, turn_id=None)
        agent = session.settings.custom_agent
        system = await _system_message(session)
        stopped_before = False
        turn = 0
        while True:
            # A model that answers at once and tools that fail at once would leave no moment for anybody else.
            await anyio.lowlevel.checkpoint()
            turn_id = open_turn = str(turn)
            session.emit(events.TurnStart(turn_id=turn_id, interaction_id=prompt.interaction_id))
            if turn > 0:
                for steering in session.take_steering():
                    await _say(session, steering, turn_id=turn_id)
                    _join(prompt, steering)
            if agent is not (agent := session.settings.custom_agent):
                # Another one was selected while the prompt runs: from here on it is that one's.
                system = await _system_message(session)
            outcome = await _take_turn(session, prompt, system, turn_id)
            open_turn = None
            session.emit(events.TurnEnd(turn_id=turn_id))
            if outcome == "done" and not session.has_steering():
                said = await session.hooks.agent_stop(session.transcript_path, again=stopped_before)
                if said.decision == "block":
                    stopped_before = True
                    session.add_context(said.reason or "Go on.")
                elif not session.has_steering():
                    return
            elif outcome == "refused" and not session.has_steering():
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
    prompt.run.slipped_in.append(steering.run)


async def _say(session: Session, prompt: Prompt, turn_id: str | None) -> None:
    """Put a prompt into the conversation, as the hooks would have it."""
    await session.tools.look(prompt.text)
    attachments = await as_logged(prompt.attachments, session.settings.cwd)
    submitted = await session.hooks.user_prompt_submitted(prompt.text)
    text = await wrapped(
        session.tools.in_words(submitted.modified_prompt if submitted.modified_prompt is not None else prompt.text),
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
    _load_skill(session, prompt.text)
    limits.tell(session)


def _load_skill(session: Session, prompt: str) -> None:
    """Tell the model what the skill says whose slash command a prompt begins with."""
    skill = called_by(session, prompt)
    if skill is None:
        return
    try:
        source, context = load(session, skill, "user-invoked")
    except StoreError as error:
        problem = f"The skill {skill.name!r} cannot be loaded: {error}."
        session.emit(events.SessionWarning(warning_type="skill", message=problem))
    else:
        session.add_context(context, source)


async def _system_message(session: Session) -> str:
    """The system message for one prompt. A client that fails to rewrite a section leaves it as it is."""
    config, cwd = session.settings.system_message, session.settings.cwd
    instructions = session.around.read_instructions(session.settings)
    tools = session.tools.instructions()
    folders = session.permissions.grounds.added
    transformed: dict[str, str] = {}
    wanted = to_transform(config, cwd, instructions, tools, folders)
    client = session.clients.transform_client()
    if wanted and client is not None:
        try:
            with anyio.fail_after(session.hooks.patience_s):
                answer = await client.transform_system_message(session.id, wanted)
        except (ClientCallError, TimeoutError) as error:
            log.warning("session %s: the system message was not transformed: %s", session.id, error)
        else:
            transformed = {name: text for name, text in answer.items() if name in wanted}
    agent = session.settings.custom_agent
    return system_prompt(config, cwd, instructions, transformed, tools, folders, agent.prompt if agent else "")


TurnOutcome: TypeAlias = Literal["again", "done", "refused"]
"""After a turn: the model is to be called again, has nothing more to ask for, or was refused a call."""


async def _take_turn(session: Session, prompt: Prompt, system: str, turn_id: str) -> TurnOutcome:
    """One model call and the tool calls of its answer."""
    limits.check(session)
    resolved, request, answer = await _answered(session, prompt, system, turn_id)
    message = publish_answer(session, prompt, resolved, request, answer, turn_id)
    prompt.run.answer = message
    calls = answer.completed.message.tool_uses()
    if not calls:
        if answer.completed.stop_reason == "pause_turn":
            return "again"
        return "done" if _fits(session, prompt, request, answer.completed) else "again"
    return "refused" if await session.tools.run(calls, turn_id) else "again"


async def _answered(
    session: Session, prompt: Prompt, system: str, turn_id: str
) -> tuple[ResolvedModel, ModelRequest, Answer]:
    """The answer of the model, which may become another one on the way, and the request that it was given."""
    while True:
        try:
            await session.tools.ready()
            resolved = await _model(session)
        except JumpseatError as error:
            await tell_error(session, error, recoverable=False)
            raise
        request = _request(session, prompt, system, resolved)
        prompt.called = True
        _tell_portability(session, resolved, request)
        tell_missing(session, prompt, resolved, request.hosted_tools)
        _tell_capability(session, resolved, request)
        try:
            return resolved, request, await ask_model(session, prompt, resolved, request, turn_id)
        except SwitchToAutoError as switch:
            session.use_model(switch.model, None, cause=CAUSE)


async def next_request(session: Session, text: str | None) -> tuple[ResolvedModel, ModelRequest]:
    """The model call that ``text`` would begin now, or that would go on from where the conversation is.

    Nothing is sent to the model and nothing changes in the session. The hooks are not asked what they would make of
    the prompt; the client is asked to rewrite the sections of the system message that it rewrites.

    Raises:
        JumpseatError: the session's model cannot be had.
    """
    resolved = await _model(session)
    await session.tools.look(text or "")
    try:
        request = _request(session, Prompt(text or ""), await _system_message(session), resolved)
        if text is not None:
            said = await wrapped(session.tools.in_words(text), [], utc_now(), session.settings.cwd)
            request = replace(request, messages=[*request.messages, UserMessage([TextBlock(said)])])
    finally:
        # What it mentions was not said.
        await session.tools.look("")
    return resolved, as_sent(able_to_answer(able_to_call(resolved), request).model, request)


async def _model(session: Session) -> ResolvedModel:
    """The model to call now: that of the custom agent where it wants one that can be had, else the session's.

    Raises:
        JumpseatError: the session's model cannot be had.
    """
    settings, models, ask = session.settings, session.around.models, session.clients.ask_token
    wanted = settings.for_model()
    if wanted.model != settings.model:
        try:
            return await models.resolve(wanted, ask_token=ask)
        except JumpseatError as error:
            text = f"The agent {settings.agent!r} cannot have the model {wanted.model!r}: {error}"
        if text != session.agent_model_missing:
            session.emit(events.SessionWarning(warning_type="custom_agent", message=text))
        session.agent_model_missing = text
    return await models.resolve(settings, ask_token=ask)


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


def _needed(session: Session, prompt: Prompt) -> str | None:
    choice = prompt.tool_choice or session.settings.tool_choice
    return choice.tool_name if isinstance(choice, SpecificToolChoice) else None


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


def _request(session: Session, prompt: Prompt, system: str, resolved: ResolvedModel) -> ModelRequest:
    settings = session.settings
    tools = session.tools.specs(_needed(session, prompt))
    hosted = hosted_for_call(session, prompt, resolved, tools)
    tools = beside_hosted(session, tools, hosted)
    return ModelRequest(
        model=resolved.wire_name,
        system=system,
        messages=session.conversation.messages(),
        tools=tools,
        tool_choice=choice_for_call(settings, prompt, [tool.name for tool in tools]),
        hosted_tools=hosted,
        stream=settings.streaming,
        vision=resolved.info.vision is not False and resolved.model.capabilities(resolved.wire_name).images,
        reasoning_effort=settings.for_model().reasoning_effort,
        reasoning_summary=settings.reasoning_summary,
        max_output_tokens=resolved.info.max_output_tokens,
        response_format=format_for_call(settings, prompt),
        settings={**settings.adapter_settings, **prompt.adapter_settings},
        headers=prompt.headers,
        session_id=session.id,
        interaction_id=prompt.interaction_id,
    )


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
