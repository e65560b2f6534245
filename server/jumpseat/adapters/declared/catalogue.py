"""The adapters of the process, wherever they are declared; ``declared/catalogue.py`` describes where.

A declaration may extend one of the same name further down: ``[adapters.openai]`` changes the built-in one. Nothing
is read, imported or searched before it is named.

Tables of the configuration may also use short keys (``type``, ``base_url``, ``api_key_env``, ``options``,
``models``). ``extends`` finds any adapter; ``type`` prefers one further down, so that a table named after its wire
does not change all other adapters of that type.

A key is only sent to the server it was declared for: an adapter that extends a built-in one with another base URL
does not inherit its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread
from msgspec import Struct, field

from jumpseat.adapters.adapter import Adapter, ForeignAdapter
from jumpseat.adapters.declared.checks import check_fields
from jumpseat.adapters.declared.declaration import API_KEY, BASE_URL, read_declaration
from jumpseat.adapters.declared.handler_names import RESOLVE
from jumpseat.adapters.declared.merged import TOOL_PROTOCOL, WITHHELD, MergedAdapter, default_key, uses_other_server
from jumpseat.adapters.declared.schema import MODEL, WIRE_MODEL
from jumpseat.adapters.providers import PROVIDERS, canonical_type, load_adapter
from jumpseat.declared.catalogue import Catalogue, Found, Origin
from jumpseat.declared.env import SECRET_NAME
from jumpseat.declared.files import Stamp, stamp_of
from jumpseat.declared.values import entry_value, function_in
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import in_declaration, kind_of
from jumpseat_protocol.members import hint, nearest

EXTENDS: Final = "extends"
CONFIGURATION: Final = "configuration"

PROTOCOLS: Final = ("http", "acp")
"""The values of ``type`` in a declaration."""
_SHORT: Final = ("type", "base_url", "api_key_env", "models", TOOL_PROTOCOL)

KEEP_CHOICES_S: Final = 1800.0
"""The time for which a list of models returned by a function is cached."""

CHOICES_WITHIN_S: Final = 5.0
"""Time limit for a function that lists models."""

Layers: TypeAlias = tuple[Callable[[str], Found | None], ...]
"""Functions that find a declaration by name, in order of precedence."""


class _Merged(Struct):
    """The adapters merged so far, by name, from files with these ``stamps`` and from those that are ``registered``.

    ``ready`` holds those whose models a function has listed, with the time until which they are kept.
    """

    stamps: Mapping[Path, Stamp]
    registered: Mapping[str, Found]
    adapters: dict[str, MergedAdapter] = field(default_factory=dict[str, MergedAdapter])
    ready: dict[str, tuple[float, MergedAdapter]] = field(default_factory=dict[str, tuple[float, MergedAdapter]])


class AdapterCatalogue(Catalogue[Found]):
    """The adapters of the process. With ``cwd``, methods include those of its project."""

    kind = "adapter"

    @cached_property
    def _merged(self) -> dict[Path | None, _Merged]:
        """The merged adapters by the project's folder of adapters."""
        return {}

    def entry(self, found: Found) -> Found:
        return found

    def is_in_project(self, name: str, cwd: Path) -> bool:
        """Return whether the project of ``cwd`` declares an adapter called ``name``."""
        return any(path.stem == name and origin == "project" for path, origin in self.files_of(cwd).items())

    def names(self, cwd: Path | None = None) -> list[str]:
        """Return all names, sorted, including those in installed packages."""
        files = (path.stem for path in self.files_of(cwd))
        return sorted({*self.registered, *self.configured, *files, *PROVIDERS, *self.installed})

    def has(self, name: str, cwd: Path | None = None) -> bool:
        """Return whether there is an adapter called ``name``."""
        return any(layer(canonical_type(name)) is not None for layer in self._layers(cwd))

    def get(self, name: str, cwd: Path | None = None) -> MergedAdapter:
        """Return the adapter called ``name``.

        Raises:
            ConfigError: the adapter is unknown, or its declaration is invalid.
        """
        name, merged = canonical_type(name), self._merged_in(cwd)
        if name not in merged.adapters:
            merged.adapters[name] = self._resolve(name, self._layers(cwd), 0, ())
        return merged.adapters[name]

    def origin(self, name: str, cwd: Path | None = None) -> str:
        """Return where an adapter is declared, even if it is invalid; empty if it is unknown."""
        found = (layer(canonical_type(name)) for layer in self._layers(cwd))
        return next((item.origin for item in found if item is not None), "")

    def get_if_ready(self, name: str, cwd: Path | None = None) -> MergedAdapter | None:
        """Return the adapter called ``name``, or ``None`` if a function must list its models first."""
        adapter = self.get(name, cwd)
        if not adapter.calls_functions:
            return adapter
        kept = self._merged_in(cwd).ready.get(adapter.declaration.name)
        return kept[1] if kept is not None else None

    async def get_ready(self, name: str, cwd: Path | None = None) -> MergedAdapter:
        """Return the adapter called ``name``, after calling the function that lists its models, if there is one.

        Raises:
            ConfigError: the adapter is unknown, its declaration is invalid, or the function fails.
        """
        adapter = self.get(name, cwd)
        declaration = adapter.declaration
        resolve = declaration.handler(RESOLVE)
        if resolve is None and not adapter.calls_functions:
            return adapter
        ready = self._merged_in(cwd).ready
        kept = ready.get(declaration.name)
        if kept is not None and monotonic() < kept[0]:
            return kept[1]
        try:
            with anyio.fail_after(CHOICES_WITHIN_S):
                # The functions may use the network.
                adapter = await anyio.to_thread.run_sync(adapter.fetch_models, resolve, abandon_on_cancel=True)
        except TimeoutError:
            raise ConfigError(
                f"adapter {declaration.name!r}: its list of models took longer than {CHOICES_WITHIN_S:g} s"
            ) from None
        ready[declaration.name] = (monotonic() + KEEP_CHOICES_S, adapter)
        return adapter

    def key_variables(self) -> Iterator[str]:
        """Yield the environment variables that hold keys of adapters, including those of projects.

        Adapters of projects and of installed packages are included after their first use.
        """
        for folder in [None, *self._merged]:
            cwd = None if folder is None else folder.parents[1]
            merged = self._merged_in(cwd).adapters
            files = (path.stem for path in self.files_of(cwd))
            for name in {*self.registered, *self.configured, *files, *merged}:
                try:
                    env = self.get(name, cwd).declaration.env
                except ConfigError:
                    continue
                for entry, raw in env.items():
                    value = entry_value(raw)
                    if isinstance(value, str) and value and SECRET_NAME.search(f"{entry} {value}"):
                        yield value

    def register(self, raw: Mapping[str, Any]) -> MergedAdapter:
        """Register a declaration from a client, replacing an earlier one of the same name.

        Raises:
            InvalidRequestError: the name is missing, or taken by an adapter that no client has registered.
            ConfigError: the declaration is invalid.
        """
        name = raw.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequestError("the declaration needs a name")
        if name not in self.registered and self.has(name):
            raise InvalidRequestError(f"adapter {name!r} already exists: choose another name and extend it")
        before = self.registered
        self.registered = {**before, name: Found(name, "client", f"adapter {name!r}", raw)}
        try:
            adapter = self.get(name)
            adapter.check_callable()
        except ConfigError:
            self.registered = before
            raise
        return adapter

    def _merged_in(self, cwd: Path | None) -> _Merged:
        """Return the merged adapters for ``cwd``; none if a declaration has changed since they were merged."""
        folder = self.project_folder(cwd)
        stamps = {path: stamp_of(path) for path in self.files_of(cwd)}
        merged = self._merged.get(folder)
        if merged is None or merged.stamps != stamps or merged.registered is not self.registered:
            merged = self._merged[folder] = _Merged(stamps, self.registered)
        return merged

    def _layers(self, cwd: Path | None) -> Layers:
        files = self.files_of(cwd)

        def of_files(origin: Origin) -> Callable[[str], Found | None]:
            by_name = {path.stem: path for path, place in reversed(files.items()) if place == origin}
            return lambda name: self.read(by_name[name], origin)[0] if name in by_name else None

        return (
            self.registered.get,
            of_files("project"),
            self.configured.get,
            of_files("home"),
            _built_in,
            self.from_package,
        )

    # --- merging --------------------------------------------------------------------------------------------------

    def _resolve(self, name: str, layers: Layers, first: int, path: tuple[str, ...]) -> MergedAdapter:
        """Find the adapter called ``name`` in the layers from ``first`` on, and merge it with what it extends.

        ``path`` lists the extending ones.
        """
        for number in range(first, len(layers)):
            if (found := layers[number](name)) is not None:
                break
        else:
            raise ConfigError(f"unknown adapter {name!r}, {hint(name, self.names())}")
        try:
            return self._merge(found, layers, number, path)
        except ConfigError as error:
            raise in_declaration(found.where, error, found.file) from None

    def _merge(self, found: Found, layers: Layers, number: int, path: tuple[str, ...]) -> MergedAdapter:
        """Read the declaration that was found in layer ``number``."""
        name, raw = found.name, found.table()
        base: MergedAdapter | None = None
        extends, below = _find_extended(found, raw, layers, number)
        if extends is not None:
            step = f"{extends}@{below}"
            if step in path:
                names = (item.rpartition("@")[0] for item in [*path, step])
                raise ConfigError(f"{found.where}: it extends itself: {' -> '.join(names)}")
            base = self._resolve_extended(found, raw, extends, layers, below, (*path, step))
        wire = raw.get("wire")
        short = raw.get("type")
        if found.origin != CONFIGURATION and isinstance(short, str) and _is_among(short, layers):
            raise ConfigError(
                f"{found.where}: type: to start from the adapter {short!r}, write extends = {short!r}"
            )
        own = expand_short_form(raw, base) if found.origin == CONFIGURATION else dict(raw)
        own.pop("wire", None)
        own.setdefault("name", name)
        if base is not None:
            own["name"] = name
            if uses_other_server(own, base):
                own["env"] = {**own.get("env", {}), API_KEY: WITHHELD}
        declaration = read_declaration(own, where=found.where, base=base.declaration if base else None)
        has_functions = bool(declaration.handlers) or function_in(own) is not None
        check_fields(found.where, declaration, has_functions=has_functions)
        kind = wire if isinstance(wire, str) else base.kind if base is not None and wire is None else None
        if found.origin == "built-in":
            kind = name
        own_wire = _wire(found.where, wire, base, declaration.name)
        problem = None if own_wire is None else own_wire.unknown_option(declaration.options)
        if problem is not None:
            raise ConfigError(f"{found.where}: {problem}")
        return MergedAdapter(declaration, own_wire, found.origin, kind, found.where, found.file)

    def _resolve_extended(
        self,
        found: Found,
        raw: Mapping[str, Any],
        extends: str,
        layers: Layers,
        below: int,
        path: tuple[str, ...],
    ) -> MergedAdapter:
        name = found.name
        if _is_among(extends, layers[below:]):
            return self._resolve(extends, layers, below, path)
        key = EXTENDS if EXTENDS in raw else "type"
        if extends == name and found.origin == CONFIGURATION and key not in raw:
            raise ConfigError(f"{found.where}: {_no_type(name)}")
        if extends == name:
            missing = f"there is no other adapter {name!r} to extend"
            raise ConfigError(f"{found.where}: {key}: {missing}" if key in raw else f"{found.where}: {missing}")
        known = [other for other in self.names() if other != name]
        raise ConfigError(f"{found.where}: {key}: unknown adapter {extends!r}, {hint(extends, known)}")


