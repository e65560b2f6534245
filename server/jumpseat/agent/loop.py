"""Running one prompt: model call, tool calls, model call, until the model has nothing more to ask for.

Functions over a session; all they do shows in its events. A prompt ends in one of three ways: the model is done
(or a tool call was rejected), a model call failed for good (``session.error``), or the run was cancelled
(``abort``). The session says ``session.idle`` after each.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import anyio
import anyio.lowlevel

from jumpseat.agent import limits, tokens
from jumpseat.agent.arguments import mended
from jumpseat.agent.attachments import as_logged
from jumpseat.agent.blocks import TextBlock, ToolUseBlock, UserMessage
from jumpseat.agent.citations import citations_of
from jumpseat.agent.clock import utc_now
from jumpseat.agent.conversation import canonical_json
from jumpseat.agent.hosted_tools import beside_hosted, hosted_for_call, tell_missing
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import (
    CREDITS_PER_DOLLAR,
    NANO,
    Completed,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jumpseat.agent.portability import check_capability, check_portability
from jumpseat.agent.prompt import wrapped
from jumpseat.agent.provider_blocks import provider_blocks
from jumpseat.agent.queue import Prompt
from jumpseat.agent.rewriting import as_sent
from jumpseat.agent.secrets import MaskedStream, Secrets
from jumpseat.agent.session import Session
from jumpseat.agent.skills import called_by, load
from jumpseat.agent.structured import (
    RESPONSE_FORMAT,
    able_to_answer,
    format_for_call,
    problems_of,
    repair_request,
)
from jumpseat.agent.system_prompt import system_prompt, to_transform
from jumpseat.agent.tool_choice import choice_for_call
from jumpseat.agent.tool_protocol import able_to_call, without_native_tools
from jumpseat.errors import (
    ClientCallError,
    JumpseatError,
    ProviderError,
    ProviderToolsError,
    ResponseFormatError,
    StoreError,
)
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import ErrorOccurredOutput
from jumpseat_protocol.sessions import SpecificToolChoice

log = logging.getLogger(__name__)

DEFAULT_CONTEXT_WINDOW = 128_000
# How many deltas may pass before slow clients are waited for.
DELTAS_PER_BREATH = 64


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
    try:
        await session.tools.ready()
        resolved = await _model(session)
    except JumpseatError as error:
        await _tell_error(session, error, recoverable=False)
        raise
    request = _request(session, prompt, system, resolved)
    prompt.called = True
    _tell_portability(session, resolved, request)
    tell_missing(session, prompt, resolved, request.hosted_tools)
    _tell_capability(session, resolved, request)
    answer = await _ask_model(session, prompt, resolved, request, turn_id)
    message = _publish_answer(session, prompt, resolved, request, answer, turn_id)
    prompt.run.answer = message
    calls = answer.completed.message.tool_uses()
    if not calls:
        if answer.completed.stop_reason == "pause_turn":
            return "again"
        return "done" if _fits(session, prompt, request, answer.completed) else "again"
    return "refused" if await session.tools.run(calls, turn_id) else "again"


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


@dataclass(slots=True)
class _Answer:
    """An answer with the ids its deltas went out under, and its timing in milliseconds."""

    completed: Completed
    message_id: str
    reasoning_id: str
    duration_ms: int
    first_token_ms: int | None


async def _ask_model(
    session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest, turn_id: str
) -> _Answer:
    """The model's answer; a provider that refuses its tools is asked again without, and remembered."""
    able = able_to_answer(able_to_call(resolved), request)
    try:
        return await _call_model(session, prompt, able, request, turn_id)
    except ProviderToolsError as error:
        other = without_native_tools(resolved) if request.tools else None
        if other is None:
            raise
        text = f"{resolved.info.id} cannot call tools ({error}). From now on it calls them as XML in its text."
        session.emit(events.SessionWarning(warning_type="tool_protocol", message=text))
    answer = await _call_model(session, prompt, able_to_answer(able_to_call(other), request), request, turn_id)
    session.around.models.refuses_tools(resolved)
    return answer


