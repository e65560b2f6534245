"""Where a session's model comes from: its own providers, the configuration, or the Copilot API.

Precedence: a model of a named provider of the session (``provider/id``); the session's one ``provider``; an alias;
``adapter/model``; a model some configured adapter declares; the Copilot API, where there is a token; the only
adapter there is. A session that names no model, where nothing else has one, gets the first of its named providers.
Files in ``adapters`` of the home folder count as configured; what clients register or packages bring can be named.
The provider of ``COPILOT_PROVIDER_BASE_URL`` counts as the first of the configured ones.
Adapters of well-known keys in the environment (``OPENAI_API_KEY``, ``ANTHROPIC_API_KEY``) count as configured;
those of other providers' keys can be named as ``adapter/model``, and count as configured where nothing else is.
Nothing is imported or asked over the network before a session needs it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from pydantic import ValidationError

from jumpseat.adapters import ADAPTERS, ALIASES, load_adapter
from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.caller import AskedToken, WireCaller, no_settings
from jumpseat.adapters.offer import Offer
from jumpseat.agent.interfaces import AskToken, ResolvedModel
from jumpseat.agent.login import Login
from jumpseat.agent.model import Model, ModelInfo, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import (
    GIVEN,
    KNOWN_BESIDE,
    WELL_KNOWN,
    AdapterConfig,
    Config,
    ModelConfig,
    adapter_files,
    provider_of_environ,
)
from jumpseat.errors import (
    ConfigError,
    InvalidRequestError,
    JumpseatError,
    ProviderAuthError,
    ProviderError,
    validation_problems,
)
from jumpseat_protocol.provider import ProviderEndpointResult
from jumpseat_protocol.server import AuthStatusResult
from jumpseat_protocol.sessions import (
    ModelCapabilities,
    ProviderConfig,
    ProviderModelConfig,
)
from jumpseat_protocol.version import __version__

if TYPE_CHECKING:
    from jumpseat.adapters.copilot_accounts import CopilotAccounts
    from jumpseat.adapters.declared.catalogue import Catalogue, Known
    from jumpseat.adapters.declared.env import EnvResolver
    from jumpseat.adapters.http import Detour, HttpModel, HttpTransport
    from jumpseat.adapters.scripted import ScriptedModel
    from jumpseat.adapters.tunnel import Tunnel
    from jumpseat.agent.client import Client
    from jumpseat.cli import Options
    from jumpseat_protocol.accounts import AccountQuotaSnapshot, AuthCredentials, SessionAuthStatusResult
    from jumpseat_protocol.callbacks import GitHubTokenResult

log = logging.getLogger(__name__)

ALLOW_ENDPOINT: Final = "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"
SOCKETS: Final = "COPILOT_EXP_COPILOT_CLI_WEBSOCKET_RESPONSES"
NO_SOCKETS: Final = "COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES"

LIST_PATIENCE_S: Final = 3.0
"""How long the list of models waits for the Copilot API where there are other models to list."""

SCRIPTED: Final = "scripted"
DEFAULT_PROVIDER: Final = "default"
"""What a session's one ``provider`` is called where its token is asked for."""

_WEB_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\S*\Z", re.IGNORECASE)

RESPONSES: Final[Mapping[str, str]] = {
    "openai": "openai_responses",
    "openai_responses": "openai_responses",
    "azure": "azure_responses",
    "azure_responses": "azure_responses",
    "copilot": "copilot_responses",
    "copilot_responses": "copilot_responses",
}
"""The adapter for ``wireApi: responses`` of each type that has such a wire."""


@dataclass(frozen=True, slots=True)
class ProviderRoute:
    """Where the requests for a provider's models go; ``base_url`` is ``None`` where it is not used."""

    name: str
    api_type: str
    base_url: str | None


