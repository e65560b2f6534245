"""Count the everyday follow-ups of approved commands that run without a second question.

    follow_ups.py [--all] [LIST...]

Each pair in ``follow_ups/LIST.txt`` is a command that was approved for the session, and a command like it that
a model runs next. Both are judged as in the default mode with bubblewrap; nothing runs. A pair after ``! `` is a
control: its second command goes further than the first, and must ask. Prints the follow-ups that ask again and the
controls that do not, or all of them. The exit code is 1 if fewer than nine tenths run unasked, or a control does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

import anyio

from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.tools.shell.sandbox_needs import place, shell_permission
from jumpseat_protocol.permissions import PermissionDecision, ShellPermission

LEAST: Final = 0.9

FOLDERS: Final = (
    "src",
    "tests",
    "docs",
    "build",
    "cmd",
    "internal",
    "app",
    "lib",
    "target",
    "node_modules/.bin",
    ".git",
)
FILES: Final = (
    "src/main.py", "src/app.ts", "src/lib.rs", "tests/test_app.py", "README.md", "package.json", "pyproject.toml",
    "Cargo.toml", "go.mod", "main.go", "pom.xml", "Makefile", "Dockerfile", "a.txt", "b.txt", "data.json", "run.sh",
)  # fmt: skip

LISTS: Final = Path(__file__).with_name("follow_ups")


def pairs(name: str) -> list[tuple[str, str]]:
    """Return the commands of a list with their follow-ups; in a line, `` > `` comes last between them."""
    lines = (line for line in (LISTS / f"{name}.txt").read_text().splitlines() if not line.startswith("#"))
    return [(first, next_) for first, _, next_ in (line.rpartition(" > ") for line in lines)]


async def asks_again(folder: Path, first: str, follow_up: str) -> bool:
    """Return whether somebody is asked about ``follow_up`` after an approval of ``first`` for the session."""
    scope = PathScope(lambda: folder)
    permissions = Permissions(lambda _: None, lambda: False, lambda _: False, scope)
    request = _request(first)
    facts = gather_facts(request, "bash", scope)
    await permissions.approvals.keep(PermissionDecision(kind="approve-for-session"), request, facts)
    return (await permissions.decide(_request(follow_up), "bash")).status != "allowed"


def _request(line: str) -> ShellPermission:
    return shell_permission(line, line, place(line, confines=True, may_leave=True))


def make_project(folder: Path) -> Path:
    for below in FOLDERS:
        (folder / below).mkdir(parents=True)
    for file in FILES:
        (folder / file).touch()
    return folder.resolve()


async def count(name: str, *, show_all: bool) -> bool:
    found: list[tuple[bool, bool]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = make_project(Path(temporary))
        for line, next_ in pairs(name):
            first, control = line.removeprefix("! "), line.startswith("! ")
            asks = await asks_again(folder, first, next_)
            found.append((control, asks))
            if show_all or asks is not control:
                print(f"{'asks' if asks else 'runs'}  {'! ' if control else ''}{first}  →  {next_}")
    asked = [asks for control, asks in found if not control]
    controls = [asks for control, asks in found if control]
    good = asked.count(False)
    print(f"{name}: {good} of {len(asked)} run without a second question", end="")
    print(f", {controls.count(False)} of {len(controls)} controls" if controls else "")
    return good >= LEAST * len(asked) and all(controls)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("lists", nargs="*", default=sorted(path.stem for path in LISTS.glob("*.txt")))
    options = parser.parse_args()
    good = [anyio.run(lambda name=name: count(name, show_all=options.all)) for name in options.lists]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
