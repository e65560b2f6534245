"""Whether a server that is reached by a URL wants a login: one request, of which nothing is kept."""

from __future__ import annotations

from typing import Final

import httpx

from jumpseat.mcp.auth import challenge_of, challenge_params
from jumpseat.mcp.login import greeting
from jumpseat_protocol.mcp import HeaderEntry, McpHttpResponse, McpProbeResult, McpServerConfig

REQUEST_S: Final = 30.0
MAX_BODY_BYTES: Final = 64 * 1024
_SESSION: Final = "mcp-session-id"
_NOT_TOLD: Final = ("set-cookie", _SESSION)


async def probe(config: McpServerConfig, token: str | None) -> McpProbeResult:
    """Greet a server as a new connection would, with the ``token`` that there is for it."""
    url, headers = config.url or "", httpx.Headers(config.headers)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    body, own = greeting()
    headers.update(own)
    try:
        async with httpx.AsyncClient(timeout=REQUEST_S, headers=headers) as client:
            request = client.build_request("GET", url) if config.transport == "sse" else None
            response = await client.send(request or client.build_request("POST", url, json=body), stream=True)
            try:
                answer = await _answer(response)
            finally:
                await response.aclose()
            if session := response.headers.get(_SESSION):
                await client.delete(url, headers={_SESSION: session})
    except httpx.InvalidURL:
        return McpProbeResult(status="failed", error="the URL is none")
    except httpx.HTTPError as error:
        return McpProbeResult(status="failed", error=f"the server cannot be asked ({type(error).__name__})")
    return _judged(response, answer, token)


def _judged(response: httpx.Response, answer: McpHttpResponse, token: str | None) -> McpProbeResult:
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
    if response.is_success:
        status = "no-auth-required" if token is None else "authenticated"
        return McpProbeResult(status=status, http_response=answer)
    problem = f"the server answered with status {response.status_code}"
    return McpProbeResult(status="failed", error=problem, http_response=answer)


async def _answer(response: httpx.Response) -> McpHttpResponse:
    headers = [
        HeaderEntry(name=name, value=value)
        for name, value in response.headers.multi_items()
        if name.lower() not in _NOT_TOLD
    ]
    # A stream that was opened has no end.
    body = None if response.is_success else await _text(response)
    return McpHttpResponse(status_code=response.status_code, headers=headers, body=body)


async def _text(response: httpx.Response) -> str | None:
    """The whole body; ``None`` where it is no text, or too long."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
