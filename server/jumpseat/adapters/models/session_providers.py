"""The models of a session's own providers: its single ``provider`` and its named ``providers``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.adapter import ClientToken, Endpoint
from jumpseat.adapters.models.adapter_models import find_offer
from jumpseat.adapters.models.configured import AdapterSelection, ConfiguredAdapters
from jumpseat.adapters.models.connections import Connections, user_agent
from jumpseat.adapters.provider import SCRIPTED, Offer
from jumpseat.adapters.providers import PROVIDERS, canonical_type
from jumpseat.agent.interfaces import AskToken, ResolvedModel
from jumpseat.agent.model import Model, ModelInfo
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import WEB_ADDRESS
from jumpseat_protocol.members import hint
from jumpseat_protocol.sessions import ModelCapabilities, ProviderConfig, ProviderModelConfig

DEFAULT_PROVIDER: Final = "default"
"""The name of a session's single ``provider`` when its token is requested."""

RESPONSES: Final[Mapping[str, str]] = {
    "openai": "openai_responses",
    "openai_responses": "openai_responses",
    "azure": "azure_responses",
    "azure_responses": "azure_responses",
    "copilot": "copilot_responses",
    "copilot_responses": "copilot_responses",
}
"""The adapter for ``wireApi: responses`` of each type that has such a wire."""


ChooseWire: TypeAlias = Callable[[str, Endpoint, Callable[[], Awaitable[str]] | None], Awaitable[str]]
"""Returns the adapter for a model at an endpoint. The last argument provides the key, if the endpoint has none."""


