"""The folders that a session may use, the resolution of paths, and paths that no approval opens for writing."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from jumpseat.agent.permissions.rules import ResolvedPath, Rule, root_of
from jumpseat.sandbox.obeyed_files import INSIDE, NAMES, is_obeyed, obeyed_inside
from jumpseat.system.regular_files import is_link, scan_folder
from jumpseat_protocol.limits import is_path

PROTECTED_ANYWHERE: Final = frozenset({".git", ".jumpseat"})
"""Folders that configure git and this server, wherever they are."""

MAX_CACHED_DEPTH: Final = 100
"""Limit of the names in a path whose folders are resolved one by one."""

MAX_LISTED: Final = 200
"""Limit of the entries of a folder that are listed to find the few with protected names."""

PROTECTED_FILES: Final = frozenset({"skill.md"})

PROTECTED_IN_HOME: Final = frozenset({"bin", "library"})
"""Names in the home folder that programs run or obey, beside all names that begin with a dot. They are protected in
sessions whose folder holds the home folder."""


class PathScope(Struct):
    """The folders that a session may use without approval of each path.

    ``cwd`` returns the working directory; ``primary``, if set, takes its place for permissions. ``session_folders``
    are folders that the server made for the session. No rule and no approval allows writing to ``guarded`` folders.
    ``unrestricted`` covers all paths, ``any_host`` all hosts. ``movers`` tell whether commands run that may move
    files and folders, or replace them by links. ``environ`` returns the environment of
    child processes, ``None`` for that of the server. ``trusts`` returns whether the user trusts a folder.
    ``opened`` returns the folders that commands of any session could write to.
    """

    cwd: Callable[[], Path]
    session_folders: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    primary: Path | None = None
    added_folders: list[Path] = field(default_factory=list[Path])
    include_temp: bool = False
    unrestricted: bool = False
    any_host: bool = False
    movers: list[Callable[[], bool]] = field(default_factory=list[Callable[[], bool]])
    environ: Callable[[], Mapping[str, str] | None] = lambda: None
    trusts: Callable[[Path], bool] = lambda _folder: False
    opened: Callable[[], Iterable[Path]] = tuple

    @property
    def main_folder(self) -> Path:
        """The folder that permissions are relative to."""
        return self.primary or self.cwd()

    def untrusted(self) -> list[Path]:
        """Return the folders in which the server starts no program of its own."""
        return [*self.folders(), *self.opened()]

    def folders(self) -> list[Path]:
        """Return the folders without ``session_folders``, the main folder first."""
        found = [self.main_folder, self.cwd(), *self.added_folders]
        if self.include_temp:
            import tempfile

            found.append(Path(tempfile.gettempdir()))
        return list(dict.fromkeys(found))

    def contains(self, path: ResolvedPath) -> bool:
        """Return whether the real path lies in one of the folders, whose links are resolved as well."""
        if self.unrestricted:
            return True
        roots = (_resolve_or_none(folder) for folder in (*self.folders(), *self.session_folders))
        return any(root is not None and Path(path.real).is_relative_to(root) for root in roots)

    def resolve(self, path: str, base: Path | None = None) -> ResolvedPath | None:
        """Resolve a path relative to ``base`` (default: the working directory); ``None`` if that fails."""
        # To resolve the links of a path takes quadratic time.
        if not is_path(path):
            return None
        try:
            given = (base or self.cwd()) / expand_home(path)
            real = given.resolve()
            name = str(real)
            name.encode()
            return ResolvedPath(posixpath.normpath(str(given)), name, real.is_dir())
        except (OSError, RuntimeError, ValueError):
            return None


class PatternsOfRules:
    """The absolute patterns of path rules in the folder ``cwd``, whose links are resolved once."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = str(cwd)
        self._patterns: dict[Rule, Sequence[str]] = {}
        self._real: dict[str, str | None] = {"": "", "/": "/"}
        self._missing: set[str] = set()

    def __call__(self, rule: Rule) -> Sequence[str]:
        """Return the patterns of a rule: as written, and last with links before wildcards resolved."""
        if rule not in self._patterns:
            given = self.written(rule)
            root = root_of(given)
            real = self.resolved(root)
            self._patterns[rule] = (given,) if real is None else (given, f"{real.rstrip('/')}{given[len(root) :]}")
        return self._patterns[rule]

    def written(self, rule: Rule) -> str:
        """Return the pattern of a rule as written."""
        pattern = rule.argument or ""
        if pattern.startswith("**"):
            pattern = f"./{pattern}"
        return posixpath.normpath(str(Path(rule.base or self.cwd) / expand_home(pattern)))

    def resolved(self, folder: str) -> str | None:
        """Return the real path of a folder, which may not exist; ``None`` if its links form a loop."""
        if folder not in self._real:
            self._real[folder] = self._resolve(folder)
        return self._real[folder]

    def _resolve(self, folder: str) -> str | None:
        above, _, name = folder.rpartition("/")
        if sys.platform != "win32" and folder.startswith("/") and folder.count("/") < MAX_CACHED_DEPTH:
            # Most rules name files in a few folders.
            parent = self.resolved(above)
            if parent is None:
                return None
            path = f"{parent}/{name}"
            if above in self._missing:
                self._missing.add(folder)
                return path
            linked = is_link(path)
            if linked is None:
                self._missing.add(folder)
            if not linked:
                return path
            folder = path
        real = _resolve_or_none(Path(folder))
        return None if real is None else str(real)


