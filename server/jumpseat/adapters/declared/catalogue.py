"""All adapters that can be named, wherever they are declared.

A name is looked up in this order; the first that has it counts:

1. what clients have registered;
2. ``[adapters.NAME]`` of the configuration;
3. ``adapters/NAME.toml`` and ``adapters/NAME.py`` in the home folder;
4. what comes with the server;
5. entry points of the group ``jumpseat.adapters`` of installed packages.

A declaration may extend one of the same name from further down: ``[adapters.openai]`` changes the one that comes
with the server. Nothing is read, imported or searched before it is named.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from jumpseat.adapters import ADAPTERS, load_adapter
from jumpseat.adapters.adapter import Adapter
from jumpseat.adapters.declared.declaration import Declaration, read_declaration
from jumpseat.errors import ConfigError, InvalidRequestError

ENTRY_POINTS: Final = "jumpseat.adapters"
EXTENDS: Final = "extends"

ALIASES: Final[Mapping[str, str]] = {"azure_openai": "azure"}
"""Other names for adapters that come with the server."""

Layer: TypeAlias = Callable[[str], "Found | None"]


@dataclass(frozen=True, slots=True)
class Found:
    """A declaration as it was found. ``where`` is for error texts, ``origin`` for people."""

    raw: Mapping[str, Any]
    where: str
    origin: str


@dataclass(frozen=True, slots=True)
class Known:
    """An adapter with everything that it extends. ``wire`` is ``None`` where handlers do everything."""

    declaration: Declaration
    wire: Adapter | None
    origin: str


@dataclass(slots=True)
class Catalogue:
    """The adapters of one process. ``configured`` are the tables of the configuration file, by name."""

    configured: Mapping[str, Mapping[str, Any]]
    home: Path | None = None
    _registered: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _known: dict[str, Known] = field(default_factory=dict[str, Known])

    def names(self) -> list[str]:
        """All names, sorted. Looks at the home folder and at installed packages."""
        files = (path.stem for path in self._files())
        return sorted(
            {*self._registered, *self.configured, *files, *ADAPTERS, *(point.name for point in _points())}
        )

    def has(self, name: str) -> bool:
        """Whether there is an adapter of that name."""
        return any(layer(ALIASES.get(name, name)) is not None for layer in self._layers())

    def get(self, name: str) -> Known:
        """The adapter of that name.

        Raises:
            ConfigError: there is none, or its declaration is wrong.
        """
        name = ALIASES.get(name, name)
        if name not in self._known:
            self._known[name] = self._resolve(name, 0, ())
        return self._known[name]

    def register(self, raw: Mapping[str, Any]) -> Known:
        """Take a declaration from a client; one of the same name from a client is replaced.

        Raises:
            InvalidRequestError: it has no name, or the name of an adapter that clients have not registered.
            ConfigError: the declaration is wrong.
        """
        name = raw.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequestError("the declaration needs a name")
        if name not in self._registered and self.has(name):
            raise InvalidRequestError(f"there is an adapter {name!r} already: take another name, and extend it")
        before = self._registered.get(name)
        self._registered[name] = raw
        self._known.clear()
        try:
            return self.get(name)
        except ConfigError:
            self._known.clear()
            if before is None:
                del self._registered[name]
            else:
                self._registered[name] = before
            raise

    def _resolve(self, name: str, first: int, path: tuple[str, ...]) -> Known:
        """The adapter called ``name`` in one of the layers from ``first`` on. ``path`` is what led here."""
        layers = self._layers()
        for number in range(first, len(layers)):
            if (found := layers[number](name)) is not None:
                break
        else:
            raise ConfigError(f"unknown adapter {name!r}, expected one of {', '.join(self.names())}")
        raw = found.raw
        base: Known | None = None
        extends = raw.get(EXTENDS)
        if extends is not None and not isinstance(extends, str):
            raise ConfigError(f"{found.where}.extends: expected the name of an adapter")
        if extends is not None:
            extends = ALIASES.get(extends, extends)
            step = f"{extends}@{number + 1 if extends == name else 0}"
            if step in path:
                raise ConfigError(f"{found.where}: it extends itself: {' -> '.join([*path, step])}")
            base = self._resolve(extends, number + 1 if extends == name else 0, (*path, step))
        wire = raw.get("wire")
        own = {key: value for key, value in raw.items() if key != "wire"}
        own.setdefault("name", name)
        if base is not None:
            own["name"] = name
        declaration = read_declaration(own, where=found.where, base=base.declaration if base else None)
        return Known(declaration, _wire(found.where, wire, base), found.origin)

    # --- the layers -----------------------------------------------------------------------------------------------

    def _layers(self) -> tuple[Layer, ...]:
        return (self._from_clients, self._from_configuration, self._from_home, _from_package, _from_entry_points)

    def _from_clients(self, name: str) -> Found | None:
        raw = self._registered.get(name)
        return None if raw is None else Found(raw, f"adapter {name!r}", "client")

    def _from_configuration(self, name: str) -> Found | None:
        raw = self.configured.get(name)
        return None if raw is None else Found(raw, f"adapters.{name}", "configuration")

    def _from_home(self, name: str) -> Found | None:
        for path in self._files():
            if path.stem == name:
                return Found(_read_file(path), str(path), "home")
        return None

    def _files(self) -> list[Path]:
        if self.home is None:
            return []
        folder = self.home / "adapters"
        return sorted(path for path in (*folder.glob("*.toml"), *folder.glob("*.py")) if path.is_file())


def _from_package(name: str) -> Found | None:
    if name not in ADAPTERS:
        return None
    adapter = load_adapter(name)
    env: dict[str, Any] = {"api_key": {"value": adapter.key_env or "NO_KEY", "optional": True}}
    if adapter.default_base_url is not None:
        env["base_url"] = adapter.default_base_url
    raw: dict[str, Any] = {"name": name, "env": env, "wire": adapter}
    return Found(raw, f"adapter {name!r}", "built-in")


def _from_entry_points(name: str) -> Found | None:
    for point in _points():
        if point.name == name:
            try:
                value = point.load()
            except Exception as error:
                raise ConfigError(f"adapter {name!r} of {point.value}: {type(error).__name__}: {error}") from error
            return Found(_mapping(point.value, value), f"adapter {name!r} of {point.value}", "package")
    return None


def _points() -> Iterator[Any]:
    from importlib.metadata import entry_points

    yield from entry_points(group=ENTRY_POINTS)


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        if path.suffix == ".toml":
            return tomllib.loads(path.read_text(encoding="utf-8"))
        spec = importlib.util.spec_from_file_location(f"jumpseat_adapter_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    except Exception as error:
        raise ConfigError(f"{path}: {type(error).__name__}: {error}") from error
    return _mapping(str(path), getattr(module, "ADAPTER", None))


def _mapping(where: str, value: Any) -> Mapping[str, Any]:
    if callable(value):
        value = value()
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: expected a mapping ADAPTER")
    return cast("Mapping[str, Any]", value)


def _wire(where: str, wire: Any, base: Known | None) -> Adapter | None:
    """The code behind an adapter: its own, named or given, else that of what it extends."""
    if wire is None:
        return base.wire if base is not None else None
    if isinstance(wire, str):
        if wire not in ADAPTERS:
            raise ConfigError(f"{where}.wire: unknown wire {wire!r}, expected one of {', '.join(sorted(ADAPTERS))}")
        return load_adapter(wire)
    return cast("Adapter", wire() if isinstance(wire, type) else wire)
