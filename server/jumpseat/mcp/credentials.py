"""A session's credentials for its servers: tokens of stored logins, and tokens and headers from its clients.

This module imports nothing heavy: it is needed before the ``mcp`` package is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio

from jumpseat.agent.pending import PendingRequests
from jumpseat.agent.session.session import Session
from jumpseat_protocol import events
from jumpseat_protocol.mcp import (
    McpHeaders,
    McpHeadersAnswer,
    McpHeadersNone,
    McpOauthAnswer,
    McpOauthCancelled,
    McpOauthToken,
)
from jumpseat_protocol.mcp_servers import McpServerConfig

if TYPE_CHECKING:
    import httpx2

    from jumpseat.mcp.auth import AskHeaders, AskToken, AuthQuestion, ClientTokens, HeadersReason
    from jumpseat.mcp.tokens import LoginTokens

PERSON_S: Final = 900.0
"""Time-out of a request for a token, which may need a person."""

HEADERS_S: Final = 30.0
"""Time-out of a request for headers, which clients answer without a person."""

CANCELLED: Final = McpOauthCancelled(kind="cancelled")
NO_HEADERS: Final = McpHeadersNone(kind="none")


class Credentials:
    """The credentials of one session.

    ``oauth`` and ``headers`` are the open requests to its clients, ``emit`` sends the events that announce them.
    """

    def __init__(self, session: Session, logins: LoginTokens, emit: Callable[[events.EventPayload], None]) -> None:
        self.oauth = PendingRequests[str, McpOauthAnswer]()
        self.headers = PendingRequests[str, McpHeadersAnswer]()
        self._session = session
        self._logins = logins
        self._emit = emit

    @property
    def stored_logins(self) -> bool:
        """Return whether the session uses logins that are stored on disk, and stores its own there."""
        return self._session.settings.options.mcp_o_auth_token_storage == "persistent"  # noqa: S105 - a kind of storage

    async def client_secret(self, url: str, issuer: str, client_id: str) -> str | None:
        """Return the stored secret of a client of an authorization server; ``None`` if there is none."""
        return await self._logins.client_secret(url, issuer, client_id)

    def release(self) -> None:
        """Cancel the open requests that no client is interested in any more."""
        if not self._session.clients.has_interest(events.McpOauthRequired.type):
            self.oauth.close_all(CANCELLED)
        if not self._session.clients.has_interest(events.McpHeadersRefreshRequired.type):
            self.headers.close_all(NO_HEADERS)

    def close(self) -> None:
        """Cancel all open requests."""
        self.oauth.close_all(CANCELLED)
        self.headers.close_all(NO_HEADERS)

    async def auth(
        self,
        tokens: dict[str, ClientTokens],
        config: McpServerConfig,
        ask_token: AskToken,
        ask_headers: AskHeaders,
    ) -> httpx2.Auth:
        """Return the authentication of requests to a server.

        ``tokens`` holds the server's tokens by URL; it outlives the server's connections and gets a new entry for
        an unknown URL.
        """
        from jumpseat.mcp.auth import ClientHeaders, ClientTokens

        url = config.url or ""
        if (known := tokens.get(url)) is None:
            stored = await self._logins.current(url) if self.stored_logins else None
            known = tokens[url] = ClientTokens(url, ask_token, stored)
        if config.headers_refresh_ttl_ms is None:
            return known
        return ClientHeaders(known, ask_headers, config.headers_refresh_ttl_ms / 1000)

    async def token(self, tokens: Mapping[str, ClientTokens], url: str) -> str | None:
        """Return the token that a request to ``url`` would carry, without asking a client for one."""
        if (known := tokens.get(url)) is not None:
            return known.token
        return await self._logins.current(url) if self.stored_logins else None

    async def ask_token(
        self, server: str, config: McpServerConfig | None, url: str, question: AuthQuestion
    ) -> str | None:
        """Return a token for a server, from the user's stored login or else from a client.

        ``config`` holds the settings of the server before variables are replaced, ``url`` is its URL afterwards.
        """
        if self.stored_logins and question.reason in ("initial", "refresh"):
            token = await self._logins.renew(url, question.refused)
            if token is not None:
                return token
        if not self._session.clients.has_interest(events.McpOauthRequired.type):
            return None
        from jumpseat.mcp.auth import challenge_params

        pending = self.oauth.ask(server)
        answer: McpOauthAnswer = CANCELLED
        try:
            self._emit(
                events.McpOauthRequired(
                    request_id=pending.id,
                    server_name=server,
                    server_url=(config.url if config else None) or "",
                    reason=question.reason,
                    www_authenticate_params=challenge_params(question.challenge) or None,
                    resource_metadata=question.metadata,
                    static_client_config=_static_client(config),
                )
            )
            with anyio.move_on_after(PERSON_S):
                answer = await pending.answer()
        finally:
            self.oauth.close(pending)
            self._emit(events.McpOauthCompleted(request_id=pending.id, outcome=answer.kind))
        return answer.access_token if isinstance(answer, McpOauthToken) else None

    async def ask_headers(
        self, server: str, config: McpServerConfig | None, reason: HeadersReason
    ) -> dict[str, str] | None:
        """Return headers from a client for requests to a server; ``None`` if no client is interested.

        The result is empty where the client has no headers or does not answer in time.
        """
        if not self._session.clients.has_interest(events.McpHeadersRefreshRequired.type):
            return None
        pending = self.headers.ask(server)
        answer: McpHeadersAnswer | None = None
        try:
            self._emit(
                events.McpHeadersRefreshRequired(
                    request_id=pending.id,
                    server_name=server,
                    server_url=(config.url if config else None) or "",
                    reason=reason,
                )
            )
            with anyio.move_on_after(HEADERS_S):
                answer = await pending.answer()
        finally:
            self.headers.close(pending)
            outcome = answer.kind if answer is not None else "timeout"
            self._emit(events.McpHeadersRefreshCompleted(request_id=pending.id, outcome=outcome))
        return answer.headers if isinstance(answer, McpHeaders) else {}


def _static_client(config: McpServerConfig | None) -> dict[str, Any] | None:
    if config is None or not config.oauth_client_id:
        return None
    static: dict[str, Any] = {"clientId": config.oauth_client_id}
    if config.oauth_public_client is not None:
        static["publicClient"] = config.oauth_public_client
    if config.oauth_grant_type == "client_credentials":
        static["grantType"] = config.oauth_grant_type
    return static
