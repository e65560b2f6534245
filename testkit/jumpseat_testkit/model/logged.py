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

from jumpseat_protocol.json_values import as_object, as_text
from jumpseat_testkit.client_log import Entry, JsonObject, action_of
from jumpseat_testkit.model import calls
from jumpseat_testkit.model.calls import CallPiece, ModelCall, ModelFailureError, ReasoningPiece, TextPiece, Tokens

_REASONING: Final = ("reasoning", "chat/reasoning")


class Piece(NamedTuple):
    """A part of an answer, and the line of the log that shows it."""

    line: int
    event: TextPiece | ReasoningPiece | CallPiece


class Answer(Struct):
    """An answer of the model. ``end`` is the line that shows that it is complete; without one, it never is."""

    prompt: str
    pieces: list[Piece] = field(default_factory=list[Piece])
    end: int | None = None
    error: str | None = None
    usage: Tokens | None = None
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
    async def stream(self, call: ModelCall) -> AsyncGenerator[AsyncIterator[calls.Piece]]:
        """Return the events of the next answer, that to the last prompt if several chats ask."""
        answer = self._next(call)
        if answer is None:
            raise ModelFailureError("the log has no further answer of the model", 400)
        answer.played = True
        yield self._events(answer)

    def _next(self, call: ModelCall) -> Answer | None:
        left = [answer for answer in self._answers if not answer.played]
        text = next((said.text for said in reversed(call.messages) if said.role == "user"), "")
        fitting = (answer for answer in left if answer.prompt and answer.prompt in text)
        return next(fitting, left[0] if left else None)

    async def _events(self, answer: Answer) -> AsyncIterator[calls.Piece]:
        for piece in answer.pieces:
            await self._gate.wait_for(piece.line)
            yield self._filled(piece.event)
        if answer.hangs or answer.end is None:
            await anyio.sleep_forever()
        else:
            await self._gate.wait_for(answer.end)
        if answer.error is not None:
            raise ModelFailureError(answer.error, 400)
        yield self._completed(answer)

    def _filled(self, event: TextPiece | ReasoningPiece | CallPiece) -> calls.Piece:
        match event:
            case CallPiece():
                return CallPiece(event.id, event.name, self._fill(event.arguments))
            case TextPiece():
                return TextPiece(self._fill(event.text))
            case ReasoningPiece():
                return ReasoningPiece(self._fill(event.text))

    def _completed(self, answer: Answer) -> calls.Answer:
        pieces = [self._filled(piece.event) for piece in answer.pieces]
        reasoning = "".join(piece.text for piece in pieces if isinstance(piece, ReasoningPiece))
        text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
        found: dict[str, CallPiece] = {}
        for piece in pieces:
            if isinstance(piece, CallPiece):
                before = found[piece.id].arguments if piece.id in found else ""
                found[piece.id] = CallPiece(piece.id, piece.name, before + piece.arguments)
        stop_reason = "tool_use" if found else "end_turn"
        return calls.Answer(text, reasoning, tuple(found.values()), stop_reason, answer.usage)


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
        self._used = Tokens()

    def read(self, line: int, action: JsonObject) -> None:
        call_id = as_text(action.get("toolCallId"))
        match action["type"]:
            case "chat/turnStarted":
                self._prompt, self._answer = as_text(as_object(action.get("message")).get("text")), None
                self._used = Tokens()
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
        event = ReasoningPiece(text) if kind in _REASONING else TextPiece(text)
        self._open().pieces.append(Piece(line, event))

    def _call(self, line: int, call_id: str, name: str) -> None:
        if self._ended & self._calls.keys():
            self._answer, self._calls = None, {}
        answer = self._open()
        self._calls[call_id] = name
        answer.pieces.append(Piece(line, CallPiece(call_id, name, "")))

    def _argue(self, line: int, call_id: str, text: str) -> None:
        if self._answer is not None and call_id in self._calls:
            self._answer.pieces.append(Piece(line, CallPiece(call_id, self._calls[call_id], text)))

    def _argue_at_once(self, call_id: str, given: Any) -> None:
        """Take the arguments of a call whose deltas were not shown."""
        pieces = self._answer.pieces if self._answer is not None and isinstance(given, str) else []
        mine = [
            (place, piece)
            for place, piece in enumerate(pieces)
            if isinstance(piece.event, CallPiece) and piece.event.id == call_id
        ]
        if len(mine) == 1:
            ((place, piece),) = mine
            pieces[place] = Piece(piece.line, CallPiece(call_id, self._calls[call_id], given))

    def _complete(self, line: int) -> None:
        if self._answer is not None and self._answer.end is None:
            self._answer.end = line

    def _use(self, usage: JsonObject) -> None:
        """Take the usage of the answer: that of the turn is the sum of all its answers."""
        names = ("inputTokens", "outputTokens", "cacheReadTokens")
        counts = [count if isinstance(count := usage.get(name), int) else 0 for name in names]
        used = self._used
        before = (used.input, used.output, used.cache_read)
        if self._answer is not None:
            mine = [max(0, now - then) for now, then in zip(counts, before, strict=True)]
            self._answer.usage = Tokens(*mine)
        self._used = Tokens(*counts)

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
