"""The official Python SDKs decode every event of the server, live and in the history.

The SDKs decode one session with all events; see ``recording.py``. SDKs before 1.0 get the events that a client of
protocol 2 receives. The SDKs for Node are left out: they pass the parsed JSON on.
"""

from __future__ import annotations

import json
import subprocess
import typing
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.agent.permissions.questions import result_of
from jumpseat_protocol.events import EventPayload, PermissionCompleted, UnknownPayload
from jumpseat_protocol.permissions import PermissionDecision
from jumpseat_protocol.wire import to_wire
from tests.contract.hosts import DRIVERS
from tests.contract.recording import Protocol, Recording, record_session
from tests.support.fake_openai import JsonObject
from tests.support.toolchains import OLD_SDKS, SDKS, Sdk, require_sdk

# The first test of an SDK version installs it, which takes longer than a test's time limit.
pytestmark = pytest.mark.timeout(300)

DECODER_LIMIT_S = 120

# The fields that an application needs, by type of event. A dot leads into an object, or each object of an array.
ESSENTIALS: dict[str, Sequence[str]] = {
    "abort": ["reason"],
    "agent.interrupted": ["activity", "turn"],
    "assistant.idle": [],
    "assistant.message": ["messageId", "content", "toolRequests.toolCallId", "toolRequests.name"],
    "assistant.message_delta": ["messageId", "deltaContent"],
    "assistant.message_start": ["messageId"],
    "assistant.reasoning": ["reasoningId", "content"],
    "assistant.reasoning_delta": ["reasoningId", "deltaContent"],
    "assistant.tool_call_delta": ["toolCallId", "inputDelta"],
    "assistant.turn_end": ["turnId"],
    "assistant.turn_start": ["turnId"],
    "assistant.usage": ["model", "inputTokens", "outputTokens"],
    "auto_mode_switch.completed": ["requestId", "response"],
    "auto_mode_switch.requested": ["requestId", "errorCode"],
    "capabilities.changed": ["ui.elicitation"],
    "command.completed": ["requestId"],
    "command.execute": ["requestId", "command", "commandName", "args"],
    "command.queued": ["requestId", "command"],
    "commands.changed": ["commands.name"],
    "elicitation.completed": ["requestId", "action"],
    "elicitation.requested": ["requestId", "message", "requestedSchema.properties"],
    "exit_plan_mode.completed": ["requestId", "approved", "selectedAction", "feedback"],
    "exit_plan_mode.requested": ["requestId", "summary", "actions", "recommendedAction"],
    "external_tool.completed": ["requestId"],
    "external_tool.requested": ["requestId", "toolCallId", "toolName", "arguments"],
    "hook.end": ["hookInvocationId", "hookType", "success", "error.message"],
    "hook.start": ["hookInvocationId", "hookType"],
    "mcp.headers_refresh_completed": ["requestId", "outcome"],
    "mcp.headers_refresh_required": ["requestId", "serverName", "serverUrl", "reason"],
    "mcp.oauth_completed": ["requestId"],
    "mcp.oauth_required": ["requestId", "serverName", "serverUrl"],
    "mcp.prompts.list_changed": ["serverName"],
    "mcp.resources.list_changed": ["serverName"],
    "mcp.task_created": ["toolCallId", "serverName", "taskId"],
    "mcp.tools.list_changed": ["serverName"],
    "model.call_failure": ["source", "statusCode", "errorMessage"],
    "pending_messages.modified": [],
    "permission.completed": ["requestId", "result.kind"],
    "permission.requested": [
        "requestId",
        "permissionRequest.kind",
        "permissionRequest.toolCallId",
        "permissionRequest.fullCommandText",
        "permissionRequest.commands.identifier",
        "permissionRequest.fileName",
        "permissionRequest.diff",
        "permissionRequest.path",
    ],
    "sampling.completed": ["requestId"],
    "sampling.requested": ["requestId", "serverName", "mcpRequestId"],
    "session.background_tasks_changed": [],
    "session.canvas.closed": ["instanceId", "extensionId", "canvasId"],
    "session.canvas.opened": [
        "instanceId",
        "extensionId",
        "canvasId",
        "extensionName",
        "title",
        "status",
        "url",
        "input",
    ],
    "session.canvas.recorded": ["instanceId", "extensionId", "canvasId", "title", "input"],
    "session.canvas.registry_changed": [
        "canvases.extensionId",
        "canvases.canvasId",
        "canvases.displayName",
        "canvases.description",
        "canvases.extensionName",
        "canvases.inputSchema",
        "canvases.actions.name",
        "canvases.actions.description",
        "canvases.actions.inputSchema",
    ],
    "session.autopilot_objective_changed": ["operation", "id", "status"],
    "session.autopilot_stopped": ["reason", "requestId"],
    "session.task_complete": ["summary", "success"],
    "session.canvas.removed": ["instanceId", "extensionId", "canvasId"],
    "session.canvas.unavailable": ["instanceId", "extensionId", "canvasId"],
    "session.context_cleared": ["initialMessage", "messagesCleared"],
    "session.context_changed": ["cwd", "gitRoot", "branch"],
    "session.error": ["errorType", "message"],
    "session.idle": [],
    "session.info": ["infoType", "message"],
    "session.mcp_server_status_changed": ["serverName", "status"],
    "session.mcp_servers_loaded": ["servers.name", "servers.status", "servers.source", "servers.error"],
    "session.managed_settings_enforced": [],
    "session.managed_settings_resolved": [],
    "session.mode_changed": ["newMode", "previousMode"],
    "session.model_change": ["newModel", "previousModel"],
    # Every generation of SDKs has other names.
    "session.permissions_changed": [],
    "session.plan_changed": ["operation"],
    "session.remote_steerable_changed": ["remoteSteerable"],
    "session.resume": ["eventCount"],
    "session.shutdown": ["shutdownType", "errorReason"],
    "session.skills_loaded": ["skills.name", "skills.description", "skills.source", "skills.enabled"],
    "session.changes_undone": ["undone"],
    "session.snapshot_rewind": ["eventsRemoved", "upToEventId"],
    "session.start": ["sessionId", "version", "producer", "selectedModel", "context.cwd", "context.repository"],
    "session.title_changed": ["title"],
    "session.todos_changed": [],
    "session.compaction_start": [],
    "session.compaction_complete": ["success", "summaryContent", "preCompactionTokens"],
    "session.truncation": ["tokenLimit", "tokensRemovedDuringTruncation"],
    "session.tools_updated": ["model"],
    "session.usage_info": ["currentTokens", "messagesLength", "tokenLimit"],
    "session.warning": ["warningType", "message"],
    "session.workspace_file_changed": ["operation", "path"],
    "skill.invoked": ["name", "path", "content", "allowedTools"],
    "session.schedule_cancelled": ["id"],
    "session.schedule_created": ["id", "prompt"],
    "session.schedule_rearmed": ["id"],
    "subagent.completed": ["toolCallId", "agentName", "agentDisplayName"],
    "subagent.configured": [],
    "subagent.deselected": [],
    "subagent.failed": ["toolCallId", "agentName", "agentDisplayName", "error"],
    "subagent.selected": ["agentName", "agentDisplayName", "tools"],
    "subagent.started": ["toolCallId", "agentName", "agentDisplayName", "agentDescription"],
    "system.notification": ["content", "kind.type", "kind.agentId", "kind.agentType"],
    "tool.execution_complete": [
        "toolCallId",
        "success",
        "result.content",
        "error.message",
        "error.code",
        "toolTelemetry",
    ],
    "tool.execution_partial_result": ["toolCallId", "partialOutput"],
    "tool.execution_progress": ["toolCallId", "progressMessage"],
    "tool.execution_start": ["toolCallId", "toolName", "arguments"],
    "tool_search.activated": ["strategy", "toolNames"],
    "tool.user_requested": ["toolCallId", "toolName", "arguments"],
    "ui.ephemeral_query": ["requestId", "phase"],
    "user.message": ["content", "attachments.type", "attachments.path"],
    "user_input.completed": ["requestId"],
    "user_input.requested": ["requestId", "question", "choices"],
}


