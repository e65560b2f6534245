"""The adapters whose models can be named as ``adapter/model``, and those models. Nothing is called here.

Adapters of the configuration file, files in ``adapters`` of the home folder and adapters of well-known keys in the
environment (``OPENAI_API_KEY``, ``ANTHROPIC_API_KEY``) are configured; the provider of
``COPILOT_PROVIDER_BASE_URL`` is the first of them. Those of other providers' keys, and what
packages bring, are beside: they can be named, and count for anything else where nothing is configured. What clients
register can be named too.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jumpseat.adapters.offer import Offer
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS, canonical_type, environment_providers
from jumpseat.agent.model import ModelInfo, Price
from jumpseat.config import (
    GIVEN,
    AdapterConfig,
    Config,
    ModelConfig,
    adapter_files,
    provider_of_environ,
)
from jumpseat.declared.places import project_folder
from jumpseat.errors import ConfigError, InvalidRequestError

if TYPE_CHECKING:
    from jumpseat.adapters.declared.catalogue import Catalogue
    from jumpseat.adapters.declared.known import Known

log = logging.getLogger(__name__)

WEB_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\S*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Offered:
    """What an adapter offers. ``kind`` is the adapter of the server whose wire it is, else its own name;
    ``list_models`` is what it says of its provider's list of models."""

    kind: str
    offers: list[Offer]
    list_models: bool | None


