"""The model of a client's log: it answers as the model of the log did, and not before the client has done its part.

A delta that the client has seen after it had sent a message is sent when the server has handled that message. What
happens during an answer, such as a cancellation, so happens at the same place as in the log.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import anyio
from msgspec import Struct, field

from jumpseat.adapters.failures import provider_error
from jumpseat.adapters.wire import as_object, as_text, parse_arguments
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    ReasoningBlock,
    TextBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import (
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jumpseat.script.client_log import Entry, JsonObject, action_of

_REASONING: Final = ("reasoning", "chat/reasoning")


class Piece(NamedTuple):
    """A part of an answer, and the line of the log that shows it."""

    line: int
    event: TextDelta | ReasoningDelta | ToolCallDelta


class Answer(Struct):
    """An answer of the model. ``end`` is the line that shows that it is complete; without one, it never is."""

    prompt: str
    pieces: list[Piece] = field(default_factory=list[Piece])
    end: int | None = None
    error: str | None = None
    usage: Usage | None = None
    hangs: bool = False
    played: bool = False


class Gate:
    """Tells how far the client is: all its messages before ``line`` were handled by the server."""

    def __init__(self) -> None:
        self.line: float = 0
        self._moved = anyio.Event()

    def move(self, line: float) -> None:
        self.line = line
        self._moved.set()
        self._moved = anyio.Event()

    async def wait_for(self, line: int) -> None:
        """Wait until the client has done all that it did before a line."""
        while self.line < line:
            await self._moved.wait()


class LoggedModel:
    """Plays answers. ``fill`` replaces what is different in this run in the arguments of calls."""

    def __init__(self, answers: list[Answer], gate: Gate, fill: Callable[[str], str]) -> None:
        self._answers = answers
        self._gate = gate
        self._fill = fill

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """Return the events of the next answer, that to the last prompt if several chats ask."""
        answer = self._next(request)
        if answer is None:
            raise provider_error("the log has no further answer of the model", status=400)
        answer.played = True
        yield self._events(answer)

    def _next(self, request: ModelRequest) -> Answer | None:
        left = [answer for answer in self._answers if not answer.played]
        prompts = [message for message in request.messages if isinstance(message, UserMessage)]
        text = (
            "".join(block.text for block in prompts[-1].blocks if isinstance(block, TextBlock)) if prompts else ""
        )
        fitting = (answer for answer in left if answer.prompt and answer.prompt in text)
        return next(fitting, left[0] if left else None)

    async def _events(self, answer: Answer) -> AsyncIterator[ModelEvent]:
        for piece in answer.pieces:
            await self._gate.wait_for(piece.line)
            yield self._filled(piece.event)
        if answer.hangs or answer.end is None:
            await anyio.sleep_forever()
        else:
            await self._gate.wait_for(answer.end)
        if answer.error is not None:
            raise provider_error(answer.error, status=400)
        yield self._completed(answer)

    def _filled(self, event: TextDelta | ReasoningDelta | ToolCallDelta) -> ModelEvent:
        match event:
            case ToolCallDelta():
                return ToolCallDelta(event.id, event.name, self._fill(event.arguments))
            case TextDelta():
                return TextDelta(self._fill(event.text))
            case ReasoningDelta():
                return ReasoningDelta(self._fill(event.text))

    def _completed(self, answer: Answer) -> Completed:
        events = [self._filled(piece.event) for piece in answer.pieces]
        reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        calls: dict[str, tuple[str, str]] = {}
        for event in events:
            if isinstance(event, ToolCallDelta):
                calls[event.id] = event.name, calls.get(event.id, ("", ""))[1] + event.arguments
        blocks: list[AssistantBlock] = [
            *([ReasoningBlock(reasoning, "logged")] if reasoning else []),
            *([TextBlock(text)] if text else []),
            *(ToolUseBlock(key, name, given, parse_arguments(given)) for key, (name, given) in calls.items()),
        ]
        return Completed(AssistantMessage(blocks), "tool_use" if calls else "end_turn", answer.usage)


def answers_of(entries: Iterable[Entry]) -> list[Answer]:
    """Return the answers of the model that a log shows, in their order."""
    chats: dict[str, _Chat] = {}
    found: list[Answer] = []
    for entry in entries:
        action = action_of(entry)
        if action is not None and str(action.get("type")).startswith("chat/"):
            channel = as_text(as_object(entry.message["params"]).get("channel"))
            chats.setdefault(channel, _Chat(found)).read(entry.line, action)
    return found


class _Chat:
    """The answers of one chat, read action by action."""

    def __init__(self, found: list[Answer]) -> None:
        self._found = found
        self._prompt = ""
        self._answer: Answer | None = None
        # The calls of the answer, and those of them that have ended.
        self._calls: dict[str, str] = {}
        self._ended: set[str] = set()
        self._used = Usage()

    def read(self, line: int, action: JsonObject) -> None:
        call_id = as_text(action.get("toolCallId"))
        match action["type"]:
            case "chat/turnStarted":
                self._prompt, self._answer = as_text(as_object(action.get("message")).get("text")), None
                self._used = Usage()
            case "chat/responsePart":
                part = as_object(action.get("part"))
                if part.get("kind") in ("markdown", "reasoning"):
                    self._say(line, as_text(part.get("kind")), as_text(part.get("content")))
            case "chat/delta" | "chat/reasoning" as kind:
                self._say(line, kind, as_text(action.get("content")))
            case "chat/toolCallStart":
                self._call(line, call_id, as_text(action.get("toolName")))
            case "chat/toolCallDelta":
                self._argue(line, call_id, as_text(action.get("content")))
            case "chat/toolCallReady" if call_id in self._calls:
                self._complete(line)
                self._argue_at_once(call_id, action.get("toolInput"))
            case "chat/toolCallComplete":
                self._ended.add(call_id)
            case "chat/toolCallConfirmed" if action.get("approved") is not True:
                self._ended.add(call_id)
            case "chat/usage":
                self._complete(line)
                self._use(as_object(action.get("usage")))
            case "chat/turnComplete":
                self._complete(line)
            case "chat/turnCancelled":
                self._cancel()
            case "chat/error":
                self._fail(line, as_object(as_object(action.get("part")).get("error")))
            case _:
                # The others do not come from the model.
                pass

    def _open(self) -> Answer:
        if self._answer is None:
            self._answer = Answer(self._prompt)
            self._calls, self._ended = {}, set()
            self._found.append(self._answer)
        return self._answer

    def _is_over(self) -> bool:
        """Return whether the model has been called again after the calls of the answer."""
        return bool(self._calls) and self._calls.keys() <= self._ended

    def _say(self, line: int, kind: str, text: str) -> None:
        if self._calls:
            self._answer, self._calls = None, {}
        event = ReasoningDelta(text) if kind in _REASONING else TextDelta(text)
        self._open().pieces.append(Piece(line, event))

    def _call(self, line: int, call_id: str, name: str) -> None:
        if self._ended & self._calls.keys():
            self._answer, self._calls = None, {}
        answer = self._open()
        self._calls[call_id] = name
        answer.pieces.append(Piece(line, ToolCallDelta(call_id, name, "")))

    def _argue(self, line: int, call_id: str, text: str) -> None:
        if self._answer is not None and call_id in self._calls:
            self._answer.pieces.append(Piece(line, ToolCallDelta(call_id, self._calls[call_id], text)))

    def _argue_at_once(self, call_id: str, given: Any) -> None:
        """Take the arguments of a call whose deltas were not shown."""
        pieces = self._answer.pieces if self._answer is not None and isinstance(given, str) else []
        mine = [
            (place, piece)
            for place, piece in enumerate(pieces)
            if isinstance(piece.event, ToolCallDelta) and piece.event.id == call_id
        ]
        if len(mine) == 1:
            ((place, piece),) = mine
            pieces[place] = Piece(piece.line, ToolCallDelta(call_id, self._calls[call_id], given))

    def _complete(self, line: int) -> None:
        if self._answer is not None and self._answer.end is None:
            self._answer.end = line

    def _use(self, usage: JsonObject) -> None:
        """Take the usage of the answer: that of the turn is the sum of all its answers."""
        names = ("inputTokens", "outputTokens", "cacheReadTokens")
        counts = [count if isinstance(count := usage.get(name), int) else 0 for name in names]
        used = self._used
        before = (used.input_tokens, used.output_tokens, used.cache_read_tokens)
        if self._answer is not None:
            mine = [max(0, now - then) for now, then in zip(counts, before, strict=True)]
            self._answer.usage = Usage(*mine)
        self._used = Usage(*counts)

    def _cancel(self) -> None:
        """Let the answer hang that was cancelled, unless one of its calls was."""
        if self._answer is None or self._is_over():
            self._answer = None
            self._open()
        if not self._calls:
            self._open().hangs = True
        self._answer = None

    def _fail(self, line: int, error: JsonObject) -> None:
        if self._is_over():
            self._answer = None
        answer = self._open()
        answer.error, answer.end = as_text(error.get("message")) or "unknown", line
        self._answer = None
