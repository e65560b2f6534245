"""Decoder for answers of chat completions, whole or streamed, from OpenAI and compatible servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from jumpseat.adapters.failures import failure_of_event, provider_error
from jumpseat.adapters.wire import (
    as_count,
    as_list,
    as_object,
    as_text,
    cited_pages,
    dump_json,
    nano_aiu,
    parse_arguments,
    parse_object,
    search_rows,
)
from jumpseat.adapters.wires.base import AnswerDecoder, calls_of, choices_of
from jumpseat.agent.blocks import (
    AssistantBlock,
    Citation,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
    ReasoningBlock,
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
from jumpseat.errors import ProviderProtocolError

DONE: Final = "[DONE]"

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""Fields with readable reasoning; some servers fill two with the same text, so the first non-empty one counts."""

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "safety": "content_filter",
}
"""``finish_reason`` to our stop reason; any other value ends the turn."""

_JOINED_IN_DETAILS: Final = frozenset({"text", "summary", "data"})


def usage_from_wire(answer: JsonObject) -> Usage | None:
    """Read the ``usage`` of an answer or a chunk; ``None`` without one.

    Besides OpenAI's names this knows DeepSeek's ``prompt_cache_hit_tokens``, Kimi's ``cached_tokens``, OpenRouter's
    ``cost`` and ``cache_creation_input_tokens`` of gateways before Anthropic.
    """
    node = as_object(answer.get("usage"))
    if not node:
        return None
    prompt = as_object(node.get("prompt_tokens_details"))
    completion = as_object(node.get("completion_tokens_details"))
    cost = node.get("cost")
    prompt_tokens, completion_tokens = as_count(node.get("prompt_tokens")), as_count(node.get("completion_tokens"))
    reasoning = as_count(completion.get("reasoning_tokens")) or as_count(node.get("reasoning_tokens"))
    if reasoning and as_count(node.get("total_tokens")) == prompt_tokens + completion_tokens + reasoning:
        # xAI counts reasoning outside of the answer's tokens, all others inside.
        completion_tokens += reasoning
    return Usage(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        cache_read_tokens=as_count(prompt.get("cached_tokens"))
        or as_count(node.get("prompt_cache_hit_tokens"))
        or as_count(node.get("cached_tokens")),
        cache_write_tokens=as_count(prompt.get("cache_write_tokens"))
        or as_count(node.get("cache_creation_input_tokens")),
        nano_aiu=nano_aiu(answer),
        reasoning_tokens=reasoning,
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
    )


class _Call(Struct):
    """A tool call in progress. Its deltas begin when its name is known."""

    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    unsent: list[str] = field(default_factory=list[str])
    extra: JsonObject = field(default_factory=dict[str, Any])
    announced: bool = False

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class _Detail(Struct):
    """A piece of structured reasoning in progress; ``joined`` has the strings that arrive in pieces."""

    fields: JsonObject
    kind: Any
    joined: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def extend(self, details: Any) -> bool:
        """Append ``details`` if they are a single piece that differs from the last only in its text; most do."""
        if details.__class__ is not list or len(details) != 1:
            return False
        piece = details[0]
        text = piece.get("text") if piece.__class__ is dict else None
        if not isinstance(text, str):
            return False
        piece["text"] = ""
        if piece == self.fields:
            self.joined["text"].append(text)
            return True
        piece["text"] = text
        return False

    def whole(self) -> JsonObject:
        return {**self.fields, **{key: "".join(pieces) for key, pieces in self.joined.items()}}


_THOUGHT_BEGINS: Final = "<thought>"
_THOUGHT_ENDS: Final = "</thought>"


