"""The wheel: the same bytes from the same sources, and nothing but the product in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parent.parent
PACKAGES = {
    *("jumpseat", "jumpseat_client", "jumpseat_mcp_server", "jumpseat_protocol", "jumpseat_terminal"),
    *("jumpseat_testkit", "jumpseat_transcript"),
}

BUILD = """
import os, sys
import hatchling.build
os.umask(int(sys.argv[2], 8))
print(hatchling.build.build_wheel(sys.argv[1]))
"""


def build_wheel(checkout: Path, *, umask: str, mode: int) -> Path:
    """Build the wheel from a copy of the sources, whose files are as new as the copy and have ``mode``."""
    (checkout / "packaging").mkdir()
    for part in ("pyproject.toml", "LICENSE", "README.md", "packaging/page_hook.py"):
        shutil.copyfile(ROOT / part, checkout / part)
    for part in ("server", "protocol", "clients/python", "testkit"):
        shutil.copytree(
            ROOT / part,
            checkout / part,
            copy_function=shutil.copyfile,
            ignore=shutil.ignore_patterns("__pycache__", "node_modules", "static"),
        )
    for file in checkout.rglob("*.py"):
        file.chmod(mode)
    environ = {"SOURCE_DATE_EPOCH": "1700000000", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", BUILD, str(checkout), umask]
    built = subprocess.run(command, cwd=checkout, env=environ, capture_output=True, text=True, check=True)
    return checkout / built.stdout.split()[-1]


def test_two_builds_of_the_same_sources_give_the_same_wheel(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "another place").mkdir()
    first = build_wheel(tmp_path / "one", umask="077", mode=0o600)
    second = build_wheel(tmp_path / "another place", umask="002", mode=0o664)

    assert first.read_bytes() == second.read_bytes()

    with ZipFile(first) as wheel:
        folders = {name.split("/")[0] for name in wheel.namelist()}
        names = {Path(name).name for name in wheel.namelist()}
    (metadata,) = folders - PACKAGES
    assert metadata.endswith(".dist-info")
    assert "LICENSE" in names
    assert not [name for name in names if name.startswith("test_") or name.endswith(".pyc")]
