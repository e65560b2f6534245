"""Web access for tools as configured by the operator: a page fetcher and a searcher, created at first use.

Modules that import httpx2 are imported only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from anyio.abc import ByteStream

from jumpseat.config import Config, ServiceConfig
from jumpseat.tools.web import Fetcher, Searcher

if TYPE_CHECKING:
    from jumpseat.adapters.transport.http import HttpTransport
    from jumpseat.services.addresses import HostPolicy
    from jumpseat.services.caller import ServiceCaller

SEARCH_KEY: Final = "TAVILY_API_KEY"
"""The environment variable that enables the search service without any configuration."""
FETCH_KEY: Final = "JINA_API_KEY"
"""The environment variable of the key of the service that can fetch pages."""


class ConfiguredWeb:
    """The configured web access of the process. Close it at the end."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        of_command: Callable[[str], Mapping[str, str]] | None = None,
    ) -> None:
        """``of_command`` returns the environment of a command that prints a key, by default ``environ``."""
        self._config = config
        self._environ = environ
        self._of_command = of_command
        self._fetcher: Fetcher | None = None
        self._searcher: Searcher | None = None
        self._transport: HttpTransport | None = None

    def can_search(self) -> bool:
        """Return whether a search service is configured."""
        return "tavily" in self._config.services or bool(self._environ.get(SEARCH_KEY))

    def key_variables(self) -> list[str]:
        """Return the names of the environment variables that hold keys of services, whether set or not."""
        named = (service.api_key for service in self._config.services.values())
        values = (key.get("value") if isinstance(key, dict) else key for key in named)
        return [SEARCH_KEY, FETCH_KEY, *(value for value in values if isinstance(value, str))]

    def fetcher(self) -> Fetcher:
        if self._fetcher is None:
            self._fetcher = self._make_fetcher()
        return self._fetcher

    def searcher(self) -> Searcher:
        if self._searcher is None:
            from jumpseat.services import tavily

            self._searcher = tavily.TavilySearcher(
                self._caller("tavily", base_url=tavily.BASE_URL, variable=SEARCH_KEY, optional=False)
            )
        return self._searcher

    async def connect(self, host: str, port: int, *, private: bool, proxy: str | None) -> ByteStream:
        """Connect a confined command to a host; see :class:`jumpseat.sandbox.proxy.Connect`."""
        from jumpseat.services.egress import connect_host

        return await connect_host(host, port, private=private, proxy=proxy)

    async def aclose(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    def _make_fetcher(self) -> Fetcher:
        settings = self._config.tools.web_fetch
        if settings.service == "jina":
            from jumpseat.services import jina

            caller = self._caller("jina", base_url=jina.BASE_URL, variable=FETCH_KEY, optional=True)
            return jina.JinaFetcher(caller, self._host_policy())
        from jumpseat.services.direct import DirectFetcher

        return DirectFetcher(self._host_policy(), max_bytes=settings.max_bytes, timeout_s=settings.timeout_s)

    def _host_policy(self) -> HostPolicy:
        from jumpseat.services.addresses import HostPolicy

        settings = self._config.tools.web_fetch
        return HostPolicy(allow_private=settings.allow_private, hosts=settings.allowed_hosts)

    def _caller(
        self, name: Literal["jina", "tavily"], *, base_url: str, variable: str, optional: bool
    ) -> ServiceCaller:
        from jumpseat.adapters.transport.http import HttpTransport
        from jumpseat.declared.env import EnvResolver
        from jumpseat.services.caller import ServiceCaller

        if self._transport is None:
            # Separate from the models' transport, because a client that makes the models' requests does not make
            # these.
            self._transport = HttpTransport(max_body_bytes=self._config.tools.web_fetch.max_bytes)
        return ServiceCaller(
            name,
            self._config.services.get(name, ServiceConfig()),
            self._transport,
            EnvResolver(self._environ, self._of_command),
            base_url=base_url,
            variable=variable,
            optional=optional,
            timeout_s=self._config.tools.web_fetch.timeout_s,
        )
