"""Decoder for answers of OpenAI's Responses API, whole or streamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from jumpseat.adapters.failures import failure_of_event
from jumpseat.adapters.wire import (
    as_count,
    as_list,
    as_object,
    as_text,
    dump_json,
    nano_aiu,
    parse_arguments,
    parse_object,
)
from jumpseat.adapters.wires.base import AnswerDecoder
from jumpseat.adapters.wires.responses_hosted import SEARCH, hosted_blocks, with_search_results
from jumpseat.agent.blocks import (
    AssistantBlock,
    Citation,
    JsonObject,
    ReasoningBlock,
    TextBlock,
    ToolUseBlock,
)
from jumpseat.agent.model import (
    BlockCompleted,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
    Usage,
)
from jumpseat.errors import ProviderProtocolError

PART_BREAK: Final = "\n\n"
"""The separator between the parts of a reasoning summary, which are paragraphs with headings."""

INCOMPLETE: Final[Mapping[str, StopReason]] = {
    "max_output_tokens": "max_tokens",
    "content_filter": "content_filter",
}

CUSTOM: Final = "custom_tool_call"
CALLS: Final = ("function_call", CUSTOM)

_Key: TypeAlias = int | str


def free_form_tools(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Return the name of the only argument of each tool whose input can be free text, by the name of the tool."""
    return {tool.name: next(iter(tool.parameters["properties"])) for tool in tools if tool.grammar is not None}


def usage_from_wire(response: JsonObject, event: JsonObject) -> Usage | None:
    """Read the ``usage`` of an answer, ``None`` without one; ``event`` is the event that holds the answer."""
    node = as_object(response.get("usage"))
    if not node:
        return None
    inputs = as_object(node.get("input_tokens_details"))
    outputs = as_object(node.get("output_tokens_details"))
    return Usage(
        input_tokens=as_count(node.get("input_tokens")),
        output_tokens=as_count(node.get("output_tokens")),
        cache_read_tokens=as_count(inputs.get("cached_tokens")),
        cache_write_tokens=as_count(inputs.get("cache_write_tokens")),
        reasoning_tokens=as_count(outputs.get("reasoning_tokens")),
        nano_aiu=nano_aiu(event) or nano_aiu(response),
    )


def replayable(item: JsonObject) -> JsonObject:
    """Return an item of an earlier answer in the form to send back; empty if it cannot be sent back.

    Reasoning without its content is only a reference, and the provider has stored nothing to refer to.
    """
    if item.get("type") != "reasoning":
        return {key: value for key, value in item.items() if value is not None}
    if not item.get("encrypted_content") and not item.get("content"):
        return {}
    return {key: value for key, value in item.items() if value is not None and key != "status"}


class _Part(Struct):
    """A content part of a message in progress."""

    pieces: list[str] = field(default_factory=list[str])
    annotations: list[JsonObject] = field(default_factory=list[JsonObject])


class _Item(Struct):
    """An output item in progress. ``wire`` is its raw form, as far as it is known.

    ``pieces`` are the deltas returned so far: the text of reasoning, the arguments of a call. ``inputs`` are those
    of the text of a free-form call, which becomes its only argument; ``closed`` means that the text is complete.
    """

    wire: JsonObject = field(default_factory=dict[str, Any])
    kind: str = ""
    done: bool = False
    pieces: list[str] = field(default_factory=list[str])
    parts: dict[int, _Part] = field(default_factory=dict[int, _Part])
    reasoning_part: tuple[str, int] | None = None
    call_id: str = ""
    name: str = ""
    announced: bool = False
    inputs: list[str] = field(default_factory=list[str])
    closed: bool = False


