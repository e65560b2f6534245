r"""The scripted model: fixed answers from a file instead of the network.

It drives the demo and the tests, and lets users try their own tools and extensions offline. A script is YAML or
JSON, in one of two forms.

A flat list of **turns**. A turn is one answer of the model. The number of assistant messages in the conversation
selects it, not a position that the model keeps, so a resumed session continues where it was::

    turns:
      - tool_calls:
          - {name: add, arguments: {a: 1, b: 2}}
      - text: "The sum is {{last_tool_result}}."

Or turns grouped by **prompt**. The first entry whose ``when`` (a regular expression, searched anywhere in the text,
ignoring case) matches the user's last prompt is used, and its turns are counted from that prompt on. An entry
without ``when`` matches every prompt::

    prompts:
      - when: "encrypt"
        turns:
          - {tool_calls: [{name: encrypt, arguments: {text: "hello"}}]}
          - {text: "Done: {{last_tool_result}}"}
      - turns:
          - {text: "You said: {{last_user}}"}

    after_last: repeat        # or error (the default): the answer after the last turn

Fields of a turn, all optional:

================ ============================================================================================
``text``         the text of the answer; streamed word by word
``deltas``       the same as a list of pieces, streamed as they are (instead of ``text``)
``reasoning``    the reasoning before the answer, streamed word by word
``tool_calls``   list of ``{name, arguments, id}``; ``arguments`` is an object, or a string that is sent as it
                 is (to try malformed JSON); without ``id``, it follows from the place in the conversation
``delay_ms``     real time before each delta; before the whole answer where nothing is streamed
``errors``       list of ``{status, message, code, retry_after_s}``: the first attempts at this turn fail with
                 these errors in order, then the turn is answered; without ``status`` the connection breaks
``expect``       conditions on the request: see below
``usage``        ``{input, output, cache_read, cache_write, reasoning}`` in tokens
``stop_reason``  ``end_turn``, ``tool_use``, ``max_tokens``, ``refusal``, ``content_filter`` or
                 ``stop_sequence``; the default follows from the rest
``hang``         true: after its output, if any, the model never finishes (to try timeouts and aborts)
================ ============================================================================================

Fields of ``expect``, all optional. An unmet expectation fails the call, without retries:

================ ============================================================================================
``user``         text in the last prompt, or ``/a regular expression/``
``system``       text in the system message, or ``/a regular expression/``
``tool_result``  text in the last tool result, or ``/a regular expression/``
``tools``        list of names of tools that must be in the request
``model``        the full name of the model
================ ============================================================================================

``text``, ``deltas``, ``reasoning`` and the strings in ``arguments`` may contain ``{{last_user}}`` (the last prompt,
without the context that the server adds), ``{{last_tool_result}}`` and ``{{model}}``.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from jumpseat.adapters.failures import provider_error
from jumpseat.adapters.wire import dump_json, one_line, parse_arguments
from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    JsonObject,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation.conversation import SUMMARIZED, SUMMARY_REQUEST, last_prompt
from jumpseat.agent.model import (
    Capabilities,
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from jumpseat.errors import ConfigError, ProviderError, ProviderRequestError, ProviderTransportError
from jumpseat.parsing.validation import validation_problems
from jumpseat.parsing.yaml_text import read_yaml

PROMPT_MARK: Final = "<current_datetime>"
"""The prefix of every prompt, which other messages with the role user do not have."""

_UNMARKED: Final = (SUMMARY_REQUEST, SUMMARIZED, "<system_notification>")

_WRAPPING: Final = re.compile(
    r"<(current_datetime|reminder|system_reminder|ide_selection|tools_changed_notice|tagged_files|github_references)>"
    r"(?:(?!<\1>).)*?</\1>",
    re.DOTALL,
)
_PLACEHOLDER: Final = re.compile(r"\{\{\s*(last_user|last_tool_result|model)\s*\}\}")
_WORD: Final = re.compile(r"\s*\S+\s*|\s+")


class _Entry(BaseModel):
    """Base of the script's parts; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class ScriptToolCall(_Entry):
    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])
    id: str | None = None


class ScriptError(_Entry):
    status: int | None = Field(default=None, ge=400, le=599)
    message: str = "scripted error"
    code: str | None = None
    retry_after_s: float | None = Field(default=None, ge=0)

    def as_error(self) -> ProviderError:
        if self.status is None:
            return ProviderTransportError(self.message)
        return provider_error(self.message, status=self.status, code=self.code, retry_after_s=self.retry_after_s)


class ScriptUsage(_Entry):
    input: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    cache_read: int = Field(default=0, ge=0)
    cache_write: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0)


