"""THE table: every request a client may send, with its parameters and its result.

``rpc/routes.py`` of the server has a handler for exactly these names (a test compares the two), and the
generated coverage page is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from jumpseat_protocol import server, sessions
from jumpseat_protocol.permissions import HandlePendingPermissionRequestParams
from jumpseat_protocol.tools import HandlePendingToolCallParams
from jumpseat_protocol.wire import WireModel

PROTOCOL_VERSION: Final = 3


class Method(NamedTuple):
    """``result`` is a model, ``None`` for void methods (answered ``null``), or a plain JSON type."""

    params: type[WireModel]
    result: type[Any] | None


CLIENT_REQUESTS: Final[Mapping[str, Method]] = {
    "connect": Method(server.ConnectParams, server.ConnectResult),
    "ping": Method(server.PingParams, server.PingResult),
    "status.get": Method(server.EmptyParams, server.StatusResult),
    "auth.getStatus": Method(server.EmptyParams, server.AuthStatusResult),
    "models.list": Method(server.ModelsListParams, server.ModelsListResult),
    "runtime.shutdown": Method(server.EmptyParams, None),
    "session.create": Method(sessions.SessionCreateParams, sessions.SessionOpenedResult),
    "session.resume": Method(sessions.SessionResumeParams, sessions.SessionOpenedResult),
    "session.send": Method(sessions.SessionSendParams, sessions.SessionSendResult),
    "session.sendAndWait": Method(sessions.SessionSendParams, sessions.SessionSendAndWaitResult),
    "session.abort": Method(sessions.SessionAbortParams, server.SuccessResult),
    "session.destroy": Method(sessions.SessionParams, server.SuccessResult),
    "session.detach": Method(sessions.SessionParams, server.SuccessResult),
    "session.delete": Method(sessions.SessionParams, server.SuccessResult),
    "session.list": Method(sessions.SessionListParams, sessions.SessionListResult),
    "session.getMetadata": Method(sessions.SessionParams, sessions.SessionGetMetadataResult),
    "session.getLastId": Method(server.EmptyParams, sessions.SessionIdResult),
    "session.getMessages": Method(sessions.SessionParams, dict),
    "session.getForeground": Method(server.EmptyParams, sessions.ForegroundResult),
    "session.setForeground": Method(sessions.SessionParams, server.SuccessResult),
    "session.mode.get": Method(sessions.SessionParams, str),
    "session.mode.set": Method(sessions.ModeSetParams, sessions.ModeSetResult),
    "session.model.getCurrent": Method(sessions.SessionParams, sessions.CurrentModelResult),
    "session.model.switchTo": Method(sessions.ModelSwitchParams, sessions.CurrentModelResult),
    "session.options.update": Method(sessions.OptionsUpdateParams, server.SuccessResult),
    "session.tools.handlePendingToolCall": Method(HandlePendingToolCallParams, server.SuccessResult),
    "session.permissions.handlePendingPermissionRequest": Method(
        HandlePendingPermissionRequestParams, server.SuccessResult
    ),
    "session.permissions.setApproveAll": Method(sessions.SetApproveAllParams, server.SuccessResult),
    "session.permissions.resetSessionApprovals": Method(sessions.SessionParams, server.SuccessResult),
    "session.permissions.pendingRequests": Method(sessions.SessionParams, sessions.PendingRequestsResult),
    "session.eventLog.registerInterest": Method(sessions.InterestParams, sessions.InterestResult),
    "session.eventLog.releaseInterest": Method(sessions.ReleaseInterestParams, server.SuccessResult),
}