class ChatDecoder(AnswerDecoder):
    """Decodes one answer, whole or streamed; ``provider`` is the signature of its blocks.

    All choices of an answer form one message: Copilot, for one, puts text in one choice and each call in another.
    Tolerated: missing ids and indexes, arguments as an object, content as a list of parts, names repeated or empty
    in later pieces, missing usage or usage in a chunk without choices, the legacy ``function_call``.
    """

    def __init__(self, provider: str, request: ModelRequest) -> None:
        super().__init__(provider, request)
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_field: str | None = None
        self._reasoning_fields = REASONING_FIELDS
        self._details: list[_Detail] = []
        self._detail_at: dict[int, _Detail] = {}
        self._last_detail: _Detail | None = None
        self._reasoning_data: JsonObject = {}
        self._opaque: str | None = None
        self._refusals: list[str] = []
        self._citations: list[Citation] = []
        self._calls: list[_Call] = []
        self._by_index: dict[tuple[int, int], _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._finish_reasons: list[str] = []
        self._usage: Usage | None = None
        self._created: Any = None
        self._saw_choices = False
        self._in_thought = False

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if data == DONE or self._completed:
            return self._complete() if self._saw_choices and not self._completed else []
        if not data:
            return []
        chunk = parse_object(data)
        if chunk.get("error") or event == "error" or chunk.get("object") == "error":
            raise failure_of_event(chunk)
        events: list[ModelEvent] = []
        choices = chunk.get("choices")
        if choices:
            self._saw_choices = True
            for position, choice in enumerate(choices_of(choices)):
                # Some gateways end with the whole message beside an empty delta, which would repeat the text.
                delta = choice["delta"] if "delta" in choice else choice.get("message")
                if delta:
                    self._take(choice.get("index", position) or 0, delta, events)
                reason = choice.get("finish_reason")
                if reason:
                    self._finish(reason, choice)
        if self._response_id is None:
            self._note_head(chunk)
        if chunk.get("usage"):
            self._usage = usage_from_wire(chunk)
        return events

    def finish(self) -> list[ModelEvent]:
        if self._completed:
            return []
        if not self._finish_reasons:
            raise self._cut_off(self._saw_choices)
        return self._complete()

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        if body.get("error") or body.get("object") == "error":
            raise failure_of_event(body)
        choices = choices_of(body.get("choices") or [])
        if not choices:
            raise ProviderProtocolError("expected at least one choice in the provider's answer")
        self._note_head(body)
        self._usage = usage_from_wire(body)
        for position, item in enumerate(choices):
            choice = as_object(item)
            self._take(position, as_object(choice.get("message") or choice.get("delta")), [])
            reason = choice.get("finish_reason")
            if reason:
                self._finish(reason, choice)
        return self._complete()

    def _note_head(self, head: JsonObject) -> None:
        super()._note_head(head)
        self._created = head.get("created", self._created)

    def _take(self, choice: int, delta: JsonObject, events: list[ModelEvent]) -> None:
        """Add one delta, or one whole message."""
        content = delta.get("content")
        if content:
            if self._in_thought or "extra_content" in delta:
                self._take_after_thought(delta, content, events)
            elif isinstance(content, str):
                self._text.append(content)
                events.append(TextDelta(content))
            else:
                self._take_parts(content, events)
        if len(delta) == 1 and content is not None:
            # The fast path: nearly every delta of a long answer.
            return
        reasoned = False
        for name in self._reasoning_fields:
            text = delta.get(name)
            if text and isinstance(text, str):
                if name != self._reasoning_field:
                    self._reasoning_field = name
                    # The field that had reasoning before is tried first.
                    self._reasoning_fields = (name, *(other for other in REASONING_FIELDS if other != name))
                self._reasoning.append(text)
                events.append(ReasoningDelta(text))
                reasoned = True
                break
        details = delta.get("reasoning_details")
        if details:
            last = self._last_detail
            if not (reasoned and last is not None and last.extend(details)):
                self._take_details(as_list(details), events, already=reasoned)
            if reasoned and len(delta) == 3 + ("role" in delta) and content is not None:
                # The fast path: nearly every delta of reasoning from OpenRouter.
                return
        opaque = delta.get("reasoning_opaque")
        if opaque and isinstance(opaque, str):
            self._opaque = opaque
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refusals.append(refusal)
            self._text.append(refusal)
            events.append(TextDelta(refusal))
        annotations = delta.get("annotations")
        if annotations:
            for annotation in as_list(annotations):
                self._take_annotation(as_object(annotation))
        calls = delta.get("tool_calls")
        if calls:
            for item in calls_of(calls):
                self._take_call(choice, as_object(item), events)
        legacy = delta.get("function_call")
        if legacy:
            self._take_call(choice, {"index": 0, "function": legacy}, events)

    def _take_after_thought(self, delta: JsonObject, content: Any, events: list[ModelEvent]) -> None:
        """Add content with Gemini's thoughts: between tags, and marked in ``extra_content``."""
        if not isinstance(content, str):
            self._take_parts(content, events)
            return
        thought, rest = "", content.removeprefix(_THOUGHT_ENDS) if self._in_thought else content
        if as_object(as_object(delta.get("extra_content")).get("google")).get("thought") is True:
            thought, closed, rest = content.removeprefix(_THOUGHT_BEGINS).partition(_THOUGHT_ENDS)
            self._in_thought = not closed
        else:
            self._in_thought = False
        if thought:
            self._add_reasoning(thought, events)
        if rest:
            self._text.append(rest)
            events.append(TextDelta(rest))

    def _add_reasoning(self, text: str, events: list[ModelEvent]) -> None:
        self._reasoning.append(text)
        events.append(ReasoningDelta(text))

    def _take_parts(self, parts: Any, events: list[ModelEvent]) -> None:
        """Add content in the form of a list of parts."""
        for item in as_list(parts):
            part = as_object(item)
            text = item if isinstance(item, str) else as_text(part.get("text"))
            thinking = part.get("thinking")
            if thinking:
                inner = as_list(thinking) or [{"text": thinking}]
                self._add_reasoning("".join(as_text(as_object(piece).get("text")) for piece in inner), events)
            elif text:
                self._text.append(text)
                events.append(TextDelta(text))

    def _take_details(self, details: list[Any], events: list[ModelEvent], *, already: bool) -> None:
        """Add OpenRouter's structured reasoning, whose pieces are joined by index, and keep it for replay."""
        for item in details:
            piece = as_object(item)
            if not already:
                text = as_text(piece.get("text")) or as_text(piece.get("summary"))
                if text:
                    self._add_reasoning(text, events)
            index = piece.get("index")
            detail = None if index is None else self._detail_at.get(index)
            if detail is None or piece.get("type", detail.kind) != detail.kind:
                detail = _Detail({}, piece.get("type"))
                self._details.append(detail)
                if index is not None:
                    self._detail_at[index] = detail
            fields, joined = detail.fields, detail.joined
            for key, value in piece.items():
                if key in joined and isinstance(value, str):
                    joined[key].append(value)
                elif key in _JOINED_IN_DETAILS and isinstance(value, str):
                    joined[key] = [value]
                    fields[key] = ""
                elif value is not None or key not in fields:
                    fields[key] = value
            self._last_detail = detail if index is not None and "text" in joined else None

    def _take_annotation(self, annotation: JsonObject) -> None:
        kind = as_text(annotation.get("type")) or "url_citation"
        source = as_object(annotation.get(kind)) or annotation
        start, end = source.get("start_index"), source.get("end_index")
        self._citations.append(
            Citation(
                kind=kind,
                url=as_text(source.get("url")) or None,
                title=as_text(source.get("title")) or None,
                cited_text=as_text(source.get("content")) or None,
                start=start if isinstance(start, int) else None,
                end=end if isinstance(end, int) else None,
                provider=self._provider,
                provider_data=annotation,
            )
        )

    def _take_call(self, choice: int, piece: JsonObject, events: list[ModelEvent]) -> None:
        function = as_object(piece.get("function")) or piece
        name = as_text(function.get("name"))
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = dump_json(arguments)
        call = self._call_of(choice, piece, name, arguments)
        if name and not call.name:
            call.name = name
        if arguments:
            call.pieces.append(arguments)
            call.unsent.append(arguments)
        if "extra_content" in piece:
            call.extra["extra_content"] = piece["extra_content"]
        if call.name and (call.unsent or not call.announced):
            events.append(ToolCallDelta(call.id, call.name, "".join(call.unsent)))
            call.unsent.clear()
            call.announced = True

    def _call_of(self, choice: int, piece: JsonObject, name: str, arguments: str) -> _Call:
        """Return the call that a piece belongs to; create it if the piece begins one."""
        call_id = as_text(piece.get("id"))
        index = piece.get("index")
        known: _Call | None
        if isinstance(index, int):
            known = self._by_index.get((choice, index))
        else:
            last = self._calls[-1] if self._calls and not call_id else None
            known = self._by_id.get(call_id, last)
        if known is not None:
            if call_id and known.announced and call_id != known.id and name:
                # Some servers give every parallel call the index 0.
                known = None
            elif not call_id and name and known.name and arguments and parse_arguments(known.arguments) is not None:
                # Without an id, a name after a complete call begins the next call.
                known = None if known.arguments.strip() else known
        if known is None:
            known = _Call(call_id or self._new_id(self._response_id, self._created, len(self._calls)))
            self._calls.append(known)
        elif call_id and not known.announced:
            known.id = call_id
        if call_id:
            self._by_id[call_id] = known
        if isinstance(index, int):
            self._by_index[choice, index] = known
        return known

    def _finish(self, reason: Any, choice: JsonObject) -> None:
        if reason == "error":
            raise failure_of_event(
                choice if choice.get("error") else {"message": "the provider stopped in the middle of the answer"}
            )
        if reason == "insufficient_system_resource":
            raise provider_error("the provider ran out of resources in the middle of the answer", code=reason)
        self._finish_reasons.append(str(reason))
        if choice.get("usage"):
            # Kimi puts usage here.
            self._usage = usage_from_wire(choice)

    def _complete(self) -> list[ModelEvent]:
        self._completed = True
        events: list[ModelEvent] = []
        blocks: list[AssistantBlock] = []
        if self._reasoning or self._details or self._opaque:
            data = dict(self._reasoning_data)
            if self._reasoning_field:
                data["field"] = self._reasoning_field
            if self._details:
                data["reasoning_details"] = [detail.whole() for detail in self._details]
            if self._opaque:
                data["reasoning_opaque"] = self._opaque
            blocks.append(ReasoningBlock("".join(self._reasoning), self._provider, data or None))
        blocks += self._search()
        if self._text:
            blocks.append(TextBlock("".join(self._text), self._citations))
        for call in self._calls:
            if not call.announced:
                events.append(ToolCallDelta(call.id, call.name, call.arguments))
            arguments = call.arguments
            blocks.append(
                ToolUseBlock(
                    call.id,
                    call.name,
                    arguments,
                    parse_arguments(arguments),
                    self._provider if call.extra else None,
                    call.extra or None,
                )
            )
        events.append(self._complete_with(blocks, self._stop_reason(), self._usage))
        return events

    def _search(self) -> list[AssistantBlock]:
        """Return the search that the answer cites. The wire has neither its query nor a form to send it back."""
        cited = [citation for citation in self._citations if citation.kind == "url_citation"]
        found = cited_pages(cited, quoted=True)
        if not found:
            return []
        use_id = f"{self._new_id(self._response_id, self._created, len(self._calls))}_search"
        return [
            HostedToolUseBlock(use_id, "web_search", {}, self._provider),
            HostedToolResultBlock(use_id, search_rows(found), self._provider, results=found),
        ]

    def _stop_reason(self) -> StopReason:
        reasons = [STOP_REASONS.get(reason, "end_turn") for reason in self._finish_reasons]
        if "max_tokens" in reasons:
            return "max_tokens"
        if self._calls:
            # Many servers send "stop" with calls.
            return "tool_use"
        if self._refusals or "refusal" in reasons:
            return "refusal"
        if "content_filter" in reasons:
            return "content_filter"
        # The server may have announced calls and sent none.
        return "tool_use" if "tool_use" in reasons else "end_turn"
