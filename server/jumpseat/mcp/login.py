"""Login to an MCP server in a browser: OAuth's authorization code flow with PKCE and a redirect to loopback.

The ``mcp`` package does the discovery, the registration and the exchange of the code; this module checks the
addresses, serves the redirect and keeps the result.
"""

from __future__ import annotations

import html
import ipaddress
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from anyio.abc import SocketAttribute, SocketStream
from mcp.client.auth import (
    AuthorizationCodeResult,
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from jumpseat.errors import JumpseatError
from jumpseat.mcp.endpoints import Endpoints, NearerError
from jumpseat.mcp.http import LIMITED, initialize_request, tls_context
from jumpseat.mcp.tokens import Login

PERSON_S: Final = 600.0
"""Time-out of the login in the browser."""

REQUEST_S: Final = 30.0
HEAD_S: Final = 10.0
MAX_HEAD_BYTES: Final = 16 * 1024
PATH: Final = "/callback"
SUCCESS_TEXT: Final = "You are logged in. You can close this page."


class LoginFailedError(JumpseatError):
    """The login failed; the text is the reason."""


class Granted(Exception):  # noqa: N818 - it signals success
    """Raised to end the login request as soon as there is a token."""


async def log_in(
    url: str,
    show: Callable[[str], Awaitable[None]],
    *,
    client_id: str | None = None,
    client_secret: str | None = None,
    client_name: str | None = None,
    success_text: str | None = None,
) -> Login | None:
    """Log in to the server at ``url``; return ``None`` if it requires no login.

    ``show`` gets the address that the user has to open. Without ``client_id``, jumpseat registers itself.
    ``success_text`` is the text that the browser shows in the end.

    Raises:
        LoginFailedError: the user did not log in, or the server refused.
    """
    async with _serve_callback(success_text or SUCCESS_TEXT) as callback:
        redirect = f"http://127.0.0.1:{callback.port}{PATH}"
        method = ("client_secret_post" if client_secret else "none") if client_id else "none"
        metadata = OAuthClientMetadata(
            client_name=client_name or "jumpseat",
            redirect_uris=[AnyUrl(redirect)],
            token_endpoint_auth_method=method,
        )
        storage = MemoryStorage()
        if client_id:
            storage.client = OAuthClientInformationFull(
                **metadata.model_dump(), client_id=client_id, client_secret=client_secret
            )

        async def open_page(address: str) -> None:
            metadata, client = provider.context.oauth_metadata, provider.context.client_info
            supported = metadata.token_endpoint_auth_methods_supported if metadata else None
            if client_secret and client and supported and "client_secret_post" not in supported:
                client.token_endpoint_auth_method = "client_secret_basic"  # noqa: S105 - a method
            for candidate in (address, str(metadata.token_endpoint) if metadata else url):
                check_private(candidate, url)
                await endpoints.check(candidate)
            callback.expect(parse_qs(urlsplit(address).query).get("state", [""])[0])
            await show(address)

        endpoints = Endpoints(url)
        provider = OAuthClientProvider(url, metadata, storage, open_page, callback.answer)
        try:
            await send_initialize(url, provider, endpoints.check_request)
        except Granted:
            return _login(provider)
        except NearerError as error:
            raise LoginFailedError(str(error)) from None
        except OAuthRegistrationError:
            raise LoginFailedError(
                "the server refused to register a client: give the id of a registered client (--client-id)"
            ) from None
        except OAuthTokenError:
            raise LoginFailedError("the server issued no token") from None
        except OAuthFlowError as error:
            raise LoginFailedError(f"the login failed: {error}") from None
        except ValidationError:
            raise LoginFailedError("the login failed: the server's OAuth metadata is invalid") from None
        except httpx2.HTTPError as error:
            raise LoginFailedError(f"the login failed: no response ({type(error).__name__})") from None
    return None


async def send_initialize(url: str, auth: httpx2.Auth, check: Callable[[httpx2.Request], Awaitable[None]]) -> None:
    """Send ``initialize``, so that the server responds that it requires a token.

    Some servers require a token only for the requests that follow. ``check`` may refuse each request.
    """
    body, headers = initialize_request()
    hooks = {**LIMITED, "request": [check]}
    async with httpx2.AsyncClient(
        timeout=REQUEST_S, headers=headers, verify=tls_context(), event_hooks=hooks
    ) as client:
        async with client.stream("POST", url, json=body, auth=auth) as response:
            status, session = response.status_code, response.headers.get("mcp-session-id")
        if status == 405:
            # The older transport begins with GET.
            async with client.stream("GET", url, auth=auth):
                pass
        elif status < 400:
            more = {"mcp-session-id": session} if session else {}
            listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            async with client.stream("POST", url, json=listing, headers=more, auth=auth):
                pass


def _login(provider: OAuthClientProvider) -> Login:
    context = provider.context
    token, client = context.current_tokens, context.client_info
    if token is None or client is None:
        raise LoginFailedError("the server issued no token")
    metadata = context.oauth_metadata
    endpoint = str(metadata.token_endpoint) if metadata else urljoin(context.server_url, "/token")
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


def check_private(address: str, server: str) -> None:
    """Check that a login at ``address`` cannot be read in transit: by https, to loopback, or for a plain server.

    Raises:
        LoginFailedError: the address is neither.
    """
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and (_loopback(parts.hostname) or _is_plain(server))):
        return
    raise LoginFailedError(
        f"the server sends logins to {parts.scheme}://{parts.hostname}, without encryption: expected https"
    )


