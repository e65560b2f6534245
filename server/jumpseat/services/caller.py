"""Call a web service: its URL, its key, and the translation of failures into errors for the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jumpseat.adapters.adapter import Timeouts
from jumpseat.adapters.transport.http import HttpTransport
from jumpseat.agent.blocks import JsonObject
from jumpseat.config import ServiceConfig
from jumpseat.declared.env import EnvResolver
from jumpseat.errors import ConfigError, ProviderError
from jumpseat.tools.web import WebError


class ServiceCaller:
    """Calls the service ``name``.

    The key is looked up for every call, in the configuration or else in the environment variable ``variable``. If
    the key is ``optional``, the variable may be unset.
    """

    def __init__(
        self,
        name: str,
        config: ServiceConfig,
        transport: HttpTransport,
        resolver: EnvResolver,
        *,
        base_url: str,
        variable: str,
        optional: bool,
        timeout_s: float,
    ) -> None:
        self._name = name
        self.url = (config.base_url or base_url).rstrip("/")
        self.options = config.options
        self._transport = transport
        self._resolver = resolver
        default_key = {"value": variable, "variable": True, "optional": optional}
        self._env = {"api_key": default_key if config.api_key is None else config.api_key}
        self._timeouts = Timeouts(connect=10.0, first_byte=timeout_s, idle=timeout_s, total=timeout_s)

    async def post(self, path: str, body: JsonObject, headers: Mapping[str, str] | None = None) -> JsonObject:
        """Send ``body`` and return the JSON object of the response.

        Raises:
            WebError: the key is missing, the request failed, or the response is not a JSON object.
        """
        try:
            env = await self._resolver.resolve(self._name, self._env, _no_value, None)
            key = env.text("Bearer ${api_key}")
            sent = {"Accept": "application/json", **(headers or {})}
            if key is not None and key != "Bearer ":
                sent["Authorization"] = key
            answer = await self._transport.post_json(self.url + path, sent, body, timeouts=self._timeouts)
        except (ConfigError, ProviderError) as error:
            raise WebError(f"The service {self._name} failed: {str(error).rstrip('.')}.") from None
        if not isinstance(answer, dict):
            raise WebError(f"The service {self._name} failed: expected a JSON object.")
        return answer


def _no_value(_path: str) -> Any:
    """Resolve no dotted path: a service has no adapter that its ``env`` could refer to."""