class Models:
    """The models of the process. Keys are read when a model is called and kept nowhere else."""

    def __init__(
        self,
        config: Config,
        options: Options,
        home: Path | None = None,
        mask: Callable[[str], str] = str,
        *,
        list_patience_s: float = LIST_PATIENCE_S,
    ) -> None:
        """``home`` is where the folder ``adapters`` of files with adapters may be; ``mask`` takes out of recordings
        what is not to be told.

        Raises:
            ConfigError: the folder for recordings, or with them, is no good.
        """
        self._config = config
        self._list_patience_s = list_patience_s
        self._environ = options.environ
        self._options = options
        self._home = home
        self._files = adapter_files(home)
        files = {name: AdapterConfig() for name in self._files if name not in config.adapters}
        configured = {**config.adapters, **files}
        given = provider_of_environ(options.environ)
        self._adapters = {**given, **configured, **_of_environ(WELL_KNOWN, options.environ, configured)}
        self._configured = dict(self._adapters)
        self._beside = _of_environ(KNOWN_BESIDE, options.environ, configured)
        self._registered: dict[str, AdapterConfig] = {}
        self._transport: HttpTransport | None = None
        self.tunnel: Tunnel | None = None
        self._copilot: CopilotAccounts | None = None
        self._gh_login: Login | None = None
        self._scripts: dict[str, ScriptedModel] = {}
        # Adapter, address and name of each.
        self._refusing_tools: set[tuple[str, str, str]] = set()
        self._make_detour = _detour(options, mask)

    # --- what sessions need -------------------------------------------------------------------------------------

    def check(self, settings: SessionSettings) -> None:
        if settings.provider is not None:
            self._check_provider(settings.provider, "provider")
        names: set[str] = set()
        for provider in settings.providers:
            if provider.name in names:
                raise InvalidRequestError(f"providers: the name {provider.name!r} is given twice")
            names.add(provider.name)
            self._check_provider(provider, f"providers.{provider.name}")
        ids: set[str] = set()
        for model in settings.provider_models:
            if model.provider not in names:
                known = ", ".join(sorted(names)) or "none"
                raise InvalidRequestError(
                    f"models.{model.id}: there is no provider {model.provider!r}, providers: {known}"
                )
            if (selection := _selection_id(model)) in ids:
                raise InvalidRequestError(f"models: {selection!r} is given twice")
            ids.add(selection)
        if settings.adapter_settings:
            self._check_adapter_settings(settings)

    def _check_adapter_settings(self, settings: SessionSettings) -> None:
        """Judge them where it is known without asking anybody which adapter they are for."""
        wanted = settings.adapter_settings
        named = _named(settings, settings.model) if settings.model is not None else None
        if named is not None:
            provider = next((one for one in settings.providers if one.name == named.provider), None)
        else:
            provider = settings.provider
        if provider is not None:
            name = ALIASES.get(provider.type, provider.type)
            plain = name in ADAPTERS
            model = settings.model or provider.model_id or provider.wire_model
        else:
            prefix, _, model = (settings.model or "").partition("/")
            config = self._adapters.get(prefix) or self._registered.get(prefix)
            if config is None:
                return
            name, plain = prefix, self._is_plain(prefix, config)
        if name == SCRIPTED:
            return
        if plain:
            raise no_settings(name, wanted)
        from jumpseat.adapters.declared.pipeline import check_settings

        self.callable_adapter(name)
        if (known := self.catalogue.settled(name)) is not None:
            check_settings(known.declaration, model or None, wanted)

    def _check_provider(self, provider: ProviderConfig, where: str) -> None:
        kind = ALIASES.get(provider.type, provider.type)
        if kind == SCRIPTED:
            self._script(provider.script)
            return
        if kind not in ADAPTERS:
            if not self.catalogue.has(kind):
                names = ", ".join(sorted([*self.catalogue.names(), SCRIPTED]))
                raise InvalidRequestError(f"{where}.type {provider.type!r} is unknown, expected one of {names}")
            self.callable_adapter(kind)
            if provider.base_url and not _WEB_ADDRESS.match(provider.base_url):
                raise InvalidRequestError(f"{where}.baseUrl is no address, expected http://... or https://...")
        if provider.wire_api == "responses" and kind not in RESPONSES:
            raise InvalidRequestError(f"{where}.wireApi 'responses' is no wire of provider type {provider.type!r}")
        if kind not in ADAPTERS:
            return
        if not provider.base_url:
            if load_adapter(kind).default_base_url is None:
                raise InvalidRequestError(f"{where}.baseUrl is required for provider type {provider.type!r}")
        elif not _WEB_ADDRESS.match(provider.base_url):
            # Not the text: it may hold a password.
            raise InvalidRequestError(f"{where}.baseUrl is no address, expected http://... or https://...")

    async def authenticate(self, settings: SessionSettings) -> None:
        """Check the login that a session brings of its own.

        Raises:
            ProviderAuthError: there is no token, or it is not good.
        """
        if settings.login is None:
            return
        if settings.provider is None:
            await self._accounts().user(settings.login, refresh=True)
        else:
            # GitHub has nothing to say about such a session, and may be out of its reach.
            await settings.login.token()

    async def resolve(self, settings: SessionSettings, *, ask_token: AskToken | None = None) -> ResolvedModel:
        found = await self._resolve(settings, ask_token)
        if not found.wire_name:
            raise ConfigError("a session with its own provider needs a model: set model, or provider.modelId")
        info = _overridden(found.info, settings.model_capabilities)
        if self._refusing_tools and _identity(found) in self._refusing_tools:
            info = replace(info, tools=False)
        return replace(found, info=info)

    def refuses_tools(self, resolved: ResolvedModel) -> None:
        self._refusing_tools.add(_identity(resolved))

    def registered(self, settings: SessionSettings) -> list[ModelInfo]:
        """The models that the session brings of its own, as ``provider/id``."""
        return [_registered_info(model) for model in settings.provider_models]

    async def default_name(self, settings: SessionSettings) -> str | None:
        """The model a session without one would use; ``None`` where there is none."""
        try:
            return (await self._resolve(settings)).info.id or None
        except JumpseatError:
            return None

    async def list(self, login: Login | None = None, *, refresh: bool = False) -> list[ModelInfo]:
        """All models that can be named; those of the Copilot API as ``login`` where one is given.

        Raises:
            ConfigError: there is neither a login nor a configured provider.
            ProviderError: the Copilot API could not be asked.
        """
        found = [ModelInfo(id=name, name=name) for name in self._config.models]
        found += await self._offered_infos({**self._adapters, **self._registered})
        beside = await self._offered_infos({**self._beside, **self._installed()})
        # Who says outright which provider to use wants no other to be asked.
        login = login or (None if GIVEN in self._adapters else await self._own_login())
        if login is None:
            if not self._adapters and not self._beside and not found and not beside:
                raise _nothing_configured()
            return found + beside
        try:
            with anyio.fail_after(self._list_patience_s if self._adapters else None):
                found += await (await self._accounts().account(login)).models(refresh=refresh)
        except (ProviderError, TimeoutError):
            if not self._adapters:
                raise
            # One provider that does not answer must not hide the others.
            log.warning("the Copilot API did not list its models", exc_info=True)
        return found + beside

    def configured(self) -> dict[str, tuple[AdapterConfig, list[ModelConfig]]]:
        """The adapters that models can be named of, as ``adapter/model``, each with the models that it declares."""
        adapters = {**self._adapters, **self._beside}
        return {name: (adapter, self._declared(name, adapter)) for name, adapter in adapters.items()}

    async def declared(self) -> list[ModelInfo]:
        """The models that the configured adapters declare. No provider is asked."""
        return await self._offered_infos({**self._adapters, **self._beside})

    def declaration_of(self, name: str) -> Known | None:
        """The declaration of a configured adapter; ``None`` where it is one of the server's, called as it is.

        Raises:
            ConfigError: it is wrong.
        """
        config = self._adapters.get(name) or self._beside.get(name)
        return None if config is None or self._is_plain(name, config) else self.catalogue.get(name)

    async def auth_status(self) -> AuthStatusResult:
        """Who is logged in; without a login, whether there are configured providers."""
        login = await self._own_login()
        if login is not None:
            status = await self._accounts().status(login)
            return AuthStatusResult(
                is_authenticated=status.is_authenticated,
                auth_type=status.auth_type,
                host=status.host,
                login=status.login,
                status_message=status.status_message,
            )
        if self._adapters or self._beside:
            names = ", ".join([*self._adapters, *self._beside])
            return AuthStatusResult(
                is_authenticated=True, auth_type="api-key", status_message=f"Configured providers: {names}"
            )
        return AuthStatusResult(is_authenticated=False, status_message="Not authenticated")

    def default_id(self, settings: SessionSettings) -> str | None:
        """The model a session without one would use, as far as that is known without asking anybody."""
        if settings.provider is not None:
            return settings.provider.model_id or settings.provider.wire_model
        if self._config.default_model is not None:
            return self._config.default_model
        login = settings.login or self._login_of_environment
        if not (self._adapters or self._beside) or not (login is None or self._has_own_default()):
            return None
        name, adapter = self._default_adapter()
        declared = self._declared(name, adapter) if self._is_plain(name, adapter) else []
        return f"{name}/{declared[0].id}" if declared else None

    def has_adapters(self) -> bool:
        """Whether models can be called without anybody having logged in."""
        return bool(self._adapters or self._beside)

    def takes_any(self, model: str) -> bool:
        """Whether a name that is in no list may be right: its adapter declares no models."""
        name, slash, _ = model.partition("/")
        adapter = self._adapters.get(name) or self._beside.get(name)
        return bool(slash) and adapter is not None and not self._declared(name, adapter)

    # --- where requests go --------------------------------------------------------------------------------------

    def routes(self) -> list[ProviderRoute]:
        """The providers that clients can send elsewhere: those that speak a protocol of which clients know."""
        names = dict.fromkeys([*self._configured, *WELL_KNOWN, *self._adapters])
        return [route for name in names if (route := self._route_of(name)) is not None]

    def route(self, name: str, base_url: str, headers: Mapping[str, str]) -> None:
        """Send the requests of a provider to ``base_url``, with these headers and no key of ours.

        Raises:
            InvalidRequestError: it is no address.
        """
        if not _WEB_ADDRESS.match(base_url):
            # Not the text: it may hold a password.
            raise InvalidRequestError("baseUrl is no address, expected http://... or https://...")
        old = self._adapters.get(name) or self._configured.get(name) or AdapterConfig()
        self._adapters[name] = old.model_copy(
            update={"base_url": base_url, "api_key_env": None, "headers": dict(headers)}
        )

    def switch_off(self, name: str) -> None:
        """Use a provider no more; fine for one that is not there."""
        self._adapters.pop(name, None)

    def reset_routes(self) -> None:
        """Send all requests again to where the operator wants them."""
        self._adapters = dict(self._configured)

    def _route_of(self, name: str) -> ProviderRoute | None:
        adapter = self._adapters.get(name)
        known = adapter or self._configured.get(name) or AdapterConfig()
        kind = ALIASES.get(known.type or name, known.type or name)
        family = ADAPTERS[kind].family if kind in ADAPTERS else None
        if family is None or not self._is_plain(name, known):
            return None
        base_url = adapter and (adapter.base_url or load_adapter(kind).default_base_url)
        return ProviderRoute(name, family, base_url or None)

    # --- who a session is ---------------------------------------------------------------------------------------

    def login_with_token(self, token: str) -> Login:
        """The login of a GitHub token, which is not checked yet."""
        from jumpseat.adapters.copilot_login import GivenLogin, host_of_environment

        return GivenLogin(token, host=host_of_environment(self._environ))

    def login_by_asking(
        self, ask: Callable[[str, Literal["initial", "refresh"]], Awaitable[GitHubTokenResult]]
    ) -> Login:
        """The login of a client that gives tokens: ``ask`` is told the host they are for, and why it is asked."""
        from jumpseat.adapters.copilot_login import AskedLogin, host_of_environment

        host = host_of_environment(self._environ)
        return AskedLogin(lambda reason: ask(host, reason), host)

    def login_of(self, credentials: AuthCredentials) -> Login:
        """The login that a client describes.

        Raises:
            InvalidRequestError: it is of a kind that cannot be used here.
        """
        from jumpseat.adapters.copilot_login import host_of_environment, login_of

        return login_of(credentials, host_of_environment(self._environ))

    async def session_auth_status(self, settings: SessionSettings) -> SessionAuthStatusResult:
        """As whom a session calls the Copilot API: its own login, else that of the process."""
        from jumpseat_protocol.accounts import SessionAuthStatusResult

        login = settings.login or await self._own_login()
        if login is None:
            return SessionAuthStatusResult(is_authenticated=False, status_message="Not authenticated")
        return await self._accounts().status(login)

    async def quota(self, login: Login | None = None) -> dict[str, AccountQuotaSnapshot]:
        """What an account of the Copilot API has left: that of ``login``, else that of the process.

        Raises:
            ProviderAuthError: there is no login, or its token is not good.
            ProviderError: GitHub cannot be asked.
        """
        login = login or await self._own_login()
        if login is None:
            raise ProviderAuthError("Not authenticated: there is no GitHub token")
        return await self._accounts().quota(login)

    async def endpoint(self, settings: SessionSettings, name: str | None = None) -> ProviderEndpointResult:
        """Where and as whom a session's model is called, or the one it would get by ``name``.

        Raises:
            InvalidRequestError: the operator has not allowed to hand this out, or the model has no endpoint.
        """
        from jumpseat.adapters.http import HttpModel

        if self._environ.get(ALLOW_ENDPOINT) != "true":
            raise InvalidRequestError(f"session.provider.getEndpoint is off: {ALLOW_ENDPOINT}=true turns it on")
        settings = replace(settings, model=name or settings.model)
        byok, wire_name = True, ""
        if settings.provider is not None and (settings.model is None or _named(settings, settings.model) is None):
            # Where it is, a provider knows without a model.
            model = await self._from_provider(settings.provider, DEFAULT_PROVIDER, settings, None)
        else:
            resolved = await self._resolve(settings)
            model, byok, wire_name = resolved.model, resolved.byok, resolved.wire_name
        if not isinstance(model, HttpModel):
            raise InvalidRequestError("the session's model has no endpoint")
        endpoint, name = await whereabouts(model)
        family = ADAPTERS[name].family if name in ADAPTERS else None
        if family is None:
            raise InvalidRequestError(
                f"the session's model is behind the wire of {name}, which is no endpoint for clients"
            )
        wire_api = "responses" if name.endswith("_responses") else "completions"
        headers = dict(endpoint.headers)
        if not byok:
            # An account's endpoint answers only to the headers that the adapter sends.
            wanted = ModelRequest(wire_name, "", [], interaction_id=str(uuid.uuid4()))
            headers = dict(load_adapter(name).request(endpoint, wanted).headers)
        return ProviderEndpointResult(
            type=family,
            wire_api=None if family == "anthropic" else wire_api,
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or endpoint.bearer_token,
            headers=headers,
        )

    def tunnel_through(self, client: Client) -> None:
        """Make all further model requests through ``client``.

        Raises:
            InvalidRequestError: another client makes them already.
        """
        from jumpseat.adapters.tunnel import Tunnel

        if self.tunnel is not None:
            if self.tunnel.client is client:
                return
            raise InvalidRequestError("Another client is already the LLM inference provider.")
        self.tunnel = Tunnel(client)
        self._http().use(self.tunnel)

    def lost(self, client: Client) -> None:
        """A client is gone; if it made the model requests, they go over the network again."""
        if self.tunnel is not None and self.tunnel.client is client:
            self.tunnel.close()
            self.tunnel = None
            self._http().use(None)

    async def close(self) -> None:
        """Close the connections to all providers."""
        if self._transport is not None:
            await self._transport.aclose()

    # --- finding one --------------------------------------------------------------------------------------------

    async def _resolve(self, settings: SessionSettings, ask_token: AskToken | None = None) -> ResolvedModel:
        if settings.model is not None and (model := _named(settings, settings.model)) is not None:
            return await self._from_registry(model, settings, ask_token)
        if settings.provider is not None:
            return await self._from_own_provider(settings.provider, settings, ask_token)
        name = settings.model or self._config.default_model
        login = settings.login or self._login_of_environment
        if name is None and login is None and settings.provider_models and not self._adapters:
            return await self._from_registry(settings.provider_models[0], settings, ask_token)
        login = login or await self._own_login()
        if name is None:
            if login is None or self._has_own_default():
                return await self._from_adapter(*self._default_adapter(), None, settings)
            return await self._from_copilot(login, None, settings)
        alias = self._config.models.get(name)
        if alias is not None:
            adapter = self._adapters.get(alias.adapter) or self._beside.get(alias.adapter)
            if adapter is None:
                key = {**WELL_KNOWN, **KNOWN_BESIDE}[alias.adapter][0]
                raise ConfigError(f"model {name!r} needs the adapter {alias.adapter!r}: set {key}, or configure it")
            return await self._from_adapter(alias.adapter, adapter, alias.model, settings)
        prefix, slash, model = name.partition("/")
        if slash and prefix in self._adapters:
            return await self._from_adapter(prefix, self._adapters[prefix], model, settings)
        if slash and prefix in self._registered:
            return await self._from_adapter(prefix, self._registered[prefix], model, settings)
        for adapter_name, adapter in self._adapters.items():
            if any(one.id == name for one in await self._offers_or_none(adapter_name, adapter)):
                return await self._from_adapter(adapter_name, adapter, name, settings)
        if slash and not (login is None and self._is_gateway()):
            beside = self._beside.get(prefix) or self._installed().get(prefix)
            if beside is not None:
                return await self._from_adapter(prefix, beside, model, settings)
        if login is not None:
            return await self._from_copilot(login, name, settings)
        adapters = self._adapters or self._beside
        if len(adapters) == 1:
            return await self._from_adapter(*next(iter(adapters.items())), name, settings)
        if not adapters:
            raise _nothing_configured()
        raise ConfigError(f"unknown model {name!r}: name it as 'adapter/model', adapters: {', '.join(adapters)}")

    async def _from_own_provider(
        self, provider: ProviderConfig, settings: SessionSettings, ask_token: AskToken | None
    ) -> ResolvedModel:
        """The model of the session's one provider; without any name it can be looked at, but not called."""
        wire_name = provider.wire_model or provider.model_id or settings.model or ""
        if provider.type == SCRIPTED:
            wire_name = wire_name or SCRIPTED
        known = ModelInfo(id="")
        if ALIASES.get(provider.type, provider.type) not in (*ADAPTERS, SCRIPTED):
            declared = await self.catalogue.ready(provider.type)
            offer = _offered(declared.offers(), wire_name or None)
            if offer is None and wire_name:
                offer = declared.unlisted(wire_name)
            if offer is not None:
                known, wire_name = offer.info, offer.wire_name
        info = replace(
            known,
            id=settings.model or wire_name,
            tool_protocol=provider.tool_protocol or known.tool_protocol,
            context_window=provider.max_context_window_tokens or known.context_window,
            max_prompt_tokens=provider.max_prompt_tokens or known.max_prompt_tokens,
            max_output_tokens=provider.max_output_tokens or known.max_output_tokens,
        )
        model = await self._from_provider(provider, DEFAULT_PROVIDER, settings, ask_token)
        return ResolvedModel(model, wire_name, _overridden(info, provider.model_capabilities))

    async def _from_registry(
        self, model: ProviderModelConfig, settings: SessionSettings, ask_token: AskToken | None
    ) -> ResolvedModel:
        """A model of one of the session's named providers."""
        provider = next((one for one in settings.providers if one.name == model.provider), None)
        if provider is None:
            raise ConfigError(f"model {_selection_id(model)!r}: there is no provider {model.provider!r}")
        info = _registered_info(model)
        return ResolvedModel(
            await self._from_provider(provider, provider.name, settings, ask_token),
            model.wire_model or model.model_id or model.id,
            replace(info, tool_protocol=info.tool_protocol or provider.tool_protocol),
        )

    async def _from_provider(
        self, provider: ProviderConfig, name: str, settings: SessionSettings, ask_token: AskToken | None
    ) -> Model:
        kind = ALIASES.get(provider.type, provider.type)
        if kind == SCRIPTED:
            return self._script(provider.script)
        if kind not in ADAPTERS:
            return await self._from_declared_provider(kind, provider, name, settings, ask_token)
        if provider.wire_api == "responses":
            kind = RESPONSES.get(kind, kind)
        endpoint = Endpoint(
            base_url=(provider.base_url or load_adapter(kind).default_base_url or "").rstrip("/"),
            api_key=provider.api_key,
            bearer_token=provider.bearer_token,
            headers=provider.headers,
            user_agent=_user_agent(settings.client_name),
            options={"api_version": provider.azure.api_version} if provider.azure else {},
        )
        token = AskedToken(name, ask_token) if provider.has_bearer_token_provider else None
        return self._http_model(kind, endpoint, token)

    async def _from_declared_provider(
        self,
        kind: str,
        provider: ProviderConfig,
        name: str,
        settings: SessionSettings,
        ask_token: AskToken | None,
    ) -> Model:
        """A model of a declared adapter, of which the session says what it wants otherwise."""
        known = self.callable_adapter(kind, await self.catalogue.ready(kind))
        given: dict[str, Any] = {}
        if provider.base_url:
            given["base_url"] = provider.base_url.rstrip("/")
            if not known.is_at(provider.base_url):
                # They are for the declared server.
                known = known.withholding_secrets()
        if provider.api_key:
            given["api_key"] = provider.api_key
        options = {"api_version": provider.azure.api_version} if provider.azure else {}
        endpoint = Endpoint(
            base_url="",
            api_key=provider.api_key,
            bearer_token=provider.bearer_token,
            headers=provider.headers,
            user_agent=_user_agent(settings.client_name),
            options={**known.declaration.options, **options},
        )
        token = AskedToken(name, ask_token) if provider.has_bearer_token_provider else None
        return self._declared_model(known, given, endpoint, token)

    async def _from_adapter(
        self, name: str, config: AdapterConfig, model: str | None, settings: SessionSettings
    ) -> ResolvedModel:
        kind = ALIASES.get(config.type or name, config.type or name)
        if not self._is_plain(name, config):
            return await self._from_declaration(name, model, settings)
        declared = self._declared(name, config)
        if model is None and declared:
            model = declared[0].id
        if kind == SCRIPTED:
            model = model or SCRIPTED
            known = next((one for one in declared if one.id == model), ModelConfig(id=model))
            info = replace(_info(model, known), tool_protocol=known.tool_protocol or config.tool_protocol)
            return ResolvedModel(self._script(config.script), model, info)
        if model is None:
            raise ConfigError(f"adapter {name!r} declares no models: name one, or set default_model")
        known = next((one for one in declared if one.id == model), ModelConfig(id=model))
        adapter = load_adapter(kind)
        base_url = config.base_url or adapter.default_base_url
        if not base_url:
            raise ConfigError(f"adapter {name!r} needs a base_url")
        key_env = config.api_key_env or (None if config.base_url else adapter.key_env)
        api_key = self._environ.get(key_env) if key_env else None
        if config.api_key_env and api_key is None:
            raise ConfigError(f"adapter {name!r}: the environment variable {config.api_key_env!r} is not set")
        # Keys that come out of files bring their last line break along.
        api_key = api_key.strip() if api_key else api_key
        endpoint = Endpoint(
            base_url=base_url.rstrip("/"),
            api_key=api_key,
            headers=config.headers,
            user_agent=_user_agent(settings.client_name),
            options=config.options,
        )
        info = _info(f"{name}/{known.id}", known)
        info = replace(info, tool_protocol=info.tool_protocol or config.tool_protocol)
        return ResolvedModel(self._http_model(kind, endpoint), known.wire_model or known.id, info)

    async def _from_declaration(self, name: str, model: str | None, settings: SessionSettings) -> ResolvedModel:
        known = self.callable_adapter(name, await self.catalogue.ready(name))
        offers = known.offers()
        offer = _offered(offers, model)
        if offer is None:
            if model is None:
                raise ConfigError(f"adapter {name!r} declares no models: name one, or set default_model")
            offer = known.unlisted(model)
        endpoint = Endpoint(
            base_url="", user_agent=_user_agent(settings.client_name), options=known.declaration.options
        )
        return ResolvedModel(self._declared_model(known, {}, endpoint), offer.wire_name, offer.info)

    async def _from_copilot(self, login: Login, name: str | None, settings: SessionSettings) -> ResolvedModel:
        from jumpseat.adapters.copilot import has_socket, wire_of

        account = await self._accounts().account(login)
        models = await account.models()
        if name is None:
            name = next((one.id for one in models if one.enabled), None)
            if name is None:
                raise ConfigError("the Copilot API lists no usable model")
        # Names that are in no list are tried all the same: lists lag behind.
        info = next((one for one in models if one.id == name), ModelInfo(id=name))
        # The API wants to be told that its own protocol is spoken.
        agent = f"{_user_agent(settings.client_name)} (Copilot API)"
        endpoint = replace(await account.endpoint(), user_agent=agent)
        wire = wire_of(info)
        if wire is None:
            served = ", ".join(info.wires or ())
            raise ConfigError(f"the Copilot API serves model {name!r} by none of our wires, but by {served}")
        socket = has_socket(info) and self._may_use_sockets(settings)
        return ResolvedModel(self._http_model(wire, endpoint, socket=socket), name, info, byok=False)

    def _may_use_sockets(self, settings: SessionSettings) -> bool:
        """WebSockets are for those who ask for them, and made by the client that makes the requests."""
        if self.tunnel is None or self._environ.get(NO_SOCKETS) == "true":
            return False
        wanted = settings.web_sockets
        return self._environ.get(SOCKETS) == "true" if wanted is None else wanted

    # --- parts --------------------------------------------------------------------------------------------------

    def _http_model(
        self,
        adapter_name: str,
        endpoint: Endpoint,
        token: Callable[[], Awaitable[str]] | None = None,
        *,
        socket: bool = False,
    ) -> Model:
        from jumpseat.adapters.http import HttpModel

        return HttpModel(WireCaller(load_adapter(adapter_name), endpoint, token, socket), self._http())

    def _declared_model(
        self,
        known: Known,
        given: Mapping[str, Any],
        endpoint: Endpoint,
        token: Callable[[], Awaitable[str]] | None = None,
    ) -> Model:
        from jumpseat.adapters.declared.pipeline import DeclaredCaller
        from jumpseat.adapters.http import HttpModel

        caller = DeclaredCaller(known.declaration, known.wire, self._resolver, given, endpoint, token, known.kind)
        return HttpModel(caller, self._http())

    @cached_property
    def catalogue(self) -> Catalogue:
        """All adapters that can be named."""
        from jumpseat.adapters.declared.catalogue import Catalogue

        tables = {
            name: adapter.as_table()
            for name, adapter in self._config.adapters.items()
            if adapter.type != SCRIPTED and name != SCRIPTED
        }
        return Catalogue(tables, self._home)

    @cached_property
    def _resolver(self) -> EnvResolver:
        from jumpseat.adapters.declared.env import EnvResolver

        return EnvResolver(self._environ)

    def callable_adapter(self, name: str, known: Known | None = None) -> Known:
        """The declared adapter of that name.

        Raises:
            ConfigError: there is none, or none that can be called.
        """
        known = known or self.catalogue.get(name)
        known.check_callable()
        return known

    async def of_adapter(self, name: str, model: str | None, settings: SessionSettings) -> ResolvedModel:
        """A model of one adapter, its first without ``model``.

        Raises:
            ConfigError: there is no such adapter or model.
            InvalidRequestError: the settings are not for that adapter.
        """
        name = ALIASES.get(name, name)
        for known in (self._adapters, self._registered, self._beside):
            if name in known:
                return await self._from_adapter(name, known[name], model, settings)
        if name in ADAPTERS:
            return await self._from_adapter(name, AdapterConfig(), model, settings)
        return await self._from_declaration(name, model, settings)

    def inline(self, resolved: ResolvedModel) -> ResolvedModel:
        """The same model for calls that want a text and nothing else."""
        from jumpseat.adapters.http import HttpModel

        if isinstance(resolved.model, HttpModel) and not isinstance(resolved.model.caller, WireCaller):
            from jumpseat.adapters.declared.pipeline import DeclaredCaller

            caller = resolved.model.caller
            if isinstance(caller, DeclaredCaller):
                return replace(resolved, model=HttpModel(replace(caller, inline=True), self._http()))
        return resolved

    def register(self, raw: Mapping[str, Any]) -> Known:
        """Take an adapter that a client declares.

        Raises:
            InvalidRequestError: it has no name, or one that is taken.
            ConfigError: the declaration is wrong, or cannot be called.
        """
        if raw.get("name") == SCRIPTED or "/" in str(raw.get("name")):
            raise InvalidRequestError(f"an adapter cannot be called {raw.get('name')!r}")
        known = self.catalogue.register(raw)
        self._registered[known.declaration.name] = AdapterConfig()
        return known

    def _installed(self) -> dict[str, AdapterConfig]:
        """What packages bring beside what is configured."""
        if not self._some_installed:
            return {}
        return {
            name: AdapterConfig()
            for name in sorted(self.catalogue.installed())
            if name not in self._adapters and name not in ADAPTERS
        }

    @cached_property
    def _some_installed(self) -> bool:
        """Whether an installed package seems to bring adapters; takes a hundredth of the time of loading them."""
        group = b"[jumpseat.adapters]"
        for folder in sys.path:
            with suppress(OSError), os.scandir(folder or ".") as entries:
                for entry in entries:
                    if entry.name.endswith((".dist-info", ".egg-info")):
                        with suppress(OSError):
                            if group in (Path(entry.path) / "entry_points.txt").read_bytes():
                                return True
        return False

    def _is_plain(self, name: str, config: AdapterConfig) -> bool:
        """Whether an adapter is one that comes with the server, called with nothing declared."""
        if config.declaration:
            return False
        kind = ALIASES.get(config.type or name, config.type or name)
        return (kind in ADAPTERS or kind == SCRIPTED) and kind not in self._files

    def _http(self) -> HttpTransport:
        from jumpseat.adapters.http import HttpTransport

        if self._transport is None:
            self._transport = HttpTransport(detour=self._make_detour() if self._make_detour else None)
        return self._transport

    def _script(self, script: dict[str, Any] | str | None) -> ScriptedModel:
        from jumpseat.adapters.scripted import Script, load_script

        if script is None:
            raise InvalidRequestError("the scripted adapter needs a script: a path, or the script itself")
        if not isinstance(script, str):
            try:
                return self._shared_script(repr(script), Script.model_validate(script))
            except ValidationError as error:
                raise InvalidRequestError(f"provider.script.{validation_problems(error)[0]}") from None
        return self._shared_script(script, load_script(script))

    def _shared_script(self, key: str, script: Any) -> ScriptedModel:
        """One model per script: it counts the failures that a script asks for."""
        from jumpseat.adapters.scripted import ScriptedModel

        digest = hashlib.sha256(key.encode()).hexdigest()
        if digest not in self._scripts:
            self._scripts[digest] = ScriptedModel(script)
        return self._scripts[digest]

    def _accounts(self) -> CopilotAccounts:
        from jumpseat.adapters.copilot_accounts import CopilotAccounts

        if self._copilot is None:
            self._copilot = CopilotAccounts(self._environ, self._http(), _user_agent(None))
        return self._copilot

    @cached_property
    def _login_of_environment(self) -> Login | None:
        from jumpseat.adapters.copilot_login import login_of_environment

        return login_of_environment(self._options)

    async def _own_login(self) -> Login | None:
        """The identity of the process. The GitHub CLI's is borrowed only where no model could be had otherwise."""
        if self._login_of_environment is not None or self._adapters or not self._options.auto_login:
            return self._login_of_environment
        if self._gh_login is None:
            from jumpseat.adapters.copilot_login import login_of_gh

            self._gh_login = await login_of_gh(self._environ)
        return self._gh_login

    def _declared(self, name: str, config: AdapterConfig) -> list[ModelConfig]:
        declared = config.model_list()
        known = WELL_KNOWN.get(name) or KNOWN_BESIDE.get(name)
        if not declared and known and (model := self._environ.get(known[2])):
            return [ModelConfig(id=model)]
        return declared

    async def _offers(self, name: str, config: AdapterConfig) -> list[Offer]:
        if self._is_plain(name, config):
            return [
                Offer(one.id, one.wire_model or one.id, _info(f"{name}/{one.id}", one))
                for one in self._declared(name, config)
            ]
        return (await self.catalogue.ready(name)).offers()

    async def _offers_or_none(self, name: str, config: AdapterConfig) -> list[Offer]:
        """The models of an adapter; one that is wrong must not hide the others."""
        try:
            return await self._offers(name, config)
        except ConfigError as error:
            log.warning("the models of adapter %r cannot be listed: %s", name, error)
            return []

    async def _offered_infos(self, adapters: Mapping[str, AdapterConfig]) -> list[ModelInfo]:
        return [one.info for name, adapter in adapters.items() for one in await self._offers_or_none(name, adapter)]

    def _is_gateway(self) -> bool:
        """Whether the only adapter is a server of the user's own, whose names of models may have any prefix."""
        return len(self._adapters) == 1 and all(one.base_url for one in self._adapters.values())

    def _has_own_default(self) -> bool:
        """Whether the configuration file, by naming adapters, means something other than the Copilot API."""
        return bool(self._config.adapters or self._files) or GIVEN in self._adapters

    def _default_adapter(self) -> tuple[str, AdapterConfig]:
        if self._adapters:
            return next(iter(self._adapters.items()))
        beside = sorted(self._beside.items(), key=lambda item: not self._declared(*item))
        if beside:
            # The first that says which model, else the first.
            return beside[0]
        raise _nothing_configured()


