r"""The scripted model: fixed answers from a file instead of the network.

Agents under test get a model that answers the same each time. A script is YAML or JSON, in one of two forms.

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
without the context that jumpseat adds), ``{{last_tool_result}}`` and ``{{model}}``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from jumpseat_protocol.problems import validation_problems
from jumpseat_protocol.yaml_text import read_yaml
from jumpseat_testkit.model.calls import StopReason
from jumpseat_testkit.patterns import ScriptError


class _Entry(BaseModel):
    """Base of the script's parts; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


class ScriptToolCall(_Entry):
    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict[str, Any])
    id: str | None = None


class ScriptFailure(_Entry):
    status: int | None = Field(default=None, ge=400, le=599)
    message: str = "scripted error"
    code: str | None = None
    retry_after_s: float | None = Field(default=None, ge=0)


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
        pattern = as_pattern(value or "")
        if pattern is not None:
            _compile(pattern)
        return value


class ScriptTurn(_Entry):
    text: str | None = None
    deltas: list[str] | None = None
    reasoning: str | None = None
    tool_calls: list[ScriptToolCall] = Field(default_factory=list[ScriptToolCall])
    delay_ms: float = Field(default=0, ge=0)
    errors: list[ScriptFailure] = Field(default_factory=list[ScriptFailure])
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


def load_model_script(path: Path | str) -> Script:
    """Read a script from a YAML or JSON file.

    Raises:
        ScriptError: the file cannot be read or is not a valid script; the text names the file and the field.
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8"
        raise ScriptError(f"cannot read the script {str(path)!r}: {reason}") from None
    try:
        value = read_yaml(content)
    except ValueError as error:
        raise ScriptError(f"{str(path)!r} is not YAML: {error}") from None
    try:
        return Script.model_validate(value)
    except ValidationError as error:
        problems = validation_problems(error, Script, "the whole")
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise ScriptError(f"the script {str(path)!r} is not valid: {'; '.join(problems[:3])}{more}") from None


def as_pattern(text: str) -> str | None:
    """Return the regular expression in ``/.../``, ``None`` for plain text."""
    return text[1:-1] if len(text) > 2 and text.startswith("/") and text.endswith("/") else None


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
