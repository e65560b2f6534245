"""Negotiation of the protocol revision with a server.

Revisions from 2026-07-28 on have no session: the server is asked for the revisions that it supports
(``server/discover``), and each request names one. Older revisions begin with a handshake (``initialize``). A server
that does not answer the first question as the newer revisions require is taken for an older one.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import anyio
import mcp.types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from jumpseat.mcp.client import McpClient, RefusedError
from jumpseat.mcp.stdio import ServerFailedError

DISCOVER_S: Final = 3.0
"""Time-out of ``server/discover``: some older servers ignore requests before the handshake.

A newer server that takes longer to start refuses the handshake and is then asked again.
"""


async def negotiate(client: McpClient, *, discover: bool) -> None:
    """Agree with the server on a revision; without ``discover``, begin with the handshake.

    Raises:
        ServerFailedError: the server refused, or supports no revision that we support.
        ServerGoneError: the connection has ended.
    """
    session = client.session
    try:
        if not (discover and await _discover(session, LATEST_MODERN_VERSION)):
            await _handshake(session)
    except RuntimeError as error:
        raise ServerFailedError(str(error)) from None
    except ValidationError:
        raise ServerFailedError("invalid response to 'initialize'") from None
    except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
        public = client.public_error(error)
        if isinstance(public, RefusedError):
            raise ServerFailedError(f"the server refused the connection: {public}") from None
        raise public from None


async def _discover(session: ClientSession, version: str) -> bool:
    """Ask for the server's revisions and adopt the newest one without a handshake; return whether there is one.

    Raises:
        ServerFailedError: the server supports only revisions that we do not.
    """
    found: Any = None
    try:
        with anyio.move_on_after(DISCOVER_S):
            found = types.DiscoverResult.model_validate(await session.send_discover(version))
    except ValidationError:
        return False
    except MCPError as error:
        supported = _supported_revisions(error)
        if (common := _newest_common(supported)) not in (None, version):
            return await _discover(session, common)
        if supported and not set(supported) & set(HANDSHAKE_PROTOCOL_VERSIONS) and common is None:
            raise ServerFailedError(f"the server supports only {', '.join(supported)[:200]}") from None
        return False
    if found is None or _newest_common(found.supported_versions) is None:
        return False
    session.adopt(found)
    return True


async def _handshake(session: ClientSession) -> None:
    try:
        await session.initialize()
    except MCPError as error:
        # A server of a newer revision that had not started yet when it was asked.
        common = _newest_common(_supported_revisions(error))
        if common is None or not await _discover(session, common):
            raise


def _supported_revisions(error: MCPError) -> Sequence[str]:
    """Return the revisions that a server names in an error, newest or not; empty for any other error."""
    if error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
        return ()
    try:
        return types.UnsupportedProtocolVersionErrorData.model_validate(error.data).supported
    except ValidationError:
        return ()


def _newest_common(versions: Sequence[str]) -> str | None:
    return next((version for version in reversed(MODERN_PROTOCOL_VERSIONS) if version in versions), None)
