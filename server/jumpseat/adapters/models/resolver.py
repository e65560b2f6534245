"""Resolve a session's model: from its own providers, the configuration, or the Copilot API.

Precedence: a model of one of the session's named providers (``provider/id``); the session's single ``provider``; an
alias; ``adapter/model``; a model of a configured adapter; the Copilot API, if there is a token; the only adapter. A
session without a model uses the first one of its named providers if nothing else has a default. ``configured.py``
selects among adapters. Nothing is imported or requested over the network before a session needs it.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.adapters.models.configured import AdapterSelection, ConfiguredAdapters, ModelsNeeded, plain_offer
from jumpseat.adapters.models.connections import Connections
from jumpseat.adapters.models.copilot_source import CopilotSource, StoredLogins
from jumpseat.adapters.models.entered_keys import EnteredKeys, KeyedEnvironment
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.agent.interfaces import AskToken, ResolvedModel
from jumpseat.agent.model import ModelInfo, ModelRequest
from jumpseat.agent.observation import Observers
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import AdapterConfig, Config
from jumpseat.errors import ConfigError, InvalidRequestError, JumpseatError, ProviderError, ProviderRequestError
from jumpseat.system.child_environment import ChildEnvironment
from jumpseat_protocol.server import AuthStatusResult

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from jumpseat.adapters.models.adapter_models import AdapterModels
    from jumpseat.adapters.models.explanations import Explanations
    from jumpseat.adapters.models.model_catalogue import ModelCatalogue
    from jumpseat.adapters.models.routes import Routes
    from jumpseat.adapters.models.session_providers import SessionProviders
    from jumpseat.options import Options
    from jumpseat_protocol.provider import ProviderEndpointResult

ALLOW_ENDPOINT: Final = "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"

LIST_TIMEOUT_S: Final = 3.0
"""Time limit for providers when listing models; for the Copilot API only if there are other models to list."""


class Models:
    """The models of the process. Keys are read when a model is called and stored nowhere else."""

    def __init__(
        self,
        config: Config,
        options: Options,
        home: Path | None = None,
        mask: Callable[[str], str] = str,
        *,
        list_timeout_s: float = LIST_TIMEOUT_S,
        tasks: TaskGroup | None = None,
        is_trusted: Callable[[Path], bool] = lambda _: False,
        child_environment: ChildEnvironment | None = None,
        config_file: Path | None = None,
        logins: StoredLogins | None = None,
        keys: EnteredKeys | None = None,
    ) -> None:
        """Create the models without any I/O except for the recordings' folder.

        Args:
            config: the configuration.
            options: the command line and environment of the process.
            home: may contain a folder ``adapters`` with adapter files.
            mask: removes secrets from recorded strings.
            list_timeout_s: time limit for providers when listing models.
            tasks: runs requests for model lists that outlive their waiters.
            is_trusted: decides which projects may declare adapters.
            child_environment: the environment of commands that print keys; learns the variables of all keys.
            config_file: the file that ``config`` was read from, for errors.
            logins: the stored logins to GitHub.
            keys: the keys that the user has entered, which stand in for variables that are not set.

        Raises:
            ConfigError: the folder for recordings is not writable, or contains none to replay.
        """
        self.config = config
        """The configuration, which :mod:`jumpseat.setup` changes as it changes the file."""
        self.environ = KeyedEnvironment({name: value for name, value in options.environ.items() if value}, keys)
        """The variables that are not empty, and entered keys."""
        self.adapters = ConfiguredAdapters(config, self.environ, home, is_trusted, config_file)
        child_environment = child_environment or ChildEnvironment(options.whole_environ)
        child_environment.withhold(self.adapters.key_variables)
        whole_environ = KeyedEnvironment(options.whole_environ, keys)
        self.connections = Connections(options, mask, child_environment, whole_environ)
        # The GitHub CLI's login is used only if no adapter is configured.
        self.copilot = CopilotSource(
            options, self.connections, logins, borrows=options.auto_login and not self.adapters.configured
        )
        self.observers = Observers()
        """The observers of calls outside of sessions."""
        self.admit: Callable[[ResolvedModel], Awaitable[None]] | None = None
        """Raises an error if the budget of the day allows no call outside of sessions."""
        self._tasks = tasks
        self._list_timeout_s = list_timeout_s
        # Adapter, base URL and wire name of each model.
        self._learned: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._questions: dict[tuple[str, str, str], _Question] = {}

    # The following are imported lazily, because a client waits for the first response of a starting server.

    @cached_property
    def catalogue(self) -> ModelCatalogue:
        """The list of all models with their capabilities."""
        from jumpseat.adapters.models.model_catalogue import ModelCatalogue

        return ModelCatalogue(
            self.config.models,
            self._models,
            self.copilot,
            self._tasks,
            self._list_timeout_s,
            self.config.limits.server_question_s,
        )

    @cached_property
    def routes(self) -> Routes:
        """The base URLs of configured providers."""
        from jumpseat.adapters.models.routes import Routes

        return Routes(self.adapters)

    @cached_property
    def _models(self) -> AdapterModels:
        from jumpseat.adapters.models.adapter_models import AdapterModels

        return AdapterModels(self.adapters, self.connections, self.environ)

    @cached_property
    def _explanations(self) -> Explanations:
        from jumpseat.adapters.models.explanations import Explanations

        return Explanations(self.adapters, self.environ)

    @cached_property
    def _providers(self) -> SessionProviders:
        from jumpseat.adapters.models.copilot_wires import COPILOT, CopilotWires
        from jumpseat.adapters.models.session_providers import SessionProviders

        wires = CopilotWires(self.connections.transport)
        return SessionProviders(self.adapters, self.connections, {COPILOT: wires.wire_of})

    # --- for sessions ---------------------------------------------------------------------------------------------

    def check(self, settings: SessionSettings) -> None:
        """See :meth:`jumpseat.agent.interfaces.ModelSource.check`."""
        self._providers.check(settings, logged_in=self._has_login(settings))
        provider = settings.options.provider
        if self._tasks is not None and provider is not None and provider.type != SCRIPTED:
            self.connections.load_soon(self._tasks)

    def check_adapter_settings(self, settings: SessionSettings) -> None:
        """See :meth:`jumpseat.adapters.models.session_providers.SessionProviders.check_adapter_settings`."""
        self._providers.check_adapter_settings(settings, logged_in=self._has_login(settings))

    def unsupported_settings(self, settings: SessionSettings) -> list[str]:
        """See :meth:`jumpseat.agent.interfaces.ModelSource.unsupported_settings`."""

        def is_refused(adapter_settings: Mapping[str, Any]) -> bool:
            try:
                self.check_adapter_settings(settings.with_options(adapter_settings=adapter_settings))
            except JumpseatError:
                return True
            return False

        wanted = settings.options.adapter_settings
        return [key for key, value in wanted.items() if is_refused({key: value})] if is_refused(wanted) else []

    def _has_login(self, settings: SessionSettings) -> bool:
        return settings.login is not None or self.copilot.login_of_environment is not None

    async def resolve(self, settings: SessionSettings, *, ask_token: AskToken | None = None) -> ResolvedModel:
        """See :meth:`jumpseat.agent.interfaces.ModelSource.resolve`."""
        found = await self._resolve(settings, ask_token)
        if not found.wire_name:
            raise ConfigError("a session with its own provider needs a model: set model, or provider.modelId")
        found = self._complete(found, settings)
        if not (settings.allows(settings.options.model) or settings.allows(found.info.id)):
            raise InvalidRequestError(f"the model {found.info.id!r} is not among the allowed models of the session")
        if self._learned and (facts := self._learned.get(_identity(found))):
            # Users are told of what is known otherwise; the window governs what is known, too.
            window = {name: value for name, value in facts.items() if name == "context_window"}
            found = replace(found, info=replace(found.info, **facts), filled=replace(found.known, **window))
        return found

    def learn(self, resolved: ResolvedModel, **facts: Any) -> None:
        """See :meth:`jumpseat.agent.interfaces.ModelSource.learn`."""
        self._learned.setdefault(_identity(resolved), {}).update(facts)

    async def ask_server(self, resolved: ResolvedModel, *, again: bool = False) -> bool:
        """See :meth:`jumpseat.agent.interfaces.ModelSource.ask_server`."""
        question = self._questions.setdefault(_identity(resolved), _Question())
        before = question.asked
        async with question.lock:
            if question.asked > before:
                # Another session has asked in the meantime.
                return True
            if question.asked > again:
                return False
            question.asked += 1
            return await self._ask_server(resolved)

    async def _ask_server(self, resolved: ResolvedModel) -> bool:
        said = await self.catalogue.ask_server(resolved)
        facts = {
            name: fact
            for name in ("context_window", "vision")
            if getattr(resolved.info, name) is None and (fact := getattr(said, name, None)) is not None
        }
        self.learn(resolved, **facts)
        return bool(facts)

    async def of_adapter(self, name: str, model: str | None, settings: SessionSettings) -> ResolvedModel:
        """Create a model of the adapter ``name``; without ``model``, its first one.

        Raises:
            ConfigError: the adapter is unknown, or has no model where none is named.
        """
        return self._complete(
            await self._models.create(name, model, settings.options.client_name, settings.cwd), settings
        )

    async def default_name(self, settings: SessionSettings) -> str | None:
        """Return the default model of a session, or ``None`` if there is none."""
        try:
            return (await self._resolve(settings)).info.id or None
        except JumpseatError:
            return None

    def default_id(self, settings: SessionSettings) -> str | None:
        """Return the default model of a session, as far as that is known without any request."""
        if settings.options.provider is not None:
            return settings.options.provider.model_id or settings.options.provider.wire_model
        if self.config.default_model is not None:
            return self.config.default_model
        adapters, login = self.adapters, settings.login or self.copilot.login_of_environment
        default = adapters.default()
        if default is None or not (login is None or adapters.has_own_default()):
            return None
        name, config = default
        declared = adapters.models_of(name, config) if adapters.is_undeclared(name, config) else []
        return f"{name}/{declared[0].id}" if declared else None

    def declared(self, settings: SessionSettings) -> list[ModelInfo]:
        """Return the first models of :meth:`ModelCatalogue.list` that are known without any request.

        The list is empty for a session with its own provider.
        """
        if settings.options.provider is not None:
            return []
        adapters = self.adapters
        return [ModelInfo(id=name, name=name) for name in self.config.models] + [
            plain_offer(name, model).info
            for name, (config, models) in adapters.with_models().items()
            if adapters.is_undeclared(name, config)
            for model in models
        ]

    async def of_session(self, settings: SessionSettings) -> list[ModelInfo]:
        """Return the models of the session's own providers: of the single provider, then of the named ones."""
        offers = await self._providers.offers(settings)
        return [self.catalogue.complete(offer.info, offer.wire_name, wire) for offer, wire in offers]

    async def auth_status(self) -> AuthStatusResult:
        """Return the login status; without a login, whether there are configured providers."""
        login = await self.copilot.own_login()
        if login is not None:
            status = await self.copilot.status(login)
            return AuthStatusResult(
                is_authenticated=status.is_authenticated,
                auth_type=status.auth_type,
                host=status.host,
                login=status.login,
                status_message=status.status_message,
            )
        if names := [*self.adapters.configured, *self.adapters.fallback]:
            return AuthStatusResult(
                is_authenticated=True,
                auth_type="api-key",
                status_message=f"Configured providers: {', '.join(names)}",
            )
        return AuthStatusResult(is_authenticated=False, status_message="Not authenticated")

    async def endpoint(self, settings: SessionSettings, name: str | None = None) -> ProviderEndpointResult:
        """Return the endpoint and credentials of a session's model, or of the model called ``name``.

        Raises:
            InvalidRequestError: the operator does not allow this, or the model has no endpoint for clients.
        """
        from jumpseat.adapters.models.session_providers import DEFAULT_PROVIDER, find_named
        from jumpseat.adapters.transport.http import HttpModel
        from jumpseat_protocol.provider import ProviderEndpointResult

        if self.environ.get(ALLOW_ENDPOINT) != "true":
            raise InvalidRequestError(
                f"session.provider.getEndpoint is disabled: set {ALLOW_ENDPOINT}=true to enable it"
            )
        settings = settings.with_options(model=name or settings.options.model)
        byok, wire_name = True, ""
        if settings.options.provider is not None and find_named(settings, settings.options.model) is None:
            # A provider's endpoint is known without a model.
            provider = settings.options.provider
            wire_name = provider.wire_model or provider.model_id or settings.options.model or ""
            model = await self._providers.model(provider, DEFAULT_PROVIDER, settings, wire_name=wire_name)
        else:
            resolved = await self._resolve(settings)
            model, byok, wire_name = resolved.model, resolved.byok, resolved.wire_name
        if not isinstance(model, HttpModel):
            raise InvalidRequestError("the session's model has no endpoint")
        endpoint, _ = await model.caller.resolve_endpoint()
        wire = model.caller.wire_name
        family = PROVIDERS[wire].family if wire in PROVIDERS else None
        if family is None:
            raise InvalidRequestError(
                f"the session's model is called through {wire!r}, which has no endpoint for clients"
            )
        wire_api = "responses" if wire.endswith("_responses") else "completions"
        headers = dict(endpoint.headers)
        if not byok:
            # The Copilot API requires the headers that the adapter sends.
            wanted = ModelRequest(wire_name, "", [], interaction_id=str(uuid.uuid4()))
            headers = dict(load_adapter(wire).request(endpoint, wanted).headers)
        return ProviderEndpointResult(
            type=family,
            wire_api=None if family == "anthropic" else wire_api,
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or endpoint.bearer_token,
            headers=headers,
        )

    # --- resolving ------------------------------------------------------------------------------------------------

    async def _resolve(self, settings: SessionSettings, ask_token: AskToken | None = None) -> ResolvedModel:
        await self.environ.load()
        named_model = self._providers.select(settings, logged_in=self._has_login(settings))
        if named_model is not None:
            found = await self._providers.named_model(named_model, settings, ask_token)
            given = next(given for given in settings.options.providers if given.name == named_model.provider)
            return _explained(found, lambda error: self._explanations.of_provider(given, found.wire_name, error))
        if (own := settings.options.provider) is not None:
            found = await self._providers.own_model(own, settings, ask_token)
            return _explained(found, lambda error: self._explanations.of_provider(own, found.wire_name, error))
        login = settings.login or self.copilot.login_of_environment
        login = login or await self.copilot.own_login()
        selection = await self._select(settings, logged_in=login is not None)
        if selection is None:
            assert login is not None
            try:
                found = await self.copilot.resolve(
                    login, settings.options.model or self.config.default_model, settings
                )
            except ProviderError as error:
                error.explanation = self._explanations.of_account("", error)
                raise
            return _explained(found, lambda error: self._explanations.of_account(found.wire_name, error))
        adapter, config, model = selection.adapter, selection.config, selection.model
        if selection.of_project:
            found = await self._models.create_of_project(adapter, model, settings.options.client_name, settings.cwd)
        else:
            if model is None:
                model = await self._default_model(adapter, config)
            found = await self._make(adapter, config, model, settings)
        return _explained(found, lambda error: self._explanations.of_adapter(adapter, found.wire_name, error))

    async def _select(self, settings: SessionSettings, *, logged_in: bool) -> AdapterSelection | None:
        """Select the adapter of a session, fetching the models of adapters as far as needed to decide."""
        fetched: dict[str, list[str]] = {}

        def known_models(adapter: str, _config: AdapterConfig) -> list[str] | None:
            return fetched.get(adapter)

        while True:
            selection = self.adapters.select(
                settings.options.model, settings.cwd, logged_in=logged_in, known_models=known_models
            )
            if not isinstance(selection, ModelsNeeded):
                return selection
            offered = await self.adapters.list_offers(selection.adapter, selection.config)
            fetched[selection.adapter] = [offer.id for offer in offered.offers]

    async def _default_model(self, adapter: str, config: AdapterConfig) -> str | None:
        """Choose the default model of an adapter from its provider's list.

        Returns ``None`` if the adapter offers models itself, or if there is no list.

        Raises:
            ProviderError: the list could not be fetched.
        """
        if (await self.adapters.list_offers(adapter, config)).offers:
            return None
        from jumpseat.adapters.models.usual_model import usual_model

        chosen = usual_model(adapter, await self.catalogue.of_adapter(adapter))
        failure = self.catalogue.failure(adapter) if chosen is None else None
        if isinstance(failure, ProviderError) and not isinstance(failure, ProviderRequestError):
            # Not every server lists its models, but one that rejects the key would reject a call, too.
            failure.explanation = self._explanations.of_adapter(adapter, "", failure)
            raise failure from None
        return chosen

    async def _make(
        self, adapter: str, config: AdapterConfig, model: str | None, settings: SessionSettings
    ) -> ResolvedModel:
        found = await self._models.make(adapter, config, model, settings.options.client_name)
        return replace(found, filled=self.catalogue.with_list(found.info, found.wire_name, adapter))

    def _complete(self, found: ResolvedModel, settings: SessionSettings) -> ResolvedModel:
        """Apply the client's overrides to ``found``, and fill its gaps from the built-in facts."""
        from jumpseat.adapters.models.session_providers import override
        from jumpseat.adapters.transport.http import HttpModel

        info = override(found.info, settings.options.model_capabilities)
        if not found.byok or not isinstance(found.model, HttpModel):
            # The Copilot API describes its models completely.
            return replace(found, info=info)
        overridden = override(found.known, settings.options.model_capabilities)
        return replace(
            found,
            info=info,
            filled=self.catalogue.complete(overridden, found.wire_name, found.model.caller.wire_name),
        )


class _Question(Struct):
    """Requests about a model: ``asked`` counts them, and ``lock`` is held during each."""

    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock())
    asked: int = 0


def _explained(found: ResolvedModel, explain: Callable[[ProviderError], str]) -> ResolvedModel:
    """Return a model whose failures ``explain`` explains. A scripted model has no key or address to check."""
    from jumpseat.adapters.transport.http import HttpModel

    return replace(found, explain=explain) if isinstance(found.model, HttpModel) else found


def _identity(resolved: ResolvedModel) -> tuple[str, str, str]:
    """Return adapter, base URL and wire name, which distinguish models of the same name."""
    from jumpseat.adapters.transport.http import HttpModel

    address = ""
    if isinstance(resolved.model, HttpModel):
        caller = resolved.model.caller
        address = caller.endpoint.base_url or str(getattr(caller, "given", {}).get("base_url", ""))
    return resolved.model.adapter_name, address, resolved.wire_name