def linked_protection(path_scope: PathScope) -> list[Path]:
    """Return the targets of links at protected places of the project: the same files under other names."""
    # As strings: this happens with each call that writes.
    folder = f"{path_scope.main_folder}/"
    present = {entry.name.casefold() for entry in islice(scan_folder(Path(folder)), MAX_LISTED + 1)}
    # A folder that is empty may be one that cannot be listed.
    listed = 0 < len(present) <= MAX_LISTED
    names = [name for name in NAMES if not listed or name in present]
    found = [folder + name for name in names if posixpath.islink(folder + name)]
    for parts, inner in INSIDE.items():
        if listed and parts[0] not in present:
            continue
        place, linked = folder, False
        for name in parts:
            linked = linked or posixpath.islink(place + name)
            place = f"{place}{name}/"
        # Without the folder, nothing in it is a link.
        if linked or posixpath.isdir(place):
            found += [place + name for name in inner if linked or posixpath.islink(place + name)]
    return [target for place in found if (target := _resolve_or_none(Path(place))) is not None]


def is_protected(path: ResolvedPath, path_scope: PathScope, linked: Sequence[Path] = ()) -> bool:
    """Return whether writing to ``path`` would change what later calls may do, or do."""
    if any(Path(path.real).is_relative_to(place) for place in linked):
        return True
    for form in map(Path, dict.fromkeys((path.given, path.real))):
        if _configures(form, path_scope):
            return True
        if any(form.is_relative_to(folder) for folder in path_scope.guarded):
            return not any(Path(path.real).is_relative_to(folder) for folder in path_scope.session_folders)
    return False


def _configures(path: Path, path_scope: PathScope) -> bool:
    """Return whether a path is, or lies in, a file or folder that configures agents or git."""
    if not PROTECTED_ANYWHERE.isdisjoint(part.casefold() for part in path.parts):
        return True
    for folder in (*path_scope.session_folders, *path_scope.folders()):
        # A project may itself lie in such a folder, as working trees of other agents do.
        if path.is_relative_to(folder):
            if _configures_user(path, folder):
                return True
            path = path.relative_to(folder)
            break
    names = [part.casefold() for part in path.parts]
    return any(is_obeyed(name, obeyed_inside(names[:index])) for index, name in enumerate(names)) or (
        bool(names) and names[-1] in PROTECTED_FILES
    )


def _configures_user(path: Path, folder: Path) -> bool:
    """Return whether a path in the session's ``folder`` lies among the start files of the user's home folder."""
    home = Path(expand_home("~"))
    for form in (home, real_path(home)):
        if form.is_relative_to(folder) and path.is_relative_to(form) and path != form:
            name = path.relative_to(form).parts[0].casefold()
            return name.startswith(".") or name in PROTECTED_IN_HOME
    return False


def expand_home(path: str) -> str:
    """Replace a leading ``~``; return ``path`` unchanged for an unknown user."""
    if path.startswith("~"):
        try:
            return str(Path(path).expanduser())
        except RuntimeError:
            return path
    return path


def _resolve_or_none(folder: Path) -> Path | None:
    if not is_path(str(folder)):
        return None
    try:
        return folder.resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def anchors_of(identifiers: Iterable[str], folder: str) -> frozenset[str]:
    """Return the programs and the folder that approvals of commands in ``folder`` are bound to.

    They are compared with :attr:`jumpseat.agent.shell.syntax.ShellSegment.anchor`.
    """
    folder = str(real_path(Path(folder)))
    found = {f"{folder}\n"}
    for identifier in identifiers:
        if (program := real_program(identifier.split(maxsplit=1)[0] if identifier.strip() else "", folder)) != "":
            found |= {program, f"{folder}\n{program}"}
    return frozenset(found)


def real_program(program: str, folder: str) -> str:
    """Return the path of a program with its links resolved; empty if it is looked up by its name."""
    return str(real_path(Path(folder, expand_home(program)))) if "/" in program else ""


def real_path(path: Path) -> Path:
    """Resolve the links of a path; return it unchanged if that fails."""
    return _resolve_or_none(path) or path
