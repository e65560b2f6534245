"""Find adapters by name, wherever they are declared.

A name is looked up in this order; the first match applies:

1. adapters registered by clients;
2. ``.jumpseat/adapters/NAME.toml`` and ``NAME.py`` of the session's project, if the user trusts its folder;
3. ``[adapters.NAME]`` of the configuration;
4. ``adapters/NAME.toml`` and ``adapters/NAME.py`` in the home folder;
5. built-in adapters;
6. entry points of the group ``jumpseat.adapters`` of installed packages.

A declaration may extend one of the same name further down this list: ``[adapters.openai]`` changes the built-in
one. Nothing is read, imported or searched before it is named; files are cached until they change.

Tables of the configuration may also use short keys (``type``, ``base_url``, ``api_key_env``, ``options``,
``models``). ``extends`` finds any adapter; ``type`` prefers one further down, so that a table named after its wire
does not change all other adapters of that type.

A key is only sent to the server it was declared for: an adapter that extends a built-in one with another base URL
does not inherit its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias, cast

import anyio
import anyio.to_thread

from jumpseat.adapters.adapter import Adapter, ForeignAdapter
from jumpseat.adapters.declared.checks import check_fields
from jumpseat.adapters.declared.declaration import API_KEY, read_declaration
from jumpseat.adapters.declared.handlers import RESOLVE
from jumpseat.adapters.declared.known import WITHHELD, Known, default_key, uses_other_server
from jumpseat.adapters.declared.short_form import PROTOCOLS, expand_short_form
from jumpseat.adapters.providers import PROVIDERS, canonical_type, load_adapter
from jumpseat.declared.env import SECRET_NAME
from jumpseat.declared.files import (
    as_mapping,
    declaration_files,
    entry_points,
    load_entry_point,
    read_toml,
    run_python,
    stamp_of,
    trusted_files,
)
from jumpseat.declared.places import project_folder
from jumpseat.declared.values import function_in
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import in_declaration, kind_of
from jumpseat_protocol.lazy_dataclasses import dataclass
from jumpseat_protocol.members import hint, nearest

ENTRY_POINTS: Final = "jumpseat.adapters"
EXTENDS: Final = "extends"

FOLDER: Final = "adapters"
"""The folder of adapter files in the home folder and in ``.jumpseat`` of a project."""

CONFIGURATION: Final = "configuration"
BUILT_IN: Final = "built-in"

KEEP_CHOICES_S: Final = 1800.0
"""The time for which a list of models returned by a function is cached."""

CHOICES_WITHIN_S: Final = 5.0
"""Time limit for a function that lists models."""

Layer: TypeAlias = Callable[[str], "Found | None"]

Stamp: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Found:
    """A declaration as found. ``where`` names it in errors; ``origin`` is shown to users; ``file`` contains it."""

    raw: Mapping[str, Any]
    where: str
    origin: str
    file: Path | None = None


def _trust_nothing(_folder: Path) -> bool:
    return False


@dataclass(slots=True)
class Catalogue:
    """The adapters of the process, or of one project.

    ``configured`` holds the tables of the configuration by name, ``config_file`` is the file with them. ``project``
    is the project's folder of adapter files; ``is_trusted`` decides which of its files are used.
    """

    configured: Mapping[str, Mapping[str, Any]]
    home: Path | None = None
    is_trusted: Callable[[Path], bool] = _trust_nothing
    project: Path | None = None
    config_file: Path | None = None
    _registered: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _known: dict[str, Known] = field(default_factory=dict[str, Known])
    _ready: dict[str, tuple[float, Known]] = field(default_factory=dict[str, tuple[float, Known]])
    _installed: frozenset[str] | None = None
    _files_read: dict[Path, tuple[Stamp, Mapping[str, Any]]] = field(
        default_factory=dict[Path, tuple[Stamp, Mapping[str, Any]]]
    )
    _stamps: tuple[tuple[Path, Stamp], ...] = ()
    _projects: dict[Path, Catalogue] = field(default_factory=dict[Path, "Catalogue"])

    def for_project(self, cwd: Path) -> Catalogue:
        """Return the catalogue for sessions in ``cwd``: this one, unless its project declares adapters."""
        folder = project_folder(cwd, FOLDER, self.home)
        if folder is None or not trusted_files(folder, self.is_trusted):
            return self
        if folder not in self._projects:
            own = Catalogue(self.configured, self.home, self.is_trusted, folder, self.config_file)
            own._registered = self._registered
            self._projects[folder] = own
        return self._projects[folder]

    def is_in_project(self, name: str) -> bool:
        """Return whether the project declares an adapter called ``name``."""
        return any(path.stem == name for path in self._project_files())

    def names(self) -> list[str]:
        """Return all names, sorted, including those in the home folder and in installed packages."""
        files = (path.stem for path in [*self._files(), *self._project_files()])
        return sorted(
            {
                *self._registered,
                *self.configured,
                *files,
                *PROVIDERS,
                *(point.name for point in entry_points(ENTRY_POINTS)),
            }
        )

    def has(self, name: str) -> bool:
        """Return whether there is an adapter called ``name``."""
        return any(layer(canonical_type(name)) is not None for layer in self._layers())

    def get(self, name: str) -> Known:
        """Return the adapter called ``name``.

        Raises:
            ConfigError: the adapter is unknown, or its declaration is invalid.
        """
        name = canonical_type(name)
        self._forget_changed_files()
        if name not in self._known:
            self._known[name] = self._resolve(name, 0, ())
        return self._known[name]

    def origin(self, name: str) -> str:
        """Return where an adapter is declared, even if it is invalid; empty if the declaration cannot be read."""
        try:
            found = (layer(canonical_type(name)) for layer in self._layers())
            return next((item.origin for item in found if item is not None), "")
        except ConfigError:
            return ""

    def get_if_ready(self, name: str) -> Known | None:
        """Return the adapter called ``name``, or ``None`` if a function must list its models first."""
        known = self.get(name)
        if not known.calls_functions:
            return known
        kept = self._ready.get(known.declaration.name)
        return kept[1] if kept is not None else None

    async def get_ready(self, name: str) -> Known:
        """Return the adapter called ``name``, after calling the function that lists its models, if there is one.

        Raises:
            ConfigError: the adapter is unknown, its declaration is invalid, or the function fails.
        """
        known = self.get(name)
        declaration = known.declaration
        resolve = declaration.handler(RESOLVE)
        if resolve is None and not known.calls_functions:
            return known
        kept = self._ready.get(declaration.name)
        if kept is not None and monotonic() < kept[0]:
            return kept[1]
        try:
            with anyio.fail_after(CHOICES_WITHIN_S):
                # The functions may use the network.
                ready = await anyio.to_thread.run_sync(known.fetch_models, resolve, abandon_on_cancel=True)
        except TimeoutError:
            raise ConfigError(
                f"adapter {declaration.name!r}: its list of models took longer than {CHOICES_WITHIN_S:g} s"
            ) from None
        self._ready[declaration.name] = (monotonic() + KEEP_CHOICES_S, ready)
        return ready

    def key_variables(self) -> Iterator[str]:
        """Yield the environment variables that hold keys of adapters, including those of projects.

        Adapters of installed packages are included after their first use.
        """
        files = (path.stem for path in [*self._files(), *self._project_files()])
        for name in {*self._registered, *self.configured, *files, *self._known}:
            try:
                env = self.get(name).declaration.env
            except ConfigError:
                continue
            for entry, raw in env.items():
                value = cast("Mapping[str, Any]", raw).get("value") if isinstance(raw, Mapping) else raw
                if isinstance(value, str) and value and (SECRET_NAME.search(entry) or SECRET_NAME.search(value)):
                    yield value
        for project in self._projects.values():
            yield from project.key_variables()

    def registered(self) -> list[str]:
        """Return the names registered by clients, in order of registration."""
        return list(self._registered)

    def installed(self) -> frozenset[str]:
        """Return the names of adapters in installed packages; searched once."""
        if self._installed is None:
            self._installed = frozenset(point.name for point in entry_points(ENTRY_POINTS))
        return self._installed

    def register(self, raw: Mapping[str, Any]) -> Known:
        """Register a declaration from a client, replacing an earlier one of the same name.

        Raises:
            InvalidRequestError: the name is missing, or taken by an adapter that no client has registered.
            ConfigError: the declaration is invalid.
        """
        name = raw.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequestError("the declaration needs a name")
        if name not in self._registered and self.has(name):
            raise InvalidRequestError(f"adapter {name!r} already exists: choose another name and extend it")
        before = self._registered.get(name)
        self._registered[name] = raw
        self._known.clear()
        self._ready.clear()
        self._projects.clear()
        try:
            known = self.get(name)
            known.check_callable()
            return known
        except ConfigError:
            self._known.clear()
            if before is None:
                del self._registered[name]
            else:
                self._registered[name] = before
            raise

    def _resolve(self, name: str, first: int, path: tuple[str, ...]) -> Known:
        """Resolve the adapter called ``name`` in the layers from ``first`` on;

        ``path`` lists the extending ones.
        """
        layers = self._layers()
        for number in range(first, len(layers)):
            if (found := layers[number](name)) is not None:
                break
        else:
            raise ConfigError(f"unknown adapter {name!r}, {hint(name, self.names())}")
        try:
            return self._read_found(name, number, found, path)
        except ConfigError as error:
            raise in_declaration(found.where, error, found.file) from None

    def _read_found(self, name: str, number: int, found: Found, path: tuple[str, ...]) -> Known:
        """Read the declaration of ``name`` that was found in layer ``number``."""
        raw = found.raw
        base: Known | None = None
        extends, below = self._find_extended(name, number, found)
        if extends is not None:
            step = f"{extends}@{below}"
            if step in path:
                names = (item.rpartition("@")[0] for item in [*path, step])
                raise ConfigError(f"{found.where}: it extends itself: {' -> '.join(names)}")
            base = self._resolve_extended(found, name, extends, below, (*path, step))
        wire = raw.get("wire")
        short = raw.get("type")
        if found.origin != CONFIGURATION and isinstance(short, str) and self.has(short):
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
        if found.origin == BUILT_IN:
            kind = name
        own_wire = _wire(found.where, wire, base, declaration.name)
        problem = None if own_wire is None else own_wire.unknown_option(declaration.options)
        if problem is not None:
            raise ConfigError(f"{found.where}: {problem}")
        return Known(declaration, own_wire, found.origin, kind, found.where, found.file)

    def _resolve_extended(self, found: Found, name: str, extends: str, below: int, path: tuple[str, ...]) -> Known:
        if any(layer(extends) is not None for layer in self._layers()[below:]):
            return self._resolve(extends, below, path)
        key = EXTENDS if EXTENDS in found.raw else "type"
        if extends == name and found.origin == CONFIGURATION and key not in found.raw:
            raise ConfigError(f"{found.where}: {_no_type(name)}")
        if extends == name:
            missing = f"there is no other adapter {name!r} to extend"
            raise ConfigError(
                f"{found.where}: {key}: {missing}" if key in found.raw else f"{found.where}: {missing}"
            )
        known = [other for other in self.names() if other != name]
        raise ConfigError(f"{found.where}: {key}: unknown adapter {extends!r}, {hint(extends, known)}")

    def _find_extended(self, name: str, number: int, found: Found) -> tuple[str | None, int]:
        """Return the name of the extended adapter, and the layer at which its look-up starts."""
        extends = found.raw.get(EXTENDS)
        if extends is not None and not isinstance(extends, str):
            raise ConfigError(f"{found.where}: extends: expected the name of an adapter, got {kind_of(extends)}")
        kind = found.raw.get("type")
        if found.origin != CONFIGURATION or kind in PROTOCOLS:
            kind = None
        if kind is not None and extends is not None:
            raise ConfigError(f"{found.where}: expected extends or type, not both")
        below = number + 1
        if extends is not None:
            extends = canonical_type(extends)
            return extends, below if extends == name else 0
        if kind is None and (found.origin != CONFIGURATION or found.raw.get("wire") is not None):
            return None, 0
        # In the short form, the type defaults to the table's name.
        kind = canonical_type(str(kind or name))
        is_below = any(layer(kind) is not None for layer in self._layers()[below:])
        return kind, below if is_below or kind == name else 0

    # --- the layers -----------------------------------------------------------------------------------------------

    def _layers(self) -> tuple[Layer, ...]:
        return (
            self._from_clients,
            self._from_project,
            self._from_configuration,
            self._from_home,
            _from_package,
            _from_entry_points,
        )

    def _from_clients(self, name: str) -> Found | None:
        raw = self._registered.get(name)
        return None if raw is None else Found(raw, f"adapter {name!r}", "client")

    def _from_project(self, name: str) -> Found | None:
        return self._from_files(name, self._project_files(), "project")

    def _from_configuration(self, name: str) -> Found | None:
        raw = self.configured.get(name)
        return None if raw is None else Found(raw, f"adapters.{name}", CONFIGURATION, self.config_file)

    def _from_home(self, name: str) -> Found | None:
        return self._from_files(name, self._files(), "home")

    def _from_files(self, name: str, files: list[Path], origin: str) -> Found | None:
        for path in files:
            if path.stem == name:
                return Found(self._read(path), str(path), origin, path)
        return None

    def _files(self) -> list[Path]:
        return [] if self.home is None else declaration_files(self.home / FOLDER)

    def _project_files(self) -> list[Path]:
        return [] if self.project is None else trusted_files(self.project, self.is_trusted)

    def _read(self, path: Path) -> Mapping[str, Any]:
        """Read or run a declaration file, cached until the file changes."""
        stamp = stamp_of(path)
        kept = self._files_read.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._files_read[path] = (stamp, _read_file(path))
        return kept[1]

    def _forget_changed_files(self) -> None:
        files = [*self._project_files(), *self._files()]
        seen = tuple((path, stamp_of(path)) for path in files)
        if seen != self._stamps:
            self._stamps = seen
            self._known.clear()
            self._ready.clear()


def _no_type(name: str) -> str:
    """Describe a table of the configuration without a type whose name is not that of a provider."""
    if (meant := nearest(name, PROVIDERS)) is not None:
        return f"there is no provider {name!r}: did you mean [adapters.{meant}]? Or add a type"
    return (
        f"type: required, because there is no provider {name!r}: most servers of your own work with "
        f'type = "openai_compatible"; the others are {", ".join(PROVIDERS)}'
    )


def _from_package(name: str) -> Found | None:
    if name not in PROVIDERS:
        return None
    info = PROVIDERS[name]
    env: dict[str, Any] = {API_KEY: default_key(name)}
    if info.default_base_url is not None:
        env["base_url"] = info.default_base_url
    raw: dict[str, Any] = {"name": name, "env": env, "schema": info.settings_schema(), "wire": info.load()}
    return Found(raw, f"adapter {name!r}", BUILT_IN)


def _from_entry_points(name: str) -> Found | None:
    for point in entry_points(ENTRY_POINTS):
        if point.name == name:
            value = as_mapping(point.value, load_entry_point(point, "adapter"), "ADAPTER")
            return Found(value, f"adapter {name!r} of {point.value}", "package")
    return None


def _read_file(path: Path) -> Mapping[str, Any]:
    if path.suffix == ".toml":
        return read_toml(path)
    return as_mapping(str(path), getattr(run_python(path, "jumpseat_adapter"), "ADAPTER", None), "ADAPTER")


def _wire(where: str, wire: Any, base: Known | None, name: str) -> Adapter | None:
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
