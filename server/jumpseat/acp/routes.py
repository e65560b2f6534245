"""The way from the name of a method to the function that serves it, in the version of the editor.

The methods of version 2 are in :mod:`jumpseat.acp.draft_routes`, which is imported for editors that speak it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.v1_routes import NOTIFICATIONS, REQUESTS, Notified, Route
from jumpseat.errors import InvalidRequestError
from jumpseat.rpc.json_rpc_peer import ResponseError
from jumpseat.rpc.wire_errors import check_size, invalid_params
from jumpseat_protocol.envelope import METHOD_NOT_FOUND
from jumpseat_protocol.wire import WireModel


def find_route(ctx: AcpContext, method: str) -> Callable[[Any], Any] | None:
    """Return the function that serves a request, or ``None`` for a method that no version has.

    The editor's version is looked at with each request: the first one may precede ``initialize``.
    """
    if method not in REQUESTS and _requests(ctx).get(method) is None:
        return None

    def serve(params: Any) -> Any:
        route = _requests(ctx).get(method)
        if route is None:
            raise ResponseError(f"Unhandled method {method}", METHOD_NOT_FOUND)
        if ctx.server.process.ending:
            raise InvalidRequestError("the server is shutting down")
        result = route.serve(ctx, _validate(method, route.params, params))
        return result if inspect.isawaitable(result) else dict(result)

    return serve


def check_params(ctx: AcpContext, method: str, params: Any) -> None:
    """Check the params of a request or notification that is served elsewhere.

    Raises:
        ResponseError: the version of the editor lacks the method.
        InvalidParamsError: the params are invalid.
    """
    known = _notifications(ctx).get(method) if method in NOTIFICATIONS else _requests(ctx).get(method)
    if known is None:
        raise ResponseError(f"Unhandled method {method}", METHOD_NOT_FOUND)
    _validate(method, known.params, params)


def find_notification(ctx: AcpContext, method: str) -> Callable[[Any], None] | None:
    """Return the function that serves a notification, or ``None`` for an unknown method."""
    if method not in NOTIFICATIONS:
        return None

    def take(params: Any) -> None:
        notified = _notifications(ctx)[method]
        notified.take(ctx, _validate(method, notified.params, params))

    return take


def _requests(ctx: AcpContext) -> Mapping[str, Route]:
    if ctx.editor.version.number == 1:
        return REQUESTS
    from jumpseat.acp import draft_routes

    return draft_routes.REQUESTS


def _notifications(ctx: AcpContext) -> Mapping[str, Notified]:
    if ctx.editor.version.number == 1:
        return NOTIFICATIONS
    from jumpseat.acp import draft_routes

    return draft_routes.NOTIFICATIONS


def _validate(method: str, model: type[WireModel], params: Any) -> Any:
    check_size(method, params)
    try:
        return model.model_validate({} if params is None else params)
    except ValidationError as error:
        raise invalid_params(method, error, model) from None
