"""Which handler serves which method: the server's half of ``jumpseat_protocol.methods``.

A handler takes a context and checked params and returns a result model (or plain JSON, or nothing). Plain functions
run at once and in order; coroutine functions run as tasks.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from jumpseat.errors import AuthenticationRequiredError, InvalidRequestError, UnsupportedError
from jumpseat.handlers.auth_get_status import auth_get_status
from jumpseat.handlers.connect import connect
from jumpseat.handlers.context import Context
from jumpseat.handlers.models_list import models_list
from jumpseat.handlers.ping import ping
from jumpseat.handlers.runtime_shutdown import runtime_shutdown
from jumpseat.handlers.session_abort import session_abort
from jumpseat.handlers.session_create import session_create
from jumpseat.handlers.session_delete import session_delete
from jumpseat.handlers.session_detach import session_detach
from jumpseat.handlers.session_event_log import register_interest, release_interest
from jumpseat.handlers.session_foreground import get_foreground, set_foreground
from jumpseat.handlers.session_get_messages import session_get_messages
from jumpseat.handlers.session_list import session_get_last_id, session_get_metadata, session_list
from jumpseat.handlers.session_mode import mode_get, mode_set
from jumpseat.handlers.session_model import get_current, switch_to
from jumpseat.handlers.session_options import options_update
from jumpseat.handlers.session_permissions import (
    handle_pending_permission_request,
    pending_requests,
    reset_session_approvals,
    set_approve_all,
)
from jumpseat.handlers.session_resume import session_resume
from jumpseat.handlers.session_send import session_send, session_send_and_wait
from jumpseat.handlers.session_tools import handle_pending_tool_call
from jumpseat.handlers.status_get import status_get
from jumpseat.rpc.wire_errors import InvalidParamsError
from jumpseat_protocol.methods import CLIENT_REQUESTS, PROTOCOL_VERSION
from jumpseat_protocol.unsupported import UNSUPPORTED_REQUESTS
from jumpseat_protocol.wire import WireModel

Handler: TypeAlias = Callable[[Context, Any], Any]

ROUTES: Final = MappingProxyType[str, Handler](
    {
        "connect": connect,
        "ping": ping,
        "status.get": status_get,
        "auth.getStatus": auth_get_status,
        "models.list": models_list,
        "runtime.shutdown": runtime_shutdown,
        "session.create": session_create,
        "session.resume": session_resume,
        "session.send": session_send,
        "session.sendAndWait": session_send_and_wait,
        "session.abort": session_abort,
        "session.destroy": session_detach,
        "session.detach": session_detach,
        "session.delete": session_delete,
        "session.list": session_list,
        "session.getMetadata": session_get_metadata,
        "session.getLastId": session_get_last_id,
        "session.getMessages": session_get_messages,
        "session.getForeground": get_foreground,
        "session.setForeground": set_foreground,
        "session.mode.get": mode_get,
        "session.mode.set": mode_set,
        "session.model.getCurrent": get_current,
        "session.model.switchTo": switch_to,
        "session.options.update": options_update,
        "session.tools.handlePendingToolCall": handle_pending_tool_call,
        "session.permissions.handlePendingPermissionRequest": handle_pending_permission_request,
        "session.permissions.setApproveAll": set_approve_all,
        "session.permissions.resetSessionApprovals": reset_session_approvals,
        "session.permissions.pendingRequests": pending_requests,
        "session.eventLog.registerInterest": register_interest,
        "session.eventLog.releaseInterest": release_interest,
    }
)


def find_route(ctx: Context, method: str) -> Callable[[Any], Any] | None:
    """The function that serves ``method`` for one connection; ``None`` for names the protocol does not have."""
    handler = ROUTES.get(method)
    if handler is None and method not in UNSUPPORTED_REQUESTS:
        return None

    def serve(params: Any) -> Any:
        if not ctx.connection.authenticated and method != "connect":
            raise AuthenticationRequiredError("AUTHENTICATION_FAILED: connect with the connection token first")
        if ctx.connection.protocol is None:
            # SDKs that greet with a ping know no other protocol (0.1), or speak both (0.2, 0.3).
            ctx.connection.protocol = ctx.process.protocol or (2 if method == "ping" else PROTOCOL_VERSION)
        if ctx.process.ending:
            raise InvalidRequestError("the server is shutting down")
        if handler is None:
            raise UnsupportedError(method)
        try:
            checked = CLIENT_REQUESTS[method].params.model_validate({} if params is None else params)
        except ValidationError as error:
            raise InvalidParamsError(method, error) from None
        result = handler(ctx, checked)
        if inspect.isawaitable(result):
            return _encode_later(result)
        return _encode(result)

    return serve


async def _encode_later(result: Awaitable[Any]) -> Any:
    return _encode(await result)


def _encode(result: Any) -> Any:
    return result.wire() if isinstance(result, WireModel) else result
