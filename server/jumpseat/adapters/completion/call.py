"""Run one model call outside of a session: the pieces of a streamed answer, then its result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from typing import TypeAlias

from jumpseat.adapters.completion.conversion import WireBlocks
from jumpseat.adapters.completion.request import build_request
from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.blocks import AssistantBlock, ToolUseBlock
from jumpseat.agent.conversation.portability import check_capability
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import (
    BlockCompleted,
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from jumpseat.agent.model_calls.arguments import repair_calls
from jumpseat.agent.model_calls.requests import uses_xml, with_tool_protocol, without_native_tools
from jumpseat.agent.model_calls.structured import with_response_format
from jumpseat.agent.observation import ModelCall, Watch
from jumpseat.errors import ProviderError, ProviderProtocolError, ProviderToolsError
from jumpseat_protocol.blocks import Block
from jumpseat_protocol.complete import CompleteDelta, CompleteParams, CompleteResult, CompleteUsage

Piece: TypeAlias = CompleteDelta | Block | CompleteResult


async def complete(models: Models, params: CompleteParams) -> CompleteResult:
    """Call a model once and return its answer. Nothing is stored, and a failed call is not retried.

    Raises:
        InvalidRequestError: the request cannot be carried out as asked.
        ProviderError: the call failed.
    """
    async with open_answer(models, params) as pieces:
        async for piece in pieces:
            if isinstance(piece, CompleteResult):
                return piece
    raise ProviderProtocolError("the model ended without a response")


@asynccontextmanager
async def open_answer(models: Models, params: CompleteParams) -> AsyncGenerator[AsyncIterator[Piece]]:
    """Call a model once and iterate over its answer; the last piece is the result.

    Without ``params.stream``, the result is the only piece besides the blocks. Leaving the context ends the call.
    A provider that rejects tools gets them as text instead.

    Raises:
        InvalidRequestError: the request cannot be carried out as asked.
        BudgetError: the budget of the day allows no call.
        ProviderError: the call failed; also while iterating.
    """
    resolved, request = await build_request(models, params)
    if models.admit is not None:
        await models.admit(resolved)
    can = resolved.model.capabilities(resolved.wire_name)
    warning = check_capability(request, resolved.known, can, xml_tools=uses_xml(resolved.info))
    warnings = [warning] if warning else []
    watch = models.observers.watch(
        ModelCall(session_id=None, purpose="completion", resolved=resolved, request=request)
    )
    async with AsyncExitStack() as stack:
        stack.enter_context(watch)
        stack.enter_context(_explained(resolved))
        try:
            events = await stack.enter_async_context(_ready(resolved, request).model.stream(request))
        except ProviderToolsError as error:
            other = without_native_tools(resolved) if request.tools else None
            if other is None:
                raise
            events = await stack.enter_async_context(_ready(other, request).model.stream(request))
            models.learn(resolved, tools=False)
            warnings.append(f"{resolved.info.id} rejects tools ({error}). It called them as XML in its text.")
        pieces = await stack.enter_async_context(aclosing(_pieces(events, watch, warnings)))
        yield pieces


@contextmanager
def _explained(resolved: ResolvedModel) -> Generator[None]:
    """Add an explanation to a failure of the model."""
    try:
        yield
    except ProviderError as error:
        resolved.explain_failure(error)
        raise


def _ready(resolved: ResolvedModel, request: ModelRequest) -> ResolvedModel:
    """Wrap a model that lacks a feature of ``request``."""
    return with_response_format(with_tool_protocol(resolved), request)


async def _pieces(
    events: AsyncIterator[ModelEvent], watch: Watch[ModelCall], warnings: list[str]
) -> AsyncGenerator[Piece]:
    answer, record = _Answer(), watch.record
    async for event in events:
        if record.first_ms is None and record.request.stream:
            record.first_ms = watch.since_start_ms()
        match event:
            case TextDelta():
                yield CompleteDelta("text_delta", text=event.text)
            case ReasoningDelta():
                yield CompleteDelta("reasoning_delta", text=event.text)
            case ToolCallDelta():
                for delta in answer.call_deltas(event):
                    yield delta
            case BlockCompleted():
                if (block := answer.announced(event.block)) is not None:
                    yield block
            case Completed():
                completed = repair_calls(event, record.request)
                for block in answer.remaining(completed):
                    yield block
                record.completed = completed
                yield _result(completed, answer.blocks, record.resolved, warnings)
                return
    raise ProviderProtocolError("the model ended without a response")


class _Answer:
    """The part of an answer that has arrived: the calls that have begun, and the blocks passed on."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._wire = WireBlocks()
        self._calls: set[str] = set()
        self._announces = True

    def call_deltas(self, delta: ToolCallDelta) -> list[CompleteDelta]:
        """Return the deltas for a piece of a call; the first one announces the call."""
        deltas: list[CompleteDelta] = []
        if delta.id not in self._calls:
            self._calls.add(delta.id)
            deltas.append(CompleteDelta("tool_call_start", tool_call_id=delta.id, tool_call_name=delta.name))
        if delta.arguments:
            deltas.append(
                CompleteDelta("input_json_delta", tool_call_id=delta.id, input_json_delta=delta.arguments)
            )
        return deltas

    def announced(self, block: AssistantBlock) -> Block | None:
        """Return a block that is finished before the answer is; ``None`` if it may still be repaired."""
        if isinstance(block, ToolUseBlock) and block.arguments is None:
            self._announces = False
        return self._add(block) if self._announces else None

    def remaining(self, completed: Completed) -> list[Block]:
        """Return the blocks of the whole answer that were not announced."""
        return [self._add(block) for block in completed.message.blocks[len(self.blocks) :]]

    def _add(self, block: AssistantBlock) -> Block:
        converted = self._wire.convert(block)
        self.blocks.append(converted)
        return converted


def _result(
    completed: Completed, blocks: list[Block], resolved: ResolvedModel, warnings: list[str]
) -> CompleteResult:
    usage = completed.usage
    return CompleteResult(
        text=completed.message.text(),
        blocks=blocks,
        model=completed.model or resolved.wire_name,
        provider=resolved.model.signs_as,
        stop_reason=completed.stop_reason,
        usage=CompleteUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        )
        if usage
        else None,
        cost_usd=resolved.cost_of(usage),
        response_id=completed.response_id,
        warnings=warnings,
    )