def _detour(options: Options, mask: Callable[[str], str]) -> Callable[[], Detour] | None:
    """Makes what records all calls, or answers them; ``None`` where nothing is to be done with them."""
    if options.replay is not None:
        from jumpseat.adapters.recordings import open_for_replay

        replay, recorded = options.replay, open_for_replay(options.replay.folder)

        def replayer() -> Detour:
            from jumpseat.adapters.replayer import Replayer

            return Replayer(recorded, in_order=replay.in_order, delays=replay.delays)

        return replayer
    if options.record is not None:
        from jumpseat.adapters.recordings import open_for_recording

        folder = open_for_recording(options.record)

        def recorder() -> Detour:
            from jumpseat.adapters.recorder import Recorder

            return Recorder(folder, mask)

        return recorder
    return None


def _of_environ(
    known: Mapping[str, tuple[str, str, str]], environ: Mapping[str, str], configured: Mapping[str, AdapterConfig]
) -> dict[str, AdapterConfig]:
    """The adapters whose keys or addresses are in the environment and which are not configured."""
    return {
        name: AdapterConfig(base_url=environ.get(base_url) or None, api_key_env=key if environ.get(key) else None)
        for name, (key, base_url, _) in known.items()
        if name not in configured and (environ.get(key) or environ.get(base_url))
    }


