"""Tokens of stored logins to MCP servers, and their renewal.

A token is sent only to the URL that it was issued for. This module imports nothing heavy before a token has to be
renewed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

import anyio
import anyio.to_thread
from pydantic import ConfigDict, Field, ValidationError

from jumpseat.errors import StoreError
from jumpseat_protocol.lazy_models import LazyModel

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

EARLY_S: Final = 60.0
"""Remaining lifetime below which a token is renewed."""

RENEW_S: Final = 30.0
MAX_RESPONSE_BYTES: Final = 256 * 1024


class TokenStore(Protocol):
    """Storage of logins by URL."""

    def get(self, url: str) -> dict[str, Any] | None:
        """Return the login for a URL; ``None`` if there is none."""
        ...

    def put(self, url: str, login: dict[str, Any]) -> None:
        """Store a login.

        Raises:
            StoreError: the login cannot be written.
        """
        ...

    def client_secret(self, url: str, issuer: str, client_id: str) -> str | None:
        """Return the secret of a client of an authorization server; ``None`` if there is none."""
        ...


class Login(LazyModel):
    """A login with what its renewal needs.

    ``expires_at`` is in Unix time; ``auth_method`` is the token endpoint's method for clients with a secret.
    """

    model_config = ConfigDict(extra="ignore")

    access_token: str = Field(min_length=1, repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    expires_at: float | None = None
    scope: str | None = None
    token_endpoint: str
    client_id: str
    client_secret: str | None = Field(default=None, repr=False)
    auth_method: str | None = None
    resource: str | None = None

    def expires_soon(self) -> bool:
        """Return whether the token has expired or is about to."""
        return self.expires_at is not None and self.expires_at - EARLY_S < time.time()


class LoginTokens:
    """The tokens of stored logins, for all sessions of the process."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store
        self._lock = anyio.Lock()

    async def current(self, url: str) -> str | None:
        """Return the token for a server, renewed if it is about to expire; ``None`` without a login."""
        login = await self._read(url)
        if login is None or not login.expires_soon():
            return login and login.access_token
        return await self.renew(url, login.access_token)

    async def renew(self, url: str, refused: str | None) -> str | None:
        """Return another token than the ``refused`` one; ``None`` if there is none and it cannot be renewed."""
        async with self._lock:
            login = await self._read(url)
            if login is None or login.access_token != refused:
                # There was a login or a renewal in the meantime.
                return login and login.access_token
            if login.refresh_token is None:
                return None
            fresh = await _renew(login)
            if fresh is None:
                # Another process may have used the refresh token at the same time.
                login = await self._read(url)
                return login.access_token if login is not None and login.access_token != refused else None
            await self.save(url, fresh)
            return fresh.access_token

    async def save(self, url: str, login: Login) -> None:
        """Store a login; a failure is logged, because the token at hand is still valid."""
        try:
            await anyio.to_thread.run_sync(self._store.put, url, login.model_dump(exclude_none=True))
        except StoreError as error:
            log.error("cannot store the token of an MCP server: %s", error)

    async def client_secret(self, url: str, issuer: str, client_id: str) -> str | None:
        """Return the stored secret of a client of an authorization server; ``None`` if there is none."""
        # The keyring may ask a person to unlock it.
        read = self._store.client_secret
        return await anyio.to_thread.run_sync(read, url, issuer, client_id, abandon_on_cancel=True)

    async def _read(self, url: str) -> Login | None:
        record = await anyio.to_thread.run_sync(self._store.get, url)
        return parse_login(record)


def parse_login(record: Mapping[str, Any] | None) -> Login | None:
    """Parse a stored login; return ``None`` if it is missing or invalid."""
    if record is None:
        return None
    try:
        return Login.model_validate(record)
    except ValidationError:
        log.warning("the stored login of an MCP server is invalid")
        return None


async def _renew(login: Login) -> Login | None:
    """Request a new token with the refresh token (RFC 6749, section 6); return ``None`` if that fails."""
    import httpx2

    from jumpseat.mcp.http import tls_context

    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token or "", "client_id": login.client_id}
    if login.resource:
        form["resource"] = login.resource
    auth: httpx2.BasicAuth | None = None
    if login.client_secret and login.auth_method == "client_secret_basic":
        auth = httpx2.BasicAuth(quote(login.client_id, safe=""), quote(login.client_secret, safe=""))
    elif login.client_secret:
        form["client_secret"] = login.client_secret
    try:
        async with (
            httpx2.AsyncClient(timeout=RENEW_S, verify=tls_context()) as client,
            client.stream("POST", login.token_endpoint, data=form, auth=auth) as response,
        ):
            body = await _read_body(response)
    except httpx2.HTTPError as error:
        log.warning("cannot renew the token of an MCP server: %s", type(error).__name__)
        return None
    if response.status_code != 200:
        log.warning("cannot renew the token of an MCP server: status %d", response.status_code)
        return None
    return _renewed_login(login, body)


def _renewed_login(login: Login, body: bytes) -> Login | None:
    """Return ``login`` with the token in a response of its token endpoint; ``None`` if there is no token in it."""
    try:
        response = _TokenResponse.model_validate_json(body)
    except ValidationError:
        log.warning("the token endpoint of an MCP server returned no token")
        return None
    fresh = response.model_dump(exclude_none=True, exclude={"expires_in"})
    if response.expires_in is not None:
        fresh["expires_at"] = time.time() + response.expires_in
    return Login.model_validate({**login.model_dump(exclude={"expires_at"}), **fresh})


class _TokenResponse(LazyModel):
    model_config = ConfigDict(extra="ignore")

    access_token: str = Field(min_length=1)
    refresh_token: str | None = None
    expires_in: float | None = Field(default=None, allow_inf_nan=False)
    scope: str | None = None


async def _read_body(response: httpx2.Response) -> bytes:
    """Read the body of a response, up to slightly more than ``MAX_RESPONSE_BYTES``."""
    from jumpseat.parsing.decompression import DecompressionError, decompress

    body = b""
    encoding = response.headers.get("content-encoding", "identity")
    try:
        async for piece in decompress(response.aiter_raw(), encoding):
            body += piece
            if len(body) > MAX_RESPONSE_BYTES:
                break
    except DecompressionError:
        # No response that could be read.
        return b""
    return body
