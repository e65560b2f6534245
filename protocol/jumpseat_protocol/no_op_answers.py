"""Requests with a fixed answer, because their subject does not exist in this server.

A server without remote control has nothing to steer, for example. The answer is the same for every live session. A
method whose fixed answer would promise an effect (a stored rule, a masked secret) is in ``unsupported.py`` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Answer(NamedTuple):
    """A fixed result.

    ``needs`` are the names of required params, all strings. With ``echoes``, the result is an object with
    these params of the request. With other values than those in ``only``, the method is unsupported.
    """

    result: Any
    only: Mapping[str, Any] = {}
    echoes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


_OFF: Final = {"state": "off"}
_DONE: Final = Answer({})
_VOID: Final = Answer(None)
_NOT_REQUESTED: Final = Answer({"success": False}, needs=("requestId",))

NEUTRAL_ANSWERS: Final[Mapping[str, Answer]] = {
    # --- the server -----------------------------------------------------------------------------------------------
    "commands.list": Answer({"commands": []}),
    "extensions.discover": Answer({"extensions": [], "mode": "disabled"}),
    "managedSettings.clearCache": _VOID,
    # No settings were found that an organization manages.
    "managedSettings.read": _DONE,
    "mcp.config.reload": _VOID,
    "sessions.findByTaskId": Answer({}, needs=("taskId",)),
    "sessions.getRemoteControlStatus": Answer({"status": _OFF}),
    "sessions.setAdditionalPlugins": Answer({}, only={"plugins": []}),
    "sessions.setRemoteControlSteering": Answer({"status": _OFF}, only={"enabled": False}),
    "sessions.stopRemoteControl": Answer({"stopped": False, "status": _OFF}),
    "sessions.transferRemoteControl": Answer({"transferred": False, "status": _OFF}, needs=("toSessionId",)),
    # --- MCP ------------------------------------------------------------------------------------------------------
    "session.mcp.oauth.respond": _NOT_REQUESTED,
    # The SDKs' own description: nothing happens over the wire.
    "session.mcp.configureGitHub": Answer({"changed": False}),
    # --- requests that this server does not make ------------------------------------------------------------------
    "session.ui.handlePendingSessionLimitsExhausted": _NOT_REQUESTED,
    # --- surroundings of the vendor's program ---------------------------------------------------------------------
    "session.contentExclusion.checkPaths": Answer({"available": False, "checks": []}),
    "session.extensions.list": Answer({"extensions": []}),
    "session.factory.listRuns": Answer({"runs": []}),
    "session.lsp.initialize": _VOID,
    "session.permissions.notifyPromptShown": Answer({"success": True}),
    # No policy of an organization requires a sandbox. The operator may: then commands fail without one.
    "session.sandbox.getEnforcementStatus": Answer({"required": False, "blocked": False}),
    "session.remote.disable": _VOID,
    "session.remote.enable": Answer({"remoteSteerable": False}, only={"mode": "off"}),
    "session.telemetry.getEngagementId": _DONE,
    "session.telemetry.setFeatureOverrides": _VOID,
    "session.visibility.get": Answer({"synced": False}),
    "session.visibility.set": Answer({"synced": False}),
}

REFUSALS: Final[Mapping[str, str]] = {
    "agentRegistry.spawn": "agentRegistry.spawn is not enabled on this server",
    "session.extensions.disable": "Extensions not available",
    "session.extensions.enable": "Extensions not available",
    "session.extensions.reload": "Extensions not available",
    "session.extensions.sendAttachmentsToMessage": "Extensions not available: this connection is no extension",
}
"""The methods that are refused, with messages that clients know."""
