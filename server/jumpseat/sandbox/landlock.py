"""Landlock and seccomp: restrictions that a process puts on itself, for systems without bubblewrap or namespaces.

Weaker than namespaces: a file inside a writable folder cannot be made read-only, ``/tmp`` cannot be written, there
are no terminals, no shared memory and no sockets in files, and without network there is no loopback either. The
process that restricts itself is ``landlock_launcher.py``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from jumpseat.sandbox.call_filters import UNFILTERED, path_of
from jumpseat.sandbox.view import View

MAX_ARGUMENT: Final = 100_000
"""The characters of one argument; Linux takes 128 KiB. A hidden path may have thousands of neighbours."""

LAUNCHER: Final = Path(__file__).with_name("landlock_launcher.py")


class Landlock:
    """Runs commands below ``landlock_launcher.py``. Implements :class:`~jumpseat.sandbox.mechanisms.Mechanism`."""

    name = "landlock"
    lacks = (
        "commands can change permissions and times of your files elsewhere, see other processes, and leave some"
        " behind, and files that configure programs are restored instead of protected"
    )
    has_processes = False
    can_protect = False

    def command(
        self,
        view: View,
        cwd: Path,
        command: Sequence[str],
        *,
        outlives: bool = False,
        vanishing: bool = False,
        variables: Iterable[str] = (),
    ) -> list[str]:
        """Return the command line that runs ``command``.

        Raises:
            OSError: there is no filter for this processor.
        """
        calls = path_of("landlock-network" if view.network else "landlock")
        if calls is None:
            raise OSError(UNFILTERED)
        accesses = view.accesses(own_temp=False)
        # No socket of a file can be reached, so that folders with sockets need not be listed.
        hidden = frozenset(path for path, access in accesses if access == "hide" and not Path(path).is_socket())
        rules = {
            "write": [path for folder, access in accesses if access == "write" for path in _without(folder, hidden)]
            + _temp(view),
            "read": [
                path
                for folder in ("/", *(folder for folder, access in accesses if access == "read"))
                for path in _without(folder, hidden)
            ],
            "network": view.network,
            "calls": str(calls),
        }
        text = json.dumps(rules)
        parts = [text[at : at + MAX_ARGUMENT] for at in range(0, len(text), MAX_ARGUMENT)]
        return [sys.executable, "-I", "-S", str(LAUNCHER), str(len(parts)), *parts, *command]

    def isolated(self, command: Sequence[str]) -> None:
        """Return ``None``: there are no network namespaces."""


def _temp(view: View) -> list[str]:
    return [] if view.temp is None else [str(view.temp)]


def _without(folder: str, hidden: frozenset[str]) -> Iterator[str]:
    """Yield the paths below ``folder`` that together contain everything except for ``hidden``.

    New files in a folder that contains a hidden path are not included.
    """
    above = {parent for path in hidden for parent in map(str, Path(path).parents)}

    def walk(folder: str) -> Iterator[str]:
        if folder not in above:
            yield folder
            return
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        for entry in entries:
            # A link is as readable as its target.
            if entry.path not in hidden and not entry.is_symlink():
                yield from walk(entry.path)

    return walk(folder)
