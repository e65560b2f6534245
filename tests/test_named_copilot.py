"""The command by the name ``copilot``, through a link."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.forked import INSTALLED


@pytest.mark.parametrize(
    ("name", "home", "used"),
    [
        ("copilot", None, ".copilot"),
        ("copilot", "", ".copilot"),
        ("copilot", "elsewhere", "elsewhere"),
        ("jumpseat", None, ".jumpseat"),
        ("my-copilot", None, ".jumpseat"),
    ],
)
def test_the_name_chooses_the_home_folder_unless_the_variable_does(
    tmp_path: Path, name: str, home: str | None, used: str
) -> None:
    link = tmp_path / name
    link.symlink_to(INSTALLED)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    if home is not None:
        environ["COPILOT_HOME"] = home and str(tmp_path / home)
    subprocess.run([link, "token", "add", "ada"], env=environ, cwd=tmp_path, check=True, capture_output=True)

    assert {path.name for path in tmp_path.iterdir()} == {name, used}
    assert any((tmp_path / used).iterdir())
