"""The file system and the network as a confined process sees them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct, structs

Access: TypeAlias = Literal["write", "read", "hide"]

TEMP_FOLDERS: Final = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - those of a confined process

MAX_DEPTH: Final = 64
"""Folders around a path that are resolved one by one."""

_TEMP_NAMES: Final = frozenset(map(str, TEMP_FOLDERS))


class Namespace(Struct, frozen=True):
    """A network namespace that several commands share. ``enter`` is the prefix of a command line in it."""

    enter: tuple[str, ...]


class View(Struct, frozen=True):
    """The rights of a confined process. All paths are real paths of existing files and folders.

    A path that is not listed can be read, but not written. If one listed path contains another, the inner one
    applies to its contents; if a path is listed twice, ``hidden`` wins over ``read_only``, and ``read_only`` over
    ``writable``. ``shown`` are readable folders inside hidden ones. ``temp`` takes the place of ``/tmp`` and
    ``/var/tmp``. Without ``network``, the process reaches only listeners in ``namespace``, neither other hosts nor
    services of this host. A process that is ``alone`` starts no others, and creates no files. ``links`` are links
    in hidden folders, which are shown, too, with their targets.
    """

    writable: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    temp: Path | None = None
    network: bool = False
    namespace: Namespace | None = None
    alone: bool = False
    links: tuple[tuple[str, str], ...] = ()

    def accesses(self, *, own_temp: bool = True) -> list[tuple[str, Access]]:
        """Return the access to each listed path, outer paths first; paths without an effect are left out.

        Without ``own_temp``, ``temp`` cannot take the place of other folders.
        """
        # Strings, because this runs before every command, and paths take several times as long.
        listed: dict[str, Access] = {}
        listed |= dict.fromkeys(map(str, self.writable), "write")
        listed |= dict.fromkeys(map(str, (*self.shown, *self.read_only)), "read")
        listed |= dict.fromkeys(map(str, self.hidden), "hide")
        found: dict[str, Access] = {}
        for path in sorted(listed, key=lambda path: path.rstrip("/").count("/")):
            # A writable folder inside another one is mounted, which keeps it from being renamed.
            if listed[path] == "write" or listed[path] != self._access_above(path, found, own_temp):
                found[path] = listed[path]
        return list(found.items())

    def _access_above(self, path: str, found: Mapping[str, Access], own_temp: bool) -> Access:
        above = path
        while above != "/":
            above = above.rpartition("/")[0] or "/"
            if above in found:
                return found[above]
            if own_temp and self.temp is not None and above in _TEMP_NAMES:
                return "hide"
        return "read"


def without_replaceable(view: View, roots: Sequence[Path], beside: Sequence[View]) -> View:
    """Return a view without the paths in ``roots`` that commands with the views ``beside`` could replace by links.

    A mount would follow such a link. A command cannot replace a root, nor what is mounted for it directly in a root
    or in such a mount.
    """
    fixed = set[Path].intersection(*({*other.writable, *other.read_only, *other.shown} for other in beside))
    outer = {root for root in roots if not any(above in roots for above in root.parents)}

    def stays(path: Path) -> bool:
        while path not in outer:
            if path not in fixed:
                return not any(above in outer for above in path.parents)
            path = path.parent
        return True

    return structs.replace(
        view,
        writable=tuple(filter(stays, view.writable)),
        read_only=tuple(filter(stays, view.read_only)),
        shown=tuple(filter(stays, view.shown)),
    )


def real(path: str | Path) -> Path | None:
    """Return the real path of an existing file or folder; ``None`` for anything else."""
    try:
        # Most well-known paths do not exist, and this is the cheapest way to find out.
        os.lstat(path)
        return Path(os.path.realpath(path, strict=True))
    except (OSError, ValueError):
        return None


def real_outside(path: str | Path, roots: Sequence[Path]) -> Path | None:
    """Return the real path of an existing file or folder; ``None`` if a link in ``roots`` leads there.

    A command that may write to ``roots`` could have made the link.
    """
    found, plain = real(path), Path(os.path.normpath(path))
    return None if found != plain and any(plain.is_relative_to(root) for root in roots) else found


class RealPaths:
    """Resolves the paths for one command. A folder that was resolved once is not looked at again."""

    def __init__(self) -> None:
        self._folders: dict[str, str | None] = {"/": "/"}

    def find(self, path: str) -> str | None:
        """Return the real path of an existing file or folder; ``None`` for anything else."""
        folder, slash, name = path.rpartition("/")
        if not slash or name in ("", ".", "..") or path.count("/") > MAX_DEPTH:
            found = real(path)
            return None if found is None else str(found)
        folder = folder or "/"
        if folder not in self._folders:
            self._folders[folder] = self.find(folder)
        above = self._folders[folder]
        if above is None:
            return None
        below = f"{above.rstrip('/')}/{name}"
        try:
            return os.path.realpath(below, strict=True) if stat.S_ISLNK(os.lstat(below).st_mode) else below
        except (OSError, ValueError):
            return None

    def is_plain(self, path: str) -> bool:
        """Return whether no link is in a path, which may not exist."""
        found = self.find(path)
        return (os.path.realpath(path) if found is None else found) == path


def real_paths(paths: Iterable[str | Path], resolved: RealPaths | None = None) -> Iterator[Path]:
    """Yield the real paths of those that exist, without repetitions."""
    resolved = resolved or RealPaths()
    found = dict.fromkeys(resolved.find(str(path)) for path in paths)
    return (Path(path) for path in found if path is not None)