class ScriptExpectation(_Entry):
    user: str | None = None
    system: str | None = None
    tool_result: str | None = None
    tools: list[str] | None = None
    model: str | None = None

    @field_validator("user", "system", "tool_result")
    @classmethod
    def _pattern_compiles(cls, value: str | None) -> str | None:
        pattern = _as_pattern(value or "")
        if pattern is not None:
            _compile(pattern)
        return value


class ScriptTurn(_Entry):
    text: str | None = None
    deltas: list[str] | None = None
    reasoning: str | None = None
    tool_calls: list[ScriptToolCall] = Field(default_factory=list[ScriptToolCall])
    delay_ms: float = Field(default=0, ge=0)
    errors: list[ScriptError] = Field(default_factory=list[ScriptError])
    expect: ScriptExpectation | None = None
    usage: ScriptUsage | None = None
    stop_reason: StopReason | None = None
    hang: bool = False

    @model_validator(mode="after")
    def _text_is_given_once(self) -> ScriptTurn:
        if self.text is not None and self.deltas is not None:
            raise ValueError("give either 'text' or 'deltas', not both")
        return self


class ScriptPrompt(_Entry):
    when: str | None = None
    turns: list[ScriptTurn]

    @field_validator("when")
    @classmethod
    def _pattern_compiles(cls, value: str | None) -> str | None:
        _compile(value or "")
        return value


class Script(_Entry):
    """A script; ``Script.model_validate(obj)`` checks a parsed object."""

    turns: list[ScriptTurn] | None = None
    prompts: list[ScriptPrompt] | None = None
    after_last: Literal["repeat", "error"] = "error"

    @model_validator(mode="after")
    def _has_one_form(self) -> Script:
        if (self.turns is None) == (self.prompts is None):
            raise ValueError("give either 'turns' or 'prompts'")
        return self


def load_script(path: Path | str) -> Script:
    """Read a script from a YAML or JSON file.

    Raises:
        ConfigError: the file cannot be read or is not a valid script; the text names the file and the field.
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read the script {str(path)!r}: {reason}") from None
    try:
        value = read_yaml(content)
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} is not YAML: {error}") from None
    try:
        return Script.model_validate(value)
    except ValidationError as error:
        problems = validation_problems(error, Script, "the whole")
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise ConfigError(f"the script {str(path)!r} is not valid: {'; '.join(problems[:3])}{more}") from None


_Attempt: TypeAlias = tuple[str | None, int, int]


class ScriptedModel:
    """A :class:`~jumpseat.agent.model.Model` that follows a script. Sessions may share an instance."""

    def __init__(self, script: Script) -> None:
        self._script = script
        # Failed attempts by session, length of the conversation and turn: the only state.
        self._attempts: dict[_Attempt, int] = {}

    @property
    def adapter_name(self) -> str:
        return "scripted"

    @property
    def signs_as(self) -> str:
        return "scripted"

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """Stream the next turn; see :meth:`jumpseat.agent.model.Model.stream`."""
        context = _RequestContext(request)
        turn, number = self._next_turn(context)
        if turn.expect is not None:
            _check(turn.expect, context, number)
        if turn.errors:
            key = (request.agent.id if request.agent else request.session_id, len(request.messages), number)
            attempt = self._attempts.get(key, 0)
            if attempt < len(turn.errors):
                self._attempts[key] = attempt + 1
                raise turn.errors[attempt].as_error()
        yield _TurnEvents(turn, context)

    def _next_turn(self, context: _RequestContext) -> tuple[ScriptTurn, int]:
        """Return the next turn and its index in its list."""
        if self._script.turns is not None:
            return self._pick(self._script.turns, context.answers, "the script")
        for entry in self._script.prompts or []:
            if entry.when is None or re.search(entry.when, context.prompt, re.IGNORECASE):
                name = "the script" if entry.when is None else f"the script's prompt {entry.when!r}"
                return self._pick(entry.turns, context.answers_since_prompt, name)
        raise ProviderRequestError(f"the script has no prompt that matches {one_line(context.last_user, 200)!r}")

    def _pick(self, turns: list[ScriptTurn], number: int, name: str) -> tuple[ScriptTurn, int]:
        if number < len(turns):
            return turns[number], number
        if self._script.after_last == "repeat" and turns:
            return turns[-1], len(turns) - 1
        raise ProviderRequestError(f"{name} has no turn {number + 1}, it ends after {len(turns)}")


class _RequestContext:
    """The parts of a request that a script can refer to."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        texts = [
            (position, "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock)))
            for position, message in enumerate(request.messages)
            if isinstance(message, UserMessage)
        ]
        # Hook context, skills and images come as user messages too; where prompts are marked, only prompts,
        # summaries of a compaction and notifications count.
        prompts = [item for item in texts if PROMPT_MARK in item[1] or item[1].startswith(_UNMARKED)] or texts
        position, text = prompts[-1] if prompts else (-1, "")
        self.prompt = last_prompt(text)
        answers = [isinstance(message, AssistantMessage) for message in request.messages]
        self.answers = sum(answers)
        self.answers_since_prompt = sum(answers[position + 1 :])

    @property
    def last_user(self) -> str:
        return _WRAPPING.sub("", self.prompt).strip()

    @property
    def last_tool_result(self) -> str:
        results = [r for m in self.request.messages if isinstance(m, ToolMessage) for r in m.results]
        return results[-1].text if results else ""

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
            return {key: self.fill_all(item) for key, item in cast("JsonObject", value).items()}
        return value

    def _value(self, match: re.Match[str]) -> str:
        match match.group(1):
            case "last_user":
                return self.last_user
            case "last_tool_result":
                return self.last_tool_result
            case _:
                return self.request.model


