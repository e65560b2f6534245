"""Tokens that a user has logged in for: which one a server gets, and how it is renewed.

A token goes to the URL it was given for and to no other, whatever a server of that name says. Nothing heavy is
imported here before a token is to be renewed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumpseat.errors import StoreError

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

EARLY_S: Final = 60.0
"""How long before its end a token is renewed."""

RENEW_S: Final = 30.0
MAX_ANSWER_BYTES: Final = 256 * 1024


class TokenShelf(Protocol):
    """Where logins are kept, by URL."""

    def get(self, url: str) -> dict[str, Any] | None: ...

    def put(self, url: str, login: dict[str, Any]) -> None:
        """Keep a login.

        Raises:
            StoreError: it cannot be kept.
        """
        ...


class Login(BaseModel):
    """``expires_at`` is in seconds since 1970, ``auth_method`` how a client with a secret proves itself."""

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

    def ends_soon(self) -> bool:
        return self.expires_at is not None and self.expires_at - EARLY_S < time.time()


class LoginTokens:
    """The tokens of logins, for all sessions of the process."""

    def __init__(self, shelf: TokenShelf) -> None:
        self.shelf = shelf
        self._lock = anyio.Lock()

    async def current(self, url: str) -> str | None:
        """The token for a server, renewed where it is about to end; ``None`` where there is none."""
        login = await self._read(url)
        if login is None or not login.ends_soon():
            return login and login.access_token
        return await self.renewed(url, login.access_token)

    async def renewed(self, url: str, refused: str | None) -> str | None:
        """Another token than the one that was ``refused``; ``None`` where none is to be had."""
        async with self._lock:
            login = await self._read(url)
            if login is None or login.access_token != refused:
                # Somebody else has logged in or renewed it.
                return login and login.access_token
            if login.refresh_token is None:
                return None
            fresh = await _renew(login)
            if fresh is None:
                # Another process may have used the refresh token up at the same time.
                login = await self._read(url)
                return login.access_token if login is not None and login.access_token != refused else None
            await self.keep(url, fresh)
            return fresh.access_token

    async def keep(self, url: str, login: Login) -> None:
        """Keep a login; a disk that refuses costs the next process its token, not this one."""
        try:
            await anyio.to_thread.run_sync(self.shelf.put, url, login.model_dump(exclude_none=True))
        except StoreError as error:
            log.error("the token of an MCP server is not kept: %s", error)

    async def _read(self, url: str) -> Login | None:
        found = await anyio.to_thread.run_sync(self.shelf.get, url)
        return login_of(found)


def login_of(record: Mapping[str, Any] | None) -> Login | None:
    """A login as it was kept; ``None`` where it is none."""
    if record is None:
        return None
    try:
        return Login.model_validate(record)
    except ValidationError:
        log.warning("the stored login of an MCP server is not one")
        return None


async def _renew(login: Login) -> Login | None:
    """Ask for another token (RFC 6749, section 6); ``None`` where it is not given."""
    import httpx

    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token or "", "client_id": login.client_id}
    if login.resource:
        form["resource"] = login.resource
    auth: httpx.BasicAuth | None = None
    if login.client_secret and login.auth_method == "client_secret_basic":
        auth = httpx.BasicAuth(quote(login.client_id, safe=""), quote(login.client_secret, safe=""))
    elif login.client_secret:
        form["client_secret"] = login.client_secret
    try:
        async with (
            httpx.AsyncClient(timeout=RENEW_S) as client,
            client.stream("POST", login.token_endpoint, data=form, auth=auth) as response,
        ):
            body = await _bounded(response)
    except httpx.HTTPError as error:
        log.warning("the token of an MCP server cannot be renewed: %s", type(error).__name__)
        return None
    if response.status_code != 200:
        log.warning("the token of an MCP server was not renewed: status %d", response.status_code)
        return None
    return login_from_answer(body, lambda fresh: {**login.model_dump(exclude={"expires_at"}), **fresh})


def login_from_answer(body: bytes, around: Callable[[dict[str, Any]], dict[str, Any]]) -> Login | None:
    """A login of what a token endpoint has answered; ``around`` adds to it what that does not say."""
    try:
        answer = _TokenAnswer.model_validate_json(body)
    except ValidationError:
        log.warning("the token endpoint of an MCP server gave no token")
        return None
    fresh = answer.model_dump(exclude_none=True, exclude={"expires_in"})
    if answer.expires_in is not None:
        fresh["expires_at"] = time.time() + answer.expires_in
    return Login.model_validate(around(fresh))


class _TokenAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    access_token: str = Field(min_length=1)
    refresh_token: str | None = None
    expires_in: float | None = Field(default=None, allow_inf_nan=False)
    scope: str | None = None


async def _bounded(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            break
    return body
