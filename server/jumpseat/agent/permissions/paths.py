"""The folders that a session may use, the resolution of paths, and paths that no approval opens for writing."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from jumpseat.agent.permissions.rules import ResolvedPath, Rule
from jumpseat.sandbox.obeyed_files import INSIDE, NAMES, is_obeyed, obeyed_inside

PROTECTED_ANYWHERE: Final = frozenset({".git", ".jumpseat"})
"""Folders that configure git and this server, wherever they are."""

PROTECTED_FILES: Final = frozenset({"skill.md"})

PROTECTED_IN_HOME: Final = frozenset({"bin", "library"})
"""Names in the home folder that programs run or obey, beside all names that begin with a dot. They are protected in
sessions whose folder holds the home folder."""


class PathScope(Struct):
    """The folders that a session may use without approval of each path.

    ``cwd`` returns the working directory; ``primary``, if set, takes its place for permissions. ``session_folders``
    are folders that the server made for the session. No rule and no approval allows writing to ``guarded`` folders.
    ``unrestricted`` covers all paths, ``any_host`` all hosts. ``movers`` tell whether commands run that may move
    files and folders, or replace them by links. ``environ`` returns the environment of child processes.
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
    environ: Callable[[], Mapping[str, str]] | None = None

    @property
    def main_folder(self) -> Path:
        """The folder that permissions are relative to."""
        return self.primary or self.cwd()

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
        try:
            given = (base or self.cwd()) / expand_home(path)
            real = given.resolve()
            name = str(real)
            name.encode()
            return ResolvedPath(posixpath.normpath(str(given)), name, real.is_dir())
        except (OSError, RuntimeError, ValueError):
            return None

    def rule_patterns(self, rule: Rule) -> Sequence[str]:
        """Return the absolute patterns of a path rule: as written, and with links before wildcards resolved."""
        pattern = rule.argument or ""
        base = Path(rule.base) if rule.base else self.cwd()
        if pattern.startswith("**"):
            pattern = f"./{pattern}"
        given = posixpath.normpath(str(base / expand_home(pattern)))
        names = given.split("/")
        first_wildcard = next((n for n, name in enumerate(names) if "*" in name or "?" in name), len(names))
        root = _resolve_or_none(Path("/".join(names[:first_wildcard]) or "/"))
        if root is None:
            return (given,)
        rest = "/".join(names[first_wildcard:])
        return (given, posixpath.join(str(root), rest) if rest else str(root))


def linked_protection(path_scope: PathScope) -> list[Path]:
    """Return the targets of links at protected places of the project: the same files under other names."""
    folder = path_scope.main_folder
    found = [folder / name for name in NAMES if (folder / name).is_symlink()]
    for names, inner in INSIDE.items():
        places = [folder.joinpath(*names[: depth + 1]) for depth in range(len(names))]
        linked = any(place.is_symlink() for place in places)
        found += [place for place in map(places[-1].joinpath, inner) if linked or place.is_symlink()]
    return [target for place in found if (target := _resolve_or_none(place)) is not None]


def is_protected(path: ResolvedPath, path_scope: PathScope, linked: Sequence[Path] = ()) -> bool:
    """Return whether writing to ``path`` would change what later calls may do, or do."""
    if any(Path(path.real).is_relative_to(place) for place in linked):
        return True
    for form in (Path(path.given), Path(path.real)):
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
