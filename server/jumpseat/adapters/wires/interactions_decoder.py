"""Decoder for answers of Google's Interactions API, whole or streamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct, field

from jumpseat.adapters.failures import failure_of_event
from jumpseat.adapters.wire import (
    as_count,
    as_list,
    as_object,
    as_text,
    cited_pages,
    dump_json,
    parse_arguments,
    parse_object,
    search_rows,
)
from jumpseat.adapters.wires.base import AnswerDecoder
from jumpseat.adapters.wires.gemini_grounding import byte_to_character
from jumpseat.adapters.wires.generate_content_decoder import CONCATENATED, first_object, usage_of
from jumpseat.agent.blocks import (
    AssistantBlock,
    Citation,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
    ReasoningBlock,
    SearchResult,
    TextBlock,
    ToolUseBlock,
)
from jumpseat.agent.model import (
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jumpseat.errors import ProviderFilterError, ProviderProtocolError

STATUSES: Final[Mapping[str, StopReason]] = {
    "incomplete": "max_tokens",
    "budget_exceeded": "max_tokens",
    "requires_continuation": "max_tokens",
    "requires_action": "tool_use",
}
"""Stop reasons by ``status``, for interactions that ended other than ``completed``."""

_ENDS: Final = ("failed", "cancelled")
_PASSING: Final = (4, 8, 10, 13, 14)
"""Codes of gRPC for temporary failures: deadline, resources, aborted, internal, unavailable."""


def usage_from_wire(usage: Any) -> Usage | None:
    """Read the ``usage`` of an interaction; ``None`` without it."""
    node = as_object(usage)
    if not node:
        return None
    return usage_of(
        prompt=as_count(node.get("total_input_tokens")),
        tool_use=as_count(node.get("total_tool_use_tokens")),
        output=as_count(node.get("total_output_tokens")),
        thoughts=as_count(node.get("total_thought_tokens")),
        cached=as_count(node.get("total_cached_tokens")),
        total=as_count(node.get("total_tokens")),
    )


class _Step(Struct):
    """A step in progress. ``wire`` is its raw form, ``pieces`` are the deltas returned so far."""

    wire: JsonObject
    kind: str
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    full: bool = False
    annotations: list[JsonObject] = field(default_factory=list[JsonObject])


class InteractionDecoder(AnswerDecoder):
    """Decodes one answer, whole or streamed; ``provider`` is the signature of its blocks.

    Steps of unknown kinds are kept raw and replayed.
    """

    def __init__(self, provider: str, request: ModelRequest) -> None:
        super().__init__(provider, request)
        self._steps: dict[int, _Step] = {}
        self._ids: set[str] = set()
        self._status = ""
        self._usage: Any = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if not data or data == "[DONE]" or self._completed:
            return []
        chunk = parse_object(data)
        events: list[ModelEvent] = []
        match chunk.get("event_type") or event:
            case "step.delta":
                self._delta(chunk, events)
            case "step.start":
                self._start(chunk.get("index", 0), as_object(chunk.get("step")), events)
            case "step.stop":
                step = self._steps.get(chunk.get("index", 0))
                if step is not None:
                    self._close(step, events)
            case "interaction.completed":
                self._interaction(as_object(chunk.get("interaction")), events)
                events += self._complete()
            case "error":
                raise failure_of_event(chunk)
            case _:
                # Starts, changes of status, and unknown events.
                if chunk.get("error"):
                    raise failure_of_event(chunk)
                if "interaction" in chunk:
                    self._note_head(as_object(chunk["interaction"]))
                self._status = as_text(chunk.get("status")) or self._status
        return events

    def finish(self) -> list[ModelEvent]:
        if self._completed:
            return []
        if self._status in _ENDS:
            raise failure_of_event({"message": f"the provider's answer is {self._status}"})
        raise self._cut_off(self._begun or self._steps)

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        if body.get("error"):
            raise failure_of_event(body)
        if not isinstance(body.get("steps"), list) and not body.get("status"):
            raise ProviderProtocolError("expected a list of steps in the provider's answer")
        self._interaction(body, [])
        return self._complete()

    # --- the interaction ----------------------------------------------------------------------------------------

    def _interaction(self, interaction: JsonObject, events: list[ModelEvent]) -> None:
        """Take the finished interaction, with its steps if they had no events."""
        self._note_head(interaction)
        self._usage = interaction.get("usage")
        self._status = as_text(interaction.get("status")) or self._status
        if self._status in _ENDS:
            reasons = as_list(interaction.get("errors"))
            reason = reasons[0] if reasons else {"message": f"the provider's answer is {self._status}"}
            raise failure_of_event({"error": reason})
        if not self._steps:
            for index, step in enumerate(as_list(interaction.get("steps"))):
                self._start(index, as_object(step), events)
        for step in self._steps.values():
            self._close(step, events)

    # --- steps --------------------------------------------------------------------------------------------------

    def _start(self, index: int, raw: JsonObject, events: list[ModelEvent]) -> None:
        step = self._steps[index] = _Step(raw, as_text(raw.get("type")))
        match step.kind:
            case "model_output":
                for item in as_list(raw.get("content")):
                    content = as_object(item)
                    self._annotate(step, content)
                    self._add_text(step, as_text(content.get("text")), events)
            case "thought":
                for item in as_list(raw.get("summary")):
                    self._add_reasoning(step, as_text(as_object(item).get("text")), events)
            case "function_call":
                self._start_call(step, raw)
                if step.name:
                    events.append(ToolCallDelta(step.call_id, step.name, ""))
            case _:
                pass

    def _delta(self, chunk: JsonObject, events: list[ModelEvent]) -> None:
        delta = chunk["delta"]
        index = chunk.get("index", 0)
        kind = delta.get("type")
        step = self._steps.get(index)
        if step is None:
            # Some servers omit the start of a step; the delta gives its kind.
            step = self._steps[index] = _Step({}, "thought" if str(kind).startswith("thought") else "model_output")
        match kind:
            case "text" if step.kind == "model_output":
                text = delta["text"]
                if text:
                    step.pieces.append(text)
                    events.append(TextDelta(text))
            case "arguments_delta" if step.kind == "function_call":
                self._add_arguments(step, delta.get("arguments"), events)
            case "thought_summary":
                self._add_reasoning(step, as_text(as_object(delta.get("content")).get("text")), events)
            case "thought_signature":
                step.wire["signature"] = as_text(step.wire.get("signature")) + as_text(delta.get("signature"))
            case "text_annotation_delta":
                self._annotate(step, delta)
            case _ if step.kind in ("model_output", "function_call", "thought"):
                # Images and audio, and deltas that do not belong to their step.
                pass
            case _:
                # A hosted tool sends whole values, in the fields of its step.
                step.wire.update(
                    {key: value for key, value in delta.items() if key != "type" and value is not None}
                )

    def _add_text(self, step: _Step, text: str, events: list[ModelEvent]) -> None:
        if text:
            step.pieces.append(text)
            events.append(TextDelta(text))

    def _add_reasoning(self, step: _Step, text: str, events: list[ModelEvent]) -> None:
        if text:
            step.pieces.append(text)
            events.append(ReasoningDelta(text))

    def _annotate(self, step: _Step, holder: JsonObject) -> None:
        # The offsets of a later text of the same step count from the start of that text.
        before = len("".join(step.pieces).encode("utf-8", "replace")) if "text" in holder else 0
        for item in as_list(holder.get("annotations")):
            raw = dict(as_object(item))
            for key in ("start_index", "end_index"):
                if before and isinstance(raw.get(key), int):
                    raw[key] += before
            step.annotations.append(raw)

    def _start_call(self, step: _Step, raw: JsonObject) -> None:
        step.name = as_text(raw.get("name"))
        step.call_id = as_text(raw.get("id"))
        if not step.call_id or step.call_id in self._ids:
            step.call_id = self._new_id(self._response_id, len(self._steps))
        self._ids.add(step.call_id)

    def _add_arguments(self, step: _Step, arguments: Any, events: list[ModelEvent]) -> None:
        """Add a piece of a call's arguments. Of several concatenated objects, the first counts."""
        text = arguments if isinstance(arguments, str) else dump_json(arguments) if arguments else ""
        if not text or step.full:
            return
        before = step.pieces[-1] if step.pieces else ""
        if "{" in text and CONCATENATED.search(before[-1:] + text):
            written = "".join(step.pieces)
            first = first_object(written + text)
            if first is not None:
                step.full = True
                text = first[len(written) :]
        if text:
            step.pieces.append(text)
            events.append(ToolCallDelta(step.call_id, step.name, text))

    def _close(self, step: _Step, events: list[ModelEvent]) -> None:
        if step.kind == "function_call" and not step.pieces and not step.full:
            # The arguments at the start of a step are a placeholder, unless no others follow.
            step.full = True
            given = step.wire.get("arguments")
            text = given if isinstance(given, str) else dump_json(given) if given is not None else ""
            if text:
                step.pieces.append(text)
                events.append(ToolCallDelta(step.call_id, step.name, text))

    # --- the end ------------------------------------------------------------------------------------------------

    def _complete(self) -> list[ModelEvent]:
        self._completed = True
        steps = [step for _, step in sorted(self._steps.items())]
        blocks: list[AssistantBlock] = []
        for place, step in enumerate(steps):
            following = steps[place + 1] if place + 1 < len(steps) else None
            if (block := _to_block(step, following, self._provider)) is not None:
                blocks.append(block)
        searches = [b for b in blocks if isinstance(b, HostedToolResultBlock) and b.results is not None]
        if searches and not any(search.results for search in searches):
            # The wire has only suggestions in the result: the pages are those that the answer cites.
            searches[-1].results = cited_pages(
                citation for block in blocks if isinstance(block, TextBlock) for citation in block.citations
            )
            searches[-1].text = searches[-1].text or search_rows(searches[-1].results)
        return [self._complete_with(blocks, self._stop_reason(blocks), usage_from_wire(self._usage))]

    def _stop_reason(self, blocks: list[AssistantBlock]) -> StopReason:
        stop = STATUSES.get(self._status, "end_turn")
        called = any(isinstance(block, ToolUseBlock) for block in blocks)
        if stop == "max_tokens":
            return stop
        if called:
            return "tool_use"
        failed = next((step.wire["error"] for step in self._steps.values() if step.wire.get("error")), None)
        if failed is None:
            return "end_turn"
        if not any(isinstance(block, TextBlock) for block in blocks):
            if as_object(failed).get("code") in _PASSING:
                raise failure_of_event({"error": failed})
            text = as_text(as_object(failed).get("message")) or dump_json(failed)
            raise ProviderFilterError(f"the provider blocked the answer: {text}")
        return "content_filter"


