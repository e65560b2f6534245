"""Bearer tokens and headers that the client of a session gives for a server.

A server says in a 401 or 403 that it wants a token; the client is told, and the request is sent again with the
token that it gives. One token serves all requests of a server; it lives in memory only. Headers are asked for
beforehand, and anew when their time is over, or when they were refused.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
import httpx
import orjson

AuthReason: TypeAlias = Literal["initial", "refresh", "reauth", "upscope"]
HeadersReason: TypeAlias = Literal["startup", "ttl-expired", "auth-failed"]

ROUNDS: Final = 3
"""How many tokens are tried for one request."""

MAX_METADATA_BYTES: Final = 64 * 1024

_PARAM: Final = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


class NeedsLoginError(Exception):
    """The server wants a token, and nobody has one to give."""


@dataclass(frozen=True, slots=True)
class AuthQuestion:
    """``challenge`` are the parameters of ``WWW-Authenticate``; ``metadata`` is what the server publishes of itself
    (RFC 9728), as compact JSON. ``refused`` is the token that did not do, if there was one."""

    reason: AuthReason
    challenge: dict[str, str]
    metadata: str | None
    refused: str | None = field(default=None, repr=False)


AskToken: TypeAlias = Callable[[AuthQuestion], Awaitable[str | None]]


class ClientTokens(httpx.Auth):
    """The token of one server. ``ask`` gives one, or ``None`` where nobody has one; ``token`` is the first."""

    def __init__(self, url: str, ask: AskToken, token: str | None = None) -> None:
        self._url = httpx.URL(url)
        self._ask = ask
        self._token = token
        self._metadata: str | None = None
        self._lock = anyio.Lock()

    @property
    def token(self) -> str | None:
        """The one that requests carry now."""
        return self._token

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
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
                    # Another request has got one in the meantime.
                    continue
                if place := self._metadata_url(challenge):
                    # A request of its own: it carries nothing of the one that was refused.
                    found = yield httpx.Request("GET", place, headers={"Accept": "application/json"})
                    self._metadata = await _document(found) or self._metadata
                given = await self._ask(AuthQuestion(reason, challenge, self._metadata, sent))
                if given is None and reason == "refresh":
                    given = await self._ask(AuthQuestion("reauth", challenge, self._metadata, sent))
                if given is None:
                    # Just to end here would make the answer to a request of ours that of the server.
                    raise NeedsLoginError
                self._token = given
        # The last token has not been tried yet.
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    def _metadata_url(self, challenge: dict[str, str]) -> httpx.URL | None:
        """Where the server describes itself; only its own origin is asked, whatever it says."""
        named = challenge.get("resource_metadata")
        if named is None:
            if self._metadata is not None:
                return None
            return self._url.copy_with(path="/.well-known/oauth-protected-resource", query=None)
        try:
            url = httpx.URL(named)
        except httpx.InvalidURL:
            return None
        same = (url.scheme, url.host, url.port) == (self._url.scheme, self._url.host, self._url.port)
        return url if same else None


AskHeaders: TypeAlias = Callable[[HeadersReason], Awaitable[dict[str, str] | None]]

RESERVED: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "last-event-id", "transfer-encoding"}
)
"""Headers that are the protocol's, with all of ``mcp-``."""


class ClientHeaders(httpx.Auth):
    """Headers of one server, over what ``inner`` does. ``ask`` gives some, none, or ``None`` where nobody is asked.

    They hold for ``ttl_s`` seconds.
    """

    def __init__(self, inner: ClientTokens, ask: AskHeaders, ttl_s: float) -> None:
        self._inner = inner
        self._ask = ask
        self._ttl_s = ttl_s
        self._headers: dict[str, str] = {}
        self._given_at: float | None = None
        self._lock = anyio.Lock()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        await self._freshen()
        tried = False
        async with aclosing(self._inner.async_auth_flow(request)) as inner:
            wanted = await anext(inner)
            while True:
                if wanted is request:
                    request.headers.update(self._headers)
                sent_at = self._given_at
                response = yield wanted
                if wanted is request and not tried and _is_refusal(response):
                    tried = True
                    if await self._replace(sent_at):
                        continue
                try:
                    wanted = await inner.asend(response)
                except StopAsyncIteration:
                    return

    async def _freshen(self) -> None:
        async with self._lock:
            if self._given_at is None:
                await self._get("startup")
            elif anyio.current_time() - self._given_at >= self._ttl_s:
                await self._get("ttl-expired")

    async def _replace(self, refused: float | None) -> bool:
        """Get others than those that were ``refused``, by when they were given; whether there are some."""
        async with self._lock:
            if self._given_at != refused:
                # Another request has got them in the meantime.
                return bool(self._headers)
            return await self._get("auth-failed")

    async def _get(self, reason: HeadersReason) -> bool:
        given = await self._ask(reason)
        if given is None:
            return False
        self._given_at = anyio.current_time()
        self._headers = {
            name: value
            for name, value in given.items()
            if name.lower() not in RESERVED and not name.lower().startswith("mcp-")
        }
        return bool(self._headers)


def _is_refusal(response: httpx.Response) -> bool:
    """Whether other headers may help; a wider token is another matter."""
    if response.status_code == 403:
        return challenge_of(response).get("error") != "insufficient_scope"
    return response.status_code == 401


def challenge_of(response: httpx.Response) -> dict[str, str]:
    """The parameters of ``WWW-Authenticate: Bearer``; empty where there are none."""
    header = response.headers.get("www-authenticate", "")
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "bearer":
        return {}
    found = cast("list[tuple[str, str, str]]", _PARAM.findall(rest))
    return {name.lower(): re.sub(r"\\(.)", r"\1", quoted) if quoted else plain for name, quoted, plain in found}


def challenge_params(challenge: Mapping[str, str]) -> dict[str, str]:
    """What clients are told of a challenge, in the words of the protocol."""
    names = {"resource_metadata": "resourceMetadataUrl", "scope": "scope", "error": "error"}
    return {names[name]: value for name, value in challenge.items() if name in names}


def _reason(response: httpx.Response, challenge: dict[str, str], *, had_token: bool) -> AuthReason | None:
    if response.status_code == 401:
        return "refresh" if had_token else "initial"
    if response.status_code == 403 and challenge.get("error") == "insufficient_scope":
        return "upscope"
    return None


async def _document(response: httpx.Response) -> str | None:
    """A JSON object, in compact form with the order of its keys kept."""
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
