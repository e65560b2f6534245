"""Find the programs that the server itself starts outside of a sandbox, such as git, rg, bwrap, nsenter and gh.

``PATH`` may name folders that a confined command can write to, such as ``node_modules/.bin`` of a project, and
folders relative to the working directory. What a command, or an untrusted project, puts there must not run outside.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

Confine: TypeAlias = Callable[[Sequence[str], Path], AbstractAsyncContextManager[tuple[list[str], tuple[int, ...]]]]
"""Yields the command line that runs a command in a folder, confined so that it can only read, and the descriptors
that the command line needs."""


class OwnPrograms(Struct, frozen=True):
    """The programs of the server. ``folders`` returns those that commands may write to.

    ``confine`` puts a program that only reads, such as git, into a sandbox; ``None`` if the sandbox is off.
    """

    folders: Callable[[], Iterable[Path]] = tuple
    confine: Confine | None = None

    def find(self, name: str, environ: Mapping[str, str]) -> str | None:
        """Return the absolute path of a program; ``None`` if it is in no folder that can be relied on."""
        return find_program(name, environ, self.folders())

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of such a program, which may start others: ``PATH`` has the same folders."""
        return {**environ, "PATH": reliable_path(environ, self.folders())}


def find_program(name: str, environ: Mapping[str, str], folders: Iterable[Path] = ()) -> str | None:
    """Return the absolute path of a program in ``PATH`` of ``environ``; ``None`` if there is none.

    A program below one of ``folders``, which commands could write to, does not count.
    """
    roots = _with_targets(folders)
    for folder in reliable_path(environ, folders).split(os.pathsep):
        program = shutil.which(name, path=folder) if folder else None
        if program is not None and os.path.isabs(program) and not _is_below(os.path.realpath(program), roots):
            return program
    return None


def reliable_path(environ: Mapping[str, str], folders: Iterable[Path]) -> str:
    """Return ``PATH`` of ``environ`` without entries that are relative or below ``folders``."""
    roots = _with_targets(folders)
    kept = [
        entry
        for entry in environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(entry)
        and not _is_below(os.path.normpath(entry), roots)
        and not _is_below(os.path.realpath(entry), roots)
    ]
    return os.pathsep.join(kept)


def _with_targets(folders: Iterable[Path]) -> set[str]:
    names = {str(folder) for folder in folders}
    return (names | {os.path.realpath(name) for name in names}) - {os.sep}


def _is_below(path: str, roots: set[str]) -> bool:
    return any(path == root or path.startswith(f"{root}{os.sep}") for root in roots)
