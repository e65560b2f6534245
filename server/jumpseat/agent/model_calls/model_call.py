"""One call of the model: what it streams is shown as it comes, and it is called again where that may help."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

import anyio

from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest, ReasoningDelta, TextDelta, ToolCallDelta
from jumpseat.agent.model_calls.arguments import mended
from jumpseat.agent.model_calls.auto_mode import SwitchToAutoError, another_may_do, auto_mode_for
from jumpseat.agent.model_calls.structured import able_to_answer
from jumpseat.agent.model_calls.tool_protocol import able_to_call, without_native_tools
from jumpseat.agent.secrets import MaskedStream, Secrets
from jumpseat.agent.session.queue import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import JumpseatError, ProviderError, ProviderToolsError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import ErrorOccurredOutput

A = TypeVar("A")

DELTAS_PER_BREATH: Final = 64
"""How many deltas may pass before slow clients are waited for."""


@dataclass(slots=True)
class Answer:
    """An answer with the ids its deltas went out under, and its timing in milliseconds."""

    completed: Completed
    message_id: str
    reasoning_id: str
    duration_ms: int
    first_token_ms: int | None


async def ask_model(
    session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest, turn_id: str
) -> Answer:
    """The model's answer; a provider that refuses its tools is asked again without, and remembered.

    Raises:
        SwitchToAutoError: the user wants another model asked instead.
        ProviderError: there is no answer.
    """
    return await _able(
        session, resolved, request, lambda able: _call_model(session, prompt, able, request, turn_id)
    )


async def ask_quietly(session: Session, resolved: ResolvedModel, request: ModelRequest) -> Completed:
    """The same for a call that is none of a turn: nothing of its answer is shown, no hook hears of it.

    Raises:
        ProviderError: there is no answer.
    """
    return await _able(session, resolved, request, lambda able: _call_quietly(session, able, request))


async def _able(
    session: Session, resolved: ResolvedModel, request: ModelRequest, call: Callable[[ResolvedModel], Awaitable[A]]
) -> A:
    """What ``call`` gives with a model that is able to do what ``request`` asks for."""
    try:
        return await call(able_to_answer(able_to_call(resolved), request))
    except ProviderToolsError as error:
        other = without_native_tools(resolved) if request.tools else None
        if other is None:
            raise
        text = f"{resolved.info.id} cannot call tools ({error}). From now on it calls them as XML in its text."
        session.emit(events.SessionWarning(warning_type="tool_protocol", message=text))
    answer = await call(able_to_answer(able_to_call(other), request))
    session.services.models.refuses_tools(resolved)
    return answer


async def _call_quietly(session: Session, resolved: ResolvedModel, request: ModelRequest) -> Completed:
    policy = session.services.retry
    attempt = 0
    while True:
        attempt += 1
        started = time.monotonic()
        try:
            async with resolved.model.stream(request) as stream:
                async for event in stream:
                    if isinstance(event, Completed):
                        return event
        except ProviderError as error:
            _tell_failure(session, resolved, error, started)
            wait_s = policy.wait_s(error, attempt)
            if wait_s is None:
                raise
        else:
            raise AssertionError("a model stream must end in Completed or raise")
        await anyio.sleep(wait_s)


def _tell_failure(session: Session, resolved: ResolvedModel, error: ProviderError, started: float) -> None:
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


async def _call_model(
    session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest, turn_id: str
) -> Answer:
    """Call the model, again where that may help. :class:`SwitchToAutoError` asks for another one.

    An answer of which something was shown already is not started again: its deltas cannot be taken back.
    """
    policy = session.services.retry
    attempt = 0
    # Attempts that the errorOccurred hook wants beyond those of the policy; it is asked once for a call.
    wanted: int | None = None
    # Whether the user has been asked for another model; once for a call.
    asked = False
    while True:
        attempt += 1
        started = time.monotonic()
        shown = _Shown()
        try:
            completed = await _stream_answer(session, resolved, request, shown, started)
        except ProviderError as error:
            _tell_failure(session, resolved, error, started)
            if isinstance(error, ProviderToolsError) and request.tools and without_native_tools(resolved):
                raise
            if another_may_do(error) and not shown.anything and not asked:
                asked = True
                if (auto := await auto_mode_for(session, resolved, error)) is not None:
                    raise SwitchToAutoError(auto) from None
            wait_s = None if shown.anything or wanted is not None else policy.wait_s(error, attempt)
            if wait_s is None and wanted is None:
                said = await tell_error(session, error, recoverable=error.retryable)
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
            return Answer(
                mended(completed), shown.message_id, shown.reasoning_id, _ms_since(started), shown.first_token_ms
            )


async def tell_error(session: Session, error: JumpseatError, *, recoverable: bool) -> ErrorOccurredOutput:
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

    def flush(self) -> Iterator[_Delta]:
        for stream, delta in self._streams.values():
            if text := stream.flush():
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
    masked = _MaskedDeltas(session.services.secrets) if session.services.secrets else None
    async with resolved.model.stream(request) as stream:
        async for event in stream:
            if isinstance(event, Completed):
                for rest in masked.flush() if masked else ():
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


def _ms_since(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