class _TurnEvents:
    """Iterates over the events of one turn."""

    def __init__(self, turn: ScriptTurn, context: _RequestContext) -> None:
        self._turn = turn
        self._delay_s = turn.delay_ms / 1000
        self._streaming = context.request.stream
        pieces = [turn.text] if turn.text else turn.deltas or []
        filled = [context.fill(piece) for piece in pieces]
        self._message = AssistantMessage([])
        blocks: list[AssistantBlock] = self._message.blocks
        reasoning = context.fill(turn.reasoning or "")
        if reasoning:
            blocks.append(ReasoningBlock(reasoning, "scripted"))
        if any(filled):
            blocks.append(TextBlock("".join(filled)))
        for position, call in enumerate(turn.tool_calls):
            arguments = context.fill_all(call.arguments)
            text = arguments if isinstance(arguments, str) else dump_json(arguments)
            call_id = call.id or f"call_{context.answers + 1}_{position + 1}"
            blocks.append(ToolUseBlock(call_id, call.name, text, parse_arguments(text)))
        self._deltas = iter(self._split(filled if turn.deltas else []) if self._streaming else ())
        self._ended = False

    def __aiter__(self) -> _TurnEvents:
        return self

    async def __anext__(self) -> ModelEvent:
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
        return self._completed()

    def _split(self, pieces: list[str]) -> Iterator[ModelEvent]:
        for block in self._message.blocks:
            if isinstance(block, ReasoningBlock):
                yield from (ReasoningDelta(word) for word in _WORD.findall(block.text))
            elif isinstance(block, TextBlock):
                yield from (TextDelta(piece) for piece in pieces or _WORD.findall(block.text) if piece)
            elif isinstance(block, ToolUseBlock):
                yield ToolCallDelta(block.id, block.name, block.arguments_json)

    def _completed(self) -> Completed:
        counts = self._turn.usage
        usage = counts and Usage(
            counts.input, counts.output, counts.cache_read, counts.cache_write, counts.reasoning
        )
        stop: StopReason = "tool_use" if self._turn.tool_calls else "end_turn"
        return Completed(
            self._message,
            self._turn.stop_reason or stop,
            usage,
        )


def _check(expect: ScriptExpectation, context: _RequestContext, number: int) -> None:
    """Raise an error for the first unmet expectation."""
    request = context.request
    for what, wanted, got in (
        ("the last prompt", expect.user, context.prompt),
        ("the system message", expect.system, request.system),
        ("the last tool result", expect.tool_result, context.last_tool_result),
    ):
        if wanted is None:
            continue
        pattern = _as_pattern(wanted)
        found = wanted in got if pattern is None else re.search(pattern, got) is not None
        if not found:
            raise _unmet(number, f"{wanted!r} in {what}, got {one_line(got, 200)!r}")
    if expect.model is not None and expect.model != request.model:
        raise _unmet(number, f"the model {expect.model!r}, got {request.model!r}")
    offered = {tool.name for tool in request.tools}
    missing = [name for name in expect.tools or [] if name not in offered]
    if missing:
        raise _unmet(number, f"the tools {', '.join(missing)} on offer, got {', '.join(sorted(offered)) or 'none'}")


def _unmet(number: int, what: str) -> ProviderRequestError:
    return ProviderRequestError(f"turn {number + 1} of the script expected {what}", code="expectation_failed")


def _as_pattern(text: str) -> str | None:
    """Return the regular expression in ``/.../``, ``None`` for plain text."""
    return text[1:-1] if len(text) > 2 and text.startswith("/") and text.endswith("/") else None


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