def _is_plain(server: str) -> bool:
    """Return whether the server itself is reached without TLS over a network."""
    parts = urlsplit(server)
    return parts.scheme == "http" and not _loopback(parts.hostname)


def _loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


class MemoryStorage:
    """Token storage for the ``mcp`` package, in memory only: who logs in decides what becomes of the token."""

    def __init__(self) -> None:
        self.client: OAuthClientInformationFull | None = None
        self.token: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.token = tokens
        raise Granted

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


# --- the redirect of the browser ----------------------------------------------------------------------------------


class _Callback:
    """The redirect target of one login; ``port`` is its TCP port on loopback."""

    def __init__(self, port: int, success_text: str) -> None:
        self.port = port
        self._success_text = success_text
        self._state: str | None = None
        self._code: str | None = None
        self._issuer: str | None = None
        self._problem: str | None = None
        self._answered = anyio.Event()

    def expect(self, state: str) -> None:
        """Accept only redirects with this ``state``."""
        self._state = state

    async def answer(self) -> AuthorizationCodeResult:
        """Wait for the redirect; return the authorization code, its state and its issuer.

        Raises:
            OAuthFlowError: the server redirected with an error, or the time is up.
        """
        with anyio.move_on_after(PERSON_S):
            await self._answered.wait()
        if self._code is None:
            raise OAuthFlowError(self._problem or "the login was not completed")
        return AuthorizationCodeResult(code=self._code, state=self._state, iss=self._issuer)

    async def serve(self, stream: SocketStream) -> None:
        """Handle one HTTP request of a browser."""
        async with stream:
            # A browser that disconnects only loses its page.
            with anyio.move_on_after(HEAD_S), suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                status, text = self._handle(await _request_target(stream))
                page = f"<!doctype html><meta charset=utf-8><title>jumpseat</title><p>{html.escape(text)}".encode()
                head = (
                    f"HTTP/1.1 {status}\r\nContent-Length: {len(page)}\r\n"
                    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n"
                    "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"
                )
                await stream.send(head.encode() + page)
        if self._code or self._problem:
            self._answered.set()

    def _handle(self, target: str) -> tuple[str, str]:
        """Take the redirect in a request target; return the HTTP status and the text for the browser."""
        parts = urlsplit(target)
        values = {name: value[0] for name, value in parse_qs(parts.query).items()}
        # Any page of any site can send a browser here; only the browser that began the login knows the state.
        if parts.path != PATH or not self._state or values.get("state") != self._state or self._answered.is_set():
            return "404 Not Found", "There is nothing here."
        if code := values.get("code"):
            self._code, self._issuer = code, values.get("iss")
            return "200 OK", self._success_text
        self._problem = f"the server returned the error {values.get('error', 'unknown')[:100]!r}"
        return "400 Bad Request", "You are not logged in. You can close this page."


@asynccontextmanager
async def _serve_callback(success_text: str) -> AsyncGenerator[_Callback, None]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    failure: Exception | None = None
    async with listener, anyio.create_task_group() as tasks:
        port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        callback = _Callback(port, success_text)
        tasks.start_soon(listener.serve, callback.serve)
        try:
            yield callback
        except Exception as error:
            # Raised below, because the task group would wrap it in a group.
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _request_target(stream: SocketStream) -> str:
    """Read the head of an HTTP request and return the target of a GET; empty for anything else."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MAX_HEAD_BYTES:
        try:
            head += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            break
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    return words[1] if len(words) == 3 and words[0] == "GET" else ""
