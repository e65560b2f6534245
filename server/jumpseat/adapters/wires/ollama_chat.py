"""Ollama's own chat API, which streams JSON lines.

Options of the endpoint:

=================== ============= ==========================================================
option              default       meaning
=================== ============= ==========================================================
``keep_alive``      the server's  how long the model stays in memory afterwards (``"30m"``)
``body``            ``{}``        more fields for the body; they win
any other                         a parameter of the model: ``num_ctx``, ``temperature``, ...
=================== ============= ==========================================================

The context window is the server's default unless ``num_ctx`` sets it. The server refuses a longer conversation, and
the session summarizes it then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Final
from urllib.parse import urlsplit

from jumpseat.adapters.adapter import Decoder, Endpoint
from jumpseat.adapters.failures import failure_of_event
from jumpseat.adapters.wire import (
    arguments_object,
    as_count,
    as_object,
    as_text,
    document_text,
    dump_json,
    hosted_as_text,
    messages_before_tool_loop,
    parse_arguments,
    parse_object,
)
from jumpseat.adapters.wires.base import AnswerDecoder, calls_of
from jumpseat.adapters.wires.chat import PathAdapter, tool_to_wire
from jumpseat.adapters.wires.chat_quirks import omission_note
from jumpseat.adapters.wires.schema_copies import strict_schema
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolUseBlock,
    UserMessage,
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

_PORT: Final = 11434
_OWN_OPTIONS: Final = frozenset({"keep_alive", "think_tags", "body"})
_LEVELS: Final[Mapping[str, bool | str]] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}


class OllamaChatAdapter(PathAdapter):
    """Chat at ``<base_url>/api/chat``."""

    name: str = "ollama"
    limits_calls: bool = False
    path: ClassVar[str] = "/api/chat"

    def decoder(self, request: ModelRequest) -> Decoder:
        return OllamaDecoder(self.signature, request)

    def url(self, endpoint: Endpoint, request: ModelRequest) -> str:
        return f"{address(endpoint.base_url).removesuffix('/api')}{self.path}"

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> Mapping[str, str]:
        return (
            {"Accept": "application/x-ndjson", **self.default_headers} if request.stream else self.default_headers
        )

    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject:
        # By default, a conversation that is too long loses its beginning, instructions and tools first.
        body: JsonObject = {
            "model": request.model,
            "messages": self.messages(request),
            "stream": request.stream,
            "truncate": False,
        }
        choice = request.tool_choice
        tools = [] if choice is not None and choice.mode == "none" else request.tools
        if choice is not None and choice.mode == "specific":
            # The wire has no choice of tools: send only the chosen one.
            tools = [tool for tool in tools if tool.name == choice.name]
        if tools:
            body["tools"] = [tool_to_wire(request, tool) for tool in tools]
        if request.reasoning_effort is not None:
            body["think"] = _LEVELS.get(request.reasoning_effort, True)
        if (wanted := request.response_format) is not None:
            body["format"] = strict_schema(wanted.schema) if wanted.strict else wanted.schema
        options = self.options(endpoint)
        settings = {key: value for key, value in options.items() if key not in _OWN_OPTIONS}
        if request.max_output_tokens is not None:
            settings.setdefault("num_predict", request.max_output_tokens)
        if settings:
            body["options"] = settings
        if (keep_alive := options.get("keep_alive")) is not None:
            body["keep_alive"] = keep_alive
        body.update(as_object(options.get("body")))
        return body

    def messages(self, request: ModelRequest) -> list[JsonObject]:
        """Write the whole conversation, with the system message first."""
        wire: list[JsonObject] = [{"role": "system", "content": request.system}] if request.system else []
        count = messages_before_tool_loop(request.messages)
        for current, messages in ((False, request.messages[:count]), (True, request.messages[count:])):
            write = partial(self._message_to_wire, vision=request.vision, current=current)
            wire += request.write((type(self), self.signature, request.vision, current), messages, write)
        return wire

    def _message_to_wire(self, message: Message, *, vision: bool, current: bool) -> list[JsonObject]:
        match message:
            case UserMessage():
                return _user_to_wire(message, vision=vision)
            case AssistantMessage():
                return [self._assistant_to_wire(message, thinking=current)]
            case ToolMessage():
                return _results_to_wire(message, vision=vision)

    def _assistant_to_wire(self, message: AssistantMessage, *, thinking: bool) -> JsonObject:
        """Write one answer. Thinking goes back in the current tool loop, where the models' templates use it."""
        parts = [block.text if isinstance(block, TextBlock) else hosted_as_text(block) for block in message.blocks]
        hosted = any(hosted_as_text(block) for block in message.blocks)
        entry: JsonObject = {
            "role": "assistant",
            "content": "\n\n".join(part for part in parts if part) if hosted else message.text(),
        }
        thoughts = [
            block.text
            for block in message.blocks
            # Reasoning from tags in the text does not go back.
            if isinstance(block, ReasoningBlock) and block.provider == self.signature and block.provider_data
        ]
        if thinking and thoughts:
            entry["thinking"] = "".join(thoughts)
        calls = [_call_to_wire(index, block) for index, block in enumerate(message.tool_uses())]
        if calls:
            entry["tool_calls"] = calls
        return entry


