"""Answer calls of a model by a script: see :mod:`jumpseat_testkit.model.script`."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, cast

import anyio

from jumpseat_protocol.prompt_marks import PROMPT_MARK, SUMMARIZED, SUMMARY_REQUEST, last_prompt
from jumpseat_testkit.model.calls import (
    Answer,
    CallPiece,
    ModelCall,
    ModelFailureError,
    Piece,
    ReasoningPiece,
    TextPiece,
    Tokens,
)
from jumpseat_testkit.model.script import Script, ScriptExpectation, ScriptTurn, as_pattern

_UNMARKED: Final = (SUMMARY_REQUEST, SUMMARIZED, "<system_notification>")

_WRAPPING: Final = re.compile(
    r"<(current_datetime|reminder|system_reminder|ide_selection|tools_changed_notice|tagged_files|github_references)>"
    r"(?:(?!<\1>).)*?</\1>",
    re.DOTALL,
)
_PLACEHOLDER: Final = re.compile(r"\{\{\s*(last_user|last_tool_result|model)\s*\}\}")
_WORD: Final = re.compile(r"\s*\S+\s*|\s+")
_SHOWN: Final = 200
"""The longest quotation of a request in an error, in characters."""

_Attempt: TypeAlias = tuple[str, int, int]


class ScriptedAnswers:
    """A model that follows a script. Conversations may share an instance."""

    def __init__(self, script: Script) -> None:
        self._script = script
        # Failed attempts by owner, length of the conversation and turn: the only state.
        self._attempts: dict[_Attempt, int] = {}

    @asynccontextmanager
    async def stream(self, call: ModelCall) -> AsyncGenerator[AsyncIterator[Piece]]:
        """Answer by the next turn; see :meth:`jumpseat_testkit.model.calls.Answering.stream`."""
        context = _Context(call)
        turn, number = self._next_turn(context)
        if turn.expect is not None:
            _check(turn.expect, context, number)
        if turn.errors:
            key = (call.owner, len(call.messages), number)
            attempt = self._attempts.get(key, 0)
            if attempt < len(turn.errors):
                self._attempts[key] = attempt + 1
                wanted = turn.errors[attempt]
                raise ModelFailureError(wanted.message, wanted.status, wanted.code, wanted.retry_after_s)
        yield _TurnPieces(turn, context)

    def _next_turn(self, context: _Context) -> tuple[ScriptTurn, int]:
        """Return the next turn and its index in its list."""
        if self._script.turns is not None:
            return self._pick(self._script.turns, context.answers, "the script")
        for entry in self._script.prompts or []:
            if entry.when is None or re.search(entry.when, context.prompt, re.IGNORECASE):
                name = "the script" if entry.when is None else f"the script's prompt {entry.when!r}"
                return self._pick(entry.turns, context.answers_since_prompt, name)
        raise _refusal(f"the script has no prompt that matches {_quoted(context.last_user)}")

    def _pick(self, turns: list[ScriptTurn], number: int, name: str) -> tuple[ScriptTurn, int]:
        if number < len(turns):
            return turns[number], number
        if self._script.after_last == "repeat" and turns:
            return turns[-1], len(turns) - 1
        raise _refusal(f"{name} has no turn {number + 1}, it ends after {len(turns)}")


class _Context:
    """The parts of a call that a script can refer to."""

    def __init__(self, call: ModelCall) -> None:
        self.call = call
        texts = [(position, said.text) for position, said in enumerate(call.messages) if said.role == "user"]
        # Some agents send context, skills and images as user messages too; where prompts are marked, only prompts,
        # summaries of a compaction and notifications count.
        prompts = [item for item in texts if PROMPT_MARK in item[1] or item[1].startswith(_UNMARKED)] or texts
        position, text = prompts[-1] if prompts else (-1, "")
        self.prompt = last_prompt(text)
        answers = [said.role == "assistant" for said in call.messages]
        self.answers = sum(answers)
        self.answers_since_prompt = sum(answers[position + 1 :])

    @property
    def last_user(self) -> str:
        return _WRAPPING.sub("", self.prompt).strip()

    @property
    def last_tool_result(self) -> str:
        return next((said.text for said in reversed(self.call.messages) if said.role == "tool"), "")

    def fill(self, text: str) -> str:
        """Replace the placeholders in ``text``."""
        return _PLACEHOLDER.sub(self._value, text) if "{{" in text else text

    def fill_all(self, value: Any) -> Any:
        """Replace the placeholders in all strings of ``value``."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_all(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: self.fill_all(item) for key, item in cast("dict[str, Any]", value).items()}
        return value

    def _value(self, match: re.Match[str]) -> str:
        match match.group(1):
            case "last_user":
                return self.last_user
            case "last_tool_result":
                return self.last_tool_result
            case _:
                return self.call.model


