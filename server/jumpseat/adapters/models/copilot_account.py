"""One GitHub token's view of Copilot: the user, the address of the model API, and the API's models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers.copilot import COPILOT_API_URL, model_from_wire
from jumpseat.adapters.transport.http import HttpTransport
from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.adapters.wires.copilot import API_VERSION, api_headers
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo
from jumpseat.errors import ProviderProtocolError

GITHUB_HOST: Final = "https://github.com"
GITHUB_API_URL: Final = "https://api.github.com"


class CopilotAccount:
    """One GitHub token's view of Copilot. The user, the model list and the API's address are kept."""

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
    ) -> None:
        """``host`` is the site that knows the token. ``api_url`` is where the model API is, if that is not to be
        asked of GitHub; ``options`` are those of the Copilot wires."""
        self._token = token
        self._host = host
        self._transport = transport
        self._github_api_url = github_api_url.rstrip("/")
        self._api_url = api_url.rstrip("/") if api_url else None
        self._user_agent = user_agent
        self._options = dict(options or {})
        self._user: JsonObject | None = None
        self._models: list[ModelInfo] | None = None
        # Two sessions that start together ask once.
        self._lock = anyio.Lock()

    async def user(self, *, refresh: bool = False) -> JsonObject:
        """What GitHub says about the user: ``login``, ``copilot_plan``, ``endpoints``, ``quota_snapshots``...

        Asked for once, and again with ``refresh``.

        Raises:
            ProviderAuthError: the token is not good; the text says ``401 Unauthorized``.
            ProviderError: GitHub cannot be reached, or answers something else.
        """
        if self._user is not None and not refresh:
            return self._user
        answer = await self._transport.get_json(
            f"{self._github_api_url}/copilot_internal/user",
            {
                "Accept": "application/json",
                "Authorization": f"Bearer {self._token}",
                "User-Agent": self._user_agent,
                "X-GitHub-Api-Version": API_VERSION,
            },
        )
        if not isinstance(answer, dict):
            raise ProviderProtocolError("expected a JSON object from GitHub about the Copilot user")
        if self._api_url is None:
            # Business and enterprise accounts have hosts of their own.
            self._api_url = as_text(as_object(answer.get("endpoints")).get("api")).rstrip("/") or None
        self._user = answer
        return answer

    async def api_url(self) -> str:
        """Where the model API is: as given, else as GitHub says, else where the site of the token has it.

        Raises:
            ProviderError: see :meth:`user`.
        """
        if self._api_url is None:
            await self.user()
        return self._api_url or copilot_api_of(self._host)

    async def endpoint(self, headers: Mapping[str, str] | None = None) -> Endpoint:
        """What :class:`~jumpseat.adapters.http.HttpModel` needs to call models of this account.

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
        """The models that can chat, in the API's order; asked for once, and again with ``refresh``.

        Raises:
            ProviderError: the API cannot be reached, refuses the token, or answers something else.
        """
        async with self._lock:
            if self._models is None or refresh:
                self._models = await self._fetch_models()
            return list(self._models)

    async def _fetch_models(self) -> list[ModelInfo]:
        answer = await self._transport.get_json(
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


def github_api_of(host: str) -> str:
    """The REST API of a GitHub site: the public one, a tenant of ``ghe.com``, or a server of one's own."""
    scheme, _, name = host.partition("://")
    if host == GITHUB_HOST:
        return GITHUB_API_URL
    return f"{scheme}://api.{name}" if name.endswith(".ghe.com") else f"{host}/api/v3"


def copilot_api_of(host: str) -> str:
    """The model API of a GitHub site that does not say where it is. A site's tokens are for nobody else."""
    scheme, _, name = host.partition("://")
    return COPILOT_API_URL if host == GITHUB_HOST else f"{scheme}://copilot-api.{name}"
