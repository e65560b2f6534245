"""Failures of an MCP server's connection, and what they mean to the user."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import cast

import httpx2

from jumpseat.mcp.auth import NeedsLoginError
from jumpseat.mcp.catalogue import MissingVariableError
from jumpseat.mcp.stdio import ServerFailedError
from jumpseat_protocol.mcp_servers import McpServerConfig

log = logging.getLogger(__name__)


class NotConnectedError(Exception):
    """The server is not connected; the text is the reason."""


class NotNegotiatedError(ServerFailedError):
    """The process ended before a protocol revision was agreed on."""


def leaves(error: BaseException) -> Iterable[BaseException]:
    """Yield the exceptions in ``error`` that are not groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from leaves(inner)
    else:
        yield error


def needs_auth(error: BaseException) -> bool:
    """Return whether the server refused the connection for lack of a login."""
    return any(
        isinstance(cause, NeedsLoginError)
        or (isinstance(cause, httpx2.HTTPStatusError) and cause.response.status_code in (401, 403))
        for cause in leaves(error)
    )


def may_have_older_transport(config: McpServerConfig, error: BaseException) -> bool:
    """Return whether a server that has refused streamable HTTP may support HTTP with server-sent events.

    https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#backwards-compatibility
    """
    return config.transport == "http" and any(
        isinstance(cause, httpx2.HTTPStatusError) and cause.response.status_code in (400, 404, 405)
        for cause in leaves(error)
    )


def describe(error: BaseException) -> str:
    """Describe a failure for the user, without the query of a URL or the body of a response."""
    for cause in leaves(error):
        match cause:
            case ServerFailedError() | MissingVariableError() | NotConnectedError():
                return str(cause)
            case NeedsLoginError():
                return "the server requires a login"
            case httpx2.HTTPStatusError():
                url, status = cause.request.url, cause.response.status_code
                return (
                    f"the server responded with status {status} at {url.scheme}://{url.netloc.decode()}{url.path}"
                )
            case httpx2.TimeoutException():
                return "the server did not respond in time"
            case httpx2.ConnectError():
                return f"cannot connect to {cause.request.url.host}: {cause}"
            case httpx2.HTTPError():
                return f"the connection failed: {cause or type(cause).__name__}"
            case _:
                pass
    first = next(iter(leaves(error)))
    log.debug("an MCP server failed unexpectedly", exc_info=first)
    return f"unexpected failure ({type(first).__name__})"