class SessionProviders(Struct, frozen=True):
    """Validates a session's own providers and creates their models.

    ``choosers`` decide the wires of providers that have several, by the type of the provider.
    """

    adapters: ConfiguredAdapters
    connections: Connections
    choosers: Mapping[str, ChooseWire]

    # --- validating -----------------------------------------------------------------------------------------------

    def check(self, settings: SessionSettings, *, logged_in: bool = False) -> None:
        """Validate the providers, models and settings of a session without requests to providers.

        With ``logged_in``, models of the Copilot API are available.

        Raises:
            InvalidRequestError: a provider, model or setting is invalid.
            ConfigError: a declared adapter that the session uses is invalid.
        """
        if settings.options.provider is not None:
            self._check_provider(settings.options.provider, "provider", settings.cwd)
        names: set[str] = set()
        for provider in settings.options.providers:
            if provider.name in names:
                raise InvalidRequestError(f"providers: duplicate name {provider.name!r}")
            names.add(provider.name)
            self._check_provider(provider, f"providers.{provider.name}", settings.cwd)
        ids: set[str] = set()
        for model in settings.options.models:
            if model.provider not in names:
                known = ", ".join(sorted(names)) or "none"
                raise InvalidRequestError(
                    f"models.{model.id}: unknown provider {model.provider!r}, expected one of: {known}"
                )
            if (selection := _selection_id(model)) in ids:
                raise InvalidRequestError(f"models: duplicate model {selection!r}")
            ids.add(selection)
        if settings.options.adapter_settings:
            self.check_adapter_settings(settings, logged_in=logged_in)

    def check_adapter_settings(self, settings: SessionSettings, *, logged_in: bool) -> None:
        """Validate the adapter settings, if the session's adapter is known without requests to providers.

        Raises:
            InvalidRequestError: a setting is unknown, disabled or invalid.
        """
        wanted = settings.options.adapter_settings
        named_model = self.select(settings, logged_in=logged_in)
        if named_model is not None:
            provider = next(
                (provider for provider in settings.options.providers if provider.name == named_model.provider), None
            )
        else:
            provider = settings.options.provider
        if provider is not None:
            name = canonical_type(provider.type)
            if provider.wire_api == "responses":
                name = RESPONSES.get(name, name)
            plain = name in PROVIDERS
            model = settings.options.model or provider.model_id or provider.wire_model
        else:
            try:
                selection = self.adapters.select(
                    settings.options.model,
                    settings.cwd,
                    logged_in=logged_in,
                    known_models=self.adapters.known_models,
                )
            except ConfigError:
                # Reported when the model is resolved.
                return
            if not isinstance(selection, AdapterSelection):
                return
            name, config, model = selection.adapter, selection.config, selection.model
            if model is None:
                model = next((model.id for model in self.adapters.models_of(name, config)), None)
            if plain := self.adapters.is_undeclared(name, config):
                name = canonical_type(config.type or name)
        if name == SCRIPTED:
            return
        from jumpseat.adapters.declared.settings import check_settings, wire_declaration

        if plain:
            check_settings(wire_declaration(name), model or None, wanted)
            return
        catalogue, cwd = self.adapters.catalogue, settings.cwd
        self.adapters.get_callable(name, catalogue.get(name, cwd))
        if (known := catalogue.get_if_ready(name, cwd)) is not None:
            check_settings(known.declaration, model or None, wanted)

    def _check_provider(self, provider: ProviderConfig, where: str, cwd: Path) -> None:
        kind = canonical_type(provider.type)
        if kind == SCRIPTED:
            self.connections.scripted(provider.script)
            return
        if kind not in PROVIDERS:
            catalogue = self.adapters.catalogue
            if not catalogue.has(kind, cwd):
                known = hint(provider.type, [*catalogue.names(cwd), SCRIPTED])
                raise InvalidRequestError(f"{where}.type: unknown type {provider.type!r}, {known}")
            self.adapters.get_callable(kind, catalogue.get(kind, cwd))
        if provider.base_url and not WEB_ADDRESS.match(provider.base_url):
            # The URL is left out, because it may contain a password.
            raise InvalidRequestError(f"{where}.baseUrl is not a valid URL, expected http://... or https://...")
        if provider.wire_api == "responses" and kind not in RESPONSES:
            raise InvalidRequestError(
                f"{where}.wireApi 'responses' is not supported by provider type {provider.type!r}"
            )
        if kind in PROVIDERS and not provider.base_url and PROVIDERS[kind].default_base_url is None:
            raise InvalidRequestError(f"{where}.baseUrl is required for provider type {provider.type!r}")

    # --- resolving ------------------------------------------------------------------------------------------------

    def select(self, settings: SessionSettings, *, logged_in: bool) -> ProviderModelConfig | None:
        """Return the model of a named provider that the session uses, or ``None`` if it uses none of them.

        A session without a model uses the first one if nothing that is configured has a default.
        """
        if (
            model := find_named(settings, settings.options.model)
        ) is not None or settings.options.provider is not None:
            return model
        if logged_in or settings.options.model or self.adapters.configured or self.adapters.default_model:
            return None
        return next(iter(settings.options.models), None)

    async def own_model(
        self, provider: ProviderConfig, settings: SessionSettings, ask_token: AskToken | None
    ) -> ResolvedModel:
        """Return the model of the session's single provider; without any name, it cannot be called."""
        offer = await self._own_offer(provider, settings)
        model = await self.model(provider, DEFAULT_PROVIDER, settings, ask_token, offer.wire_name)
        return ResolvedModel(model, offer.wire_name, offer.info)

    async def _own_offer(self, provider: ProviderConfig, settings: SessionSettings) -> Offer:
        wire_name = provider.wire_model or provider.model_id or settings.options.model or ""
        if provider.type == SCRIPTED:
            wire_name = wire_name or SCRIPTED
        known = ModelInfo(id="")
        if canonical_type(provider.type) not in (*PROVIDERS, SCRIPTED):
            declared = await self.adapters.catalogue.get_ready(provider.type, settings.cwd)
            offer = find_offer(declared.offers(), wire_name or None)
            if offer is None and wire_name:
                offer = declared.offer_unlisted(wire_name)
            if offer is not None:
                known, wire_name = offer.info, offer.wire_name
        info = replace(
            known,
            id=settings.options.model or wire_name,
            tool_protocol=provider.tool_protocol or known.tool_protocol,
            edit_tools=provider.edit_tools or known.edit_tools,
            context_window=provider.max_context_window_tokens or known.context_window,
            max_prompt_tokens=provider.max_prompt_tokens or known.max_prompt_tokens,
            max_output_tokens=provider.max_output_tokens or known.max_output_tokens,
        )
        return Offer(info.id, wire_name, override(info, provider.model_capabilities))

    async def named_model(
        self, model: ProviderModelConfig, settings: SessionSettings, ask_token: AskToken | None
    ) -> ResolvedModel:
        """Return a model of one of the session's named providers."""
        provider = next(
            (provider for provider in settings.options.providers if provider.name == model.provider), None
        )
        if provider is None:
            raise ConfigError(f"model {_selection_id(model)!r}: there is no provider {model.provider!r}")
        offer = _named_offer(model)
        info = replace(
            offer.info,
            tool_protocol=offer.info.tool_protocol or provider.tool_protocol,
            edit_tools=offer.info.edit_tools or provider.edit_tools,
        )
        called = await self.model(provider, provider.name, settings, ask_token, offer.wire_name)
        return ResolvedModel(called, offer.wire_name, info)

    async def offers(self, settings: SessionSettings) -> list[tuple[Offer, str]]:
        """Return the models of a session's providers, each with the name of its wire. No model is created.

        The model of the single provider is first, followed by those of named providers as ``provider/id``.
        """
        found: list[tuple[Offer, str]] = []
        if settings.options.provider is not None:
            own = await self._own_offer(settings.options.provider, settings)
            if own.id and all(
                _selection_id(provider_model) != own.id for provider_model in settings.options.models
            ):
                found.append((own, self._wire_name(settings.options.provider, settings.cwd)))
        wires = {provider.name: self._wire_name(provider, settings.cwd) for provider in settings.options.providers}
        return found + [
            (_named_offer(provider_model), wires[provider_model.provider])
            for provider_model in settings.options.models
        ]

    def _wire_name(self, provider: ProviderConfig, cwd: Path) -> str:
        kind = canonical_type(provider.type)
        return kind if kind in (*PROVIDERS, SCRIPTED) else self.adapters.catalogue.get(kind, cwd).kind or kind

    async def model(
        self,
        provider: ProviderConfig,
        name: str,
        settings: SessionSettings,
        ask_token: AskToken | None = None,
        wire_name: str = "",
    ) -> Model:
        """Create the model of ``provider``, whose bearer token is requested under ``name``.

        ``wire_name`` is the name of the model at the provider, which decides the wire if the provider has several.
        """
        kind = canonical_type(provider.type)
        if kind == SCRIPTED:
            return self.connections.scripted(provider.script)
        token = ClientToken(name, ask_token) if provider.has_bearer_token_provider else None
        command = provider.api_key_command if token is None and provider.bearer_token is None else None
        key = self.connections.key_from_command(name, command) if command is not None else None
        endpoint = Endpoint(
            base_url="",
            api_key=provider.api_key,
            bearer_token=provider.bearer_token,
            headers=provider.headers,
            user_agent=user_agent(settings.options.client_name),
            options={"api_version": provider.azure.api_version} if provider.azure else {},
        )
        if kind in PROVIDERS:
            if provider.wire_api == "responses":
                kind = RESPONSES.get(kind, kind)
            base_url = (provider.base_url or PROVIDERS[kind].default_base_url or "").rstrip("/")
            endpoint = replace(endpoint, base_url=base_url)
            if provider.wire_api is None and (choose := self.choosers.get(kind)) is not None:
                kind = await choose(wire_name, endpoint, token or key)
            # Blocks signed by one named provider must not be sent to another one with the same wire.
            signs_as = None if name == DEFAULT_PROVIDER else f"{kind}:{name}"
            return self.connections.built_in(kind, endpoint, token, key=key, signs_as=signs_as)
        # A declared adapter, whose values the session may override.
        known = self.adapters.get_callable(kind, await self.adapters.catalogue.get_ready(kind, settings.cwd))
        given: dict[str, Any] = {}
        if provider.base_url:
            given["base_url"] = provider.base_url.rstrip("/")
            if not known.is_at(provider.base_url):
                # The declared secrets are for the declared server only.
                known = known.without_secrets()
        if provider.api_key:
            given["api_key"] = provider.api_key
        endpoint = replace(endpoint, options={**known.declaration.options, **endpoint.options})
        return self.connections.declared(known, given, endpoint, token, key)


