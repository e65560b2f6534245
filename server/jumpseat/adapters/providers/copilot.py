"""The Copilot model API: models behind a GitHub account.

:class:`CopilotAccount` knows who the user is, where the API is and which models it has;
:class:`CopilotAdapter` is chat completions with the headers that the API wants. Where the token comes from is
settled elsewhere. The API's other wires are in ``copilot_wires.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wire import as_amount, as_flag, as_limit, as_list, as_object, as_text
from jumpseat.adapters.wires.chat import OpenAIAdapter
from jumpseat.agent.blocks import ImageBlock, JsonObject, ToolMessage, UserMessage
from jumpseat.agent.model import CREDITS_PER_DOLLAR, NANO, ModelInfo, ModelRequest, Price
from jumpseat.errors import ProviderProtocolError

if TYPE_CHECKING:
    # Only the type: the adapter itself does no HTTP.
    from jumpseat.adapters.transport.http import HttpTransport

GITHUB_HOST: Final = "https://github.com"
GITHUB_API_URL: Final = "https://api.github.com"
COPILOT_API_URL: Final = "https://api.githubcopilot.com"
API_VERSION: Final = "2025-10-01"
MILLION: Final = 1_000_000

_INTEGRATION: Final = "vscode-chat"

WIRES: Final[Mapping[str, str]] = {
    "/chat/completions": "copilot",
    "/responses": "copilot_responses",
    "/v1/messages": "copilot_messages",
}
"""Paths of the API and the adapters for them, the preferred one first."""


class CopilotAdapter(OpenAIAdapter):
    """Chat completions of Copilot.

    The option ``integration_id`` of the endpoint names the product that calls, for accounts whose organisation
    admits certain products only.
    """

    name: ClassVar[str] = "copilot"
    default_base_url: ClassVar[str | None] = COPILOT_API_URL
    key_env: ClassVar[str | None] = "COPILOT_GITHUB_TOKEN"

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
        return request_headers(endpoint, request)


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
        asked of GitHub; ``options`` are those of :class:`CopilotAdapter`."""
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


def api_headers(options: Mapping[str, Any]) -> dict[str, str]:
    """The headers of every call of the model API."""
    return {
        "Copilot-Integration-Id": str(options.get("integration_id", _INTEGRATION)),
        "X-GitHub-Api-Version": API_VERSION,
    }


def request_headers(endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
    """The headers of a call of a model, whichever wire it goes by."""
    headers = api_headers(endpoint.options)
    headers["Openai-Intent"] = "conversation-agent"
    # What follows a tool result is the agent's own doing, and not counted as a request of the user.
    follows_tool = bool(request.messages) and isinstance(request.messages[-1], ToolMessage)
    headers["X-Initiator"] = "agent" if follows_tool or request.unasked else "user"
    if request.interaction_id is not None:
        headers["X-Interaction-Id"] = request.interaction_id
    if request.vision and _has_images(request):
        headers["Copilot-Vision-Request"] = "true"
    return headers


def wire_of(info: ModelInfo) -> str | None:
    """The adapter for a model: chat completions where they serve it or nothing is known.

    ``None`` where none of the wires that serve the model is known here.
    """
    if not info.wires:
        return CopilotAdapter.name
    return next((adapter for path, adapter in WIRES.items() if path in info.wires), None)


def has_socket(info: ModelInfo) -> bool:
    """Whether a model takes Responses on a WebSocket too."""
    return wire_of(info) == WIRES["/responses"] and "ws:/responses" in (info.wires or ())


def model_from_wire(entry: JsonObject) -> ModelInfo | None:
    """One entry of ``/models``; ``None`` for what does not chat (embeddings, completions)."""
    model_id = as_text(entry.get("id"))
    capabilities = as_object(entry.get("capabilities"))
    if not model_id or capabilities.get("type", "chat") != "chat":
        return None
    supports = as_object(capabilities.get("supports"))
    limits = as_object(capabilities.get("limits"))
    policy = as_object(entry.get("policy")).get("state")
    billing = as_object(entry.get("billing"))
    multiplier = billing.get("multiplier")
    wires = _texts(entry.get("supported_endpoints"))
    return ModelInfo(
        id=model_id,
        name=as_text(entry.get("name")) or model_id,
        vendor=as_text(entry.get("vendor")) or None,
        vision=as_flag(supports.get("vision")),
        tools=as_flag(supports.get("tool_calls")),
        context_window=as_limit(limits.get("max_context_window_tokens")),
        max_prompt_tokens=as_limit(limits.get("max_prompt_tokens")),
        max_output_tokens=as_limit(limits.get("max_output_tokens")),
        reasoning_efforts=_texts(entry.get("supportedReasoningEfforts", supports.get("reasoning_effort"))),
        default_reasoning_effort=as_text(entry.get("defaultReasoningEffort")) or None,
        wires=wires,
        # Not what the account has not agreed to, what the API hides, or what it serves by none of our wires.
        enabled=policy in (None, "enabled")
        and entry.get("model_picker_enabled") is not False
        and (not wires or any(path in wires for path in WIRES)),
        multiplier=float(multiplier) if isinstance(multiplier, (int, float)) else None,
        price=_price(as_object(billing.get("token_prices"))),
    )


def _price(prices: JsonObject) -> Price | None:
    """What a model costs, in dollars; the class of long prompts, which is dearer, is left out.

    The API tells credits for each ``batch_size`` tokens, in ``default``; without that table, in 10^-9 of them.
    """
    flat = not as_object(prices.get("default"))
    table = prices if flat else as_object(prices["default"])
    tokens = as_limit(prices.get("batch_size")) or MILLION

    def dollars(*names: str) -> float | None:
        amount = next((found for name in names if (found := as_amount(table.get(name))) is not None), None)
        if amount is None:
            return None
        # No model is so dear that a million credits could be meant.
        credit = amount / NANO if flat and amount >= MILLION else amount
        return round(credit / CREDITS_PER_DOLLAR * MILLION / tokens, 9)

    read, written = dollars("input_price"), dollars("output_price")
    if read is None or written is None:
        return None
    return Price(read, written, dollars("cache_read_price", "cache_price"), dollars("cache_write_price"))


def _has_images(request: ModelRequest) -> bool:
    for message in request.messages:
        if isinstance(message, UserMessage):
            if any(isinstance(block, ImageBlock) for block in message.blocks):
                return True
        elif isinstance(message, ToolMessage) and any(result.images for result in message.results):
            return True
    return False


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(item for item in as_list(value) if isinstance(item, str)) if isinstance(value, list) else None