def _find_extended(found: Found, raw: Mapping[str, Any], layers: Layers, number: int) -> tuple[str | None, int]:
    """Return the name of the extended adapter, and the layer at which its look-up starts."""
    name = found.name
    extends = raw.get(EXTENDS)
    if extends is not None and not isinstance(extends, str):
        raise ConfigError(f"{found.where}: extends: expected the name of an adapter, got {kind_of(extends)}")
    kind = raw.get("type")
    if found.origin != CONFIGURATION or kind in PROTOCOLS:
        kind = None
    if kind is not None and extends is not None:
        raise ConfigError(f"{found.where}: expected extends or type, not both")
    below = number + 1
    if extends is not None:
        extends = canonical_type(extends)
        return extends, below if extends == name else 0
    if kind is None and (found.origin != CONFIGURATION or raw.get("wire") is not None):
        return None, 0
    # In the short form, the type defaults to the table's name.
    kind = canonical_type(str(kind or name))
    return kind, below if kind == name or _is_among(kind, layers[below:]) else 0


def _is_among(name: str, layers: Layers) -> bool:
    return any(layer(canonical_type(name)) is not None for layer in layers)


def _no_type(name: str) -> str:
    """Describe a table of the configuration without a type whose name is not that of a provider."""
    if (meant := nearest(name, PROVIDERS)) is not None:
        return f"there is no provider {name!r}: did you mean [adapters.{meant}]? Or add a type"
    return (
        f"type: required, because there is no provider {name!r}: most servers of your own work with "
        f'type = "openai_compatible"; the others are {", ".join(PROVIDERS)}'
    )


