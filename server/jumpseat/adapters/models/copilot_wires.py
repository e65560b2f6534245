"""The wires of the Copilot API's models, for sessions that bring the API as their own provider.

The API serves some models on other wires than chat completions only; its list says which. The list is fetched at
the first use of an address and a key, and kept. If it cannot be fetched, chat completions are assumed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct, field

from jumpseat.adapters.adapter import Endpoint
from jumpseat.agent.model import ModelInfo
from jumpseat.errors import ConfigError, ProviderError

if TYPE_CHECKING:
    from jumpseat.adapters.transport.http import HttpTransport

log = logging.getLogger(__name__)

COPILOT: Final = "copilot"

KEEP_S: Final = 30 * 60.0
"""The time after which a list is fetched again."""

PAUSE_S: Final = 30.0
"""The time before a failed list is fetched again."""

LIST_TIMEOUT_S: Final = 3.0

MAX_LISTS: Final = 64
"""The maximum number of cached lists."""

Token = Callable[[], Awaitable[str]]


class CopilotWires(Struct):
    """A cache of model lists by address and key."""

    transport: Callable[[], HttpTransport]
    _lists: dict[str, tuple[float, list[ModelInfo]]] = field(
        default_factory=dict[str, tuple[float, list[ModelInfo]]]
    )
    _locks: dict[str, anyio.Lock] = field(default_factory=dict[str, anyio.Lock])

    async def wire_of(self, model: str, endpoint: Endpoint, token: Token | None) -> str:
        """Return the provider type for ``model`` at ``endpoint``; ``token`` provides the key if it is not there.

        Raises:
            ConfigError: the API serves the model only by wires that the server does not know.
        """
        from jumpseat.adapters.providers.copilot import wire_of

        if not model or (endpoint.bearer_token is None and endpoint.api_key is None and token is None):
            return COPILOT
        listed = await self._models(endpoint, token)
        info = next((info for info in listed if info.id == model), None)
        if info is None:
            return COPILOT
        if (wire := wire_of(info)) is None:
            served = ", ".join(info.wires or ())
            raise ConfigError(f"the Copilot API serves model {model!r} only by unsupported endpoints: {served}")
        return wire

    async def _models(self, endpoint: Endpoint, token: Token | None) -> list[ModelInfo]:
        static = endpoint.bearer_token or endpoint.api_key or ""
        key = hashlib.sha256(f"{static}\n{endpoint.base_url}".encode()).hexdigest()
        # Sessions that start together send one request.
        async with self._locks.setdefault(key, anyio.Lock()):
            kept = self._lists.get(key)
            if kept is not None and monotonic() < kept[0]:
                return kept[1]
            try:
                with anyio.fail_after(LIST_TIMEOUT_S):
                    models = await self._fetch(endpoint, static if token is None else await token())
                    keep_s = KEEP_S
            except (ProviderError, TimeoutError) as error:
                log.warning("the model list of %s is unknown: %s", endpoint.base_url, error or "no answer in time")
                models, keep_s = kept[1] if kept is not None else [], PAUSE_S
            if len(self._lists) >= MAX_LISTS:
                oldest = next(iter(self._lists))
                self._lists.pop(oldest)
                self._locks.pop(oldest, None)
            self._lists[key] = (monotonic() + keep_s, models)
            return models

    async def _fetch(self, endpoint: Endpoint, token: str) -> list[ModelInfo]:
        from jumpseat.adapters.models.copilot_account import CopilotAccount

        account = CopilotAccount(
            token,
            self.transport(),
            api_url=endpoint.base_url,
            user_agent=endpoint.user_agent,
            options=endpoint.options,
        )
        return await account.models()