async def _call_model(
    session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest, turn_id: str
) -> _Answer:
    """Call the model, again where that may help.

    An answer of which something was shown already is not started again: its deltas cannot be taken back.
    """
    policy = session.around.retry
    attempt = 0
    # Attempts that the errorOccurred hook wants beyond those of the policy; it is asked once for a call.
    wanted: int | None = None
    while True:
        attempt += 1
        started = time.monotonic()
        shown = _Shown()
        try:
            completed = await _stream_answer(session, resolved, request, shown, started)
        except ProviderError as error:
            session.emit(
                events.ModelCallFailure(
                    source="top_level",
                    model=resolved.wire_name,
                    status_code=error.status,
                    error_code=error.code,
                    error_type=error.error_type,
                    error_message=str(error),
                    duration_ms=_ms_since(started),
                )
            )
            if isinstance(error, ProviderToolsError) and request.tools and without_native_tools(resolved):
                raise
            wait_s = None if shown.anything or wanted is not None else policy.wait_s(error, attempt)
            if wait_s is None and wanted is None:
                said = await _tell_error(session, error, recoverable=error.retryable)
                wanted = (said.retry_count or 1) if said.error_handling == "retry" else 0
            if wait_s is None and wanted and not shown.anything:
                wanted -= 1
                wait_s = policy.pause_s(error, attempt)
            if wait_s is None:
                error.attempts = attempt
                _keep_partial(session, prompt, resolved, shown, turn_id)
                raise
            await anyio.sleep(wait_s)
        else:
            return _Answer(
                mended(completed), shown.message_id, shown.reasoning_id, _ms_since(started), shown.first_token_ms
            )


async def _tell_error(session: Session, error: JumpseatError, *, recoverable: bool) -> ErrorOccurredOutput:
    """Let the hook hear of an error that would end the run, and the user of what it has to say."""
    said = await session.hooks.error_occurred(str(error), recoverable=recoverable)
    if said.user_notification:
        session.emit(events.SessionInfo(info_type="notification", message=said.user_notification))
    return said


class _Shown:
    """What the client has seen of an answer that is still coming."""

    def __init__(self) -> None:
        self.message_id = str(uuid.uuid4())
        self.reasoning_id = str(uuid.uuid4())
        self.anything = False
        self.text: list[str] = []
        self.first_token_ms: int | None = None


_Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta


class _MaskedDeltas:
    """The deltas of one answer without the secrets, those included that come in pieces."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        # By the kind of delta and, where it is one of a call, the call.
        self._streams: dict[tuple[type[_Delta], str], tuple[MaskedStream, _Delta]] = {}

    def feed(self, delta: _Delta) -> _Delta:
        key = (type(delta), delta.id if isinstance(delta, ToolCallDelta) else "")
        stream = self._streams[key][0] if key in self._streams else MaskedStream(self._secrets)
        self._streams[key] = (stream, delta)
        return _with_text(delta, stream.feed(delta.arguments if isinstance(delta, ToolCallDelta) else delta.text))

    def rest(self) -> Iterator[_Delta]:
        for stream, delta in self._streams.values():
            if text := stream.rest():
                yield _with_text(delta, text)


def _with_text(delta: _Delta, text: str) -> _Delta:
    return replace(delta, arguments=text) if isinstance(delta, ToolCallDelta) else replace(delta, text=text)


def _show(session: Session, shown: _Shown, delta: _Delta) -> None:
    match delta:
        case TextDelta():
            if not shown.text:
                session.emit(events.MessageStart(message_id=shown.message_id))
            shown.text.append(delta.text)
            session.emit(events.MessageDelta(message_id=shown.message_id, delta_content=delta.text))
        case ReasoningDelta():
            session.emit(events.ReasoningDelta(reasoning_id=shown.reasoning_id, delta_content=delta.text))
        case ToolCallDelta():
            session.emit(
                events.ToolCallDelta(
                    tool_call_id=delta.id, tool_name=delta.name or None, input_delta=delta.arguments
                )
            )


async def _stream_answer(
    session: Session, resolved: ResolvedModel, request: ModelRequest, shown: _Shown, started: float
) -> Completed:
    deltas = 0
    masked = _MaskedDeltas(session.around.secrets) if session.around.secrets else None
    async with resolved.model.stream(request) as stream:
        async for event in stream:
            if isinstance(event, Completed):
                for rest in masked.rest() if masked else ():
                    _show(session, shown, rest)
                return event
            _show(session, shown, masked.feed(event) if masked else event)
            if not shown.anything:
                shown.anything = True
                shown.first_token_ms = _ms_since(started)
            deltas += 1
            if deltas % DELTAS_PER_BREATH == 0:
                await session.drained()
    raise AssertionError("a model stream must end in Completed or raise")


def _keep_partial(session: Session, prompt: Prompt, resolved: ResolvedModel, shown: _Shown, turn_id: str) -> None:
    """Write down what a client has seen of an answer whose provider failed, so that the model can go on from it."""
    if shown.text:
        session.emit(
            events.AssistantMessage(
                message_id=shown.message_id,
                content="".join(shown.text),
                tool_requests=[],
                model=resolved.wire_name,
                turn_id=turn_id,
                interaction_id=prompt.interaction_id,
                originating_message_id=prompt.id,
            )
        )


def _cost(resolved: ResolvedModel, usage: Usage | None) -> float | None:
    """What the call cost in US dollars: as its provider says, else by the known prices."""
    if usage is None or usage.cost is not None:
        return usage.cost if usage is not None else None
    if usage.nano_aiu:
        return round(usage.nano_aiu / NANO / CREDITS_PER_DOLLAR, 9)
    price = resolved.known.price
    return round(price.of(usage), 9) if price is not None and usage.input_tokens else None


def _publish_answer(
    session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest, answer: _Answer, turn_id: str
) -> events.Event:
    """Write the answer down and say what it cost."""
    completed = answer.completed
    message = completed.message
    model = completed.model or resolved.wire_name
    reasoning = message.reasoning()
    if reasoning:
        session.emit(events.Reasoning(reasoning_id=answer.reasoning_id, content=reasoning))
    usage = completed.usage or Usage()
    output_tokens = usage.output_tokens or tokens.of_answer(message)
    event = session.emit(
        events.AssistantMessage(
            message_id=answer.message_id,
            content=message.text(),
            tool_requests=[_tool_request(session, call) for call in message.tool_uses()],
            model=model,
            turn_id=turn_id,
            interaction_id=prompt.interaction_id,
            output_tokens=output_tokens,
            reasoning_text=reasoning or None,
            citations=citations_of(message, resolved),
            provider_blocks=provider_blocks(message),
            originating_message_id=prompt.id,
        )
    )
    session.emit(
        events.AssistantUsage(
            model=model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens or None,
            cost_usd=_cost(resolved, completed.usage),
            duration=answer.duration_ms,
            time_to_first_token_ms=answer.first_token_ms,
            initiator="user" if turn_id == "0" else "agent",
            finish_reason=completed.stop_reason,
            content_filter_triggered=completed.stop_reason == "content_filter" or None,
            num_tool_calls=len(message.tool_uses()),
            is_byok=resolved.byok,
            copilot_usage=events.CopilotUsage(total_nano_aiu=usage.nano_aiu) if usage.nano_aiu else None,
        )
    )
    system = tokens.of_text(request.system)
    tools = tokens.of_tools(request.tools)
    conversation = sum(tokens.of_message(one) for one in request.messages) + output_tokens
    session.emit(
        events.SessionUsageInfo(
            current_tokens=system + tools + conversation,
            messages_length=len(request.messages) + 2,
            token_limit=resolved.known.context_window or DEFAULT_CONTEXT_WINDOW,
            system_tokens=system,
            conversation_tokens=conversation,
            tool_definitions_tokens=tools,
        )
    )
    return event


def _tool_request(session: Session, call: ToolUseBlock) -> events.ToolRequest:
    arguments = call.arguments if call.arguments is not None else {}
    exact = call.arguments_json if call.arguments_json != canonical_json(arguments) else None
    origin = session.tools.origin(call.name)
    return events.ToolRequest(
        tool_call_id=call.id,
        name=call.name,
        arguments=arguments,
        arguments_json=exact,
        intention_summary=session.tools.intention(call),
        mcp_server_name=origin.server if origin else None,
        mcp_tool_name=origin.tool if origin else None,
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


def _ms_since(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
