"""All adapters that can be named, wherever they are declared.

A name is looked up in this order; the first that has it counts:

1. what clients have registered;
2. ``.jumpseat/adapters/NAME.toml`` and ``NAME.py`` of the session's project, where the user trusts its folder;
3. ``[adapters.NAME]`` of the configuration;
4. ``adapters/NAME.toml`` and ``adapters/NAME.py`` in the home folder;
5. what comes with the server;
6. entry points of the group ``jumpseat.adapters`` of installed packages.

A declaration may extend one of the same name from further down: ``[adapters.openai]`` changes the one that comes
with the server. Nothing is read, imported or searched before it is named; what was read is kept until its file
changes.

Tables of the configuration may use its short keys too (``type``, ``base_url``, ``api_key_env``, ``options``,
``models``). ``extends`` finds any adapter; ``type`` prefers one from further down, so that a table called after its
wire does not change all others of that type.

A key goes nowhere but where it was declared for: who extends an adapter that comes with the server and says another
address does not get its key along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from jumpseat.adapters import ADAPTERS, ALIASES, load_adapter
from jumpseat.adapters.adapter import Adapter
from jumpseat.adapters.caller import signing_as
from jumpseat.adapters.declared.declaration import API_KEY, BASE_URL, Declaration, read_declaration
from jumpseat.adapters.declared.handlers import RESOLVE
from jumpseat.adapters.declared.schema import MODEL, WIRE_MODEL, Choice, SchemaEntry, choices_of, default_of
from jumpseat.adapters.declared.view import AdapterView
from jumpseat.adapters.offer import Offer
from jumpseat.adapters.settings import settings_of
from jumpseat.adapters.wire import as_amount, as_flag, as_limit, as_object
from jumpseat.agent.model import ModelInfo, Price
from jumpseat.declared.env import SECRET_NAME
from jumpseat.declared.files import (
    ENDING,
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
from jumpseat.errors import ConfigError, InvalidRequestError

ENTRY_POINTS: Final = "jumpseat.adapters"
EXTENDS: Final = "extends"

FOLDER: Final = "adapters"
"""Where files with adapters are, in the home folder and in ``.jumpseat`` of a project."""

CONFIGURATION: Final = "configuration"
BUILT_IN: Final = "built-in"

PROTOCOLS: Final = ("http", "acp")
"""What ``type`` means in a declaration."""


WITHHELD: Final[Mapping[str, Any]] = {"value": "", "variable": True, "optional": True}
"""An entry of ``env`` that never has a value."""

KEEP_CHOICES_S: Final = 1800.0
"""How long a list of models that a function gave is good."""

CHOICES_WITHIN_S: Final = 5.0
"""How long such a function may take."""

TOOL_PROTOCOL: Final = "tool_protocol"
"""In ``opts``: how models call tools."""

_SHORT: Final = ("type", "base_url", "api_key_env", "models", TOOL_PROTOCOL)

Layer: TypeAlias = Callable[[str], "Found | None"]

Stamp: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Found:
    """A declaration as it was found. ``where`` is for error texts, ``origin`` for people."""

    raw: Mapping[str, Any]
    where: str
    origin: str


@dataclass(frozen=True, slots=True)
class Known:
    """An adapter with everything that it extends.

    ``wire`` is ``None`` where handlers do everything; ``kind`` is the name by which it comes with the server.
    """

    declaration: Declaration
    wire: Adapter | None
    origin: str
    kind: str | None = None

    def check_callable(self) -> None:
        """Say why its models cannot be called.

        Raises:
            ConfigError: they cannot.
        """
        name, declaration = self.declaration.name, self.declaration
        if declaration.type != "http":
            raise ConfigError(f"adapter {name!r} is of type {declaration.type!r}, expected 'http'")
        if self.wire is None and declaration.handler("parse_chat") is None:
            raise ConfigError(f"adapter {name!r} needs a wire: let it extend an adapter, or bring handlers")

    def withholding_secrets(self) -> Known:
        """The same without its key, and without all else that is called like a secret."""
        declaration = self.declaration
        env = {name: WITHHELD if SECRET_NAME.search(name) else raw for name, raw in declaration.env.items()}
        headers = {
            name: value
            for name, value in declaration.headers.items()
            if not SECRET_NAME.search(name) or (isinstance(value, str) and "${" in value)
        }
        update = {"env": {**env, API_KEY: WITHHELD}, "headers": headers}
        return replace(self, declaration=declaration.model_copy(update=update))

    def is_at(self, url: str) -> bool:
        """Whether its declared address is on the same server as ``url``."""
        return _same_server(_address(self.declaration), url)

    def offers(self) -> list[Offer]:
        """The models it declares, in their order. Calls the function that gives them, where it is one.

        Raises:
            ConfigError: they are not of the expected form, or the function failed.
        """
        declaration = self.declaration
        entry = declaration.settings.get(MODEL)
        if entry is None:
            return []
        choices, default = _choices(declaration, entry)
        if isinstance(default, str) and all(one.id != default for one in choices):
            choices = [Choice(id=default), *choices]
        # The default is first: a session that names none gets the first.
        choices.sort(key=lambda one: one.id != default)
        return [self._offer(choice) for choice in choices]

    def unlisted(self, name: str) -> Offer:
        """A model that it does not declare: a list lags behind its provider."""
        return self._offer(Choice(id=name))

    def _offer(self, choice: Choice) -> Offer:
        meta, opts = {**self.declaration.meta, **choice.meta}, {**self.declaration.opts, **choice.opts}
        if (protocol := opts.get(TOOL_PROTOCOL)) not in (None, "native", "xml"):
            raise ConfigError(
                f"adapter {self.declaration.name!r}: opts.{TOOL_PROTOCOL} {protocol!r}: expected 'native' or 'xml'"
            )
        name = str(choice.meta.get(WIRE_MODEL) or choice.id)
        info = ModelInfo(
            id=f"{self.declaration.name}/{choice.id}",
            name=choice.formatted_name or choice.id,
            vendor=self.declaration.vendor,
            vision=as_flag(opts.get("has_vision", opts.get("vision"))),
            tools=as_flag(opts.get("can_use_tools", opts.get("tools"))),
            tool_protocol=protocol,
            reasoning=as_flag(opts.get("can_reason")),
            context_window=as_limit(meta.get("context_window")),
            max_prompt_tokens=as_limit(meta.get("max_prompt_tokens")),
            max_output_tokens=as_limit(meta.get("max_tokens", meta.get("max_output_tokens"))),
            price=_price(as_object(meta.get("price"))),
        )
        return Offer(choice.id, name, info)


def _nowhere(_folder: Path) -> bool:
    return False


@dataclass(slots=True)
class Catalogue:
    """The adapters of one process, or as one project has them.

    ``configured`` are the tables of the configuration file, by name. ``project`` is the folder with adapters of the
    project, and ``is_trusted`` tells which of its files count.
    """

    configured: Mapping[str, Mapping[str, Any]]
    home: Path | None = None
    is_trusted: Callable[[Path], bool] = _nowhere
    project: Path | None = None
    _registered: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _known: dict[str, Known] = field(default_factory=dict[str, Known])
    _ready: dict[str, tuple[float, Known]] = field(default_factory=dict[str, tuple[float, Known]])
    _installed: frozenset[str] | None = None
    _files_read: dict[Path, tuple[Stamp, Mapping[str, Any]]] = field(
        default_factory=dict[Path, tuple[Stamp, Mapping[str, Any]]]
    )
    _seen: tuple[tuple[Path, Stamp], ...] = ()
    _projects: dict[Path, Catalogue] = field(default_factory=dict[Path, "Catalogue"])

    def of_project(self, cwd: Path) -> Catalogue:
        """The adapters as sessions in ``cwd`` have them: this one where no project brings any."""
        folder = project_folder(cwd, FOLDER, self.home)
        if folder is None or not trusted_files(folder, self.is_trusted):
            return self
        if folder not in self._projects:
            own = Catalogue(self.configured, self.home, self.is_trusted, folder)
            own._registered = self._registered
            self._projects[folder] = own
        return self._projects[folder]

    def brings(self, name: str) -> bool:
        """Whether the project declares an adapter of that name."""
        return any(path.stem == name for path in self._project_files())

    def names(self) -> list[str]:
        """All names, sorted. Looks at the home folder and at installed packages."""
        files = (path.stem for path in [*self._files(), *self._project_files()])
        return sorted(
            {
                *self._registered,
                *self.configured,
                *files,
                *ADAPTERS,
                *(point.name for point in entry_points(ENTRY_POINTS)),
            }
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
        self._forget_what_changed()
        if name not in self._known:
            self._known[name] = self._resolve(name, 0, ())
        return self._known[name]

    def origin(self, name: str) -> str:
        """Where an adapter is declared, also one that is wrong; empty where it cannot even be read."""
        try:
            found = (layer(ALIASES.get(name, name)) for layer in self._layers())
            return next((one.origin for one in found if one is not None), "")
        except ConfigError:
            return ""

    def settled(self, name: str) -> Known | None:
        """The adapter of that name if nothing has to be fetched for it, else ``None``."""
        known = self.get(name)
        entry = known.declaration.settings.get(MODEL)
        if entry is None or not (callable(entry.choices) or callable(entry.default)):
            return known
        kept = self._ready.get(known.declaration.name)
        return kept[1] if kept is not None else None

    async def ready(self, name: str) -> Known:
        """The adapter of that name, with its list of models fetched where a function gives it.

        Raises:
            ConfigError: there is none, its declaration is wrong, or the function fails.
        """
        known = self.get(name)
        declaration = known.declaration
        entry = declaration.settings.get(MODEL)
        resolve = declaration.handler(RESOLVE)
        if resolve is None and (entry is None or not (callable(entry.choices) or callable(entry.default))):
            return known
        kept = self._ready.get(declaration.name)
        if kept is not None and monotonic() < kept[0]:
            return kept[1]
        try:
            with anyio.fail_after(CHOICES_WITHIN_S):
                # They may ask over the network.
                ready = await anyio.to_thread.run_sync(_fetched, known, resolve, abandon_on_cancel=True)
        except TimeoutError:
            raise ConfigError(
                f"adapter {declaration.name!r}: its list of models took longer than {CHOICES_WITHIN_S:g} s"
            ) from None
        self._ready[declaration.name] = (monotonic() + KEEP_CHOICES_S, ready)
        return ready

    def registered(self) -> list[str]:
        """The names that clients have registered, in that order."""
        return list(self._registered)

    def installed(self) -> frozenset[str]:
        """The names that installed packages bring. Looked for once."""
        if self._installed is None:
            self._installed = frozenset(point.name for point in entry_points(ENTRY_POINTS))
        return self._installed

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
        """The adapter called ``name`` in one of the layers from ``first`` on. ``path`` is what led here."""
        layers = self._layers()
        for number in range(first, len(layers)):
            if (found := layers[number](name)) is not None:
                break
        else:
            raise ConfigError(f"unknown adapter {name!r}, expected one of {', '.join(self.names())}")
        raw = found.raw
        base: Known | None = None
        extends, below = self._extended(name, number, found)
        if extends is not None:
            step = f"{extends}@{below}"
            if step in path:
                names = (one.rpartition("@")[0] for one in [*path, step])
                raise ConfigError(f"{found.where}: it extends itself: {' -> '.join(names)}")
            base = self._resolve(extends, below, (*path, step))
        wire = raw.get("wire")
        own = _written_out(found.where, raw, base) if found.origin == CONFIGURATION else dict(raw)
        own.pop("wire", None)
        own.setdefault("name", name)
        if base is not None:
            own["name"] = name
            if _leaves_key_behind(own, base):
                own["env"] = {**own.get("env", {}), API_KEY: WITHHELD}
        declaration = read_declaration(own, where=found.where, base=base.declaration if base else None)
        kind = wire if isinstance(wire, str) else base.kind if base is not None and wire is None else None
        if found.origin == BUILT_IN:
            kind = name
        return Known(declaration, _wire(found.where, wire, base, declaration.name), found.origin, kind)

    def _extended(self, name: str, number: int, found: Found) -> tuple[str | None, int]:
        """Which adapter one extends, and the layer from which on that is looked for."""
        extends = found.raw.get(EXTENDS)
        if extends is not None and not isinstance(extends, str):
            raise ConfigError(f"{found.where}.extends: expected the name of an adapter")
        kind = found.raw.get("type")
        if found.origin != CONFIGURATION or kind in PROTOCOLS:
            kind = None
        if kind is not None and extends is not None:
            raise ConfigError(f"{found.where}: expected extends or type, not both")
        below = number + 1
        if extends is not None:
            extends = ALIASES.get(extends, extends)
            return extends, below if extends == name else 0
        if kind is None and (found.origin != CONFIGURATION or found.raw.get("wire") is not None):
            return None, 0
        # As the short form has it: a table is of the type that it is called.
        kind = ALIASES.get(str(kind or name), str(kind or name))
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
        return None if raw is None else Found(raw, f"adapters.{name}", CONFIGURATION)

    def _from_home(self, name: str) -> Found | None:
        return self._from_files(name, self._files(), "home")

    def _from_files(self, name: str, files: list[Path], origin: str) -> Found | None:
        for path in files:
            if path.stem == name:
                return Found(self._read(path), str(path), origin)
        return None

    def _files(self) -> list[Path]:
        return [] if self.home is None else declaration_files(self.home / FOLDER)

    def _project_files(self) -> list[Path]:
        return [] if self.project is None else trusted_files(self.project, self.is_trusted)

    def _read(self, path: Path) -> Mapping[str, Any]:
        """What a file declares. It is read, or run, once until it changes."""
        stamp = stamp_of(path)
        kept = self._files_read.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._files_read[path] = (stamp, _read_file(path))
        return kept[1]

    def _forget_what_changed(self) -> None:
        files = [*self._project_files(), *self._files()]
        seen = tuple((path, stamp_of(path)) for path in files)
        if seen != self._seen:
            self._seen = seen
            self._known.clear()
            self._ready.clear()


def _from_package(name: str) -> Found | None:
    if name not in ADAPTERS:
        return None
    adapter = load_adapter(name)
    env: dict[str, Any] = {API_KEY: _usual_key(adapter)}
    if adapter.default_base_url is not None:
        env["base_url"] = adapter.default_base_url
    raw: dict[str, Any] = {"name": name, "env": env, "schema": settings_of(name), "wire": adapter}
    return Found(raw, f"adapter {name!r}", BUILT_IN)


def _from_entry_points(name: str) -> Found | None:
    for point in entry_points(ENTRY_POINTS):
        if point.name == name:
            value = as_mapping(point.value, load_entry_point(point, "adapter"), "ADAPTER")
            return Found(value, f"adapter {name!r} of {point.value}", "package")
    return None


def _price(raw: Mapping[str, Any]) -> Price | None:
    asked, said = as_amount(raw.get("input")), as_amount(raw.get("output"))
    if asked is None or said is None:
        return None
    return Price(asked, said, as_amount(raw.get("cache_read")), as_amount(raw.get("cache_write")))


def _read_file(path: Path) -> Mapping[str, Any]:
    if path.suffix == ".toml":
        return read_toml(path)
    return as_mapping(str(path), getattr(run_python(path, "jumpseat_adapter"), "ADAPTER", None), "ADAPTER")


def _wire(where: str, wire: Any, base: Known | None, name: str) -> Adapter | None:
    """The code behind an adapter: its own, named or given, else that of what it extends."""
    if wire is None:
        found = base.wire if base is not None else None
    elif isinstance(wire, str):
        if wire not in ADAPTERS:
            raise ConfigError(f"{where}.wire: unknown wire {wire!r}, expected one of {', '.join(sorted(ADAPTERS))}")
        found = load_adapter(wire)
    else:
        found = cast("Adapter", wire() if isinstance(wire, type) else wire)
    return found if found is None else signing_as(found, name)


def _written_out(where: str, raw: Mapping[str, Any], base: Known | None) -> dict[str, Any]:
    """A table of the configuration with its short keys as a declaration has them."""
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
        schema[MODEL] = {**dict(schema.get(MODEL) or {}), "choices": [_choice(one) for one in raw["models"]]}
        schema[MODEL].setdefault("default", schema[MODEL]["choices"][0]["id"])
        own["schema"] = schema
    return own


def _choice(model: Any) -> dict[str, Any]:
    """A model of the short form as a choice."""
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


def _usual_key(adapter: Adapter) -> dict[str, Any]:
    """Where the users of an adapter that comes with the server keep their key."""
    return {"value": adapter.key_env or "", "variable": True, "optional": True}


def _leaves_key_behind(own: Mapping[str, Any], base: Known) -> bool:
    """Whether ``own`` leads to another server than the one that the usual key of ``base`` is for."""
    env: Mapping[str, Any] = as_object(own.get("env"))
    key = base.declaration.env.get(API_KEY)
    if API_KEY in env or base.wire is None or key != _usual_key(base.wire):
        return False
    for address in (own.get("url"), env.get(BASE_URL)):
        if address is None or (isinstance(address, str) and address.startswith(f"${{{BASE_URL}}}")):
            continue
        text = cast("Mapping[str, Any]", address).get("value") if isinstance(address, Mapping) else address
        if not _same_server(_address(base.declaration), text):
            return True
    return False


def _address(declaration: Declaration) -> Any:
    entry = declaration.env.get(BASE_URL)
    return cast("Mapping[str, Any]", entry).get("value") if isinstance(entry, Mapping) else entry


def _same_server(one: Any, other: Any) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    try:
        first, second = urlsplit(one), urlsplit(other)
        same = (first.scheme, first.hostname, first.port) == (second.scheme, second.hostname, second.port)
    except ValueError:
        return False
    return same and bool(first.hostname)


def _fetched(known: Known, resolve: Callable[..., Any] | None) -> Known:
    """``known`` with the answers of its functions in their place."""
    declaration = known.declaration
    if resolve is not None:
        try:
            resolve(AdapterView(declaration.model_copy(update={"settings": {}})))
        except (Exception, *ENDING) as error:
            raise ConfigError(
                f"adapter {declaration.name!r}: its handler resolve failed ({type(error).__name__})"
            ) from error
    entry = declaration.settings.get(MODEL)
    if entry is None:
        return known
    choices, default = _choices(declaration, entry)
    fetched = entry.model_copy(update={"choices": [one.model_dump() for one in choices], "default": default})
    settings = {**declaration.settings, MODEL: fetched}
    return replace(known, declaration=declaration.model_copy(update={"settings": settings}))


def _choices(declaration: Declaration, entry: SchemaEntry) -> tuple[list[Choice], Any]:
    """The models of an adapter and which is the default, worked out.

    Raises:
        ConfigError: they are not of the expected form, or the function failed.
    """
    # Without the entry at first: a view looks up its model in it.
    view = AdapterView(declaration.model_copy(update={"settings": {}}))
    view.schema = dict(declaration.settings)
    try:
        return choices_of(f"adapter {declaration.name!r}: schema.model", entry, view), default_of(entry, view)
    except ConfigError:
        raise
    except (Exception, *ENDING) as error:
        raise ConfigError(
            f"adapter {declaration.name!r}: schema.model: its function failed ({type(error).__name__})"
        ) from error
