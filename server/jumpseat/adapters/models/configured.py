"""The adapters whose models can be named as ``adapter/model``, and the selection of one. Nothing is called here.

The configured adapters are the provider of ``COPILOT_PROVIDER_BASE_URL`` (first), adapters of the configuration
file, files in ``adapters`` of the home folder, and adapters of well-known keys in the environment
(``OPENAI_API_KEY``, ``ANTHROPIC_API_KEY``). Adapters of other providers' keys and of installed packages are
fallbacks: they can be named, and are otherwise used only if nothing is configured. Adapters registered by clients
can be named, too.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from jumpseat.adapters.models.entered_keys import KeyedEnvironment
from jumpseat.adapters.models.given_provider import GIVEN, provider_of_environ
from jumpseat.adapters.provider import SCRIPTED, Offer
from jumpseat.adapters.providers import PROVIDERS, canonical_type, environment_providers
from jumpseat.agent.model import ModelInfo, Price
from jumpseat.config import AdapterConfig, Config, ModelConfig
from jumpseat.declared.places import declaration_files, project_folder
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import in_file
from jumpseat_protocol.members import nearest

if TYPE_CHECKING:
    from jumpseat.adapters.declared.catalogue import AdapterCatalogue
    from jumpseat.adapters.declared.merged import MergedAdapter
    from jumpseat.adapters.models.known_models import KnownModels

log = logging.getLogger(__name__)

TRIAL: Final = "trial"
"""The name of the scripted model that everybody has, to try jumpseat without a provider."""

_TRIAL_SCRIPT: Final = Path(__file__).with_name("trial.yaml")


class Offered(Struct, frozen=True):
    """The models that an adapter offers.

    ``kind`` is the built-in provider type that it uses, or else its own name. ``list_models`` is its setting for
    fetching the provider's list of models, ``None`` if unset. ``complete`` means that the user has listed the
    offers: they are not just the model of an environment variable.
    """

    kind: str
    offers: list[Offer]
    list_models: bool | None
    complete: bool


class AdapterSelection(Struct, frozen=True):
    """The adapter selected for a session and its model, ``None`` for the adapter's default.

    With ``of_project``, the adapter is declared by the session's project.
    """

    adapter: str
    config: AdapterConfig
    model: str | None
    of_project: bool = False


class ModelsNeeded(Struct, frozen=True):
    """The adapter whose models must be fetched before an adapter can be selected."""

    adapter: str
    config: AdapterConfig


IdsOfModels: TypeAlias = Callable[[str, AdapterConfig], Collection[str] | None]


def _api(kind: str) -> str:
    """Return the type of a provider without the name of its wire."""
    return kind.removesuffix("_responses").removesuffix("_interactions")


class ConfiguredAdapters:
    """The adapters that can be named. ``configured`` take precedence over ``fallback``.

    Files in the home folder are found as soon as they are there.
    """

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str] | KeyedEnvironment,
        home: Path | None = None,
        is_trusted: Callable[[Path], bool] = lambda _: False,
        config_file: Path | None = None,
    ) -> None:
        """Find the adapters of the environment and of ``config``.

        ``home`` may contain a folder ``adapters``; ``is_trusted`` decides which projects may add adapters;
        ``config_file`` is the file that ``config`` was read from, if any.
        """
        self._config_file = config_file
        self._is_trusted = is_trusted
        self._config = config
        self._environ = environ if isinstance(environ, KeyedEnvironment) else KeyedEnvironment(environ, None)
        self._home = home
        self.registered: dict[str, AdapterConfig] = {}
        self.redirected: dict[str, AdapterConfig | None] = {}
        """Adapters that clients have given another base URL, or switched off."""
        self._found: tuple[frozenset[str], frozenset[str], frozenset[str]] | None = None
        """The files, the tables and the keys with which the adapters were found last."""
        self._facts: KnownModels | None = None
        self._unredirected: Mapping[str, AdapterConfig] = {}
        self._fallback: Mapping[str, AdapterConfig] = {}

    @property
    def configured(self) -> Mapping[str, AdapterConfig]:
        """The adapters that the user has configured, by name, as clients have redirected them."""
        named = self.unredirected
        if not self.redirected:
            return named
        return {name: config for name, config in {**named, **self.redirected}.items() if config is not None}

    @property
    def unredirected(self) -> Mapping[str, AdapterConfig]:
        """The adapters that the user has configured, by name."""
        self._list_files()
        return self._unredirected

    @property
    def fallback(self) -> Mapping[str, AdapterConfig]:
        """The adapters whose keys are in the environment but may be meant for other programs, by name."""
        self._list_files()
        return self._fallback

    def _list_files(self) -> frozenset[str]:
        """Return the names of the adapter files in the home folder, after finding the adapters if they differ."""
        files = frozenset(path.stem for path in self._declarations())
        found = files, frozenset(self._config.adapters), self._environ.entered()
        if found != self._found:
            self._found = found
            of_files = {name: AdapterConfig() for name in sorted(files) if name not in self._config.adapters}
            configured = {**self._config.adapters, **of_files}
            self._unredirected = {
                **provider_of_environ(self._environ),
                **configured,
                **_of_environ(self._environ, configured, fallback=False),
            }
            self._fallback = _of_environ(self._environ, configured, fallback=True)
        return files

    def _declarations(self) -> Sequence[Path]:
        return [] if self._home is None else declaration_files(self._home / "adapters")

    def find(self, name: str) -> AdapterConfig | None:
        """Return the configuration of the adapter ``name``, or ``None`` if there is no such adapter."""
        for known in (self.configured, self.registered, self.fallback):
            if name in known:
                return known[name]
        return local_server(name)

    def error(self, name: str, problem: str) -> ConfigError:
        """Return the error for a problem ``KEY: text`` of an adapter, with the place that configures it."""
        key, _, text = problem.partition(": ")
        if name in self._config.adapters and self._config_file is not None:
            return ConfigError(in_file(self._config_file, [f"adapters.{name}.{problem}"]))
        info = PROVIDERS.get(name)
        if key == "base_url" and info is not None and info.environment is not None:
            return ConfigError(f"the environment variable {info.environment.base_url}: {text}")
        if key == "base_url" and name == GIVEN:
            return ConfigError(f"the environment variable COPILOT_PROVIDER_BASE_URL: {text}")
        return ConfigError(f"adapter {name!r}: {problem}")

    def default(self) -> tuple[str, AdapterConfig] | None:
        """Return the adapter of a session without a model."""
        if self.configured:
            return next(iter(self.configured.items()))
        # The first one that names a model, else the first one.
        return next(iter(sorted(self.fallback.items(), key=lambda item: not self.models_of(*item))), None)

    def select(
        self, model: str | None, cwd: Path, *, logged_in: bool, known_models: IdsOfModels
    ) -> AdapterSelection | ModelsNeeded | None:
        """Select the adapter of a session that brings no provider of its own. Nothing is requested or fetched.

        Args:
            model: the session's model, or ``None`` for the default of the configuration.
            cwd: the session's working directory; its project may declare adapters.
            logged_in: whether models of the Copilot API are available.
            known_models: returns the model ids of an adapter, or ``None`` if they must be fetched first.

        Returns:
            The adapter and its model; ``None`` for the Copilot API; or the adapter whose models must be known to
            decide.

        Raises:
            ConfigError: no adapter serves the model.
        """
        name = model or self._config.default_model
        if name is None:
            if logged_in and not self.has_own_default():
                return None
            if (default := self.default()) is None:
                raise no_model_configured()
            return AdapterSelection(*default, None)
        if (alias := self._config.models.get(name)) is not None:
            config = self.configured.get(alias.adapter) or self.fallback.get(alias.adapter)
            if config is None:
                key = PROVIDERS[alias.adapter].key_variable
                raise ConfigError(f"model {name!r} needs the adapter {alias.adapter!r}: set {key}, or configure it")
            return AdapterSelection(alias.adapter, config, alias.model)
        prefix, slash, own_name = name.partition("/")
        if slash and self.is_of_project(prefix, cwd):
            return AdapterSelection(
                prefix, AdapterConfig(declaration={"extends": prefix}), own_name, of_project=True
            )
        if slash and (config := self.configured.get(prefix) or self.registered.get(prefix)) is not None:
            return AdapterSelection(prefix, config, own_name)
        for adapter, config in self.configured.items():
            models = known_models(adapter, config)
            if models is None:
                return ModelsNeeded(adapter, config)
            if name in models:
                return AdapterSelection(adapter, config, name)
        if slash and (logged_in or not self.is_gateway()):
            config = self.fallback.get(prefix) or self.installed().get(prefix) or local_server(prefix)
            if config is not None:
                return AdapterSelection(prefix, config, own_name)
        if name == TRIAL:
            return AdapterSelection(TRIAL, AdapterConfig(type=SCRIPTED, script=str(_TRIAL_SCRIPT)), TRIAL)
        if logged_in:
            return None
        candidates = self.configured or self.fallback
        if len(candidates) == 1:
            return AdapterSelection(*next(iter(candidates.items())), name)
        if not candidates:
            raise no_model_configured(name)
        of_vendor = self._adapters_of_vendor(name, candidates)
        if len(of_vendor) == 1:
            return AdapterSelection(of_vendor[0], candidates[of_vendor[0]], name)
        problem = f"unknown model {name!r}{self._meant(name, candidates)}"
        if model is None and self._config_file is not None:
            raise ConfigError(in_file(self._config_file, [f"default_model: {problem}"]))
        raise ConfigError(problem)

    def _adapters_of_vendor(self, name: str, candidates: Mapping[str, AdapterConfig]) -> list[str]:
        """Return the adapters that accept any model and are for the API of the vendor of a well-known one."""
        if "/" in name:
            return []
        # Imported here: most names say their adapter.
        from jumpseat.adapters.models.known_models import KnownModels

        if self._facts is None:
            self._facts = KnownModels()
        vendors = self._facts.vendors(name)
        return [
            adapter
            for adapter, config in candidates.items()
            if not config.models and _api(canonical_type(config.type or adapter)) in vendors
        ]

    def _meant(self, name: str, candidates: Mapping[str, AdapterConfig]) -> str:
        """Return a hint to the model that an unknown name may mean."""
        if of_vendor := self._adapters_of_vendor(name, candidates):
            return f", did you mean {' or '.join(repr(f'{adapter}/{name}') for adapter in of_vendor)}?"
        prefix, slash, own_name = name.partition("/")
        if slash and prefix not in candidates and (adapter := nearest(prefix, candidates)) is not None:
            return f", did you mean '{adapter}/{own_name}'?"
        known = [
            *self._config.models,
            *(model for item in candidates.items() for model in self.known_models(*item) or ()),
        ]
        if (meant := nearest(name, known)) is not None:
            return f", did you mean {meant!r}?"
        return f": name it as 'adapter/model', adapters: {', '.join(candidates)}"

    def known_models(self, name: str, config: AdapterConfig) -> list[str] | None:
        """Return the ids of an adapter's models, or ``None`` if a function of its declaration must list them."""
        if self.is_undeclared(name, config):
            return [model.id for model in self.models_of(name, config)]
        try:
            known = self.catalogue.get_if_ready(name)
            return None if known is None else [offer.id for offer in known.offers()]
        except ConfigError:
            # An invalid declaration is logged when its models are listed, and must not hide other adapters.
            return []

    @property
    def default_model(self) -> str | None:
        """The configured default model, as a name that :meth:`select` accepts."""
        return self._config.default_model

    def use_default(self, model: str) -> None:
        """Use ``model`` for sessions without one from now on, as the configuration file does after a restart."""
        self._config.default_model = model

    def add(self, name: str, config: AdapterConfig) -> None:
        """Configure an adapter from now on, as the configuration file does after a restart."""
        self._config.adapters[name] = config

    def is_gateway(self) -> bool:
        """Return whether the only adapter is the user's own server, whose model names may contain any prefix."""
        return len(self.configured) == 1 and all(config.base_url for config in self.configured.values())

    def has_own_default(self) -> bool:
        """Return whether the configuration names adapters, which then take precedence over the Copilot API."""
        return bool(self._config.adapters or self._list_files()) or self.is_set_by_environment()

    def is_set_by_environment(self) -> bool:
        """Return whether the environment names the provider to use (``COPILOT_PROVIDER_BASE_URL``)."""
        return GIVEN in self.configured

    def may_have(self, model: str) -> bool:
        """Return whether ``model`` may be valid although unlisted, because its adapter declares no models."""
        name, slash, _ = model.partition("/")
        adapter = self.configured.get(name) or self.fallback.get(name)
        return bool(slash) and adapter is not None and not self.models_of(name, adapter)

    def is_undeclared(self, name: str, config: AdapterConfig) -> bool:
        """Return whether an adapter is a built-in one without a declaration."""
        if config.declaration:
            return False
        kind = canonical_type(config.type or name)
        return (kind in PROVIDERS or kind == SCRIPTED) and kind not in self._list_files()

    # --- models ---------------------------------------------------------------------------------------------------

    def with_models(self) -> dict[str, tuple[AdapterConfig, list[ModelConfig]]]:
        """Return all adapters with the models named by their table or environment variable."""
        adapters = {**self.configured, **self.fallback}
        return {name: (config, self.models_of(name, config)) for name, config in adapters.items()}

    def models_of(self, name: str, config: AdapterConfig) -> list[ModelConfig]:
        """Return the models named by an adapter's table, or else the one of its environment variable."""
        declared = config.model_list()
        variable = None if declared else model_variable(name)
        if variable and (model := self._environ.get(variable)):
            return [ModelConfig(id=model)]
        return declared

    async def list_offers(self, name: str, config: AdapterConfig) -> Offered:
        """Return the models that an adapter offers. An invalid declaration is logged and offers none."""
        if self.is_undeclared(name, config):
            kind = canonical_type(config.type or name)
            models = [plain_offer(name, model) for model in self.models_of(name, config)]
            list_models = False if kind == SCRIPTED else config.list_models
            return Offered(kind, models, list_models, complete=bool(config.model_list()))
        try:
            known = await self.catalogue.get_ready(name)
            offers = known.offers()
            return Offered(known.kind or name, offers, known.declaration.list_models, complete=bool(offers))
        except ConfigError as error:
            log.warning("cannot list the models of adapter %r: %s", name, error)
            return Offered(name, [], list_models=False, complete=False)

    # --- declared adapters ----------------------------------------------------------------------------------------

    @cached_property
    def catalogue(self) -> AdapterCatalogue:
        """The declared adapters."""
        from jumpseat.adapters.declared.catalogue import AdapterCatalogue

        tables = {
            name: adapter.as_table()
            for name, adapter in self._config.adapters.items()
            if adapter.type != SCRIPTED and name != SCRIPTED
        }
        return AdapterCatalogue(tables, self._home, self._is_trusted, config_file=self._config_file)

    def is_of_project(self, name: str, cwd: Path) -> bool:
        """Return whether the project of ``cwd`` declares an adapter called ``name``."""
        return project_folder(cwd, "adapters") is not None and self.catalogue.is_in_project(name, cwd)

    def get_callable(self, name: str, known: MergedAdapter | None = None) -> MergedAdapter:
        """Return the declared adapter called ``name`` after checking that its models can be called.

        Raises:
            ConfigError: the adapter is unknown, or cannot be called.
        """
        known = known or self.catalogue.get(name)
        known.check_callable()
        return known

    def declaration_of(self, name: str) -> MergedAdapter | None:
        """Return the declaration of a configured adapter, or ``None`` for a built-in one without a declaration.

        Raises:
            ConfigError: the declaration is invalid.
        """
        config = self.configured.get(name) or self.fallback.get(name)
        return None if config is None or self.is_undeclared(name, config) else self.catalogue.get(name)

    def key_variables(self) -> set[str]:
        """Return the names of all environment variables that hold keys of providers, whether set or not."""
        found = {
            *("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"),
            *(variable for info in PROVIDERS.values() for variable in info.key_variables),
            *(config.api_key_env for config in self._config.adapters.values() if config.api_key_env is not None),
        }
        # Only declared adapters have other keys; the catalogue takes time to import.
        tables = self._config.adapters.values()
        if self._list_files() or any(table.declaration for table in tables) or "catalogue" in vars(self):
            found.update(self.catalogue.key_variables())
        return found

    def register(self, raw: Mapping[str, Any]) -> MergedAdapter:
        """Register an adapter declared by a client.

        Raises:
            InvalidRequestError: the name is missing, invalid or taken.
            ConfigError: the declaration is invalid, or its models cannot be called.
        """
        if raw.get("name") == SCRIPTED or "/" in str(raw.get("name")):
            raise InvalidRequestError(f"invalid adapter name {raw.get('name')!r}: it is reserved or contains '/'")
        known = self.catalogue.register(raw)
        self.registered[known.declaration.name] = AdapterConfig()
        return known

    def installed(self) -> dict[str, AdapterConfig]:
        """Return the adapters of installed packages that are not configured otherwise."""
        if not self._has_installed:
            return {}
        return {
            name: AdapterConfig()
            for name in sorted(self.catalogue.installed)
            if name not in self.configured and name not in PROVIDERS
        }

    @cached_property
    def _has_installed(self) -> bool:
        """Return whether a package seems to provide adapters; a hundred times faster than loading them."""
        group = b"[jumpseat.adapters]"
        for folder in sys.path:
            with suppress(OSError), os.scandir(folder or ".") as entries:
                for entry in entries:
                    if entry.name.endswith((".dist-info", ".egg-info")):
                        with suppress(OSError):
                            if group in (Path(entry.path) / "entry_points.txt").read_bytes():
                                return True
        return False


