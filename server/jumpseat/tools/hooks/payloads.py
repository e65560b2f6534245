"""The input and the output of hook commands.

Formats: https://docs.github.com/en/copilot/reference/hooks-reference, and those of VS Code and Claude Code for
hooks with names in Pascal case. Some decisions differ from Copilot's, because a hook before a tool call is a guard:
one that takes too long denies the call, and one of a project or a plugin cannot allow a call that the user would be
asked about. A hook before a prompt can block it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, cast

import orjson

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.session.hook_answers import GUARDS, in_common_form, refusal
from jumpseat.agent.session.hooks import HookAnswer, HookCommand
from jumpseat.tools.hooks.matching import OTHER_NAMES
from jumpseat.tools.shell.captured_commands import CommandResult

BLOCKING_EXIT: Final = 2
"""The exit code by which a command refuses what it is asked about."""
LONGEST_REASON: Final = 2000
"""Limit in characters on a reason that a command writes to stderr."""
LONGEST_CONTEXT: Final = 10_000
"""Limit in characters on a text on stdout that is context for the model."""

_FAIL_CLOSED: Final = frozenset({"preToolUse", "permissionRequest"})
"""Hooks at which a command that fails denies the call."""
_BLOCKING: Final = GUARDS | {"postToolUseFailure"}
"""Hooks at which the exit code blocks in all formats."""
_BLOCKING_IN_PASCAL_CASE: Final = _BLOCKING | {"postToolUse", "agentStop", "subagentStop"}
_READS_TEXT: Final = frozenset({"sessionStart", "userPromptSubmitted"})
"""Hooks in Pascal case whose text on stdout is context for the model."""
_ONLY_OF_CLIENTS: Final[Mapping[str, frozenset[str]]] = {
    "userPromptSubmitted": frozenset({"modifiedPrompt"}),
    "errorOccurred": frozenset({"errorHandling", "retryCount", "userNotification"}),
    "sessionEnd": frozenset({"sessionSummary"}),
}
"""Members that have no effect in the answer of a command."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SNAKE: Final = {"toolArgs": "tool_input", "response": "last_assistant_message"}
_EVENTS: Final = {"userPromptSubmitted": "UserPromptSubmit", "agentStop": "Stop"}


def encode_input(command: HookCommand, hook_input: JsonObject) -> str:
    """Return the JSON that a command reads from stdin."""
    values = dict(hook_input)
    if command.hook_type == "errorOccurred":
        values["error"] = {"message": values["error"], "name": "Error"}
    if command.pascal_case:
        values = _in_snake_case(command.hook_type, values)
    return orjson.dumps(values).decode()


def _in_snake_case(hook_type: str, values: JsonObject) -> JsonObject:
    name = _EVENTS.get(hook_type, hook_type[0].upper() + hook_type[1:])
    converted: JsonObject = {"hook_event_name": name}
    for key, value in values.items():
        converted[_SNAKE.get(key) or _snake(key)] = value
    if (milliseconds := converted.get("timestamp")) is not None:
        converted["timestamp"] = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    if (tool_name := converted.get("tool_name")) is not None:
        converted["tool_name"] = OTHER_NAMES.get(tool_name, tool_name)
    if isinstance(result := converted.get("tool_result"), dict):
        values = cast("JsonObject", result)
        converted["tool_result"] = {_snake(key): value for key, value in values.items()}
        # The name that VS Code and Claude Code have for it.
        converted["tool_response"] = values.get("textResultForLlm")
    return converted


def _snake(name: str) -> str:
    return _CAMEL.sub("_", name).lower()