def _identity(resolved: ResolvedModel) -> tuple[str, str, str]:
    """What tells a model from those of the same name elsewhere."""
    from jumpseat.adapters.http import HttpModel

    address = ""
    if isinstance(resolved.model, HttpModel):
        caller = resolved.model.caller
        address = caller.endpoint.base_url or str(getattr(caller, "given", {}).get("base_url", ""))
    return resolved.model.adapter_name, address, resolved.wire_name


async def whereabouts(model: HttpModel) -> tuple[Endpoint, str]:
    """Where and as whom a model is called, and by which wire."""
    from jumpseat.adapters.declared.pipeline import DeclaredCaller

    caller = model.caller
    if isinstance(caller, DeclaredCaller):
        return await caller.whereabouts(), caller.kind or caller.adapter_name
    return caller.endpoint, caller.adapter_name


def _offered(offers: list[Offer], name: str | None) -> Offer | None:
    """The offer of that name, else the one that is called so at the provider; without a name the first."""
    if name is None:
        return offers[0] if offers else None
    exact = (one for one in offers if one.id == name)
    return next(exact, None) or next((one for one in offers if one.wire_name == name), None)


def _selection_id(model: ProviderModelConfig) -> str:
    return f"{model.provider}/{model.id}"


def _named(settings: SessionSettings, name: str) -> ProviderModelConfig | None:
    """The model that ``name`` selects among those of the session's named providers.

    One that is not declared is tried under its own name.
    """
    for model in settings.provider_models:
        if _selection_id(model) == name:
            return model
    provider, slash, model_id = name.partition("/")
    if slash and model_id and any(one.name == provider for one in settings.providers):
        return ProviderModelConfig(id=model_id, provider=provider)
    return None


