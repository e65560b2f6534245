"""Decoder for answers of ``generateContent``: parts, grounding and usage in neutral form.

``generate_content.py`` describes signatures and where they are kept.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

from msgspec import Struct, field

from jumpseat.adapters.failures import failure_of_event
from jumpseat.adapters.wire import (
    as_count,
    as_list,
    as_object,
    as_text,
    dump_json,
    parse_arguments,
    parse_json,
    search_rows,
)
from jumpseat.adapters.wires.base import AnswerDecoder
from jumpseat.adapters.wires.gemini_grounding import byte_to_character, grounded_citations, grounding_results
from jumpseat.agent.blocks import (
    AssistantBlock,
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
from jumpseat.errors import ProviderFilterError, ProviderProtocolError, ProviderRequestError

FILTERS: Final = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "ESCALATION",
        "MODEL_ARMOR",
        "PUP_LIMITED_DISABLED",
    }
)
"""Values of ``finishReason`` for an answer that a filter ended."""

FAILURES: Final = frozenset({"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "NO_IMAGE"})
"""Values of ``finishReason`` for a malformed answer, which another attempt may avoid."""

CONCATENATED: Final = re.compile(r"\}\s*\{")
"""A possible border between two objects."""


def usage_from_wire(usage: Any) -> Usage | None:
    """Read the ``usageMetadata`` of an answer; ``None`` without it."""
    node = as_object(usage)
    if not node:
        return None
    return usage_of(
        prompt=as_count(node.get("promptTokenCount")),
        tool_use=as_count(node.get("toolUsePromptTokenCount")),
        output=as_count(node.get("candidatesTokenCount")),
        thoughts=as_count(node.get("thoughtsTokenCount")),
        cached=as_count(node.get("cachedContentTokenCount")),
        total=as_count(node.get("totalTokenCount")),
    )


def usage_of(*, prompt: int, tool_use: int, output: int, thoughts: int, cached: int, total: int) -> Usage:
    """Convert token counts. Thoughts that only the total includes are the difference to the other counts."""
    read = prompt + tool_use
    if not thoughts:
        thoughts = max(total - read - output, 0)
    return Usage(
        input_tokens=read, output_tokens=output + thoughts, cache_read_tokens=cached, reasoning_tokens=thoughts
    )


class _Run(Struct):
    """A run of text or of thoughts. ``start`` is its offset, in characters, in the whole text of the answer."""

    thought: bool
    start: int = 0
    pieces: list[str] = field(default_factory=list[str])
    signature: str | None = None


class GenerateContentDecoder(AnswerDecoder):
    """Decodes the first candidate of one answer, whole or streamed.

    ``provider`` is the signature of its blocks. Calls come whole. Calls without an id, or with the id of another
    call, get new ids.
    """

    def __init__(self, provider: str, request: ModelRequest) -> None:
        super().__init__(provider, request)
        self._run: _Run | None = None
        self._blocks: list[_Run | AssistantBlock] = []
        self._ids: set[str] = set()
        self._hosted_id = ""
        self._calls = 0
        self._feedback: JsonObject = {}
        self._grounding: JsonObject = {}
        self._urls: list[JsonObject] = []
        self._sources: list[JsonObject] = []
        self._reason: str | None = None
        self._reason_text = ""
        self._usage: Any = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if not data or self._completed:
            return []
        if data == "[DONE]":
            return self.finish() if self._begun else []
        chunk = parse_json(data)
        events: list[ModelEvent] = []
        if type(chunk) is list:
            for item in cast("list[Any]", chunk):
                self._take(as_object(item), events)
        else:
            self._take(chunk, events)
        return events

    def finish(self) -> list[ModelEvent]:
        if self._completed:
            return []
        last = self._blocks[-1] if self._blocks else None
        if self._reason is None and not self._feedback and not isinstance(last, ToolUseBlock):
            # Calls come whole, so an answer may end after one without a finish reason.
            raise self._cut_off(self._begun)
        return self._complete()

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        self._take(body, [])
        if not self._begun and not self._feedback:
            raise ProviderProtocolError("expected at least one candidate in the provider's answer")
        return self._complete()

    def _take(self, chunk: JsonObject, events: list[ModelEvent]) -> None:
        """Add one piece of the answer."""
        if "error" in chunk:
            raise failure_of_event(chunk)
        candidates = chunk.get("candidates")
        if candidates:
            self._begun = True
            candidate = candidates[0]
            content = candidate.get("content")
            if content:
                for part in content.get("parts") or ():
                    text = part.get("text")
                    if text and len(part) == 1:
                        # The fast path: nearly every part of a long answer.
                        run = self._run
                        if run is None or run.thought:
                            run = self._begin(thought=False)
                        run.pieces.append(text)
                        events.append(TextDelta(text))
                    else:
                        self._part(part, events)
            if len(candidate) > 2 or not content or "index" not in candidate:
                # More than its text and its number.
                self._note(candidate)
        usage = chunk.get("usageMetadata")
        if usage:
            self._usage = usage
        if self._response_id is None:
            self._response_id = as_text(chunk.get("responseId")) or None
            self._model = as_text(chunk.get("modelVersion")) or self._model
        if "promptFeedback" in chunk:
            feedback = as_object(chunk["promptFeedback"])
            if feedback.get("blockReason"):
                self._feedback = feedback

    def _note(self, candidate: JsonObject) -> None:
        """Keep the metadata of a candidate."""
        reason = candidate.get("finishReason")
        if reason and reason != "FINISH_REASON_UNSPECIFIED":
            self._reason = str(reason)
        self._reason_text = as_text(candidate.get("finishMessage")) or self._reason_text
        grounding = as_object(candidate.get("groundingMetadata"))
        # Sources may come before the text that they support.
        self._grounding |= {key: value for key, value in grounding.items() if value}
        urls = as_object(candidate.get("urlContextMetadata")).get("urlMetadata")
        self._urls += [as_object(item) for item in as_list(urls)]
        sources = as_object(candidate.get("citationMetadata"))
        for item in as_list(sources.get("citationSources")) or as_list(sources.get("citations")):
            self._sources.append(as_object(item))

    def _begin(self, *, thought: bool) -> _Run:
        run = self._run = _Run(thought)
        self._blocks.append(run)
        return run

    def _part(self, part: JsonObject, events: list[ModelEvent]) -> None:
        """Add a part that is more than a piece of text."""
        signature = as_text(part.get("thoughtSignature")) or None
        if "functionCall" in part:
            self._call(as_object(part["functionCall"]), signature, events)
        elif "executableCode" in part or "toolCall" in part:
            self._hosted_use(part)
        elif "codeExecutionResult" in part or "toolResponse" in part:
            self._hosted_result(part)
        elif "text" in part or part.get("thought") or signature:
            text = as_text(part.get("text"))
            thought = bool(part.get("thought"))
            # A signature belongs to its own part only.
            run = self._run if self._run and self._run.thought == thought and not signature else None
            if not text and not signature:
                return
            run = run or self._begin(thought=thought)
            if text:
                run.pieces.append(text)
                events.append(ReasoningDelta(text) if thought else TextDelta(text))
            if signature:
                run.signature = signature
                self._run = None
        elif part:
            # Images and unknown parts are kept raw and replayed.
            self._run = None
            self._blocks.append(HostedToolResultBlock(self._hosted_id, "", self._provider, False, {"part": part}))

    def _call(self, call: JsonObject, signature: str | None, events: list[ModelEvent]) -> None:
        self._run = None
        self._calls += 1
        call_id = as_text(call.get("id"))
        if not call_id or call_id in self._ids:
            call_id = self._new_id(self._response_id, len(self._blocks))
        self._ids.add(call_id)
        name, given = as_text(call.get("name")), call.get("args")
        if isinstance(given, str):
            # Servers that imitate this API.
            written = first_object(given) or given
        else:
            written = dump_json(given) if given is not None else ""
        events.append(ToolCallDelta(call_id, name, written))
        data = {"thoughtSignature": signature} if signature else None
        arguments = cast("JsonObject", given) if isinstance(given, dict) else parse_arguments(written)
        self._blocks.append(ToolUseBlock(call_id, name, written, arguments, self._provider if data else None, data))

    def _hosted_use(self, part: JsonObject) -> None:
        self._run = None
        code = as_object(part.get("executableCode"))
        call = code or as_object(part.get("toolCall"))
        self._hosted_id = as_text(call.get("id")) or self._new_id(self._response_id, len(self._blocks))
        name = "code_execution" if code else as_text(call.get("toolType")).lower()
        given = {key: code[key] for key in ("language", "code") if key in code} or as_object(call.get("args"))
        self._blocks.append(HostedToolUseBlock(self._hosted_id, name, given, self._provider, {"part": part}))

    def _hosted_result(self, part: JsonObject) -> None:
        self._run = None
        result = as_object(part.get("codeExecutionResult"))
        answer = result or as_object(part.get("toolResponse"))
        use_id = as_text(answer.get("id")) or self._hosted_id
        if result:
            text, is_error = as_text(result.get("output")), result.get("outcome") != "OUTCOME_OK"
        else:
            text, is_error = dump_json(as_object(answer.get("response"))), False
        self._blocks.append(HostedToolResultBlock(use_id, text, self._provider, is_error, {"part": part}))

    # --- the end ------------------------------------------------------------------------------------------------

    def _complete(self) -> list[ModelEvent]:
        self._completed = True
        blocks = self._finished_blocks()
        self._raise_if_empty(blocks)
        blocks = [*self._hosted_blocks(), *blocks]
        return [self._complete_with(blocks, self._stop_reason(), usage_from_wire(self._usage))]

    def _raise_if_empty(self, blocks: list[AssistantBlock]) -> None:
        reason = self._reason or ""
        if self._feedback and not blocks:
            code = str(self._feedback["blockReason"])
            text = as_text(self._feedback.get("blockReasonMessage"))
            raise ProviderFilterError(_sentence("the provider blocked the prompt", code, text), code=code)
        if reason in FAILURES and not self._calls:
            raise ProviderProtocolError(
                _sentence("the model's answer is malformed", reason, self._reason_text),
                code=reason,
            )
        if reason == "MISSING_THOUGHT_SIGNATURE":
            raise ProviderRequestError(
                _sentence("the provider refused the request", reason, self._reason_text), code=reason
            )
        if not any(isinstance(block, (TextBlock, ToolUseBlock)) for block in blocks):
            if reason in FILTERS:
                raise ProviderFilterError(
                    _sentence("the provider blocked the answer", reason, self._reason_text), code=reason
                )
            if reason == "OTHER":
                raise ProviderProtocolError(
                    _sentence("the provider gave no answer", reason, self._reason_text), code=reason
                )

    def _stop_reason(self) -> StopReason:
        if self._reason in ("MAX_TOKENS", "CONTINUATION"):
            return "max_tokens"
        if self._calls:
            return "tool_use"
        return "content_filter" if self._reason in FILTERS or self._feedback else "end_turn"

    def _finished_blocks(self) -> list[AssistantBlock]:
        """Return the blocks in order, one for each run of text, however it was split and signed."""
        blocks: list[AssistantBlock] = []
        texts: list[tuple[TextBlock, int]] = []
        place = calls = 0
        for item in self._blocks:
            if not isinstance(item, _Run):
                calls += isinstance(item, ToolUseBlock)
                blocks.append(item)
                continue
            text = "".join(item.pieces)
            if item.thought:
                data = {"thoughtSignature": item.signature} if item.signature else None
                blocks.append(ReasoningBlock(text, self._provider, data))
                continue
            if text:
                if texts and blocks[-1] is texts[-1][0]:
                    texts[-1][0].text += text
                else:
                    texts.append((TextBlock(text), place))
                    blocks.append(texts[-1][0])
            if item.signature:
                mark: JsonObject = {"thoughtSignature": item.signature, "start": place, "end": place + len(text)}
                if calls:
                    mark["calls"] = calls
                # Before the text that continues, so that the text stays one block.
                goes_on = bool(texts) and blocks[-1] is texts[-1][0]
                blocks.insert(len(blocks) - goes_on, ReasoningBlock("", self._provider, mark))
            place += len(text)
        if self._grounding or self._sources:
            self._cite(texts)
        return blocks

    def _cite(self, texts: list[tuple[TextBlock, int]]) -> None:
        """Add the citations to their blocks; offsets arrive in bytes of UTF-8."""
        full_text = "".join(block.text for block, _ in texts)
        encoded = full_text.encode("utf-8", "replace")
        for citation, start, end in grounded_citations(self._grounding, self._sources, self._provider):
            first = byte_to_character(encoded, start)
            last = byte_to_character(encoded, end)
            quoted = citation.cited_text
            if first is None or last is None:
                first = last = None
            if quoted and (first is None or last is None or full_text[first:last] != quoted):
                # Offsets count from the start of a part that is not always named, so the cited text is searched.
                found = full_text.find(quoted)
                first, last = (found, found + len(quoted)) if found >= 0 else (None, None)
            home = next((pair for pair in reversed(texts) if first is not None and pair[1] <= first), None)
            home = home or (texts[0] if texts else None)
            if home is None:
                return
            if first is not None and last is not None:
                citation.start, citation.end = first - home[1], last - home[1]
                citation.cited_text = quoted or full_text[first:last]
            home[0].citations.append(citation)

    def _hosted_blocks(self) -> list[AssistantBlock]:
        """Return the look-ups that only the metadata of the answer mention."""
        blocks: list[AssistantBlock] = []
        queries = as_list(self._grounding.get("webSearchQueries"))
        seen = {block.name for block in self._blocks if isinstance(block, HostedToolUseBlock)}
        searches = {b.id for b in self._blocks if isinstance(b, HostedToolUseBlock) and "search" in b.name}
        for block in self._blocks:
            if isinstance(block, HostedToolResultBlock) and block.tool_use_id in searches:
                block.results = grounding_results(self._grounding)
        if queries and not any("search" in name for name in seen):
            found, data = grounding_results(self._grounding), {"groundingMetadata": self._grounding}
            use_id = f"{self._new_id(self._response_id, len(self._blocks))}_search"
            blocks.append(HostedToolUseBlock(use_id, "google_search", {"queries": queries}, self._provider))
            blocks.append(
                HostedToolResultBlock(use_id, search_rows(found), self._provider, False, data, results=found)
            )
        if self._urls and "url_context" not in seen:
            use_id = f"{self._new_id(self._response_id, len(self._blocks))}_urls"
            urls = [as_text(url.get("retrievedUrl")) for url in self._urls]
            states = [
                as_text(url.get("urlRetrievalStatus")).removeprefix("URL_RETRIEVAL_STATUS_").lower()
                for url in self._urls
            ]
            rows = [f"{url}: {state}" for url, state in zip(urls, states, strict=True)]
            failed = "success" not in states
            blocks.append(HostedToolUseBlock(use_id, "url_context", {"urls": urls}, self._provider))
            blocks.append(HostedToolResultBlock(use_id, "\n".join(rows), self._provider, failed))
        return blocks


def _sentence(what: str, code: str, text: str) -> str:
    return f"{what} ({code}): {text}" if text else f"{what} ({code})"


def first_object(text: str) -> str | None:
    """Return the first of several concatenated JSON objects; ``None`` if there is only one.

    Models do write several, and mean the first.
    """
    if not CONCATENATED.search(text):
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        return None
    return text[:end] if isinstance(value, dict) and text[end:].strip() else None
