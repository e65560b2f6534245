"""The scripted model: fixed answers from a file instead of the network, by :mod:`jumpseat_testkit.model`.

It drives the demo and the tests, and lets users try their own tools and extensions offline.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jumpseat.adapters.failures import provider_error
from jumpseat.adapters.wire import parse_arguments
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import (
    Capabilities,
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jumpseat.errors import ConfigError, ProviderError, ProviderRequestError, ProviderTransportError
from jumpseat_protocol.prompt_marks import PROMPT_MARK as PROMPT_MARK
from jumpseat_testkit.model.calls import (
    Answer,
    CallPiece,
    ModelCall,
    ModelFailureError,
    Piece,
    ReasoningPiece,
    Said,
    TextPiece,
)
from jumpseat_testkit.model.script import Script as Script
from jumpseat_testkit.model.script import load_model_script
from jumpseat_testkit.model.scripted import ScriptedAnswers
from jumpseat_testkit.patterns import ScriptError


def load_script(path: Path | str) -> Script:
    """Read a script from a YAML or JSON file.

    Raises:
        ConfigError: the file cannot be read or is not a valid script; the text names the file and the field.
    """
    try:
        return load_model_script(path)
    except ScriptError as error:
        raise ConfigError(str(error)) from None


class ScriptedModel:
    """A :class:`~jumpseat.agent.model.Model` that follows a script. Sessions may share an instance."""

    def __init__(self, script: Script) -> None:
        self._answers = ScriptedAnswers(script)

    @property
    def adapter_name(self) -> str:
        return "scripted"

    @property
    def signs_as(self) -> str:
        return "scripted"

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """Stream the next turn; see :meth:`jumpseat.agent.model.Model.stream`."""
        try:
            async with self._answers.stream(_as_call(request)) as pieces:
                yield _Events(pieces)
        except ModelFailureError as failure:
            raise _as_error(failure) from None


class _Events:
    """The events of pieces. An asynchronous generator would be closed later, in a task of its own."""

    def __init__(self, pieces: AsyncIterator[Piece]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> ModelEvent:
        return _as_event(await anext(self._pieces))


def _as_call(request: ModelRequest) -> ModelCall:
    return ModelCall(
        request.model,
        request.system,
        [_as_said(message) for message in request.messages],
        [tool.name for tool in request.tools],
        request.stream,
        (request.agent.id if request.agent else request.session_id) or "",
    )


def _as_said(message: Message) -> Said:
    match message:
        case UserMessage():
            return Said("user", "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock)))
        case ToolMessage():
            return Said("tool", message.results[-1].text if message.results else "")
        case AssistantMessage():
            return Said("assistant", message.text())


def _as_event(piece: Piece) -> ModelEvent:
    match piece:
        case TextPiece():
            return TextDelta(piece.text)
        case ReasoningPiece():
            return ReasoningDelta(piece.text)
        case CallPiece():
            return ToolCallDelta(piece.id, piece.name, piece.arguments)
        case Answer():
            return _as_completed(piece)


def _as_completed(answer: Answer) -> Completed:
    blocks: list[AssistantBlock] = [
        *([ReasoningBlock(answer.reasoning, "scripted")] if answer.reasoning else []),
        *([TextBlock(answer.text)] if answer.text else []),
        *(
            ToolUseBlock(call.id, call.name, call.arguments, parse_arguments(call.arguments))
            for call in answer.calls
        ),
    ]
    counts = answer.usage
    usage = counts and Usage(counts.input, counts.output, counts.cache_read, counts.cache_write, counts.reasoning)
    return Completed(AssistantMessage(blocks), answer.stop_reason, usage)


def _as_error(failure: ModelFailureError) -> ProviderError:
    if not failure.by_script:
        return ProviderRequestError(str(failure), code=failure.code)
    if failure.status is None:
        return ProviderTransportError(str(failure))
    return provider_error(
        str(failure), status=failure.status, code=failure.code, retry_after_s=failure.retry_after_s
    )