class _TurnPieces:
    """Iterates over the pieces of one turn."""

    def __init__(self, turn: ScriptTurn, context: _Context) -> None:
        self._turn = turn
        self._delay_s = turn.delay_ms / 1000
        self._streaming = context.call.stream
        pieces = [turn.text] if turn.text else turn.deltas or []
        filled = [context.fill(piece) for piece in pieces]
        calls: list[CallPiece] = []
        for position, call in enumerate(turn.tool_calls):
            arguments = context.fill_all(call.arguments)
            call_id = call.id or f"call_{context.answers + 1}_{position + 1}"
            calls.append(
                CallPiece(call_id, call.name, arguments if isinstance(arguments, str) else _json(arguments))
            )
        usage = turn.usage and Tokens(
            turn.usage.input,
            turn.usage.output,
            turn.usage.cache_read,
            turn.usage.cache_write,
            turn.usage.reasoning,
        )
        self._answer = Answer(
            "".join(filled),
            context.fill(turn.reasoning or ""),
            tuple(calls),
            turn.stop_reason or ("tool_use" if calls else "end_turn"),
            usage,
        )
        self._deltas = iter(self._split(filled if turn.deltas else []) if self._streaming else ())
        self._ended = False

    def __aiter__(self) -> _TurnPieces:
        return self

    async def __anext__(self) -> Piece:
        if self._ended:
            raise StopAsyncIteration
        delta = next(self._deltas, None)
        if (delta is not None or not self._streaming) and self._delay_s:
            await anyio.sleep(self._delay_s)
        if delta is not None:
            return delta
        if self._turn.hang:
            await anyio.sleep_forever()
        self._ended = True
        return self._answer

    def _split(self, pieces: list[str]) -> Iterator[Piece]:
        yield from (ReasoningPiece(word) for word in _WORD.findall(self._answer.reasoning))
        yield from (TextPiece(piece) for piece in pieces or _WORD.findall(self._answer.text) if piece)
        yield from self._answer.calls


def _check(expect: ScriptExpectation, context: _Context, number: int) -> None:
    """Raise an error for the first unmet expectation."""
    call = context.call
    for what, wanted, got in (
        ("the last prompt", expect.user, context.prompt),
        ("the system message", expect.system, call.system),
        ("the last tool result", expect.tool_result, context.last_tool_result),
    ):
        if wanted is None:
            continue
        pattern = as_pattern(wanted)
        found = wanted in got if pattern is None else re.search(pattern, got) is not None
        if not found:
            raise _unmet(number, f"{wanted!r} in {what}, got {_quoted(got)}")
    if expect.model is not None and expect.model != call.model:
        raise _unmet(number, f"the model {expect.model!r}, got {call.model!r}")
    missing = [name for name in expect.tools or [] if name not in call.tools]
    if missing:
        offered = ", ".join(sorted(call.tools)) or "none"
        raise _unmet(number, f"the tools {', '.join(missing)} on offer, got {offered}")


def _unmet(number: int, what: str) -> ModelFailureError:
    return _refusal(f"turn {number + 1} of the script expected {what}", "expectation_failed")


def _refusal(message: str, code: str | None = None) -> ModelFailureError:
    return ModelFailureError(message, 400, code, by_script=False)


def _quoted(text: str) -> str:
    line = " ".join(text[: _SHOWN * 2].split())
    return repr(line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