def local_server(name: str) -> AdapterConfig | None:
    """Return the configuration of a model server at its usual address on this machine, which needs none."""
    return AdapterConfig() if name in PROVIDERS and PROVIDERS[name].local else None


def plain_offer(name: str, config: ModelConfig) -> Offer:
    """Return the offer for a model configured in the table of the adapter ``name``."""
    info = ModelInfo(
        id=f"{name}/{config.id}",
        name=config.name or config.id,
        vision=config.vision,
        tools=config.tools,
        tool_protocol=config.tool_protocol,
        edit_tools=config.edit_tools,
        reasoning=config.reasoning,
        context_window=config.context_window,
        max_output_tokens=config.max_output_tokens,
        price=Price(**config.price.model_dump()) if config.price is not None else None,
    )
    return Offer(config.id, config.wire_model or config.id, info)


def no_model_configured(asked_for: str | None = None) -> ConfigError:
    """Return the error for a request, possibly for the model ``asked_for``, when no model is configured."""
    return ConfigError(
        (f"unknown model {asked_for!r}: " if asked_for is not None else "")
        + "no model is configured: run 'jumpseat setup', set a key such as OPENAI_API_KEY or ANTHROPIC_API_KEY,"
        " or give the session a provider"
    )


def model_variable(name: str) -> str | None:
    """Return the environment variable that names the model of the adapter ``name``, if there is one."""
    info = PROVIDERS.get(name)
    return info.environment.model if info is not None and info.environment is not None else None


def _of_environ(
    environ: Mapping[str, str], configured: Mapping[str, AdapterConfig], *, fallback: bool
) -> dict[str, AdapterConfig]:
    """Return the adapters whose key, address or local model is in the environment and which are not configured."""
    found: dict[str, AdapterConfig] = {}
    for name, info in environment_providers(fallback=fallback).items():
        variables, key_variable = info.environment, info.key_variable
        if variables is None or name in configured:
            continue
        has_key = key_variable is not None and key_variable in environ
        base_url = environ.get(variables.base_url) or None
        # A server on this machine has a usual address, and needs no key.
        if has_key or base_url or (info.local and environ.get(variables.model)):
            found[name] = AdapterConfig(base_url=base_url, api_key_env=key_variable if has_key else None)
    return found