class ResponsesDecoder(AnswerDecoder):
    """Decodes one answer, whole or streamed; ``provider`` is the signature of its blocks.

    Text missing from the deltas is taken from the closing event of its item, and items without events from the
    whole response at the end. Items of unknown kinds are kept raw and replayed.
    """

    def __init__(self, provider: str, request: ModelRequest) -> None:
        super().__init__(provider, request)
        self._arguments = free_form_tools(request.tools)
        self._items: dict[_Key, _Item] = {}
        self._reasoned = False
        self._refused = False
        self._reason: str | None = None
        self._usage: Usage | None = None
        self._announced = 0

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if not data or data == "[DONE]" or self._completed:
            return []
        chunk = parse_object(data)
        events: list[ModelEvent] = []
        match chunk.get("type") or event:
            case "response.output_text.delta":
                self._add_text(self._item(chunk, "message"), _index(chunk), chunk["delta"], events)
            case "response.function_call_arguments.delta":
                self._add_arguments(self._item(chunk, "function_call"), as_text(chunk["delta"]), events)
            case "response.custom_tool_call_input.delta":
                self._add_input(self._item(chunk, CUSTOM), as_text(chunk["delta"]), events)
            case "response.custom_tool_call_input.done":
                self._add_rest_of_input(self._item(chunk, CUSTOM), chunk, events)
            case "response.reasoning_summary_text.delta":
                self._add_reasoning(chunk, "summary", as_text(chunk["delta"]), events)
            case "response.reasoning_text.delta":
                self._add_reasoning(chunk, "content", as_text(chunk["delta"]), events)
            case "response.refusal.delta":
                self._refused = True
                self._add_text(self._item(chunk, "message"), _index(chunk), chunk["delta"], events)
            case "response.output_item.added":
                self._add_item(_key(chunk), as_object(chunk.get("item")), events)
            case "response.output_item.done":
                self._finish_item(_key(chunk), as_object(chunk.get("item")), events)
            case "response.output_text.annotation.added":
                part = self._item(chunk, "message").parts.setdefault(_index(chunk), _Part())
                part.annotations.append(as_object(chunk.get("annotation")))
            case "response.output_text.done":
                self._add_rest_of_text(
                    self._item(chunk, "message"), _index(chunk), as_text(chunk.get("text")), events
                )
            case "response.function_call_arguments.done":
                self._add_rest_of_arguments(self._item(chunk, "function_call"), chunk.get("arguments"), events)
            case "response.completed" | "response.incomplete":
                response = as_object(chunk.get("response"))
                self._note_head(response)
                self._note_end(response, chunk)
                self._fill_in(as_list(response.get("output")), events)
                events += self._complete()
            case "response.failed" | "response.cancelled" | "error":
                raise failure_of_event(_complaint(chunk))
            case _:
                # Starts and ends of parts, and unknown events.
                if chunk.get("error"):
                    raise failure_of_event(chunk)
                if "response" in chunk:
                    self._note_head(as_object(chunk["response"]))
        return events

    def finish(self) -> list[ModelEvent]:
        if self._completed:
            return []
        raise self._cut_off(self._begun or self._items)

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        if body.get("error") or body.get("status") in ("failed", "cancelled"):
            raise failure_of_event(_complaint({"response": body}) if "output" in body else body)
        if not isinstance(body.get("output"), list):
            raise ProviderProtocolError("expected a list of output items in the provider's answer")
        self._note_head(body)
        self._note_end(body, body)
        self._fill_in(as_list(body.get("output")), [])
        return self._complete()

    # --- the response -------------------------------------------------------------------------------------------

    def _note_end(self, response: JsonObject, event: JsonObject) -> None:
        self._usage = usage_from_wire(response, event)
        self._reason = as_text(as_object(response.get("incomplete_details")).get("reason")) or None

    def _fill_in(self, output: list[Any], events: list[ModelEvent]) -> None:
        """Add the items of the whole response that had no events."""
        numbered = all(isinstance(key, int) for key in self._items)
        for index, value in enumerate(output):
            raw = as_object(value)
            known = self._items.get(index)
            if known is None:
                if numbered:
                    self._finish_item(index, raw, events)
                elif (key := as_text(raw.get("id"))) in self._items and not self._items[key].done:
                    self._finish_item(key, raw, events)
            elif not known.done and known.kind in ("", raw.get("type")):
                self._finish_item(index, raw, events)

    # --- items --------------------------------------------------------------------------------------------------

    def _item(self, chunk: JsonObject, kind: str) -> _Item:
        """Return the item that an event belongs to."""
        key = _key(chunk)
        item = self._items.get(key)
        if item is None:
            # Some servers omit the start of an item; the event gives its kind.
            item = self._items[key] = _Item(kind=kind)
        return item

    def _add_item(self, key: _Key, raw: JsonObject, events: list[ModelEvent]) -> None:
        item = self._items.setdefault(key, _Item())
        item.wire = raw
        item.kind = as_text(raw.get("type")) or item.kind
        if item.kind == "function_call":
            self._start_call(item)
            self._add_arguments(item, as_text(raw.get("arguments")), events)
        elif item.kind == CUSTOM:
            self._start_call(item)
            self._add_input(item, as_text(raw.get("input")), events)

    def _finish_item(self, key: _Key, raw: JsonObject, events: list[ModelEvent]) -> None:
        item = self._items.setdefault(key, _Item())
        item.wire = raw
        item.kind = as_text(raw.get("type")) or item.kind
        item.done = True
        self._finish_parts(item, raw, events)
        if self._announces:
            events += self._announce()

    def _finish_parts(self, item: _Item, raw: JsonObject, events: list[ModelEvent]) -> None:
        match item.kind:
            case "message":
                for index, value in enumerate(as_list(raw.get("content"))):
                    part = as_object(value)
                    if part.get("type") == "refusal":
                        self._refused = True
                    text = as_text(part.get("text")) or as_text(part.get("refusal"))
                    self._add_rest_of_text(item, index, text, events)
                    annotations = [as_object(annotation) for annotation in as_list(part.get("annotations"))]
                    if annotations:
                        item.parts.setdefault(index, _Part()).annotations = annotations
            case "function_call":
                self._start_call(item)
                self._add_rest_of_arguments(item, raw.get("arguments"), events)
            case "custom_tool_call":
                self._start_call(item)
                self._add_rest_of_input(item, raw, events)
            case "reasoning":
                if not item.pieces:
                    source = "summary" if as_list(raw.get("summary")) else "content"
                    for index, value in enumerate(as_list(raw.get(source))):
                        self._append_reasoning(item, (source, index), as_text(as_object(value).get("text")), events)
            case _:
                pass

    def _add_text(self, item: _Item, index: int, text: str, events: list[ModelEvent]) -> None:
        part = item.parts.get(index)
        if part is None:
            part = item.parts[index] = _Part()
        if text:
            part.pieces.append(text)
            events.append(TextDelta(text))

    def _add_rest_of_text(self, item: _Item, index: int, whole: str, events: list[ModelEvent]) -> None:
        part = item.parts.get(index)
        self._add_text(item, index, _rest(part.pieces if part else [], whole), events)

    def _add_reasoning(self, chunk: JsonObject, source: str, text: str, events: list[ModelEvent]) -> None:
        item = self._item(chunk, "reasoning")
        index = as_count(chunk.get("summary_index" if source == "summary" else "content_index"))
        # If a server sends both summary and content, only the first kind counts.
        if item.reasoning_part is None or item.reasoning_part[0] == source:
            self._append_reasoning(item, (source, index), text, events)

    def _append_reasoning(self, item: _Item, part: tuple[str, int], text: str, events: list[ModelEvent]) -> None:
        if not text:
            return
        if item.reasoning_part != part:
            item.reasoning_part = part
            text = PART_BREAK + text if self._reasoned else text
        self._reasoned = True
        item.pieces.append(text)
        events.append(ReasoningDelta(text))

    def _start_call(self, item: _Item) -> None:
        raw = item.wire
        item.name = item.name or as_text(raw.get("name"))
        if not item.call_id:
            given = as_text(raw.get("call_id")) or as_text(raw.get("id"))
            item.call_id = given or self._new_id(self._response_id, len(self._items))

    def _add_arguments(self, item: _Item, text: str, events: list[ModelEvent]) -> None:
        if text:
            item.pieces.append(text)
        if not item.name:
            return
        if not item.announced:
            item.announced = True
            events.append(ToolCallDelta(item.call_id, item.name, "".join(item.pieces)))
        elif text:
            events.append(ToolCallDelta(item.call_id, item.name, text))

    def _add_rest_of_arguments(self, item: _Item, arguments: Any, events: list[ModelEvent]) -> None:
        whole = arguments if isinstance(arguments, str) else dump_json(arguments) if arguments else ""
        self._add_arguments(item, _rest(item.pieces, whole), events)

    def _add_input(self, item: _Item, text: str, events: list[ModelEvent], *, ends: bool = False) -> None:
        """Add text to the only argument of a free-form call, which is JSON like any other argument to the rest."""
        if text:
            item.inputs.append(text)
        if not item.name or item.closed:
            return
        begins = not item.pieces
        text = "".join(item.inputs) if begins else text
        item.closed = ends
        # The text within the JSON of the argument, which is closed at its end.
        piece = dump_json({self._arguments.get(item.name, "input"): text})
        opening = piece.index(":") + 2
        self._add_arguments(item, piece[0 if begins else opening : None if ends else -2], events)

    def _add_rest_of_input(self, item: _Item, raw: JsonObject, events: list[ModelEvent]) -> None:
        """Add the rest of the text of a free-form call, which is complete unless the answer was cut off."""
        rest = _rest(item.inputs, as_text(raw.get("input")))
        self._add_input(item, rest, events, ends=raw.get("status") != "incomplete")

    # --- the end ------------------------------------------------------------------------------------------------

    def _complete(self) -> list[ModelEvent]:
        self._completed = True
        items = self._in_order()
        events: list[ModelEvent] = []
        blocks: list[AssistantBlock] = []
        for place, item in enumerate(items):
            if item.kind in CALLS and not item.announced:
                self._start_call(item)
                events.append(ToolCallDelta(item.call_id, item.name, "".join(item.pieces)))
            blocks += self._blocks_of(item, items[place + 1] if place + 1 < len(items) else None)
        blocks = with_search_results(blocks)
        events.append(self._complete_with(blocks, self._stop_reason(), self._usage))
        return events

    def _blocks_of(self, item: _Item, following: _Item | None) -> list[AssistantBlock]:
        match item.kind:
            case "message":
                return self._texts(item)
            case "reasoning" | "compaction":
                call = following.call_id if following and following.kind in CALLS else None
                data = {"item": item.wire, "before": call} if call else {"item": item.wire}
                replays = bool(replayable(item.wire))
                if not item.pieces and not replays:
                    return []
                return [ReasoningBlock("".join(item.pieces), self._provider, data if replays else None)]
            case "function_call" | "custom_tool_call":
                arguments = "".join(item.pieces)
                return [ToolUseBlock(item.call_id, item.name, arguments, parse_arguments(arguments))]
            case "":
                return []
            case _:
                return hosted_blocks(item.kind, item.wire, self._provider)

    def _announce(self) -> list[ModelEvent]:
        """Announce the blocks of finished items, up to one that depends on later items.

        Those are reasoning, which belongs to the call after it, and searches, whose results are cited later.
        """
        events: list[ModelEvent] = []
        while isinstance(item := self._items.get(self._announced), _Item) and item.done:
            following = self._items.get(self._announced + 1)
            if item.kind == SEARCH or (item.kind in ("reasoning", "compaction") and following is None):
                break
            events += [BlockCompleted(block) for block in self._blocks_of(item, following)]
            self._announced += 1
        return events

    def _in_order(self) -> list[_Item]:
        numbered = {key: item for key, item in self._items.items() if isinstance(key, int)}
        if len(numbered) < len(self._items):
            return list(self._items.values())
        return [item for _, item in sorted(numbered.items())]

    def _stop_reason(self) -> StopReason:
        reason = INCOMPLETE.get(self._reason or "")
        if reason == "max_tokens":
            return reason
        if any(item.kind in CALLS for item in self._items.values()):
            return "tool_use"
        return "refusal" if self._refused else reason or "end_turn"

    def _texts(self, item: _Item) -> list[AssistantBlock]:
        """Return one block per part, because the offsets of citations count from the start of their part."""
        found: list[AssistantBlock] = []
        for _, part in sorted(item.parts.items()):
            text = "".join(part.pieces)
            if text or part.annotations:
                found.append(TextBlock(text, [self._citation(annotation) for annotation in part.annotations]))
        return found

    def _citation(self, raw: JsonObject) -> Citation:
        start, end = raw.get("start_index"), raw.get("end_index")
        return Citation(
            kind=as_text(raw.get("type")),
            url=as_text(raw.get("url")) or None,
            title=as_text(raw.get("title")) or as_text(raw.get("filename")) or None,
            start=start if isinstance(start, int) else None,
            end=end if isinstance(end, int) else None,
            provider=self._provider,
            provider_data=raw,
        )


def _key(chunk: JsonObject) -> _Key:
    """Return the key of an event's item: its index, else its id."""
    index = chunk.get("output_index")
    return (
        index if isinstance(index, int) else as_text(chunk.get("item_id") or as_object(chunk.get("item")).get("id"))
    )


def _index(chunk: JsonObject) -> int:
    return as_count(chunk.get("content_index"))


def _rest(pieces: list[str], whole: str) -> str:
    """Return the rest of ``whole`` after ``pieces``; empty if ``whole`` does not begin with it."""
    before = "".join(pieces)
    return whole[len(before) :] if whole.startswith(before) else ""


def _complaint(chunk: JsonObject) -> JsonObject:
    """Return the chunk of a failed answer, with a message if it gives no reason."""
    response = as_object(chunk.get("response"))
    if not response or response.get("error") or response.get("incomplete_details"):
        return chunk
    return {"message": f"the provider's answer is {response.get('status') or 'failed'}"}
