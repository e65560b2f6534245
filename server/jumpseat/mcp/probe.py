"""Probe of a server at a URL: one request that shows whether the server requires a login."""

from __future__ import annotations

from typing import Final

import httpx2
from mcp.types import UNSUPPORTED_PROTOCOL_VERSION, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from jumpseat.mcp.auth import challenge_of, challenge_params
from jumpseat.mcp.http import LIMITED, initialize_request, tls_context
from jumpseat_protocol.mcp import HeaderEntry, McpHttpResponse, McpProbeResult
from jumpseat_protocol.mcp_servers import McpServerConfig

REQUEST_S: Final = 30.0
MAX_BODY_BYTES: Final = 64 * 1024
_SESSION: Final = "mcp-session-id"
_HIDDEN_HEADERS: Final = ("set-cookie", _SESSION)


async def probe(config: McpServerConfig, token: str | None) -> McpProbeResult:
    """Send ``initialize`` to a server as a new connection would, with ``token`` if there is one."""
    url, headers = config.url or "", httpx2.Headers(config.headers)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    body, protocol_headers = initialize_request()
    headers.update(protocol_headers)
    try:
        async with httpx2.AsyncClient(
            timeout=REQUEST_S, headers=headers, verify=tls_context(), event_hooks=LIMITED
        ) as client:
            request = client.build_request("GET", url) if config.transport == "sse" else None
            response = await client.send(request or client.build_request("POST", url, json=body), stream=True)
            try:
                answer = await _http_response(response)
            finally:
                await response.aclose()
            if session := response.headers.get(_SESSION):
                await client.delete(url, headers={_SESSION: session})
    except httpx2.InvalidURL:
        return McpProbeResult(status="failed", error=f"invalid URL {url!r}")
    except httpx2.HTTPError as error:
        return McpProbeResult(status="failed", error=f"cannot reach the server ({type(error).__name__})")
    return _result(response, answer, token)


def _result(response: httpx2.Response, answer: McpHttpResponse, token: str | None) -> McpProbeResult:
    challenge = challenge_of(response)
    params = challenge_params(challenge) or None
    if response.status_code == 401:
        reason = "initial" if token is None else "refresh"
        return McpProbeResult(
            status="needs-auth", http_response=answer, reason=reason, www_authenticate_params=params
        )
    if response.status_code == 403 and challenge.get("error") == "insufficient_scope":
        return McpProbeResult(
            status="needs-auth", http_response=answer, reason="upscope", www_authenticate_params=params
        )
    if response.is_success or _lacks_handshake(answer):
        status = "no-auth-required" if token is None else "authenticated"
        return McpProbeResult(status=status, http_response=answer)
    problem = f"the server responded with status {response.status_code}"
    return McpProbeResult(status="failed", error=problem, http_response=answer)


def _lacks_handshake(answer: McpHttpResponse) -> bool:
    """Return whether a server refused ``initialize`` because it supports only revisions without a handshake."""
    try:
        message = jsonrpc_message_adapter.validate_json(answer.body or "", by_name=False)
    except ValidationError:
        return False
    return isinstance(message, JSONRPCError) and message.error.code == UNSUPPORTED_PROTOCOL_VERSION


async def _http_response(response: httpx2.Response) -> McpHttpResponse:
    headers = [
        HeaderEntry(name=name, value=value)
        for name, value in response.headers.multi_items()
        if name.lower() not in _HIDDEN_HEADERS
    ]
    # The body of a successful response may be an event stream without end.
    body = None if response.is_success else await _text(response)
    return McpHttpResponse(status_code=response.status_code, headers=headers, body=body)


async def _text(response: httpx2.Response) -> str | None:
    """Return the body of a response; ``None`` if it is not UTF-8 or too long."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
