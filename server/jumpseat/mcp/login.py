"""Logging in to an MCP server by way of a browser: OAuth's authorization code with PKCE, answered on loopback.

Discovery, registration and the exchange of the code are those of the ``mcp`` package; here is who is asked where,
and what is kept of it.
"""

from __future__ import annotations

import html
import ipaddress
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx
from anyio.abc import SocketAttribute, SocketStream
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, ValidationError

from jumpseat.errors import JumpseatError
from jumpseat.mcp.tokens import Login

PERSON_S: Final = 600.0
"""How long somebody may take in the browser."""

REQUEST_S: Final = 30.0
HEAD_S: Final = 10.0
MAX_HEAD_BYTES: Final = 16 * 1024
PATH: Final = "/callback"
DONE: Final = "You are logged in. You can close this page."


class LoginFailedError(JumpseatError):
    """There was no login; the text says why."""


class _Granted(Exception):  # noqa: N818 - it is no error
    """There is a token: the request that asked for it has done its work."""


async def log_in(
    url: str,
    show: Callable[[str], Awaitable[None]],
    *,
    client_id: str | None = None,
    client_secret: str | None = None,
    client_name: str | None = None,
    done: str | None = None,
) -> Login | None:
    """Log in to the server at ``url``; ``show`` gets the address that a person is to open.

    Without ``client_id`` we register ourselves. ``done`` is what the browser shows in the end. ``None`` where the
    server wants no login.

    Raises:
        LoginFailedError: nobody has logged in, or the server does not let us.
    """
    async with _callback(done or DONE) as callback:
        redirect = f"http://127.0.0.1:{callback.port}{PATH}"
        method = ("client_secret_post" if client_secret else "none") if client_id else "none"
        metadata = OAuthClientMetadata(
            client_name=client_name or "jumpseat",
            redirect_uris=[AnyUrl(redirect)],
            token_endpoint_auth_method=method,
        )
        storage = _Memory()
        if client_id:
            storage.client = OAuthClientInformationFull(
                **metadata.model_dump(), client_id=client_id, client_secret=client_secret
            )

        async def open_page(address: str) -> None:
            named = provider.context.oauth_metadata
            for one in (address, str(named.token_endpoint) if named else url):
                _check_private(one, url)
            callback.expect(parse_qs(urlsplit(address).query).get("state", [""])[0])
            await show(address)

        provider = OAuthClientProvider(url, metadata, storage, open_page, callback.answer)
        try:
            await _knock(url, provider)
        except _Granted:
            return _login(provider)
        except OAuthRegistrationError:
            raise LoginFailedError(
                "the server does not let us register: give the id of a registered client (--client-id)"
            ) from None
        except OAuthTokenError:
            raise LoginFailedError("the server gave no token for the login") from None
        except OAuthFlowError as error:
            raise LoginFailedError(f"the login failed: {error}") from None
        except ValidationError:
            raise LoginFailedError("the login failed: what the server says of itself cannot be used") from None
        except httpx.HTTPError as error:
            raise LoginFailedError(f"the login failed: no answer ({type(error).__name__})") from None
    return None


def greeting() -> tuple[dict[str, Any], dict[str, str]]:
    """The body and the headers of the request that begins a connection."""
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": LATEST_PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "jumpseat", "version": "0"},
        },
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LATEST_PROTOCOL_VERSION,
        "User-Agent": "jumpseat",
    }
    return hello, headers


async def _knock(url: str, auth: httpx.Auth) -> None:
    """Begin a connection, so that the server says that it wants a token."""
    hello, headers = greeting()
    async with (
        httpx.AsyncClient(timeout=REQUEST_S, headers=headers) as client,
        client.stream("POST", url, json=hello, auth=auth) as response,
    ):
        if response.status_code == 405:
            # The older transport is asked with GET.
            async with client.stream("GET", url, auth=auth):
                pass


def _login(provider: OAuthClientProvider) -> Login:
    context = provider.context
    token, client = context.current_tokens, context.client_info
    if token is None or client is None or client.client_id is None:
        raise LoginFailedError("the server gave no token for the login")
    named = context.oauth_metadata
    endpoint = str(named.token_endpoint) if named else urljoin(context.server_url, "/token")
    with_resource = context.should_include_resource_param(context.protocol_version)
    return Login(
        access_token=token.access_token,
        refresh_token=token.refresh_token,
        expires_at=time.time() + token.expires_in if token.expires_in is not None else None,
        scope=token.scope,
        token_endpoint=endpoint,
        client_id=client.client_id,
        client_secret=client.client_secret,
        auth_method=client.token_endpoint_auth_method,
        resource=context.get_resource_url() if with_resource else None,
    )


def _check_private(address: str, server: str) -> None:
    """Raises: LoginFailedError: a login there could be read on the way."""
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and (_loopback(parts.hostname) or _plain(server))):
        return
    raise LoginFailedError(f"the server sends logins to {parts.scheme}://{parts.hostname}, which is not private")


def _plain(server: str) -> bool:
    parts = urlsplit(server)
    return parts.scheme == "http" and not _loopback(parts.hostname)


def _loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


class _Memory:
    """What the ``mcp`` package wants to have kept; we keep it once all is there."""

    def __init__(self) -> None:
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        raise _Granted

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


# --- the answer of the browser ------------------------------------------------------------------------------------


class _Callback:
    def __init__(self, port: int, done: str) -> None:
        self.port = port
        self._done = done
        self._state: str | None = None
        self._code: str | None = None
        self._problem: str | None = None
        self._answered = anyio.Event()

    def expect(self, state: str) -> None:
        self._state = state

    async def answer(self) -> tuple[str, str | None]:
        """The code, and the state that came with it.

        Raises:
            OAuthFlowError: there is none.
        """
        with anyio.move_on_after(PERSON_S):
            await self._answered.wait()
        if self._code is None:
            raise OAuthFlowError(self._problem or "nobody has logged in")
        return self._code, self._state

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            # A browser that is gone costs nothing but its page.
            with anyio.move_on_after(HEAD_S), suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                status, text = self._take(await _target(stream))
                page = f"<!doctype html><meta charset=utf-8><title>jumpseat</title><p>{html.escape(text)}".encode()
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Length: {len(page)}\r\n"
                    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n"
                    "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
                )
                await stream.send(head.encode() + page)
        if self._code or self._problem:
            self._answered.set()

    def _take(self, target: str) -> tuple[str, str]:
        parts = urlsplit(target)
        values = {name: one[0] for name, one in parse_qs(parts.query).items()}
        # Any page of any site can send a browser here; only who was sent to the login knows the state.
        if parts.path != PATH or not self._state or values.get("state") != self._state or self._answered.is_set():
            return "404 Not Found", "There is nothing here."
        if code := values.get("code"):
            self._code = code
            return "200 OK", self._done
        self._problem = f"the server says {values.get('error', 'nothing')[:100]!r}"
        return "400 Bad Request", "You are not logged in. You can close this page."


@asynccontextmanager
async def _callback(done: str) -> AsyncGenerator[_Callback, None]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    failure: Exception | None = None
    async with listener, anyio.create_task_group() as tasks:
        port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        callback = _Callback(port, done)
        tasks.start_soon(listener.serve, callback.serve)
        try:
            yield callback
        except Exception as error:
            # Raised below, or the task group would wrap it.
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _target(stream: SocketStream) -> str:
    """What a browser asks for; empty where it does not ask."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MAX_HEAD_BYTES:
        try:
            head += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            break
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    return words[1] if len(words) == 3 and words[0] == "GET" else ""
