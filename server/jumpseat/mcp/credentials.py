"""What a session gives its servers to prove itself with: tokens of logins, and what its clients give when asked.

Nothing is imported here that is heavy: a session with servers has this before the ``mcp`` package is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio

from jumpseat.agent.pending import PendingRequests
from jumpseat.agent.session.session import Session
from jumpseat.mcp.asked import HEADERS, OAUTH
from jumpseat_protocol import events
from jumpseat_protocol.mcp import (
    McpHeaders,
    McpHeadersAnswer,
    McpHeadersNone,
    McpOauthAnswer,
    McpOauthCancelled,
    McpOauthToken,
    McpServerConfig,
)

if TYPE_CHECKING:
    import httpx

    from jumpseat.mcp.auth import AskHeaders, AskToken, AuthQuestion, ClientTokens, HeadersReason
    from jumpseat.mcp.connection import Connection
    from jumpseat.mcp.tokens import LoginTokens

PERSON_S: Final = 900.0
"""How long a server's wish for a token may wait for a person."""

HEADERS_S: Final = 30.0
"""How long a client may take to give headers, for which it needs nobody."""

CANCELLED: Final = McpOauthCancelled(kind="cancelled")
NO_HEADERS: Final = McpHeadersNone(kind="none")


class Credentials:
    """Those of one session. ``oauth`` and ``headers`` are what its clients are asked for; ``emit`` tells them."""

    def __init__(self, session: Session, logins: LoginTokens, emit: Callable[[events.EventPayload], None]) -> None:
        self.oauth = PendingRequests[str, McpOauthAnswer]()
        self.headers = PendingRequests[str, McpHeadersAnswer]()
        self._session = session
        self._logins = logins
        self._emit = emit

    @property
    def stored_logins(self) -> bool:
        """Whether the session uses, and keeps, logins on the disk."""
        return self._session.settings.stored_mcp_logins

    def release(self) -> None:
        """Let no server wait for what no client answers any more."""
        if not self._session.clients.has_interest(OAUTH):
            self.oauth.close_all(CANCELLED)
        if not self._session.clients.has_interest(HEADERS):
            self.headers.close_all(NO_HEADERS)

    def close(self) -> None:
        self.oauth.close_all(CANCELLED)
        self.headers.close_all(NO_HEADERS)

    async def auth(
        self,
        tokens: dict[str, ClientTokens],
        config: McpServerConfig,
        ask_token: AskToken,
        ask_headers: AskHeaders,
    ) -> httpx.Auth:
        """What goes into each request to a server; ``tokens`` are kept while it comes and goes, by URL."""
        from jumpseat.mcp.auth import ClientHeaders, ClientTokens

        url = config.url or ""
        if (known := tokens.get(url)) is None:
            stored = await self._logins.current(url) if self.stored_logins else None
            known = tokens[url] = ClientTokens(url, ask_token, stored)
        if config.headers_refresh_ttl_ms is None:
            return known
        return ClientHeaders(known, ask_headers, config.headers_refresh_ttl_ms / 1000)

    async def token(self, tokens: Mapping[str, ClientTokens], url: str) -> str | None:
        """The token that a request to a server would carry, as far as nobody need be asked."""
        if (known := tokens.get(url)) is not None:
            return known.token
        return await self._logins.current(url) if self.stored_logins else None

    async def ask_token(self, connection: Connection, question: AuthQuestion) -> str | None:
        """A token for a server: of the login of the user, or else of a client."""
        config = connection.resolved_config
        url = (config.url if config else None) or ""
        if self.stored_logins and question.reason in ("initial", "refresh"):
            token = await self._logins.renewed(url, question.refused)
            if token is not None:
                return token
        if not self._session.clients.has_interest(OAUTH):
            return None
        from jumpseat.mcp.auth import challenge_params

        pending = self.oauth.ask(connection.name)
        answer: McpOauthAnswer = CANCELLED
        try:
            self._emit(
                events.McpOauthRequired(
                    request_id=pending.id,
                    server_name=connection.name,
                    server_url=(connection.config.url if connection.config else None) or "",
                    reason=question.reason,
                    www_authenticate_params=challenge_params(question.challenge) or None,
                    resource_metadata=question.metadata,
                    static_client_config=_static_client(connection.config),
                )
            )
            with anyio.move_on_after(PERSON_S):
                answer = await pending.answer()
        finally:
            self.oauth.close(pending)
            self._emit(events.McpOauthCompleted(request_id=pending.id, outcome=answer.kind))
        return answer.access_token if isinstance(answer, McpOauthToken) else None

    async def ask_headers(self, connection: Connection, reason: HeadersReason) -> dict[str, str] | None:
        """Headers of a client for the requests to a server; ``None`` where no client is there to be asked."""
        if not self._session.clients.has_interest(HEADERS):
            return None
        pending = self.headers.ask(connection.name)
        answer: McpHeadersAnswer | None = None
        try:
            self._emit(
                events.McpHeadersRefreshRequired(
                    request_id=pending.id,
                    server_name=connection.name,
                    server_url=(connection.config.url if connection.config else None) or "",
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
