"""The adapters that ``jumpseat adapters`` shows: their addresses, and whether their keys are set.

Nothing is looked up for the list: commands, files and functions are not evaluated, and no key is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from jumpseat.adapters.models.configured import ConfiguredAdapters
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS, canonical_type
from jumpseat.config import AdapterConfig, Config, ModelConfig
from jumpseat.errors import ConfigError

if TYPE_CHECKING:
    from jumpseat.adapters.declared.merged import MergedAdapter

COPILOT: Final = "copilot"

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


class KnownAdapter(Struct, frozen=True):
    """An adapter as shown by ``jumpseat adapters``.

    ``origin`` is where it is configured; ``usable`` is true if models can be named as ``name/model``. ``key_env``
    is the environment variable of its key; ``has_key`` is ``None`` if it has no such variable.
    ``has_proxy`` is true if the adapter names a proxy; ``problem`` is set if the declaration is invalid.
    """

    name: str
    origin: str
    type: str
    address: str | None
    key_env: str | None
    has_key: bool | None
    usable: bool
    models: int
    problem: str | None = None
    has_proxy: bool = False


def known_adapters(adapters: ConfiguredAdapters, config: Config, environ: Mapping[str, str]) -> list[KnownAdapter]:
    """Return all adapters: the configured ones, then the built-in ones without a key or table."""
    found: list[KnownAdapter] = []
    for name, (adapter, models_of) in adapters.with_models().items():
        try:
            declared = adapters.declaration_of(name)
        except ConfigError as error:
            found.append(_invalid_adapter(name, str(error)))
            continue
        if declared is not None:
            found.append(_declared_adapter(name, declared, environ))
        else:
            found.append(_configured_adapter(name, adapter, models_of, name in config.adapters, environ))
    configured = {adapter.name for adapter in found}
    return found + [_built_in_adapter(name, environ) for name in PROVIDERS if name not in configured]


def known_adapter(adapters: ConfiguredAdapters, name: str, environ: Mapping[str, str]) -> KnownAdapter | None:
    """Return the adapter ``name``, or ``None`` if there is none or its declaration is invalid."""
    config = adapters.find(name)
    try:
        if config is not None and adapters.is_undeclared(name, config):
            return _configured_adapter(name, config, [], in_file=False, environ=environ)
        if config is not None or name not in PROVIDERS:
            return _declared_adapter(name, adapters.catalogue.get(name), environ)
    except ConfigError:
        return None
    return _built_in_adapter(name, environ)


def _invalid_adapter(name: str, problem: str) -> KnownAdapter:
    return KnownAdapter(
        name=name,
        origin="declaration",
        type=name,
        address=None,
        key_env=None,
        has_key=None,
        usable=False,
        models=0,
        problem=problem,
    )


def _configured_adapter(
    name: str, adapter: AdapterConfig, declared: Sequence[ModelConfig], in_file: bool, environ: Mapping[str, str]
) -> KnownAdapter:
    kind = canonical_type(adapter.type or name)
    key_env, address = adapter.api_key_env, adapter.base_url
    if kind in PROVIDERS:
        built_in = PROVIDERS[kind]
        key_env = key_env or (None if adapter.base_url else built_in.key_variable)
        address = address or built_in.default_base_url
    has_key = key_env in environ if key_env else None
    return KnownAdapter(
        name=name,
        origin="config.toml" if in_file else "environment",
        type=kind,
        address=place_of(address),
        key_env=key_env,
        has_key=has_key,
        # A local server accepts requests without a key, but a key named in the file must be set.
        usable=not (adapter.api_key_env and not has_key) and (kind == SCRIPTED or address is not None),
        models=len(declared),
    )


def _declared_adapter(name: str, known: MergedAdapter, environ: Mapping[str, str]) -> KnownAdapter:
    from jumpseat.declared.values import entry_value

    declaration = known.declaration
    texts = {key: text for key, raw in declaration.env.items() if isinstance(text := entry_value(raw), str)}
    key, address = texts.get("api_key"), texts.get("base_url") or declaration.url
    # Commands, files and functions are not evaluated for a list, and a key is never shown.
    key_env = key if key is not None and _VARIABLE.fullmatch(key) else None
    choices: Any = declaration.settings["model"].choices if "model" in declaration.settings else None
    return KnownAdapter(
        name=name,
        origin="config.toml" if known.origin == "configuration" else known.origin,
        type=known.kind or name,
        address=place_of(address),
        key_env=key_env,
        has_key=key_env in environ if key_env else None,
        usable=key_env is None or key_env in environ,
        models=len(choices) if isinstance(choices, (list, dict)) else 0,  # pyright: ignore[reportUnknownArgumentType]
        has_proxy="--proxy" in declaration.raw,
    )


def _built_in_adapter(name: str, environ: Mapping[str, str]) -> KnownAdapter:
    provider = PROVIDERS[name]
    key_env = next((name for name in provider.key_variables if name in environ), provider.key_variable)
    return KnownAdapter(
        name=name,
        origin="built in",
        type=name,
        address=place_of(provider.default_base_url),
        key_env=key_env,
        has_key=key_env in environ if key_env else None,
        # Copilot models are named without an adapter, so no table is needed.
        usable=name == COPILOT and (key_env or "") in environ,
        models=0,
    )


def place_of(address: str | None) -> str | None:
    """Return a URL without user, password and query, which may be secret."""
    if not address:
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return "(invalid URL)"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
