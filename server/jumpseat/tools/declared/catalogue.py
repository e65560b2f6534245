"""The declared tools and groups; ``declared/catalogue.py`` describes where they are found.

A Python file defines a mapping ``TOOL`` (or ``GROUP``), or several in a list or mapping ``TOOLS``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.declared.catalogue import READ_WITHIN_S, Catalogue, Found, Origin
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import in_declaration
from jumpseat.tools.declared.definition import Definition, read_definition
from jumpseat.tools.declared.groups import Group, is_group, read_group

log = logging.getLogger(__name__)


class ToolEntry(Struct, frozen=True):
    """A declared tool or group, or the ``problem`` of its declaration. ``where`` describes its origin to people."""

    name: str
    origin: Literal["client", "project", "configuration", "home", "package"]
    where: str
    tool: Definition | None = None
    group: Group | None = None
    problem: str | None = None


class ToolCatalogue(Catalogue[ToolEntry]):
    """The declared tools of one process.

    A declaration may use the names in ``built_in`` only with ``overrides_built_in_tool``.
    """

    kind = "tool"

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        home: Path | None,
        is_trusted: Callable[[Path], bool],
        built_in: Iterable[str] = (),
        *,
        read_within_s: float = READ_WITHIN_S,
    ) -> None:
        config_file = None if home is None else home / "config.toml"
        super().__init__(tables, home, is_trusted, config_file, read_within_s=read_within_s)
        self._built_in = frozenset(built_in)
        # As last read: those of projects by the working directory of sessions, and those of all sessions.
        self._projects: dict[Path | None, list[ToolEntry]] = {}
        self._shared: list[ToolEntry] = []
        self._packages: dict[str, ToolEntry] | None = None

    # --- looking --------------------------------------------------------------------------------------------------

    def known(self, cwd: Path | None) -> dict[str, ToolEntry]:
        """Return the entries for sessions in ``cwd`` as last read, without packages. Does no I/O."""
        found = dict(self.registered)
        for entry in (*self._projects.get(cwd, ()), *self._shared):
            found.setdefault(entry.name, entry)
        return found

    def package(self, name: str) -> ToolEntry | None:
        """Return the entry of an installed package, if :meth:`find_packages` has found one."""
        return (self._packages or {}).get(name)

    @property
    def has_searched_packages(self) -> bool:
        """Return whether installed packages were searched."""
        return self._packages is not None

    async def read_all(self, cwd: Path | None) -> list[ToolEntry]:
        """Read new and changed files, and return all entries sorted by name; without ``cwd``, none of a project."""
        await self.refresh(cwd)
        await self.find_packages()
        return sorted({**(self._packages or {}), **self.known(cwd)}.values(), key=lambda entry: entry.name)

    async def refresh(self, cwd: Path | None) -> list[ToolEntry]:
        entries = await super().refresh(cwd)
        self._projects[cwd] = [entry for entry in entries if entry.origin == "project"]
        self._shared = [entry for entry in entries if entry.origin != "project"]
        return entries

    async def find_packages(self) -> None:
        """Import the declarations of installed packages, once."""

        def search() -> dict[str, ToolEntry]:
            entries = (self.from_package(name) for name in self.installed)
            return {entry.name: entry for entry in entries if entry is not None}

        async with self._lock:
            if self._packages is None:
                self._packages = await anyio.to_thread.run_sync(search)

    # --- clients --------------------------------------------------------------------------------------------------

    def register(self, raw: Mapping[str, Any]) -> ToolEntry:
        """Register a client's declaration, which may contain commands only and always needs approval.

        Replaces a client's declaration of the same name.

        Raises:
            InvalidRequestError: the name is missing, or that of a tool that no client has registered.
            ConfigError: the declaration is invalid, or more than a command tool.
        """
        name = raw.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequestError("the declaration needs a name")
        read = [*self._shared, *(entry for entries in self._projects.values() for entry in entries)]
        if name in self._built_in or name in (self._packages or ()) or any(entry.name == name for entry in read):
            raise InvalidRequestError(f"a tool {name!r} exists already: choose another name")
        where = f"tool {name!r}"
        if is_group(raw):
            raise ConfigError(f"{where}: groups cannot be registered")
        for key in ("env", "handlers", "overrides_built_in_tool", "enabled"):
            if raw.get(key):
                # The user's files may configure these, for example a command that prints a key; clients may not.
                raise ConfigError(f"{where}: {key} cannot be registered")
        try:
            entry = ToolEntry(name, "client", where, tool=read_definition(raw, where=where, data_only=True))
        except ConfigError as error:
            raise in_declaration(where, error) from None
        self.registered[name] = entry
        return entry

    # --- reading --------------------------------------------------------------------------------------------------

    def entry(self, found: Found) -> ToolEntry:
        entry = self._valid(found)
        if entry.problem is not None:
            log.warning("%s", entry.problem)
        return entry

    def _valid(self, found: Found) -> ToolEntry:
        name, origin, where = found.name or found.attribute, found.origin, found.where
        assert origin != "built-in"
        try:
            table = found.table()
            name = str(table.get("name") or name)
            if is_group(table):
                return ToolEntry(name, origin, where, group=read_group(table, where=where, name=name))
            tool = read_definition(table, where=where, name=name)
        except ConfigError as error:
            return ToolEntry(name, origin, where, problem=str(in_declaration(where, error, found.file)))
        except BaseException as error:
            # The function that returns the declaration has failed.
            return ToolEntry(name, origin, where, problem=f"{where}: {type(error).__name__}: {error}")
        if tool.name in self._built_in and not tool.overrides_built_in_tool:
            problem = f"{where}: {tool.name!r} is a built-in tool; set overrides_built_in_tool to replace it"
            return ToolEntry(tool.name, origin, where, problem=problem)
        return ToolEntry(tool.name, origin, where, tool=tool)

    def found_in(self, module: ModuleType, path: Path, origin: Origin) -> list[Found]:
        where = str(path)
        several = getattr(module, "TOOLS", None)
        if several is None:
            one = getattr(module, "TOOL", getattr(module, "GROUP", None))
            return [Found(path.stem, origin, where, one, path, "TOOL")]
        if isinstance(several, Mapping):
            named = cast("Mapping[Any, Any]", several).items()
            return [Found(str(name), origin, where, raw, path, "TOOL") for name, raw in named]
        if not isinstance(several, list | tuple):
            raise ConfigError(f"{where}: expected TOOLS to be a list or a mapping")
        raws = cast("list[Any] | tuple[Any, ...]", several)
        return [Found("", origin, where, raw, path, f"TOOLS[{number}]") for number, raw in enumerate(raws)]

    def read_file(self, path: Path, origin: Origin) -> list[ToolEntry]:
        entries: dict[str, ToolEntry] = {}
        for number, entry in enumerate(super().read_file(path, origin)):
            if entry.name in entries:
                place = f"TOOLS[{number}]"
                problem = f"{path}: {place}: there is another {entry.name!r}"
                entry = ToolEntry(place, entry.origin, str(path), problem=problem)
                log.warning("%s", problem)
            entries[entry.name] = entry
        return list(entries.values())