@dataclass(frozen=True)
class Decoder:
    """The decoder of one SDK version, and the protocol version that it uses with the server."""

    sdk: Sdk
    python: Path
    protocol: Protocol

    def decode(self, events: list[JsonObject]) -> JsonObject:
        """Return the event types that the SDK knows, and the decoded events."""
        command = [str(self.python), str(DRIVERS / "decode_events.py")]
        process = subprocess.run(
            command, input=json.dumps(events), capture_output=True, text=True, timeout=DECODER_LIMIT_S, check=False
        )
        assert process.returncode == 0, process.stderr
        output: JsonObject = json.loads(process.stdout)
        assert output["sdk"] == self.sdk.version
        return output


@pytest.fixture(params=[sdk for sdk in (*OLD_SDKS, *SDKS) if sdk.registry == "pypi"], ids=str)
def decoder(request: pytest.FixtureRequest) -> Decoder:
    sdk: Sdk = request.param
    return Decoder(sdk, require_sdk(sdk) / "bin" / "python", 2 if sdk in OLD_SDKS else 3)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Protocol], Recording]:
    """Return the events of the eventful session, which runs once for each protocol."""

    @cache
    def record(protocol: Protocol) -> Recording:
        return anyio.run(record_session, tmp_path_factory.mktemp("recorded"), protocol)

    return record


