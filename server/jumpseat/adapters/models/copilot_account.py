"""The Copilot account of a GitHub token: the user, the address of the model API, and the API's models."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

import anyio

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers.copilot import COPILOT_API_URL, model_from_wire
from jumpseat.adapters.transport.http import HttpTransport
from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.adapters.wires.copilot import API_VERSION, api_headers
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo
from jumpseat.agent.retry import RetryPolicy
from jumpseat.errors import (
    ProviderOverloadedError,
    ProviderProtocolError,
    ProviderRequestError,
    ProviderTransportError,
)

GITHUB_HOST: Final = "https://github.com"
GITHUB_API_URL: Final = "https://api.github.com"
LOOKUP_RETRY: Final = RetryPolicy(
    attempts=3, attempts_refused=1, first_wait_s=0.2, longest_wait_s=1.0, longest_asked_wait_s=1.0
)
NOT_FOUND: Final = 404
RETRY_WITHIN_S: Final = 3.0
"""A look-up that took longer is not retried, because a request waits for it."""


class CopilotAccount:
    """The Copilot account of a GitHub token. The user, the model list and the API's address are cached."""

    def __init__(
        self,
        token: str,
        transport: HttpTransport,
        *,
        host: str = GITHUB_HOST,
        github_api_url: str = GITHUB_API_URL,
        api_url: str | None = None,
        user_agent: str = "jumpseat",
        options: Mapping[str, Any] | None = None,
        retry: RetryPolicy = LOOKUP_RETRY,
    ) -> None:
        """``host`` is the GitHub site of the token. ``api_url`` is the address of the model API; without it GitHub
        is asked. ``options`` are those of the Copilot wires. ``retry`` applies to broken connections and to 5xx."""
        self._token = token
        self._host = host
        self._transport = transport
        self._github_api_url = github_api_url.rstrip("/")
        self._api_url = api_url.rstrip("/") if api_url else None
        self._user_agent = user_agent
        self._options = dict(options or {})
        self._retry = retry
        self._user: JsonObject | None = None
        self._models: list[ModelInfo] | None = None
        # Two sessions that start together send one request.
        self._lock = anyio.Lock()

    async def user(self, *, refresh: bool = False) -> JsonObject:
        """Fetch the user from GitHub: ``login``, ``copilot_plan``, ``endpoints``, ``quota_snapshots``...

        The answer is kept; ``refresh`` fetches it again. It is empty if GitHub does not know the user.

        Raises:
            ProviderAuthError: the token is invalid; the text contains ``401 Unauthorized``.
            ProviderError: GitHub cannot be reached, or its answer is invalid.
        """
        if self._user is not None and not refresh:
            return self._user
        try:
            answer = await self._look_up(
                f"{self._github_api_url}/copilot_internal/user",
                {
                    "Accept": "application/json",
                    "Authorization": f"Bearer {self._token}",
                    "User-Agent": self._user_agent,
                    "X-GitHub-Api-Version": API_VERSION,
                },
            )
        except ProviderRequestError as error:
            if error.status != NOT_FOUND:
                raise
            # The site, or the client that makes the requests, does not describe users: the model API decides.
            answer = {}
        if not isinstance(answer, dict):
            raise ProviderProtocolError("expected a JSON object from GitHub about the Copilot user")
        if self._api_url is None:
            # Business and enterprise accounts have hosts of their own.
            self._api_url = as_text(as_object(answer.get("endpoints")).get("api")).rstrip("/") or None
        self._user = answer
        return answer

    async def api_url(self) -> str:
        """Return the address of the model API: the given one, else GitHub's answer, else the default of the site.

        Raises:
            ProviderError: see :meth:`user`.
        """
        if self._api_url is None:
            await self.user()
        return self._api_url or copilot_api_of(self._host)

    async def endpoint(self, headers: Mapping[str, str] | None = None) -> Endpoint:
        """Return the endpoint for calls to the models of this account.

        Raises:
            ProviderError: see :meth:`user`.
        """
        return Endpoint(
            base_url=await self.api_url(),
            bearer_token=self._token,
            headers=dict(headers or {}),
            user_agent=self._user_agent,
            options=self._options,
        )

    async def models(self, *, refresh: bool = False) -> list[ModelInfo]:
        """Return the models that can chat, in the API's order. The list is kept; ``refresh`` fetches it again.

        Raises:
            ProviderError: the API cannot be reached, refuses the token, or its answer is invalid.
        """
        async with self._lock:
            if self._models is None or refresh:
                self._models = await self._fetch_models()
            return list(self._models)

    async def _fetch_models(self) -> list[ModelInfo]:
        answer = await self._look_up(
            f"{await self.api_url()}/models",
            {
                "Accept": "application/json",
                "Authorization": f"Bearer {self._token}",
                "User-Agent": self._user_agent,
                **api_headers(self._options),
            },
        )
        entries = as_list(answer.get("data")) if isinstance(answer, dict) else answer
        return [info for info in (model_from_wire(as_object(entry)) for entry in entries) if info is not None]

    async def _look_up(self, url: str, headers: Mapping[str, str]) -> dict[str, Any] | list[Any]:
        """GET ``url``, again if it fails quickly in a way that may pass: a prompt must not fail for it.

        Raises:
            ProviderError: see :meth:`HttpTransport.get_json`.
        """
        began, attempt = monotonic(), 0
        while True:
            attempt += 1
            try:
                return await self._transport.get_json(url, headers)
            except (ProviderOverloadedError, ProviderTransportError) as error:
                wait_s = self._retry.wait_s(error, attempt)
                if wait_s is None or monotonic() - began > RETRY_WITHIN_S:
                    raise
            await anyio.sleep(wait_s)


def github_api_of(host: str) -> str:
    """Return the REST API of a GitHub site: github.com, a tenant of ``ghe.com``, or a GitHub Enterprise Server."""
    scheme, _, name = host.partition("://")
    if host == GITHUB_HOST:
        return GITHUB_API_URL
    return f"{scheme}://api.{name}" if name.endswith(".ghe.com") else f"{host}/api/v3"


def copilot_api_of(host: str) -> str:
    """Return the default model API of a GitHub site. The tokens of a site must not go to another site."""
    scheme, _, name = host.partition("://")
    return COPILOT_API_URL if host == GITHUB_HOST else f"{scheme}://copilot-api.{name}"