def _built_in(name: str) -> Found | None:
    if name not in PROVIDERS:
        return None
    info = PROVIDERS[name]
    env: dict[str, Any] = {API_KEY: default_key(name)}
    if info.default_base_url is not None:
        env["base_url"] = info.default_base_url
    raw: dict[str, Any] = {"name": name, "env": env, "schema": info.settings_schema(), "wire": info.load()}
    return Found(name, "built-in", f"adapter {name!r}", raw)


def _wire(where: str, wire: Any, base: MergedAdapter | None, name: str) -> Adapter | None:
    """Return the wire of an adapter: its own, by name or as an object, else that of the extended adapter."""
    if wire is None:
        found = base.wire if base is not None else None
    elif isinstance(wire, str):
        if wire not in PROVIDERS:
            raise ConfigError(f"{where}: wire: unknown wire {wire!r}, {hint(wire, PROVIDERS)}")
        found = load_adapter(wire)
    else:
        given: Any = wire() if isinstance(wire, type) else wire
        found = given if isinstance(given, Adapter) else ForeignAdapter(given)
    return found if found is None or found.signature == name else found.signing_as(name)


def expand_short_form(raw: Mapping[str, Any], base: MergedAdapter | None) -> dict[str, Any]:
    """Return a configuration table with its short keys replaced by those of a declaration."""
    own = {key: value for key, value in raw.items() if key not in _SHORT and value is not None}
    if raw.get("type") in PROTOCOLS:
        own["type"] = raw["type"]
    env: dict[str, Any] = dict(own.get("env") or {})
    if raw.get("base_url"):
        env[BASE_URL] = {"value": raw["base_url"], "literal": True}
        if base is not None and base.declaration.url is not None and base.wire is not None:
            own.setdefault("url", None)
    if raw.get("api_key_env"):
        env[API_KEY] = {"value": raw["api_key_env"], "variable": True}
    if env:
        own["env"] = env
    if raw.get(TOOL_PROTOCOL):
        own["opts"] = {**dict(own.get("opts") or {}), TOOL_PROTOCOL: raw[TOOL_PROTOCOL]}
    if raw.get("models"):
        schema = dict(own.get("schema") or {})
        schema[MODEL] = {**dict(schema.get(MODEL) or {}), "choices": [_choice(model) for model in raw["models"]]}
        schema[MODEL].setdefault("default", schema[MODEL]["choices"][0]["id"])
        own["schema"] = schema
    return own


def _choice(model: Any) -> dict[str, Any]:
    """Convert a model of the short form into a choice."""
    if isinstance(model, str):
        return {"id": model}
    meta = {
        "context_window": model.get("context_window"),
        "max_tokens": model.get("max_output_tokens"),
        "price": model.get("price"),
        WIRE_MODEL: model.get("wire_model"),
    }
    choice: dict[str, Any] = {"id": model["id"], "meta": {k: v for k, v in meta.items() if v is not None}}
    if model.get("name"):
        choice["formatted_name"] = model["name"]
    able = {
        "has_vision": model.get("vision"),
        "can_use_tools": model.get("tools"),
        "can_reason": model.get("reasoning"),
        TOOL_PROTOCOL: model.get(TOOL_PROTOCOL),
    }
    choice["opts"] = {key: value for key, value in able.items() if value is not None}
    return choice