def test_the_recording_holds_every_event_that_the_server_can_send(
    recorded: Callable[[Protocol], Recording],
) -> None:
    recording = recorded(3)

    sendable = {member.type for member in typing.get_args(EventPayload) if member is not UnknownPayload}
    sent = {event["type"] for event in recording.live}
    assert sendable - sent == set(), "let recording.py bring about the new events, too"
    assert sent == set(ESSENTIALS)
    for event_type, paths in ESSENTIALS.items():
        data = [event["data"] for event in recording.live if event["type"] == event_type]
        for path in paths:
            assert any(at(event_data, path) not in (None, []) for event_data in data), (
                f"{event_type} never has {path}"
            )


def test_an_sdk_decodes_every_event_live_and_in_the_history(
    decoder: Decoder, recorded: Callable[[Protocol], Recording]
) -> None:
    recording = recorded(decoder.protocol)
    events = [*recording.live, *recording.stored]

    assert faults(events, decoder.decode(events)) == []


def test_an_sdk_decodes_the_events_after_each_of_its_permission_decisions(decoder: Decoder) -> None:
    if decoder.protocol == 2:
        pytest.skip("it has decisions of its own form")
    kinds: tuple[str, ...] = typing.get_args(PermissionDecision.model_fields["kind"].annotation)
    # Only the kind: a host that forwards a decision may know nothing else.
    results = [
        result_of(PermissionDecision.model_validate({"kind": kind})) for kind in kinds if kind != "no-result"
    ]
    approval = {"kind": "read"}
    for result in results:
        if result.kind in ("approved-for-session", "approved-for-location"):
            result.approval, result.location_key = approval, "/"
    if decoder.sdk.version == "1.0.6":
        results = [result for result in results if result.kind != "approved-read-only-for-session"]
    events: list[JsonObject] = [
        {
            "id": str(uuid.uuid4()),
            "parentId": None,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "type": "permission.completed",
            "data": to_wire(PermissionCompleted(request_id="r", result=result)),
        }
        for result in results
    ]
    assert faults(events, decoder.decode(events)) == []


def faults(events: list[JsonObject], output: JsonObject) -> list[str]:
    """Return the events that an SDK could not decode, and the fields that it lost."""
    found: list[str] = []
    for event, outcome in zip(events, output["decoded"], strict=True):
        if "failure" in outcome:
            found.append(f"{event['type']} is not read: {json.dumps(event['data'])}\n{outcome['failure']}")
            continue
        decoded: JsonObject = outcome["event"]
        found += [f"{event['type']}: {name} is lost" for name in lost_fields(event, decoded, output["known_types"])]
    return found


def lost_fields(event: JsonObject, decoded: JsonObject, known_types: list[str]) -> list[str]:
    """Return the paths of fields that the decoded event lacks or has with another value."""
    names = [name for name in ("id", "parentId") if decoded[name] != event[name]]
    if datetime.fromisoformat(decoded["timestamp"]) != datetime.fromisoformat(event["timestamp"]):
        names.append("timestamp")
    if event["type"] not in known_types:
        return names if decoded["type"] in ("unknown", event["type"]) else [*names, "type"]
    if decoded["type"] != event["type"]:
        return [*names, "type"]
    essentials = ESSENTIALS[event["type"]]
    return names + [path for path in essentials if at(decoded["data"], path) != at(event["data"], path)]


def at(value: Any, path: str) -> Any:
    """Return the value at a path, or ``None`` if there is none."""
    name, _, rest = path.partition(".")
    if isinstance(value, list):
        return [at(item, path) for item in typing.cast("list[Any]", value)]
    if not isinstance(value, dict):
        return None
    member = typing.cast("JsonObject", value).get(name)
    return at(member, rest) if rest else member
