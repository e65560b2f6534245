"""A model that calls tools by writing XML, seen from outside a model like any other."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

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
    TextDelta,
    ToolCallDelta,
)
from jumpseat.agent.model_calls.xml_tools.arguments import written_calls
from jumpseat.agent.model_calls.xml_tools.prompt import as_text, instructions
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner
from jumpseat.agent.rewriting import Rewriter, RewritingModel

NAMELESS: Final = "unknown"
"""What a call is named for that does not say which tool it is for."""

_WRITE_AGAIN: Final = (
    "Write the block again: <tools>, in it one <tool name=...> per call, in it one element per parameter,"
    " each closed; put every text with <, > or & into <![CDATA[...]]>."
)
_ALONE: Final = "Not run: one call at a time is allowed, and this one was not the first."
_CUT_OFF: Final = "Not run: the answer was cut off in the middle of this call. Send a shorter one, or several."


class XmlToolModel(RewritingModel):
    """A model that is told of its tools in the system message and calls them in its text."""

    def capabilities(self, model: str) -> Capabilities:
        """An answer that has to have a certain form leaves no room for calls."""
        real = self.inner.capabilities(model)
        return replace(real, structured_output="without_tools") if real.structured_output == "always" else real

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        schemas = {tool.name: tool.parameters for tool in request.tools}
        system = request.system
        if offers_tools(request):
            told = instructions(request.tools, request.tool_choice)
            system = f"{system}\n\n{told}" if system else told
        messages = as_text(request.messages, schemas, vision=request.vision)
        choice = request.tool_choice if request.hosted_tools else None
        return replace(request, system=system, messages=messages, tools=[], tool_choice=choice)

    def rewriter_for(self, request: ModelRequest) -> _WithCalls | None:
        return _WithCalls(request) if offers_tools(request) else None


def offers_tools(request: ModelRequest) -> bool:
    """Whether the model may call any tool of ours."""
    return bool(request.tools) and (request.tool_choice is None or request.tool_choice.mode != "none")


class _WithCalls(Rewriter):
    """The events of an answer, with calls for the blocks in its text."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._tools = {tool.name: tool.parameters for tool in request.tools}
        self._scanner = Scanner(self._tools)
        self._calls = _Calls(request)

    def events_for(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case TextDelta():
                yield from self._shown(self._scanner.feed(event.text), cut_off=False)
            case Completed():
                if self._request.stream:
                    cut_off = event.stop_reason == "max_tokens"
                    yield from self._shown(self._scanner.finish(), cut_off=cut_off)
                yield self._completed(event)
            case _:
                yield event

    def _shown(self, pieces: list[str | Block], *, cut_off: bool) -> Iterator[ModelEvent]:
        text = ""
        for piece in pieces:
            if isinstance(piece, str):
                text += piece
                continue
            if text:
                yield TextDelta(text)
            text = ""
            for call in self._calls.of(piece, cut_off=cut_off):
                yield ToolCallDelta(call.id, call.name, call.arguments_json)
        if text:
            yield TextDelta(text)

    def _completed(self, completed: Completed) -> Completed:
        """The whole answer with its calls, which have the ids under which they were shown.

        Citations go where calls come: the texts that they are of are others then.
        """
        calls, cut_off = self._calls.again(), completed.stop_reason == "max_tokens"
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
        if not "".join(one.text for one in blocks if isinstance(one, TextBlock)).strip():
            blocks = [one for one in blocks if not isinstance(one, TextBlock)]
        reason = "tool_use" if completed.stop_reason in ("end_turn", "stop_sequence") else completed.stop_reason
        return replace(completed, message=AssistantMessage(blocks), stop_reason=reason)


def _add(blocks: list[AssistantBlock], pieces: list[str | Block], calls: _Calls, *, cut_off: bool) -> None:
    for piece in pieces:
        if isinstance(piece, Block):
            blocks += calls.of(piece, cut_off=cut_off)
        elif blocks and isinstance(last := blocks[-1], TextBlock):
            blocks[-1] = TextBlock(last.text + piece)
        elif piece:
            blocks.append(TextBlock(piece))


class _Calls:
    """Makes calls of blocks and counts them; ``ids`` are those that are given out first."""

    def __init__(self, request: ModelRequest, ids: Mapping[int, str] | None = None) -> None:
        self._request = request
        self._ids = dict(ids or {})
        self.count = 0
        choice = request.tool_choice
        self._alone = choice is not None and choice.parallel is False

    def again(self) -> _Calls:
        """The same calls once more."""
        return _Calls(self._request, self._ids)

    def of(self, block: Block, *, cut_off: bool) -> Iterator[ToolUseBlock]:
        """The calls of ``block``; what cannot be run says why."""
        for tool in block.tools:
            for written in written_calls(tool):
                problem = written.problem and f"The call could not be read: {written.problem}. {_WRITE_AGAIN}"
                yield self._call(written.name, written.arguments, problem, tool.source)
        if block.problem is not None:
            if block.cut_off and cut_off:
                problem = _CUT_OFF
            elif block.cut_off:
                problem = f"The call could not be read: {block.problem}. {_WRITE_AGAIN}"
            else:
                problem = f"The block could not be read, and no call in it was run: {block.problem}. {_WRITE_AGAIN}"
            yield self._call(block.name or "", None, problem, block.source)

    def _call(self, name: str, arguments: JsonObject | None, problem: str | None, source: str) -> ToolUseBlock:
        number, self.count = self.count, self.count + 1
        if self._alone and number > 0:
            problem = problem or _ALONE
        call_id = self._ids.setdefault(number, f"call_{uuid.uuid4().hex}")
        text = canonical_json(arguments) if arguments is not None else source
        return ToolUseBlock(call_id, name or NAMELESS, text, arguments, problem=problem)
