"""The catalogue of declarations: where adapters and tools are declared, and when their files are read again.

Of declarations with the same name, the first in this order is used; ``KIND`` is ``adapter`` or ``tool``:

1. those that clients have registered, until the process ends;
2. ``.jumpseat/KINDs/NAME.toml`` and ``NAME.py`` of the session's project, if the user trusts its folder;
3. ``[KINDs.NAME]`` of the configuration, which is read at the start;
4. ``KINDs/NAME.toml`` and ``NAME.py`` in the home folder;
5. built-in adapters;
6. entry points of the group ``jumpseat.KINDs`` of installed packages, which are searched once.

One rule holds for all files: a file is read when it is needed, and again when it has changed. New, changed and
removed files apply from the next prompt on, in open sessions as well. An invalid file affects no other.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.declared.files import (
    Stamp,
    as_mapping,
    entry_points,
    load_entry_point,
    read_toml,
    run_python,
    stamp_of,
)
from jumpseat.declared.places import declaration_files, project_folder
from jumpseat.errors import ConfigError

log = logging.getLogger(__name__)

T = TypeVar("T")

Origin: TypeAlias = Literal["client", "project", "configuration", "home", "built-in", "package"]

READ_WITHIN_S: Final = 5.0
"""Time limit for reading all changed files together."""


class Found(Struct, frozen=True):
    """A declaration as found, or the ``problem`` that prevents reading it.

    ``raw`` is not validated: in Python code, where ``attribute`` names it, it may be anything. ``where`` names the
    declaration in errors; ``file`` contains it.
    """

    name: str
    origin: Origin
    where: str
    raw: Any
    file: Path | None = None
    attribute: str = ""
    problem: str | None = None

    def table(self) -> Mapping[str, Any]:
        """Return the declaration as a table.

        Raises:
            ConfigError: it cannot be read, or is not a table.
        """
        if self.problem is not None:
            raise ConfigError(self.problem)
        return as_mapping(self.where, self.raw, self.attribute) if self.attribute else self.raw


class Catalogue(ABC, Generic[T]):
    """The declarations of one ``kind``. ``registered`` holds those of clients, by name."""

    kind: ClassVar[str]

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        home: Path | None = None,
        is_trusted: Callable[[Path], bool] = lambda _file: False,
        config_file: Path | None = None,
        *,
        read_within_s: float = READ_WITHIN_S,
    ) -> None:
        """``tables`` are those of the configuration, by name; ``config_file`` is the file with them.

        ``is_trusted`` decides which files of a project are used.
        """
        self.folder_name = f"{self.kind}s"
        self.registered: dict[str, T] = {}
        self._tables = tables
        self._home = home
        self._home_folder = None if home is None else home / self.folder_name
        self._is_trusted = is_trusted
        self._config_file = config_file
        self._config_stamp = None if config_file is None else stamp_of(config_file)
        self._read_within_s = read_within_s
        self._files: dict[Path, tuple[Stamp, list[T]]] = {}
        self._lock = anyio.Lock()

    @abstractmethod
    def entry(self, found: Found) -> T:
        """Read a declaration. An invalid one raises no exception."""

    def found_in(self, module: ModuleType, path: Path, origin: Origin) -> list[Found]:
        """Return the declarations of a Python file."""
        attribute = self.kind.upper()
        return [Found(path.stem, origin, str(path), getattr(module, attribute, None), path, attribute)]

    # --- places ---------------------------------------------------------------------------------------------------

    def project_folder(self, cwd: Path | None) -> Path | None:
        """Return the folder of declarations of the project of ``cwd``, ``None`` if it has none."""
        return None if cwd is None else project_folder(cwd, self.folder_name, self._home)

    def files_of(self, cwd: Path | None) -> dict[Path, Origin]:
        """Return the files of declarations for sessions in ``cwd``, in order of precedence."""
        self._note_configuration()
        files = [] if (folder := self.project_folder(cwd)) is None else declaration_files(folder)
        found: dict[Path, Origin] = {path: "project" for path in files if self._is_trusted(path)}
        if self._home_folder is not None:
            found |= dict.fromkeys(declaration_files(self._home_folder), "home")
        return found

    def _note_configuration(self) -> None:
        """Log that the file of the configuration has changed, because it is not read again."""
        file = self._config_file
        if file is not None and (stamp := stamp_of(file)) != self._config_stamp:
            self._config_stamp = stamp
            log.warning("%s has changed: restart the server to apply its tables [%s.NAME]", file, self.folder_name)

    @cached_property
    def configured(self) -> Mapping[str, T]:
        """The declarations of the configuration, by name."""
        place, file = self.folder_name, self._config_file
        return {
            name: self.entry(Found(name, "configuration", f"{place}.{name}", raw, file))
            for name, raw in self._tables.items()
        }

    @cached_property
    def installed(self) -> Mapping[str, Any]:
        """The entry points of installed packages, by name. The first search takes some milliseconds."""
        return {point.name: point for point in entry_points(f"jumpseat.{self.folder_name}")}

    def from_package(self, name: str) -> T | None:
        """Import the declaration of an installed package, ``None`` if there is none called ``name``."""
        point = self.installed.get(name)
        if point is None:
            return None
        where = f"{self.kind} {name!r} of {point.value}"
        try:
            raw = load_entry_point(point, self.kind)
        except ConfigError as error:
            return self.entry(Found(name, "package", where, None, problem=str(error)))
        return self.entry(Found(name, "package", where, raw, attribute=self.kind.upper()))

    # --- files ----------------------------------------------------------------------------------------------------

    def read(self, path: Path, origin: Origin) -> list[T]:
        """Return the declarations of a file; read or run it if it is new or has changed."""
        stamp = stamp_of(path)
        known = self._files.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        entries = self.read_file(path, origin)
        self._files[path] = (stamp, entries)
        return entries

    async def refresh(self, cwd: Path | None) -> list[T]:
        """Read new and changed files for sessions in ``cwd`` in threads, within a time limit.

        A file that takes longer has a problem until it has been read.

        Returns:
            The entries of the project, the configuration and the home folder, in order of precedence.
        """

        async def read(path: Path, origin: Origin) -> None:
            await anyio.to_thread.run_sync(self.read, path, origin, abandon_on_cancel=True)

        async with self._lock:
            if "configured" not in vars(self):
                await anyio.to_thread.run_sync(lambda: self.configured)
            files = self.files_of(cwd)
            stamps = {path: stamp_of(path) for path in files}
            before = {path: self._files.get(path) for path in files}
            changed = [path for path, known in before.items() if known is None or known[0] != stamps[path]]
            with anyio.move_on_after(self._read_within_s):
                # Concurrently, so that a file that never finishes does not block the others.
                async with anyio.create_task_group() as tasks:
                    for path in changed:
                        tasks.start_soon(read, path, files[path])
            for path in changed:
                if self._files.get(path) is before[path]:
                    late = Found(
                        path.stem, files[path], str(path), None, problem=f"{path}: reading it takes too long"
                    )
                    self._files[path] = (stamps[path], [self.entry(late)])
            entries = {path: self._files[path][1] for path in files}
            layers = (
                *(found for path, found in entries.items() if files[path] == "project"),
                self.configured.values(),
                *(found for path, found in entries.items() if files[path] == "home"),
            )
            return [entry for layer in layers for entry in layer]

    def read_file(self, path: Path, origin: Origin) -> list[T]:
        """Read or run a file and return its declarations."""
        if path in self._files:
            log.info("%s has changed: read again, applies from the next prompt on", path)
        try:
            if path.suffix == ".toml":
                found = [Found(path.stem, origin, str(path), read_toml(path), path)]
            else:
                found = self.found_in(run_python(path, f"jumpseat_{self.kind}"), path, origin)
        except ConfigError as error:
            found = [Found(path.stem, origin, str(path), None, path, problem=str(error))]
        return [self.entry(item) for item in found]