def find_named(settings: SessionSettings, name: str | None) -> ProviderModelConfig | None:
    """Return the model of the session's named providers that ``name`` selects, or ``None``.

    An undeclared model of a named provider is accepted under its own name.
    """
    if name is None:
        return None
    for model in settings.options.models:
        if _selection_id(model) == name:
            return model
    provider, slash, model_id = name.partition("/")
    if slash and model_id and any(config.name == provider for config in settings.options.providers):
        return ProviderModelConfig(id=model_id, provider=provider)
    return None


def override(info: ModelInfo, capabilities: ModelCapabilities | None) -> ModelInfo:
    """Return ``info`` with the capabilities and limits given by the client."""
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


def _selection_id(model: ProviderModelConfig) -> str:
    return f"{model.provider}/{model.id}"


def _named_offer(model: ProviderModelConfig) -> Offer:
    selection = _selection_id(model)
    info = ModelInfo(
        id=selection,
        name=model.name or selection,
        tool_protocol=model.tool_protocol,
        edit_tools=model.edit_tools,
        context_window=model.max_context_window_tokens,
        max_prompt_tokens=model.max_prompt_tokens,
        max_output_tokens=model.max_output_tokens,
    )
    return Offer(selection, model.wire_model or model.model_id or model.id, override(info, model.capabilities))
