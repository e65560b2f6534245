"""The input and the output of hook commands.

Format: https://docs.github.com/en/copilot/reference/hooks-reference. Two decisions differ from it, because a hook
before a tool call is a guard: one that takes too long denies the call, and one of a project or a plugin cannot
allow a call that the user would be asked about.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, cast

import orjson

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.session.hooks import HookAnswer, HookCommand
from jumpseat.tools.hooks.matching import OTHER_NAMES
from jumpseat.tools.shell.captured_commands import CommandResult

WARNING_EXIT: Final = 2
"""The exit code by which a command denies a call, or adds its output to a failure."""
LONGEST_REASON: Final = 2000
"""Limit in characters on the text of a denial that a command writes to stderr."""

_OBSERVERS: Final = frozenset({"userPromptSubmitted", "errorOccurred", "sessionEnd"})
"""Hooks at which the output of a command has no meaning."""
_DECISIONS: Final = (None, "allow", "deny", "ask")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SNAKE: Final = {"toolArgs": "tool_input"}
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
        converted["tool_result"] = {_snake(key): value for key, value in cast("JsonObject", result).items()}
    return converted


def _snake(name: str) -> str:
    return _CAMEL.sub("_", name).lower()


def answer_of(command: HookCommand, result: CommandResult) -> HookAnswer:
    """Interpret the end of a command."""
    if result.timed_out:
        return failed(command, f"took longer than {command.timeout_s:g} s")
    output, is_json = _parse_output(result.stdout)
    if result.exit_code == 0:
        problem = None if is_json else f"{_named(command)} wrote something other than one JSON object"
        answer = _allowed_part(command, output)
        if command.hook_type == "preToolUse" and answer.get("permissionDecision") not in _DECISIONS:
            return failed(command, "answered with an unknown permissionDecision")
        return HookAnswer(answer, problem)
    if command.hook_type == "preToolUse" and result.exit_code == WARNING_EXIT:
        reason = output.get("permissionDecisionReason") or result.stderr[:LONGEST_REASON] or None
        return HookAnswer({"permissionDecision": "deny", "permissionDecisionReason": reason})
    if command.hook_type == "postToolUseFailure" and result.exit_code == WARNING_EXIT:
        return HookAnswer({"additionalContext": output.get("additionalContext") or result.stdout})
    return failed(command, f"exited with code {result.exit_code}", result.stderr)


def failed(command: HookCommand, problem: str, details: str = "") -> HookAnswer:
    """Return the answer of a command that failed; before a tool call, that is a denial."""
    text = f"{_named(command)} {problem}" + (f": {details[:LONGEST_REASON]}" if details else "")
    if command.hook_type != "preToolUse":
        return HookAnswer({}, text)
    reason = f"hook errored: the command {problem}"
    return HookAnswer({"permissionDecision": "deny", "permissionDecisionReason": reason}, text)


def _named(command: HookCommand) -> str:
    return f"the command {command.shown[:80]!r} of {command.file}"


def _parse_output(stdout: str) -> tuple[JsonObject, bool]:
    """Return the JSON object on stdout, and whether there was nothing else besides reports of progress."""
    text = "\n".join(line for line in stdout.splitlines() if not _is_progress(line)).strip()
    if not text:
        return {}, True
    try:
        output = orjson.loads(text)
    except ValueError:
        return {}, False
    return (cast("JsonObject", output), True) if isinstance(output, dict) else ({}, False)


def _is_progress(line: str) -> bool:
    if '"progress"' not in line:
        return False
    try:
        value: Any = orjson.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and cast("JsonObject", value).get("type") == "progress"


def _allowed_part(command: HookCommand, output: JsonObject) -> JsonObject:
    """Return what a command may decide."""
    if command.hook_type in _OBSERVERS:
        return {}
    inner = output.pop("hookSpecificOutput", None)
    if isinstance(inner, dict):
        # The form of other agents.
        output |= cast("JsonObject", inner)
    if command.hook_type == "preToolUse":
        _read_guard(output)
    if command.source != "user" and output.get("permissionDecision") == "allow":
        del output["permissionDecision"]
    return output


def _read_guard(output: JsonObject) -> None:
    """Convert the members with which guards of other agents deny a call, or change its arguments."""
    for stops, reason in (
        (output.get("decision") == "block", "reason"),
        (output.get("continue") is False, "stopReason"),
    ):
        if stops:
            output |= {"permissionDecision": "deny", "permissionDecisionReason": output.get(reason)}
    if isinstance(updated := output.get("updatedInput"), dict):
        output.setdefault("modifiedArgs", updated)