def _to_block(step: _Step, following: _Step | None, provider: str) -> AssistantBlock | None:
    """Convert a finished step to neutral form; ``None`` for an empty one."""
    raw, text = step.wire, "".join(step.pieces)
    match step.kind:
        case "model_output":
            if not text:
                return None
            encoded = text.encode("utf-8", "replace")
            return TextBlock(
                text, [_citation(annotation, text, encoded, provider) for annotation in step.annotations]
            )
        case "thought":
            kept: JsonObject | None = None
            if raw.get("signature"):
                # The wire takes a thought back unchanged, or not at all.
                wire: JsonObject = {"type": "thought", "signature": raw["signature"]}
                if text:
                    wire["summary"] = [{"type": "text", "text": text}]
                kept = {"step": wire}
                if following is not None and following.kind == "function_call":
                    kept["before"] = following.call_id
            return ReasoningBlock(text, provider, kept) if text or kept else None
        case "function_call":
            own = {key: raw[key] for key in raw if key not in ("type", "id", "name", "arguments")}
            return ToolUseBlock(
                step.call_id, step.name, text, parse_arguments(text), provider if own else None, own or None
            )
        case "":
            return None
        case _:
            return _hosted(raw, step.kind, provider)


def _hosted(raw: JsonObject, kind: str, provider: str) -> AssistantBlock:
    """Convert a step of a hosted tool."""
    if kind.endswith("_call"):
        name = as_text(raw.get("name")) or kind.removesuffix("_call")
        return HostedToolUseBlock(as_text(raw.get("id")), name, as_object(raw.get("arguments")), provider, raw)
    result = raw.get("result")
    rows: list[str] = []
    for item in as_list(result):
        entry = as_object(item)
        title, url = as_text(entry.get("title")), as_text(entry.get("url"))
        status = as_text(entry.get("status")) or as_text(entry.get("text"))
        if (
            row := f"{title} ({url})"
            if title and url
            else ": ".join(part for part in (url or title, status) if part)
        ):
            rows.append(row)
    text = result if isinstance(result, str) else "\n".join(rows)
    found: list[SearchResult] | None = None
    if "search" in kind and not kind.startswith("file_search"):
        pages = [as_object(item) for item in as_list(result)]
        found = [
            SearchResult(as_text(page.get("title")) or None, as_text(page.get("url")) or None)
            for page in pages
            if page.get("title") or page.get("url")
        ]
    return HostedToolResultBlock(as_text(raw.get("call_id")), text, provider, bool(raw.get("is_error")), raw, found)


def _citation(raw: JsonObject, text: str, encoded: bytes, provider: str) -> Citation:
    """Convert one citation; offsets arrive in bytes, and a missing start is zero."""
    start = byte_to_character(encoded, as_count(raw.get("start_index")))
    end = byte_to_character(encoded, cast("Any", raw.get("end_index")))
    placed = start is not None and end is not None
    return Citation(
        kind=as_text(raw.get("type")) or "url_citation",
        url=as_text(raw.get("url")) or as_text(raw.get("document_uri")) or None,
        title=as_text(raw.get("title")) or as_text(raw.get("file_name")) or as_text(raw.get("name")) or None,
        cited_text=text[start:end] if placed else None,
        start=start if placed else None,
        end=end if placed else None,
        provider=provider,
        provider_data=raw,
    )
