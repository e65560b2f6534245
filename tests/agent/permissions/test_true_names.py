"""A host's deny rule for a program holds under other names of it, and for lines that hide their programs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.agent.settings import HostPolicy
from jumpseat_protocol.sessions import ManagedPermissions, ManagedSettings
from tests.agent.permissions.test_hostile_calls import shell
from tests.agent.permissions.ways_to_programs import ways, work

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs the programs of Unix")

OLD = {
    "run": "#!/bin/sh\nset -e\ncd x && exec node x.js\n",
    "clean.sh": "rm -rf dist\n",
    "script.py": "print(1)\n",
    "x.js": "",
    "f": "",
}
"""Files from before the session: what they start is theirs."""

NEW = {
    "shebang": "#!/bin/rm\n",
    "script": "echo\nr''m f\n",
    "literal.py": "import os\nos.system('rm f')\n",
    "tests.sh": "#!/usr/bin/env bash\nset -euo pipefail\nnpm test -- --run && echo $((1 + 1))\n",
    "tests.py": "import subprocess\nsubprocess.run(['npm', 'test'])\n",
}
"""Files that the session has written."""

Refusal = Callable[[str], str]


def permissions_with(folder: Path, since: float, *deny: str) -> Permissions:
    settings = ManagedSettings(permissions=ManagedPermissions(deny=list(deny)))
    policy = HostPolicy(settings=settings, root=str(folder), cwd=str(folder), client="host")
    scope = PathScope(lambda: folder)
    return Permissions(
        lambda _: None, lambda: True, lambda _: False, scope, host_policies=lambda: [policy], since=since
    )


def refusal_by(permissions: Permissions) -> Refusal:
    def refusal(line: str) -> str:
        verdict = permissions.denial_by_rule(gather_facts(shell(line), "bash", permissions.path_scope))
        return "" if verdict is None else verdict.message

    return refusal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = shutil.which("rm")
    assert program is not None
    shutil.copy(program, tmp_path / "copy")
    os.link(tmp_path / "copy", tmp_path / "hard")
    (tmp_path / "link").symlink_to(program)
    shutil.copy(shutil.which("cat") or program, tmp_path / "tool")
    write(tmp_path, OLD)
    (tmp_path / "sub").mkdir()
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


@pytest.fixture
def refusal(folder: Path) -> Refusal:
    # The clocks of files and of processes differ by some milliseconds.
    since = (folder / "sub").stat().st_ctime + 0.001
    marker = folder / "marker"
    while not marker.exists() or marker.stat().st_ctime <= since:
        marker.unlink(missing_ok=True)
        marker.touch()
    write(folder, NEW)
    (folder / "changed").write_bytes((folder / "copy").read_bytes() + b"x")
    (folder / "changed").chmod(0o755)
    return refusal_by(permissions_with(folder, since, "Shell(rm)"))


@pytest.mark.thorough
def test_a_forbidden_program_is_refused_in_each_way_to_start_it(refusal: Refusal) -> None:
    assert [line for line in dict.fromkeys(ways()) if not refusal(line)] == []


@pytest.mark.thorough
def test_everyday_lines_are_not_refused(refusal: Refusal) -> None:
    lines = [*work(), "./tests.sh", "bash tests.sh", "python3 tests.py", "./tool f"]
    assert [(line, why) for line in lines if (why := refusal(line))] == []
