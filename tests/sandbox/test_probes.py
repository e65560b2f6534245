"""What each mechanism stops, found by trying, and the table of it in the documentation."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumpseat.sandbox.mechanisms import Mechanism
from jumpseat.sandbox.probes import WALLS, open_walls
from tests.cli.test_models import jumpseat
from tests.sandbox.parts import MECHANISMS

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
NOT_BEFORE_LINUX_6_12 = {"signals"}
HIDDEN_BY_CONTAINERS = {"keys"}

BEST = next(reversed(MECHANISMS), None)

pytestmark = pytest.mark.skipif(sys.platform != "linux" or not MECHANISMS, reason="no mechanism on this platform")


def rows() -> dict[str, dict[str, str]]:
    """Return the table by the name of the wall and of the mechanism."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text().splitlines()]
    start = next(number for number, row in enumerate(cells) if row[0] == "a confined command cannot")
    names = {text: name for name, text in WALLS.items()}
    found: dict[str, dict[str, str]] = {}
    for row in cells[start + 2 :]:
        if row[0] not in names:
            break
        found[names[row[0]]] = dict(zip(map(str.casefold, cells[start][1:]), row[1:], strict=True))
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))
def test_the_page_says_what_a_mechanism_stops(mechanism: Mechanism) -> None:
    table = rows()
    assert set(table) == set(WALLS)
    stated = {name for name, cells in table.items() if cells[mechanism.name] != "yes"}
    found = set(open_walls(mechanism, dict(os.environ)))
    assert found - stated <= NOT_BEFORE_LINUX_6_12
    assert stated - found <= HIDDEN_BY_CONTAINERS


@pytest.fixture
def short_home() -> Iterator[Path]:
    """A home folder whose path leaves room for those of sockets, which have at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="j", dir="/tmp") as folder:
        yield Path(folder)


def test_the_command_says_what_holds_and_why_a_mechanism_does_not_work(short_home: Path) -> None:
    program = short_home / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    code, out, _ = jumpseat(short_home, "check", "sandbox", PATH=path)
    assert "bubblewrap does not work: setting up uid map: Permission denied" in out
    # The program that is installed with the server works if namespaces do.
    assert code == int(f"confined by {BEST}." not in out)
    code, out, _ = jumpseat(short_home, "check", "sandbox", "--table", PATH=path)
    printed = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines()]
    assert [row[0] for row in printed[2:]] == [*WALLS.values()]
    # What does not work here is untested.
    working = [name for name, *cells in zip(*printed, strict=True) if "untested" not in cells]
    assert [name.casefold() for name in working[1:]] == sorted(MECHANISMS)
    code, out, _ = jumpseat(short_home, "check", "sandbox", "--json")
    assert json.loads(out)["used"] == BEST
