"""Authentication of requests to a server with bearer tokens and headers from a session's client.

A server requires a token by responding with 401 or 403; the client is asked for one, and the request is repeated
with it. One token serves all requests to a server and lives in memory only. Headers are requested before the first
request, and again when they have expired or were refused.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
import httpx2
import orjson
from msgspec import Struct

from jumpseat_protocol.structs import Discreet

AuthReason: TypeAlias = Literal["initial", "refresh", "reauth", "upscope"]
HeadersReason: TypeAlias = Literal["startup", "ttl-expired", "auth-failed"]

ROUNDS: Final = 3
"""Limit on the tokens that are tried for one request."""

MAX_METADATA_BYTES: Final = 64 * 1024

_PARAM: Final = re.compile(r'(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


class NeedsLoginError(Exception):
    """The server requires a token, and none is available."""


class AuthQuestion(Discreet, Struct, frozen=True):
    """A request for a token.

    ``challenge`` are the parameters of ``WWW-Authenticate``, ``metadata`` is the server's protected resource
    metadata (RFC 9728) as compact JSON, and ``refused`` is the token that the server refused, if there was one.
    """

    hidden = ("refused",)
    reason: AuthReason
    challenge: dict[str, str]
    metadata: str | None
    refused: str | None = None


AskToken: TypeAlias = Callable[[AuthQuestion], Awaitable[str | None]]


class ClientTokens(httpx2.Auth):
    """Bearer authentication for one server.

    ``token`` is the first token to send, if any; ``ask`` returns another one, or ``None`` if none is available.
    """

    def __init__(self, url: str, ask: AskToken, token: str | None = None) -> None:
        self._url = httpx2.URL(url)
        self._ask = ask
        self._token = token
        self._metadata: str | None = None
        self._lock = anyio.Lock()

    @property
    def token(self) -> str | None:
        """The token that requests carry at present."""
        return self._token

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        for _ in range(ROUNDS):
            sent = self._token
            if sent is not None:
                request.headers["Authorization"] = f"Bearer {sent}"
            response = yield request
            challenge = challenge_of(response)
            reason = _reason(response, challenge, had_token=sent is not None)
            if reason is None:
                return
            async with self._lock:
                if self._token != sent:
                    # Another request has obtained a token in the meantime.
                    continue
                if url := self._metadata_url(challenge):
                    # A new request, without the headers of the refused one.
                    found = yield httpx2.Request("GET", url, headers={"Accept": "application/json"})
                    self._metadata = await _json_object(found) or self._metadata
                token = await self._ask(AuthQuestion(reason, challenge, self._metadata, sent))
                if token is None and reason == "refresh":
                    token = await self._ask(AuthQuestion("reauth", challenge, self._metadata, sent))
                if token is None:
                    # Returning would hand the response for the metadata to the caller.
                    raise NeedsLoginError
                self._token = token
        # The last token has not been sent yet.
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    def _metadata_url(self, challenge: dict[str, str]) -> httpx2.URL | None:
        """Return the URL of the server's metadata; ``None`` if it has none or names another origin."""
        named = challenge.get("resource_metadata")
        if named is None:
            if self._metadata is not None:
                return None
            return self._url.copy_with(path="/.well-known/oauth-protected-resource", query=None)
        try:
            url = httpx2.URL(named)
        except httpx2.InvalidURL:
            return None
        same = (url.scheme, url.host, url.port) == (self._url.scheme, self._url.host, self._url.port)
        return url if same else None


AskHeaders: TypeAlias = Callable[[HeadersReason], Awaitable[dict[str, str] | None]]

RESERVED: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding"}
)
"""Headers that the protocol sets, besides those that begin with ``mcp-``."""


class ClientHeaders(httpx2.Auth):
    """Headers for the requests to one server, in addition to the authentication by ``inner``.

    ``ask`` returns headers, or ``None`` if no client can be asked; they are used for ``ttl_s`` seconds.
    """

    def __init__(self, inner: ClientTokens, ask: AskHeaders, ttl_s: float) -> None:
        self._inner = inner
        self._ask = ask
        self._ttl_s = ttl_s
        self._headers: dict[str, str] = {}
        self._received_at: float | None = None
        self._lock = anyio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        await self._refresh_expired()
        replaced = False
        async with aclosing(self._inner.async_auth_flow(request)) as inner:
            outgoing = await anext(inner)
            while True:
                if outgoing is request:
                    request.headers.update(self._headers)
                sent = self._received_at
                response = yield outgoing
                if outgoing is request and not replaced and _headers_refused(response):
                    replaced = True
                    if await self._replace(sent):
                        continue
                try:
                    outgoing = await inner.asend(response)
                except StopAsyncIteration:
                    return

    async def _refresh_expired(self) -> None:
        async with self._lock:
            if self._received_at is None:
                await self._fetch("startup")
            elif anyio.current_time() - self._received_at >= self._ttl_s:
                await self._fetch("ttl-expired")

    async def _replace(self, refused: float | None) -> bool:
        """Replace the headers that were received at ``refused``; return whether there are headers to try."""
        async with self._lock:
            if self._received_at != refused:
                # Another request has replaced them in the meantime.
                return bool(self._headers)
            return await self._fetch("auth-failed")

    async def _fetch(self, reason: HeadersReason) -> bool:
        headers = await self._ask(reason)
        if headers is None:
            return False
        self._received_at = anyio.current_time()
        self._headers = {
            name: value
            for name, value in headers.items()
            if name.lower() not in RESERVED and not name.lower().startswith("mcp-")
        }
        return bool(self._headers)


def _headers_refused(response: httpx2.Response) -> bool:
    """Return whether other headers may help; insufficient scope needs another token instead."""
    if response.status_code == 403:
        return challenge_of(response).get("error") != "insufficient_scope"
    return response.status_code == 401


def challenge_of(response: httpx2.Response) -> dict[str, str]:
    """Return the parameters of ``WWW-Authenticate: Bearer``; empty where the response has no such header."""
    header = response.headers.get("www-authenticate", "")
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "bearer":
        return {}
    found = cast("list[tuple[str, str, str]]", _PARAM.findall(rest))
    return {name.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else plain for name, quoted, plain in found}


def challenge_params(challenge: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a challenge that clients get, by their names in the Copilot SDK protocol."""
    names = {"resource_metadata": "resourceMetadataUrl", "scope": "scope", "error": "error"}
    return {names[name]: value for name, value in challenge.items() if name in names}


def _reason(response: httpx2.Response, challenge: dict[str, str], *, had_token: bool) -> AuthReason | None:
    if response.status_code == 401:
        return "refresh" if had_token else "initial"
    if response.status_code == 403 and challenge.get("error") == "insufficient_scope":
        return "upscope"
    return None


async def _json_object(response: httpx2.Response) -> str | None:
    """Return the JSON object in a response, as compact JSON with the order of its keys; ``None`` without one."""
    if response.status_code != 200:
        return None
    body = await response.aread()
    if len(body) > MAX_METADATA_BYTES:
        return None
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return orjson.dumps(value).decode() if isinstance(value, dict) else None
