"""``jumpseat check sandbox``: say what confines commands on this machine, and what it does not stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from jumpseat.cli.commands import print_json, print_text

if TYPE_CHECKING:
    from jumpseat.sandbox.probes import Finding

WHOLE: Final = 0
PARTIAL: Final = 1
"""Exit code: no mechanism works, or the one that works is no reason to ask less."""


COLUMNS: Final = ("bubblewrap", "Landlock", "Seatbelt")


def check_sandbox(environ: Mapping[str, str], *, as_json: bool, as_table: bool = False) -> int:
    """Try every mechanism of this platform, print the results, and return the exit code."""
    from jumpseat.sandbox.mechanisms import candidates
    from jumpseat.sandbox.probes import WALLS, examine

    lacks = {mechanism.name: mechanism.lacks for mechanism in candidates(environ)}
    found = examine(environ)
    used = next((finding for finding in found if finding.problem is None), None)
    exit_code = WHOLE if used is not None and not lacks[used.mechanism] else PARTIAL
    if as_json:
        print_json({"used": used.mechanism if used else None, "mechanisms": [asdict(item) for item in found]})
        return exit_code
    if as_table:
        print_text("\n".join(_table(found, WALLS)))
        return exit_code
    if used is None:
        print_text("Nothing confines commands on this machine: they run with all rights of the user.")
    elif lacks[used.mechanism]:
        print_text(f"Commands are confined by {used.mechanism} only: {lacks[used.mechanism]}.")
        print_text("Approvals cover a command only in exactly the approved form.")
    else:
        print_text(f"Commands are confined by {used.mechanism}.")
    for finding in found:
        print_text("")
        _print(finding, WALLS)
    return exit_code


def _table(found: Sequence[Finding], walls: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the table in the documentation; what does not work here is untested."""
    working = {finding.mechanism: finding for finding in reversed(found) if finding.problem is None}
    rows = [("a confined command cannot", *COLUMNS), ("---",) * (len(COLUMNS) + 1)]
    for name, text in walls.items():
        tried = (working.get(column.casefold()) for column in COLUMNS)
        rows.append((text, *("untested" if one is None else "no" if name in one.open else "yes" for one in tried)))
    for row in rows:
        yield f"| {' | '.join(row)} |".replace(" --- ", "---")


def _print(finding: Finding, walls: Mapping[str, str]) -> None:
    if finding.problem is not None:
        print_text(f"{finding.mechanism} does not work: {finding.problem}")
        for reason in finding.reasons:
            print_text(f"  {reason}")
        return
    print_text(f"{finding.mechanism} works. A command")
    for name, text in walls.items():
        print_text(f"  {'CAN   ' if name in finding.open else 'cannot'} {text}")
