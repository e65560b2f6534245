"""The events and the requests to clients that the SDKs know and this server never sends, for the coverage page.

Those that it sends are members of the union in ``events.py``, and keys of ``server_requests.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

UNSENT_EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "fusions of models are an experiment of the vendor": (
        "assistant.fusion_phase_activity",
        "assistant.fusion_phase_completed",
        "assistant.fusion_phase_failed",
        "assistant.fusion_phase_started",
        "session.fusion_completed",
        "session.fusion_resolved",
        "session.fusion_route_failed",
        "session.fusion_route_started",
    ),
    "extensions and workflows are experiments of the vendor's program": (
        "session.extensions.attachments_pushed",
        "session.extensions_loaded",
        "workflow.run_settled",
        "workflow.run_started",
        "workflow.run_updated",
    ),
    "the Copilot API chooses, or a client is asked by `autoModeSwitch.request`": (
        "session.auto_mode_resolved",
        "session.auto_tier_recommendation",
        "session.auto_tier_switch_failed",
        "session.model_deselected",
    ),
    "a host's policy is about permissions, not plugins": ("session.managed_plugin_progress",),
    "the deltas of messages and tools, which are sent, contain it": (
        "assistant.streaming_delta",
        "tool.shell_output",
    ),
    "the system message is no part of the log; `session.metadata.contextInfo` has its size": ("system.message",),
    "`assistant.usage` reports each call of a model, and `session.error` its failure": (
        "model.call_final_result",
        "model.call_finished",
        "model.call_start",
        "assistant.turn_retry",
        "prompt_cache_break",
        "session.usage_checkpoint",
        "session.quota_observation",
    ),
    "`permission.completed` has the decision and its reason": (
        "human_response.recorded",
        "permission.assentDetected",
        "permission.carriedForward",
        "permission.contextualAuthorization",
        "permission.messageAuthorization",
        "permission.messageAuthorizationDegraded",
        "permission.messageAuthorizationRead",
        "session.permission_recovery",
    ),
    "`permission.requested` and `tool.execution_complete` have `sandboxed`": ("sandbox.decision",),
    "a session at its limit ends its prompts with `session.error`": (
        "session.session_limits_changed",
        "session_limits_exhausted.completed",
        "session_limits_exhausted.requested",
    ),
    "`session.mcp_servers_loaded` and `session.mcp_server_status_changed` report the states of servers": (
        "mcp.oauth_recovery_completed",
        "session.mcp_server_needs_reconnect",
        "session.mcp_server_removed",
        "session.mcp_server_tools_loaded",
    ),
    "a client that wants to know the agents calls `session.agent.list`": ("session.custom_agents_updated",),
    "`hook.end`, `skill.invoked` and the results of tools contain it": (
        "assistant.server_tool_progress",
        "hook.progress",
        "instruction.update",
        "mcp_app.tool_call_complete",
        "session.binary_asset",
        "session.mode_notice_delivered",
        "skill.context_delivered",
        "skill.context_delivered_ref",
        "skill.invoked_ref",
    ),
    "sessions run on this machine, without an index of the vendor": (
        "session.handoff",
        "session.indexed_search",
    ),
    "nothing in this server has such a notice": (
        "assistant.intent",
        "session.completion_receipt",
        "session.custom_notification",
    ),
}
"""The events that are never sent, by the reason."""

UNMADE_REQUESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "extensions and workflows are experiments of the vendor's program": (
        "extensionLaunchProvider.resolve",
        "workflow.abort",
        "workflow.execute",
    ),
    "the host protocol of agents belongs to the vendor's program": (
        "host.materializeSession",
        "host.registerSession",
        "host.shutdown",
        "host.unregisterSession",
        "host.validateAuthentication",
        "uiThread.run",
    ),
    "skills come from files": ("skillProvider.list", "skillProvider.read"),
    "a method that installs something is called by the client itself": ("installations.confirm",),
    "text and `readdirWithTypes` are all that sessions need": (
        "sessionFs.readFileBytes",
        "sessionFs.readdir",
        "sessionFs.writeFileBytes",
    ),
}
"""The requests that are never made, by the reason."""