def _registered_info(model: ProviderModelConfig) -> ModelInfo:
    selection = _selection_id(model)
    info = ModelInfo(
        id=selection,
        name=model.name or selection,
        tool_protocol=model.tool_protocol,
        context_window=model.max_context_window_tokens,
        max_prompt_tokens=model.max_prompt_tokens,
        max_output_tokens=model.max_output_tokens,
    )
    return _overridden(info, model.capabilities)


def _info(model_id: str, config: ModelConfig) -> ModelInfo:
    return ModelInfo(
        id=model_id,
        name=config.name or config.id,
        vision=config.vision,
        tool_protocol=config.tool_protocol,
        context_window=config.context_window,
        max_output_tokens=config.max_output_tokens,
    )


def _overridden(info: ModelInfo, capabilities: ModelCapabilities | None) -> ModelInfo:
    """``info`` with what the client knows better."""
    if capabilities is None:
        return info
    supports, limits = capabilities.supports, capabilities.limits
    return replace(
        info,
        vision=supports.vision if supports and supports.vision is not None else info.vision,
        context_window=(limits.max_context_window_tokens if limits else None) or info.context_window,
        max_prompt_tokens=(limits.max_prompt_tokens if limits else None) or info.max_prompt_tokens,
        max_output_tokens=(limits.max_output_tokens if limits else None) or info.max_output_tokens,
    )


def _user_agent(client_name: str | None) -> str:
    product = f"jumpseat/{__version__}"
    return f"{product} {client_name}" if client_name else product


def _nothing_configured() -> ConfigError:
    return ConfigError(
        "no model is configured: give the session a provider, set OPENAI_API_KEY or ANTHROPIC_API_KEY,"
        " or name an adapter in config.toml"
    )
