"""The catalogue of all declared tools and groups.

Of declarations with the same name, the first in this order is used:

1. those that clients have registered;
2. ``.jumpseat/tools/NAME.toml`` and ``NAME.py`` of the project, where the user trusts its folder;
3. ``[tools.NAME]`` of the configuration;
4. ``tools/NAME.toml`` and ``NAME.py`` in the home folder;
5. entry points of the group ``jumpseat.tools`` of installed packages, which are read only when a name is not found
   elsewhere.

A Python file defines a mapping ``TOOL`` (or ``GROUP``), or several in a list ``TOOLS``. An invalid declaration does
not affect the others. Files are read when a session needs them, and again after changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
import anyio.to_thread

from jumpseat.declared.files import (
    as_mapping,
    declaration_files,
    entry_points,
    load_entry_point,
    read_toml,
    run_python,
)
from jumpseat.declared.places import project_folder
from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import in_declaration
from jumpseat.tools.declared import FOLDER
from jumpseat.tools.declared.definition import Definition, read_definition
from jumpseat.tools.declared.groups import Group, is_group, read_group
from jumpseat_protocol.lazy_dataclasses import dataclass

log = logging.getLogger(__name__)

ENTRY_POINTS: Final = "jumpseat.tools"

READ_WITHIN_S: Final = 5.0
"""Time limit for reading all Python files together."""

Origin: TypeAlias = Literal["client", "project", "configuration", "home", "package"]


@dataclass(frozen=True, slots=True)
class Known:
    """A declaration that was found: a tool, a group, or a ``problem``. ``where`` describes its origin to people."""

    name: str
    origin: Origin
    where: str
    tool: Definition | None = None
    group: Group | None = None
    problem: str | None = None


Stamp: TypeAlias = tuple[int, int]


class Catalogue:
    """The declared tools of one process.

    ``configured`` are the tables of the configuration, by name; ``is_trusted`` decides whether a folder may add
    tools; a declaration may use the names in ``built_in`` only with ``overrides_built_in_tool``.
    """

    def __init__(
        self,
        configured: Mapping[str, Mapping[str, Any]],
        home: Path | None,
        is_trusted: Callable[[Path], bool],
        built_in: Iterable[str] = (),
        *,
        read_within_s: float = READ_WITHIN_S,
    ) -> None:
        self._home = home
        self._is_trusted = is_trusted
        self._read_within_s = read_within_s
        self._built_in = frozenset(built_in)
        self._registered: dict[str, Known] = {}
        self._files: dict[Path, tuple[Stamp, list[Known]]] = {}
        self._tables = configured
        self._configured: list[Known] | None = None
        self._at_home: list[Known] = []
        self._projects: dict[Path, list[Known]] = {}
        self._packages: dict[str, Known] | None = None
        self._lock = anyio.Lock()

    # --- looking --------------------------------------------------------------------------------------------------

    def known(self, cwd: Path | None) -> dict[str, Known]:
        """Return the declarations for sessions in ``cwd`` as last read, without packages. Does no I/O."""
        found: dict[str, Known] = dict(self._registered)
        for layer in (self._projects.get(cwd, ()) if cwd else (), self._configured or (), self._at_home):
            for known in layer:
                found.setdefault(known.name, known)
        return found

    def package(self, name: str) -> Known | None:
        """Return a tool of an installed package, if :meth:`find_packages` has found one."""
        return (self._packages or {}).get(name)

    @property
    def has_searched_packages(self) -> bool:
        """Return whether installed packages were searched."""
        return self._packages is not None

    async def read_all(self, cwd: Path | None) -> list[Known]:
        """Read all declarations again and return them sorted by name; without ``cwd``, none of a project."""
        await self.read(cwd)
        await self.find_packages()
        known = self.known(cwd)
        for package in (self._packages or {}).values():
            known.setdefault(package.name, package)
        return sorted(known.values(), key=lambda known: known.name)

    async def read(self, cwd: Path | None) -> None:
        """Read new and changed files for sessions in ``cwd``, within a time limit."""
        async with self._lock:
            if self._configured is None:
                self._configured = await anyio.to_thread.run_sync(self._of_configuration)
            home = _stamped(None if self._home is None else self._home / FOLDER)
            folder = None if cwd is None else project_folder(cwd, FOLDER, self._home)
            project = [known for known in _stamped(folder) if self._is_trusted(known[0])]
            with anyio.move_on_after(self._read_within_s) as scope:
                # Concurrently, so that a file that never finishes does not block the others.
                async with anyio.create_task_group() as tasks:
                    for path, stamp in home:
                        tasks.start_soon(self._read_file, path, stamp, "home")
                    for path, stamp in project:
                        tasks.start_soon(self._read_file, path, stamp, "project")
            if scope.cancelled_caught:
                log.warning("declared tools: reading them took longer than %g s", self._read_within_s)
            self._at_home = self._of_files(home)
            if cwd is not None:
                self._projects[cwd] = self._of_files(project)

    async def _read_file(self, path: Path, stamp: Stamp, origin: Origin) -> None:
        cached = self._files.get(path)
        if cached is not None and cached[0] == stamp:
            return
        # In case reading never finishes.
        timed_out = Known(path.stem, origin, str(path), problem=f"{path}: reading it takes too long")
        self._files[path] = (stamp, [timed_out])
        found = await anyio.to_thread.run_sync(self._read, path, origin, abandon_on_cancel=True)
        self._files[path] = (stamp, found)
        _log_problems(found)

    def _of_files(self, files: list[tuple[Path, Stamp]]) -> list[Known]:
        return [known for path, _ in files if path in self._files for known in self._files[path][1]]

    async def find_packages(self) -> None:
        """Read the tools of installed packages, once."""
        async with self._lock:
            if self._packages is None:
                self._packages = await anyio.to_thread.run_sync(self._of_packages)

    # --- clients --------------------------------------------------------------------------------------------------

    def register(self, raw: Mapping[str, Any]) -> Known:
        """Register a client's declaration, which may contain commands only and always needs approval.

        Replaces a client's declaration of the same name.

        Raises:
            InvalidRequestError: the name is missing, or that of a tool that no client has registered.
            ConfigError: the declaration is invalid, or more than a command tool.
        """
        name = raw.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidRequestError("the declaration needs a name")
        layers = (*self._projects.values(), self._configured or [], self._at_home)
        taken = {known.name for layer in layers for known in layer} | (self._packages or {}).keys()
        if name in taken or name in self._built_in:
            raise InvalidRequestError(f"a tool {name!r} exists already: choose another name")
        where = f"tool {name!r}"
        if is_group(raw):
            raise ConfigError(f"{where}: groups cannot be registered")
        for key in ("env", "handlers", "overrides_built_in_tool", "enabled"):
            if raw.get(key):
                # The user's files may configure these, for example a command that prints a key; clients may not.
                raise ConfigError(f"{where}: {key} cannot be registered")
        try:
            known = Known(name, "client", where, tool=read_definition(raw, where=where, data_only=True))
        except ConfigError as error:
            raise in_declaration(where, error) from None
        self._registered[name] = known
        return known

    # --- reading --------------------------------------------------------------------------------------------------

    def _of_configuration(self) -> list[Known]:
        file = None if self._home is None else self._home / "config.toml"
        found = [
            self._known(raw, "configuration", f"tools.{name}", name, file=file)
            for name, raw in self._tables.items()
        ]
        _log_problems(found)
        return found

    def _read(self, path: Path, origin: Origin) -> list[Known]:
        where = str(path)
        try:
            if path.suffix == ".toml":
                return [self._known(read_toml(path), origin, where, path.stem, file=path)]
            module = run_python(path, "jumpseat_tool")
        except ConfigError as error:
            return [Known(path.stem, origin, where, problem=str(error))]
        several = getattr(module, "TOOLS", None)
        if several is None:
            one = getattr(module, "TOOL", getattr(module, "GROUP", None))
            return [self._known(one, origin, where, path.stem)]
        if isinstance(several, Mapping):
            named = cast("Mapping[Any, Any]", several).items()
            return [self._known(raw, origin, where, str(name)) for name, raw in named]
        if not isinstance(several, list | tuple):
            return [Known(path.stem, origin, where, problem=f"{where}: expected TOOLS to be a list or a mapping")]
        found: dict[str, Known] = {}
        for number, raw in enumerate(cast("Iterable[Any]", several)):
            place = f"TOOLS[{number}]"
            known = self._known(raw, origin, where, "", place)
            if known.name in found:
                known = Known(place, origin, where, problem=f"{where}: {place}: there is another {known.name!r}")
            found[known.name] = known
        return list(found.values())

    def _known(
        self,
        raw: Any,
        origin: Origin,
        where: str,
        name: str,
        attribute: str = "TOOL",
        *,
        file: Path | None = None,
    ) -> Known:
        try:
            table = as_mapping(where, raw, attribute)
            name = str(table.get("name") or name)
            if is_group(table):
                return Known(name, origin, where, group=read_group(table, where=where, name=name))
            tool = read_definition(table, where=where, name=name)
        except ConfigError as error:
            return Known(name or attribute, origin, where, problem=str(in_declaration(where, error, file)))
        except BaseException as error:
            # The function that returns the declaration has failed.
            return Known(name or attribute, origin, where, problem=f"{where}: {type(error).__name__}: {error}")
        if tool.name in self._built_in and not tool.overrides_built_in_tool:
            problem = f"{where}: {tool.name!r} is a built-in tool; set overrides_built_in_tool to replace it"
            return Known(tool.name, origin, where, problem=problem)
        return Known(tool.name, origin, where, tool=tool)

    def _of_packages(self) -> dict[str, Known]:
        found: dict[str, Known] = {}
        for point in entry_points(ENTRY_POINTS):
            where = f"tool {point.name!r} of {point.value}"
            try:
                known = self._known(load_entry_point(point, "tool"), "package", where, point.name)
            except ConfigError as error:
                known = Known(point.name, "package", where, problem=str(error))
            found.setdefault(known.name, known)
        return found


def _log_problems(found: Iterable[Known]) -> None:
    for known in found:
        if known.problem is not None:
            log.warning("%s", known.problem)


def _stamped(folder: Path | None) -> list[tuple[Path, Stamp]]:
    """Return the declaration files of a folder with their modification times and sizes."""
    found: list[tuple[Path, Stamp]] = []
    for path in [] if folder is None else declaration_files(folder):
        try:
            status = path.stat()
        except OSError:
            continue
        found.append((path, (status.st_mtime_ns, status.st_size)))
    return found
