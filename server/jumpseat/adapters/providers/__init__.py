"""Model providers, one module each: a module ``NAME.py`` with a ``PROVIDER`` adds the provider type ``NAME``.

A file ``NAME.toml`` beside it holds facts about the provider's models, for ``adapters/models/known_models.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from jumpseat.errors import ConfigError

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Adapter
    from jumpseat.adapters.provider import ProviderInfo

__all__ = ["PROVIDERS", "canonical_type", "environment_providers", "load_adapter"]


class Providers(Mapping[str, "ProviderInfo"]):
    """All providers by type, sorted. Iterating lists the folder; a lookup imports that provider's module alone."""

    def __getitem__(self, name: str) -> ProviderInfo:
        if name not in self:
            raise KeyError(name)
        info: ProviderInfo = import_module(f"{__name__}.{name}").PROVIDER
        return info

    def __contains__(self, name: object) -> bool:
        return name in _module_names(tuple(__path__))

    def __iter__(self) -> Iterator[str]:
        return iter(_module_names(tuple(__path__)))

    def __len__(self) -> int:
        return len(_module_names(tuple(__path__)))


PROVIDERS: Final[Mapping[str, ProviderInfo]] = Providers()


def canonical_type(name: str) -> str:
    """Return the provider type that ``name`` is an alias of, else ``name`` itself."""
    return name if name in PROVIDERS else _aliases(tuple(__path__)).get(name, name)


def load_adapter(name: str) -> Adapter:
    """Create the adapter of the provider type ``name``.

    Raises:
        ConfigError: there is no such provider; the text lists all types.
    """
    if name not in PROVIDERS:
        raise ConfigError(f"unknown adapter {name!r}, expected one of {', '.join(PROVIDERS)}")
    return PROVIDERS[name].load()


def environment_providers(*, fallback: bool | None = None) -> dict[str, ProviderInfo]:
    """Return the providers that environment variables configure, in order of precedence.

    ``fallback`` selects those whose :class:`~jumpseat.adapters.provider.EnvironmentVariables` say the same.
    """
    found = (
        (info.environment.rank, info)
        for info in PROVIDERS.values()
        if info.environment is not None and fallback in (None, info.environment.fallback)
    )
    return {info.type: info for _, info in sorted(found, key=lambda pair: pair[0])}


@cache
def _module_names(folders: tuple[str, ...]) -> dict[str, None]:
    files = {entry.name for folder in folders for entry in os.scandir(folder)}
    names = sorted(name.removesuffix(".py") for name in files if name.endswith(".py"))
    return dict.fromkeys(name for name in names if not name.startswith("_"))


@cache
def _aliases(folders: tuple[str, ...]) -> dict[str, str]:
    return {alias: info.type for info in PROVIDERS.values() for alias in info.aliases}