def answer_of(command: HookCommand, result: CommandResult) -> HookAnswer:
    """Interpret the end of a command."""
    if result.timed_out:
        return failed(command, f"took longer than {command.timeout_s:g} s")
    output = _parse_output(result.stdout)
    blocking = _BLOCKING_IN_PASCAL_CASE if command.pascal_case else _BLOCKING
    if result.exit_code == BLOCKING_EXIT and command.hook_type in blocking:
        return _refused(command, output, result)
    if result.exit_code != 0:
        return failed(command, f"exited with code {result.exit_code}", result.stderr)
    if not output.text:
        return _allowed_part(command, in_common_form(command.hook_type, output.members))
    if _is_broken(command, output.text):
        return failed(command, "answered with invalid JSON", output.text, refuses=command.hook_type in GUARDS)
    if command.pascal_case and command.hook_type in _READS_TEXT:
        cut = f"\n[cut after {LONGEST_CONTEXT} characters]" if len(output.text) > LONGEST_CONTEXT else ""
        return HookAnswer({"additionalContext": output.text[:LONGEST_CONTEXT] + cut})
    return HookAnswer({}, f"{_named(command)} wrote something other than one JSON object", harmless=True)


def failed(command: HookCommand, problem: str, details: str = "", *, refuses: bool = False) -> HookAnswer:
    """Return the answer of a command that failed: before a tool call, or if it ``refuses``, that is a denial."""
    text = f"{_named(command)} {problem}" + (f": {details[:LONGEST_REASON].strip()}" if details else "")
    if not refuses and command.hook_type not in _FAIL_CLOSED:
        return HookAnswer({}, text)
    return HookAnswer(refusal(command.hook_type, f"hook errored: the command {problem}"), text)


def _refused(command: HookCommand, output: _Output, result: CommandResult) -> HookAnswer:
    """Return the answer of a command that refuses by its exit code; its output may add to that."""
    said = in_common_form(command.hook_type, output.members)
    reason = next(
        (said[name] for name in ("permissionDecisionReason", "message", "reason") if said.get(name)),
        result.stderr[:LONGEST_REASON].strip() or None,
    )
    if command.hook_type == "postToolUseFailure":
        reason = said.get("additionalContext") or (command.pascal_case and reason) or result.stdout
    return HookAnswer({**said, **refusal(command.hook_type, reason)})


def _named(command: HookCommand) -> str:
    return f"the command {command.shown[:80]!r} of {command.file}"


class _Output(NamedTuple):
    """The output of a command on stdout, without reports of progress: the members of one JSON object, or a text."""

    members: JsonObject
    text: str = ""


def _is_broken(command: HookCommand, text: str) -> bool:
    """Return whether a text was meant to be an object; where texts are context, those may contain some."""
    if command.pascal_case and command.hook_type in _READS_TEXT:
        return text.startswith("{")
    return any(line.lstrip().startswith("{") for line in text.splitlines())


def _parse_output(stdout: str) -> _Output:
    text = "\n".join(line for line in stdout.splitlines() if not _is_progress(line)).strip()
    if not text:
        return _Output({})
    try:
        output = orjson.loads(text)
    except ValueError:
        return _Output({}, text)
    return _Output(cast("JsonObject", output)) if isinstance(output, dict) else _Output({}, text)


def _is_progress(line: str) -> bool:
    if '"progress"' not in line:
        return False
    try:
        value: Any = orjson.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and cast("JsonObject", value).get("type") == "progress"


def _allowed_part(command: HookCommand, answer: JsonObject) -> HookAnswer:
    """Return what a command may decide, and what it decides in vain."""
    of_clients = _ONLY_OF_CLIENTS.get(command.hook_type, frozenset()) & answer.keys()
    answer = {name: value for name, value in answer.items() if name not in of_clients}
    if of_clients:
        names = ", ".join(sorted(of_clients))
        return HookAnswer(answer, f"{_named(command)} answered with {names}, which only clients can decide")
    if command.source in ("user", "client") or "allow" not in (
        answer.get("permissionDecision"),
        answer.get("behavior"),
    ):
        return HookAnswer(answer)
    for name in ("permissionDecision", "behavior", "updatedInput"):
        answer.pop(name, None)
    problem = "allows a call, which only hooks of the user and of clients can"
    return HookAnswer(answer, f"{_named(command)} {problem}")
