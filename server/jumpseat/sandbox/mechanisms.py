"""Find the mechanism that works on this system, by running a confined command with each candidate."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import anyio
import anyio.to_thread

from jumpseat.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from jumpseat.sandbox.landlock import Landlock
from jumpseat.sandbox.seatbelt import PROGRAM, Seatbelt
from jumpseat.sandbox.view import View
from jumpseat.system.programs import find_program

log = logging.getLogger(__name__)

PROBE_S: Final = 30.0
"""Time limit of the command that tries a mechanism."""

_ATTEMPT: Final = 'echo in >"$1/file"; { echo out >"$2/file"; } 2>/dev/null; cat "$3/file" 2>/dev/null; :'


class Mechanism(Protocol):
    """A way to confine a command.

    With ``has_processes``, confined processes have their own PID namespace, which ends as a whole. With
    ``can_protect``, files inside writable folders can be made read-only. A mechanism that ``lacks`` something is no
    reason to ask less: it says what, for people.
    """

    @property
    def name(self) -> str: ...

    @property
    def lacks(self) -> str: ...

    @property
    def has_processes(self) -> bool: ...

    @property
    def can_protect(self) -> bool: ...

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
        """Return the command line that runs ``command`` confined to ``view``.

        A PID namespace ends with the command, or, if it ``outlives`` the command, with the last process in it.
        ``vanishing`` means that hidden and protected files may be gone when the sandbox is made. ``variables`` are
        the names in its environment.
        """
        ...

    def isolated(self, command: Sequence[str]) -> list[str] | None:
        """Return the command line that runs ``command`` in a new network namespace, otherwise unconfined.

        Returns ``None`` without network namespaces; a command then reaches all hosts or none.
        """
        ...


def candidates(environ: Mapping[str, str]) -> list[Mechanism]:
    """Return the mechanisms of this platform, the best one first."""
    match sys.platform:
        case "linux":
            bash = find_program("bash", environ)
            return [*(Bubblewrap(program, bash) for program in find_bubblewrap(environ)), Landlock()]
        case "darwin":
            return [Seatbelt()] if os.path.exists(PROGRAM) else []
        case _:
            return []


async def find_mechanism(environ: Mapping[str, str], names: Container[str] | None = None) -> Mechanism | None:
    """Return the first mechanism with one of these ``names`` that confines a command; ``None`` if there is none."""
    for mechanism in candidates(environ):
        if names is not None and mechanism.name not in names:
            continue
        problem = await anyio.to_thread.run_sync(problem_of, mechanism, environ)
        if problem is not None:
            log.info("commands cannot be confined by %s: %s", mechanism.name, problem)
            continue
        log.info("commands are confined by %s", mechanism.name)
        if isinstance(mechanism, Bubblewrap):
            problem = await anyio.to_thread.run_sync(partial(problem_of, mechanism, environ, vanishing=True))
            if problem is not None:
                log.info("bubblewrap makes all mounts itself: %s", problem)
                return mechanism.without_launcher()
        return mechanism
    return None


def problem_of(mechanism: Mechanism, environ: Mapping[str, str], *, vanishing: bool = False) -> str | None:
    """Return why a mechanism does not work, by writing a file inside and one outside, and reading a hidden file.

    ``vanishing`` is explained at :meth:`Mechanism.command`.
    """
    folder = Path(tempfile.mkdtemp(prefix="jumpseat-probe-")).resolve()
    try:
        inside, outside, hidden = folder / "inside", folder / "outside", folder / "hidden"
        for path in (inside, outside, hidden):
            path.mkdir()
        (hidden / "file").write_text("secret")
        view = View(writable=(inside,), shown=(outside,), hidden=(hidden,))
        words = ["sh", "-c", _ATTEMPT, "sh", str(inside), str(outside), str(hidden)]
        result = subprocess.run(
            mechanism.command(view, inside, words, vanishing=vanishing),
            cwd=inside,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
        )
        if not (inside / "file").exists():
            lines = result.stderr.decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else f"exit code {result.returncode}"
        if (outside / "file").exists() or result.stdout:
            return "a confined command reached a file outside of its folder"
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None
