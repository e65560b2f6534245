"""Seatbelt: the sandbox of macOS, through ``sandbox-exec``. Written from its documentation, and untested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from jumpseat.sandbox.view import View

PROGRAM: Final = "/usr/bin/sandbox-exec"

_DEVICES: Final = '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (regex #"^/dev/tty"))'


class Seatbelt:
    """Runs commands with ``sandbox-exec``. Implements :class:`~jumpseat.sandbox.mechanisms.Mechanism`."""

    name = "seatbelt"
    lacks = ""
    has_processes = False
    can_protect = True

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
        """Return the command line that runs ``command``."""
        return [PROGRAM, "-p", profile(view), *command]

    def isolated(self, command: Sequence[str]) -> None:
        """Return ``None``: there are no network namespaces."""


def profile(view: View) -> str:
    """Return the profile of a view; of several rules that match an operation, the last one applies."""
    lines = ["(version 1)", "(allow default)", "(deny file-write*)", _DEVICES]
    if not view.network:
        lines += ["(deny network*)", '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))']
    if view.alone:
        lines.append("(deny process-fork)")
    if view.temp is not None:
        lines.append(f"(allow file-write* (subpath {_quoted(view.temp)}))")
    for path, access in view.accesses(own_temp=False):
        place = f"(subpath {_quoted(path)})"
        match access:
            case "write":
                lines.append(f"(allow file-read* file-write* {place})")
            case "read":
                lines += [f"(allow file-read* {place})", f"(deny file-write* {place})"]
            case "hide":
                lines.append(f"(deny file-read* file-write* network* {place})")
    return "\n".join(lines)


def _quoted(path: str | Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