class OllamaDecoder(AnswerDecoder):
    """Decodes one answer, whole or streamed. A call comes whole; a chunk may have several."""

    def __init__(self, provider: str, request: ModelRequest) -> None:
        super().__init__(provider, request)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[ToolUseBlock] = []
        self._ids = set[str]()

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        if self._completed or not data or data == "[DONE]":
            return []
        events: list[ModelEvent] = []
        self._take(parse_object(data), events)
        return events

    def finish(self) -> list[ModelEvent]:
        if not self._completed:
            raise self._cut_off(self._begun)
        return []

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        if not isinstance(body.get("message"), dict):
            if body.get("error"):
                raise failure_of_event(body)
            raise ProviderProtocolError("expected a message in the provider's answer")
        events: list[ModelEvent] = []
        self._take({**body, "done": True}, events)
        return events[-1:]

    def _take(self, chunk: JsonObject, events: list[ModelEvent]) -> None:
        message = chunk.get("message")
        if message:
            self._begun = True
            thinking = message.get("thinking")
            if thinking and isinstance(thinking, str):
                self._thinking.append(thinking)
                events.append(ReasoningDelta(thinking))
            content = message.get("content")
            if content and isinstance(content, str):
                self._text.append(content)
                events.append(TextDelta(content))
            calls = message.get("tool_calls")
            if calls:
                for item in calls_of(calls):
                    self._take_call(as_object(item), as_text(chunk.get("created_at")), events)
        elif chunk.get("error"):
            raise failure_of_event(chunk)
        self._model = self._model or as_text(chunk.get("model")) or None
        if chunk.get("done"):
            self._complete(chunk, events)

    def _take_call(self, piece: JsonObject, created: str, events: list[ModelEvent]) -> None:
        function = as_object(piece.get("function"))
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else dump_json(arguments)
        call_id = as_text(piece.get("id"))
        if not call_id or call_id in self._ids:
            call_id = self._new_id(created, len(self._calls))
        call = ToolUseBlock(call_id, as_text(function.get("name")), arguments, parse_arguments(arguments))
        self._calls.append(call)
        self._ids.add(call_id)
        events.append(ToolCallDelta(call.id, call.name, arguments))

    def _complete(self, chunk: JsonObject, events: list[ModelEvent]) -> None:
        self._completed = True
        blocks: list[AssistantBlock] = []
        if self._thinking:
            # Reasoning without provider data is not kept from turn to turn.
            blocks.append(ReasoningBlock("".join(self._thinking), self._provider, {"field": "thinking"}))
        if self._text:
            blocks.append(TextBlock("".join(self._text)))
        blocks += self._calls
        stop: StopReason = "tool_use" if self._calls else "end_turn"
        if chunk.get("done_reason") == "length":
            stop = "max_tokens"
        usage = Usage(as_count(chunk.get("prompt_eval_count")), as_count(chunk.get("eval_count")))
        events.append(self._complete_with(blocks, stop, usage if usage != Usage() else None))


def address(host: str) -> str:
    """Convert a value of ``OLLAMA_HOST`` to a base URL: a URL, a host, a host with a port, or a port.

    A wildcard address becomes ``localhost``.
    """
    text = host.strip().rstrip("/")
    if "://" in text:
        return text
    parts = urlsplit(f"//{text}")
    name = parts.hostname or "localhost"
    if name in ("0.0.0.0", "::"):  # noqa: S104 - nothing is bound here
        name = "localhost"
    if text == "ollama.com":
        return "https://ollama.com"
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{parts.port or _PORT}{parts.path}"


def _user_to_wire(message: UserMessage, *, vision: bool) -> list[JsonObject]:
    """Write one user message, or none if it has only images and the model takes none."""
    lines: list[str] = []
    images: list[str] = []
    for block in message.blocks:
        match block:
            case TextBlock():
                lines.append(block.text)
            case ImageBlock():
                if vision:
                    images.append(block.data)
                    lines += [block.label] if block.label else []
            case DocumentBlock():
                text = document_text(block)
                lines.append(omission_note(block.title or "") if text is None else text)
    if not lines and not images:
        return []
    return [{"role": "user", "content": "\n".join(lines), **({"images": images} if images else {})}]


def _call_to_wire(index: int, block: ToolUseBlock) -> JsonObject:
    function = {"index": index, "name": block.name, "arguments": arguments_object(block)}
    return {"id": block.id, "type": "function", "function": function}


def _results_to_wire(message: ToolMessage, *, vision: bool) -> list[JsonObject]:
    """Write the results in call order, then one user message for each result with images."""
    wire: list[JsonObject] = [
        {
            "role": "tool",
            "tool_name": result.tool_name,
            "tool_call_id": result.tool_use_id,
            "content": result.text,
        }
        for result in message.results
    ]
    if vision:
        for result in message.results:
            wire += _user_to_wire(UserMessage([*result.images]), vision=True)
    return wire
