"""What is left out of a recorded script by default, for each protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct

from jumpseat_testkit.protocols import ProtocolName


class Noise(Struct, frozen=True):
    """What says nothing about the conversation, or changes with each run.

    ``events`` are kinds of events, ``members`` those of messages of the server, ``of_the_client`` those of requests
    that open a session. ``chunks`` are kinds of events that come in many pieces, of which the number may differ:
    the first one stands for all.
    """

    events: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    of_the_client: frozenset[str] = frozenset()
    chunks: frozenset[str] = frozenset()


_COPILOT: Final = Noise(
    frozenset(
        {
            "assistant.idle",
            "assistant.message_delta",
            "assistant.message_start",
            "assistant.reasoning_delta",
            "assistant.streaming_delta",
            "assistant.tool_call_delta",
            "assistant.usage",
            "hook.end",
            "hook.start",
            "model.call_failure",
            "pending_messages.modified",
            "session.background_tasks_changed",
            "session.mcp_server_status_changed",
            "session.mcp_servers_loaded",
            "session.skills_loaded",
            "session.title_changed",
            "session.tools_updated",
            "session.usage_info",
            "session.warning",
            "subagent.deselected",
            "subagent.selected",
            "session.workspace_file_changed",
            "tool.execution_partial_result",
            "tool.execution_progress",
        }
    ),
    frozenset(
        {
            "agentMode",
            "capabilities",
            "checkpointPath",
            "compactionTokensUsed",
            "delivery",
            "detailedContent",
            "encryptedContent",
            "eventCount",
            "alreadyInUse",
            "interactionId",
            "intentionSummary",
            "isByok",
            "producer",
            "toolsStatus",
            "version",
            "model",
            "originatingMessageId",
            "reasoningId",
            "reasoningOpaque",
            "sandbox",
            "sessionWasActive",
            "telemetry",
            "tokensRemoved",
            "toolTelemetry",
            "transformedContent",
            "turnId",
            "type",
        }
    ),
    of_the_client=frozenset(
        {
            "clientName",
            "configDir",
            "envValueMode",
            "gitHubToken",
            "includeSubAgentStreamingEvents",
            "infiniteSessions",
            "requestAutoModeSwitch",
            "requestElicitation",
            "requestExitPlanMode",
            "requestUserInput",
            "toolFilterPrecedence",
        }
    ),
)
_ACP: Final = Noise(
    frozenset({"available_commands_update", "config_option_update", "session_info_update", "usage_update"}),
    frozenset({"_meta", "agentCapabilities", "authMethods", "configOptions", "models", "modes", "usage"}),
    chunks=frozenset({"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"}),
)
_AHP: Final = Noise(
    frozenset(
        {
            "chat/titleChanged",
            "chat/toolCallContentChanged",
            "chat/usage",
            "root/sessionChanged",
            "session/titleChanged",
            "terminal/cleared",
        }
    ),
    frozenset({"_meta", "customizations", "defaultDirectory", "models", "origin", "serverSeq", "usage"}),
    chunks=frozenset({"chat/delta", "chat/reasoning", "chat/toolCallDelta", "terminal/data"}),
)
_NONE: Final = Noise()
NOISE: Final[Mapping[ProtocolName, Noise]] = {
    "copilot": _COPILOT,
    "copilot-2": _COPILOT,
    "copilot-3": _COPILOT,
    "acp-1": _ACP,
    "acp-2": _ACP,
    "ahp": _AHP,
}

_KINDS: Final = ("<string>", "<number>", "<time>", "<list>")


def noise_of(protocol: ProtocolName, *, everything: bool) -> Noise:
    """Return what is left out; nothing of a script with ``everything``."""
    return _NONE if everything else NOISE[protocol]


def lean(step: dict[str, Any], kind: str, noise: Noise) -> dict[str, Any]:
    """Return a step whose patterns are without noise; ``kind`` is the member of an event with its type."""
    if noise is _NONE:
        return step
    if "call" in step:
        return _without(step, "result", noise)
    if "answer" in step:
        return _without(step, "params", noise)
    if "expect" in step:
        return {"expect": _without(step["expect"], "result", noise)}
    return {
        name: [_lean_event(event, kind, noise) for event in value] if name.startswith("events") else value
        for name, value in step.items()
    }


def _without(step: dict[str, Any], name: str, noise: Noise) -> dict[str, Any]:
    pattern = without_noise(step.get(name), noise)
    kept = {member: value for member, value in step.items() if member != name}
    return kept if pattern in (None, {}, []) or pattern in _KINDS else {**step, name: pattern}


def _lean_event(event: Any, kind: str, noise: Noise) -> Any:
    """Return the pattern of an event: its kind alone is enough if nothing else is known of it."""
    if isinstance(event, str):
        return event
    rest = without_noise({name: value for name, value in event.items() if name != kind}, noise)
    return {kind: event[kind], **rest} if rest else event[kind]


def without_noise(value: Any, noise: Noise) -> Any:
    """Return a pattern without members that are noise, are empty, or that match anything of their kind."""
    if isinstance(value, list):
        return [without_noise(item, noise) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for name, item in cast("dict[str, Any]", value).items():
        inner = without_noise(item, noise)
        if name not in noise.members and inner is not None and inner not in _KINDS and inner not in ({}, [], ""):
            kept[name] = inner
    return kept
