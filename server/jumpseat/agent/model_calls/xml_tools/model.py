"""A model that calls tools by writing XML, with the interface of any other model."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    JsonObject,
    TextBlock,
    ToolUseBlock,
)
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import (
    Capabilities,
    Completed,
    ModelEvent,
    ModelRequest,
    Rewriter,
    RewritingModel,
    TextDelta,
    ToolCallDelta,
)
from jumpseat.agent.model_calls.xml_tools.arguments import read_calls
from jumpseat.agent.model_calls.xml_tools.prompt import as_text, instructions
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner

NAMELESS: Final = "unknown"
"""The tool name of a call that does not name its tool."""

_WRITE_AGAIN: Final = (
    "Write the block again: <tools>, in it one <tool name=...> per call, in it one element per parameter,"
    " each closed; put every text with <, > or & into <![CDATA[...]]>."
)
_ALONE: Final = "Not run: only one call at a time is allowed, and this was not the first."
_CUT_OFF: Final = "Not run: the answer was cut off in this call. Send a shorter call, or several."


class XmlToolModel(RewritingModel):
    """A model that gets its tools in the system message and calls them in its text."""

    def capabilities(self, model: str) -> Capabilities:
        """Structured output excludes calls, which are text as well."""
        real = self.inner.capabilities(model)
        return replace(real, structured_output="without_tools") if real.structured_output == "always" else real

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        schemas = {tool.name: tool.parameters for tool in request.tools}
        system = request.system
        if offers_tools(request):
            description = instructions(request.tools, request.tool_choice)
            system = f"{system}\n\n{description}" if system else description
        messages = as_text(request.messages, schemas, vision=request.vision)
        choice = request.tool_choice if request.hosted_tools else None
        return replace(request, system=system, messages=messages, tools=[], tool_choice=choice, written=None)

    def rewriter_for(self, request: ModelRequest) -> _WithCalls | None:
        return _WithCalls(request) if offers_tools(request) else None


def offers_tools(request: ModelRequest) -> bool:
    """Return whether the model may call any of our tools."""
    return bool(request.tools) and (request.tool_choice is None or request.tool_choice.mode != "none")


class _WithCalls(Rewriter):
    """Converts the blocks in the text of an answer to tool calls."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._tools = {tool.name: tool.parameters for tool in request.tools}
        self._scanner = Scanner(self._tools)
        self._calls = _Calls(request)

    def events_for(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case TextDelta():
                yield from self._deltas(self._scanner.feed(event.text), cut_off=False)
            case Completed():
                if self._request.stream:
                    cut_off = event.stop_reason == "max_tokens"
                    yield from self._deltas(self._scanner.finish(), cut_off=cut_off)
                yield self._completed(event)
            case _:
                yield event

    def _deltas(self, pieces: list[str | Block], *, cut_off: bool) -> Iterator[ModelEvent]:
        text = ""
        for piece in pieces:
            if isinstance(piece, str):
                text += piece
                continue
            if text:
                yield TextDelta(text)
            text = ""
            for call in self._calls.of_block(piece, cut_off=cut_off):
                yield ToolCallDelta(call.id, call.name, call.arguments_json)
        if text:
            yield TextDelta(text)

    def _completed(self, completed: Completed) -> Completed:
        """Return the whole answer with its calls, which keep the ids of their deltas.

        Citations are dropped if there are calls, since their texts change.
        """
        calls, cut_off = self._calls.with_same_ids(), completed.stop_reason == "max_tokens"
        scanner = Scanner(self._tools)
        blocks: list[AssistantBlock] = []
        for block in completed.message.blocks:
            if isinstance(block, TextBlock):
                _add(blocks, scanner.feed(block.text), calls, cut_off=False)
            else:
                blocks.append(block)
        _add(blocks, scanner.finish(), calls, cut_off=cut_off)
        if not calls.count:
            return completed
        if not "".join(block.text for block in blocks if isinstance(block, TextBlock)).strip():
            blocks = [block for block in blocks if not isinstance(block, TextBlock)]
        reason = "tool_use" if completed.stop_reason in ("end_turn", "stop_sequence") else completed.stop_reason
        return replace(completed, message=AssistantMessage(blocks), stop_reason=reason)


def _add(blocks: list[AssistantBlock], pieces: list[str | Block], calls: _Calls, *, cut_off: bool) -> None:
    for is_text, group in groupby(pieces, key=lambda piece: isinstance(piece, str)):
        if not is_text:
            found = (piece for piece in group if isinstance(piece, Block))
            blocks += (call for block in found for call in calls.of_block(block, cut_off=cut_off))
        # At once: there may be a piece for each character.
        elif text := "".join(piece for piece in group if isinstance(piece, str)):
            if blocks and isinstance(last := blocks[-1], TextBlock):
                blocks[-1] = TextBlock(last.text + text)
            else:
                blocks.append(TextBlock(text))


class _Calls:
    """Converts blocks to calls and counts them; ``ids`` are the ids of calls by their number."""

    def __init__(self, request: ModelRequest, ids: Mapping[int, str] | None = None) -> None:
        self._request = request
        self._ids = dict(ids or {})
        self.count = 0
        choice = request.tool_choice
        self._alone = choice is not None and choice.parallel is False

    def with_same_ids(self) -> _Calls:
        """Return a converter that assigns the same ids again."""
        return _Calls(self._request, self._ids)

    def of_block(self, block: Block, *, cut_off: bool) -> Iterator[ToolUseBlock]:
        """Return the calls in ``block``; those that cannot be run have a ``problem``."""
        for tool in block.tools:
            for written in read_calls(tool):
                problem = written.problem and f"The call could not be parsed: {written.problem}. {_WRITE_AGAIN}"
                yield self._call(written.name, written.arguments, problem, tool.source)
        if block.problem is not None:
            if block.cut_off and cut_off:
                problem = _CUT_OFF
            elif block.cut_off:
                problem = f"The call could not be parsed: {block.problem}. {_WRITE_AGAIN}"
            else:
                problem = (
                    f"The block could not be parsed, and none of its calls was run: {block.problem}. {_WRITE_AGAIN}"
                )
            yield self._call(block.name or "", None, problem, block.source)

    def _call(self, name: str, arguments: JsonObject | None, problem: str | None, source: str) -> ToolUseBlock:
        number, self.count = self.count, self.count + 1
        if self._alone and number > 0:
            problem = problem or _ALONE
        call_id = self._ids.setdefault(number, f"call_{uuid.uuid4().hex}")
        text = canonical_json(arguments) if arguments is not None else source
        return ToolUseBlock(call_id, name or NAMELESS, text, arguments, problem=problem)
