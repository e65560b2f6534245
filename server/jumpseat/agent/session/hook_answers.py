"""The answers of hooks in the forms of VS Code and Claude Code, converted to the one that the server reads.

Each of these says in its own members that a call, a prompt or the end of a run is blocked. The exit code 2 of a
command means the same as :func:`refusal`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat_protocol.callbacks import HookOutput

GUARDS: Final = frozenset({"preToolUse", "permissionRequest", "userPromptSubmitted"})
"""Hooks that decide whether something happens. A decision of a command that makes no sense there is a refusal."""

OBJECTION: Final = "A hook objects to this result."
"""What the model gets if a hook blocks a result without a reason."""

_DECISIVE: Final = frozenset(
    {
        *("decision", "behavior", "permission", "permissiondecision", "continue", "interrupt"),
        *("modifiedargs", "updatedinput", "modifiedprompt", "updatedprompt"),
    }
)
_OLDER_DECISIONS: Final = {"block": "deny", "approve": "allow"}


def in_common_form(hook_type: str, answer: JsonObject) -> JsonObject:
    """Return an answer with the members of Copilot's format; what has no counterpart there is kept."""
    values = dict(answer)
    if isinstance(inner := values.get("hookSpecificOutput"), dict):
        del values["hookSpecificOutput"]
        values |= cast("JsonObject", inner)
    values.pop("hookEventName", None)
    match hook_type:
        case "preToolUse":
            _convert_guard(values)
        case "permissionRequest":
            _convert_permission(values)
        case "postToolUse" | "postToolUseFailure":
            _convert_objection(values)
            if hook_type == "postToolUse":
                _convert_result(values)
        case "agentStop" | "subagentStop" if values.get("continue") is False:
            values.pop("decision", None)
        case "errorOccurred" if values.get("continue") is False:
            values["errorHandling"] = "abort"
        case _:
            pass
    if values.get("decision") == "approve":
        values["decision"] = "allow"
    return values


def refusal(hook_type: str, reason: str | None) -> JsonObject:
    """Return the answer that refuses what a hook is asked about; after a call, the model gets the reason."""
    match hook_type:
        case "preToolUse":
            return {"permissionDecision": "deny", "permissionDecisionReason": reason}
        case "permissionRequest":
            return {"behavior": "deny", "message": reason}
        case "postToolUse" | "postToolUseFailure":
            return {"additionalContext": reason or OBJECTION}
        case _:
            return {"decision": "block", "reason": reason}


def without_effect(answer: JsonObject, output: HookOutput, invalid: Iterable[str]) -> list[str]:
    """Return the members of an answer that the ``output`` parsed from it does not have, nor as ``invalid`` ones."""
    known = {_plain(name) for name in output.model_fields_set}
    return [
        name
        for name, value in answer.items()
        if value is not None and _plain(name) not in known and name not in invalid
    ]


def is_decisive(names: Iterable[str]) -> bool:
    """Return whether one of the members means a decision, at some hook and in some format."""
    return any(_plain(name) in _DECISIVE for name in names)


def _plain(name: str) -> str:
    """Return a name in camel or snake case without its form."""
    return name.replace("_", "").lower()


def _convert_guard(values: JsonObject) -> None:
    _take_older_decision(values, "permissionDecision", "permissionDecisionReason")
    if (updated := values.pop("updatedInput", None)) is not None:
        values.setdefault("modifiedArgs", updated)
    if values.get("continue") is False:
        values |= refusal("preToolUse", values.get("stopReason") or values.get("permissionDecisionReason"))


def _convert_permission(values: JsonObject) -> None:
    if isinstance(decision := values.get("decision"), dict):
        del values["decision"]
        values |= cast("JsonObject", decision)
    else:
        _take_older_decision(values, "behavior", "message")
    if values.get("continue") is False:
        values |= refusal("permissionRequest", values.get("stopReason") or values.get("message"))
        values["interrupt"] = True


def _convert_objection(values: JsonObject) -> None:
    if values.get("decision") == "block":
        del values["decision"]
        reason = values.pop("reason", None) or OBJECTION
        contexts = [reason, values.get("additionalContext")]
        values["additionalContext"] = "\n\n".join(str(context) for context in contexts if context)


def _convert_result(values: JsonObject) -> None:
    for name in ("updatedToolOutput", "updatedMCPToolOutput"):
        if (updated := values.pop(name, None)) is not None:
            text = updated if isinstance(updated, str) else canonical_json(updated)
            values.setdefault("modifiedResult", {"textResultForLlm": text, "resultType": "success"})


def _take_older_decision(values: JsonObject, name: str, reason_name: str) -> None:
    """Convert the members of Claude's older format, which has the same ones at each hook; the stricter counts."""
    decision, reason = values.pop("decision", None), values.pop("reason", None)
    if isinstance(decision, str):
        decision = _OLDER_DECISIONS.get(decision, decision)
    present = values.get(name)
    if decision is not None and present != "deny" and (decision != "allow" or present is None):
        values[name] = decision
    if reason is not None:
        values[reason_name] = reason