class ConfiguredAdapters:
    """``main`` are the configured ones, ``beside`` those of keys that are there for other programs too."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        home: Path | None = None,
        is_trusted: Callable[[Path], bool] = lambda _: False,
    ) -> None:
        """``home`` is where the folder ``adapters`` of files with adapters may be; ``is_trusted`` tells which
        projects may bring adapters."""
        self._is_trusted = is_trusted
        self._config = config
        self._environ = environ
        self._home = home
        self._files = adapter_files(home)
        files = {name: AdapterConfig() for name in self._files if name not in config.adapters}
        configured = {**config.adapters, **files}
        self.main: Mapping[str, AdapterConfig] = {
            **provider_of_environ(environ),
            **configured,
            **_of_environ(environ, configured, fallback=False),
        }
        self.beside: Mapping[str, AdapterConfig] = _of_environ(environ, configured, fallback=True)
        self.registered: dict[str, AdapterConfig] = {}

    def find(self, name: str) -> AdapterConfig | None:
        """What is said of the adapter of that name; ``None`` where none is called so."""
        for known in (self.main, self.registered, self.beside):
            if name in known:
                return known[name]
        return None

    def default(self) -> tuple[str, AdapterConfig] | None:
        """The adapter of a session that names no model."""
        if self.main:
            return next(iter(self.main.items()))
        # The first that says which model, else the first.
        return next(iter(sorted(self.beside.items(), key=lambda item: not self.models_of(*item))), None)

    def settled(self, model: str | None, cwd: Path, *, logged_in: bool) -> tuple[str, AdapterConfig, str] | None:
        """The adapter of a session with that ``model``, and the model's own name, empty where it has none.

        It is the one that :meth:`jumpseat.adapters.sources.Models.resolve` finds; ``None`` where that depends on
        what others say when asked, or on the account of somebody who is ``logged_in``.
        """
        if (name := model or self._config.default_model) is None:
            default = self.default()
            if default is None or (logged_in and not self.has_own_default()):
                return None
            return *default, next((one.id for one in self.models_of(*default)), "")
        if (alias := self._config.models.get(name)) is not None:
            config = self.main.get(alias.adapter) or self.beside.get(alias.adapter)
            return (alias.adapter, config, alias.model) if config is not None else None
        prefix, slash, own_name = name.partition("/")
        if slash and self.is_brought(prefix, cwd):
            return prefix, AdapterConfig(declaration={"extends": prefix}), own_name
        if slash and (config := self.main.get(prefix) or self.registered.get(prefix)) is not None:
            return prefix, config, own_name
        for adapter, config in self.main.items():
            if any(one.id == name for one in self.models_of(adapter, config)):
                return adapter, config, name
        if slash and (logged_in or not self.is_gateway()):
            config = self.beside.get(prefix) or self.installed().get(prefix)
            if config is not None:
                return prefix, config, own_name
        left = self.main or self.beside
        return (*next(iter(left.items())), name) if len(left) == 1 and not logged_in else None

    def is_gateway(self) -> bool:
        """Whether the only adapter is a server of the user's own, whose names of models may have any prefix."""
        return len(self.main) == 1 and all(one.base_url for one in self.main.values())

    def has_own_default(self) -> bool:
        """Whether the configuration, by naming adapters, means something other than the Copilot API."""
        return bool(self._config.adapters or self._files) or self.is_given()

    def is_given(self) -> bool:
        """Whether the environment says outright which provider to use."""
        return GIVEN in self.main

    def takes_any(self, model: str) -> bool:
        """Whether a name that is in no list may be right: its adapter declares no models."""
        name, slash, _ = model.partition("/")
        adapter = self.main.get(name) or self.beside.get(name)
        return bool(slash) and adapter is not None and not self.models_of(name, adapter)

    def is_plain(self, name: str, config: AdapterConfig) -> bool:
        """Whether an adapter is one that comes with the server, called with nothing declared."""
        if config.declaration:
            return False
        kind = canonical_type(config.type or name)
        return (kind in PROVIDERS or kind == SCRIPTED) and kind not in self._files

    # --- models ---------------------------------------------------------------------------------------------------

    def configured(self) -> dict[str, tuple[AdapterConfig, list[ModelConfig]]]:
        """The adapters that models can be named of, each with the models that its table or variable names."""
        adapters = {**self.main, **self.beside}
        return {name: (config, self.models_of(name, config)) for name, config in adapters.items()}

    def models_of(self, name: str, config: AdapterConfig) -> list[ModelConfig]:
        """The models that the table of an adapter names, else the one of its variable in the environment."""
        declared = config.model_list()
        variable = None if declared else model_variable(name)
        if variable and (model := self._environ.get(variable)):
            return [ModelConfig(id=model)]
        return declared

    async def offered(self, name: str, config: AdapterConfig) -> Offered:
        """What an adapter offers; what is wrong with it is logged, for it must not hide the others."""
        if self.is_plain(name, config):
            kind = canonical_type(config.type or name)
            models = [plain_offer(name, one) for one in self.models_of(name, config)]
            return Offered(kind, models, False if kind == SCRIPTED else config.list_models)
        try:
            known = await self.catalogue.ready(name)
            return Offered(known.kind or name, known.offers(), known.declaration.list_models)
        except ConfigError as error:
            log.warning("the models of adapter %r cannot be listed: %s", name, error)
            return Offered(name, [], False)

    # --- declared ones --------------------------------------------------------------------------------------------

    @cached_property
    def catalogue(self) -> Catalogue:
        """All adapters that can be named."""
        from jumpseat.adapters.declared.catalogue import Catalogue

        tables = {
            name: adapter.as_table()
            for name, adapter in self._config.adapters.items()
            if adapter.type != SCRIPTED and name != SCRIPTED
        }
        return Catalogue(tables, self._home, self._is_trusted)

    def catalogue_in(self, cwd: Path) -> Catalogue:
        """All adapters that can be named by sessions in ``cwd``."""
        # The catalogue takes a while to load, and most projects bring nothing.
        return self.catalogue if project_folder(cwd, "adapters") is None else self.catalogue.of_project(cwd)

    def is_brought(self, name: str, cwd: Path) -> bool:
        """Whether the project that ``cwd`` is in brings an adapter of that name."""
        return project_folder(cwd, "adapters") is not None and self.catalogue_in(cwd).brings(name)

    def callable(self, name: str, known: Known | None = None) -> Known:
        """The declared adapter of that name.

        Raises:
            ConfigError: there is none, or none that can be called.
        """
        known = known or self.catalogue.get(name)
        known.check_callable()
        return known

    def declaration_of(self, name: str) -> Known | None:
        """The declaration of a configured adapter; ``None`` where it is one of the server's, called as it is.

        Raises:
            ConfigError: it is wrong.
        """
        config = self.main.get(name) or self.beside.get(name)
        return None if config is None or self.is_plain(name, config) else self.catalogue.get(name)

    def register(self, raw: Mapping[str, Any]) -> Known:
        """Take an adapter that a client declares.

        Raises:
            InvalidRequestError: it has no name, or one that is taken.
            ConfigError: the declaration is wrong, or cannot be called.
        """
        if raw.get("name") == SCRIPTED or "/" in str(raw.get("name")):
            raise InvalidRequestError(f"an adapter cannot be called {raw.get('name')!r}")
        known = self.catalogue.register(raw)
        self.registered[known.declaration.name] = AdapterConfig()
        return known

    def installed(self) -> dict[str, AdapterConfig]:
        """What packages bring beside what is configured."""
        if not self._some_installed:
            return {}
        return {
            name: AdapterConfig()
            for name in sorted(self.catalogue.installed())
            if name not in self.main and name not in PROVIDERS
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


def plain_offer(name: str, config: ModelConfig) -> Offer:
    """What a table says of a model of the adapter called ``name``."""
    info = ModelInfo(
        id=f"{name}/{config.id}",
        name=config.name or config.id,
        vision=config.vision,
        tools=config.tools,
        tool_protocol=config.tool_protocol,
        reasoning=config.reasoning,
        context_window=config.context_window,
        max_output_tokens=config.max_output_tokens,
        price=Price(**config.price.model_dump()) if config.price is not None else None,
    )
    return Offer(config.id, config.wire_model or config.id, info)


def nothing_configured(asked_for: str | None = None) -> ConfigError:
    """What to say where there is no model at all, to somebody who may have ``asked_for`` one."""
    return ConfigError(
        (f"unknown model {asked_for!r}: " if asked_for is not None else "")
        + "no model is configured: give the session a provider, set OPENAI_API_KEY or ANTHROPIC_API_KEY,"
        " or name an adapter in config.toml"
    )


def model_variable(name: str) -> str | None:
    """Return the environment variable that names the model of the adapter ``name``, if there is one."""
    info = PROVIDERS.get(name)
    return info.environment.model if info is not None and info.environment is not None else None


def _of_environ(
    environ: Mapping[str, str], configured: Mapping[str, AdapterConfig], *, fallback: bool
) -> dict[str, AdapterConfig]:
    """Return the adapters whose key or address is in the environment and which are not configured."""
    found: dict[str, AdapterConfig] = {}
    for name, info in environment_providers(fallback=fallback).items():
        variables, key_variable = info.environment, info.key_variable
        if variables is None or name in configured:
            continue
        has_key = key_variable is not None and bool(environ.get(key_variable))
        base_url = environ.get(variables.base_url) or None
        if has_key or base_url:
            found[name] = AdapterConfig(base_url=base_url, api_key_env=key_variable if has_key else None)
    return found
