"""The package for Debian: dpkg installs it into an empty root, from which its command runs, and removes it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from jumpseat_protocol.version import __version__

DEB: Final = Path(__file__).parents[2] / "packaging" / "release" / "deb.py"
ABOUT: Final = f"python/lib/python3/site-packages/jumpseat-{__version__}.dist-info/INSTALLER"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("dpkg-deb") is None, reason="needs Linux and dpkg"
)


def run(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **env}
    )


def test_dpkg_installs_the_package_into_an_empty_root_and_removes_it(tmp_path: Path) -> None:
    sys_platform = "linux-arm64" if platform.machine() == "aarch64" else "linux-x64"
    folder = tmp_path / "dist" / f"jumpseat-{__version__}-{sys_platform}"
    (folder / ABOUT).parent.mkdir(parents=True)
    (folder / ABOUT).write_text("standalone\n")
    (folder / "NOTICE").write_text("licences\n")
    (folder / "jumpseat").write_text('#!/bin/sh\ndirname "$(readlink -f "$0")"\n')
    (folder / "jumpseat").chmod(0o755)

    def pack() -> Path:
        done = run(sys.executable, DEB, "--dist", tmp_path / "dist", SOURCE_DATE_EPOCH="1700000000")
        assert done.returncode == 0, done.stderr
        (package,) = (tmp_path / "dist").glob(f"jumpseat_{__version__}_*.deb")
        return package

    once = pack().read_bytes()
    package = pack()
    assert package.read_bytes() == once
    assert (folder / ABOUT).read_text() == "standalone\n"

    root = tmp_path / "root"
    (root / "var" / "lib" / "dpkg").mkdir(parents=True)
    (root / "var" / "lib" / "dpkg" / "status").touch()
    # The C library is not in the empty root, and dpkg need not be root there.
    options = (f"--root={root}", "--force-depends", "--force-not-root", f"--log={tmp_path / 'log'}")
    done = run("dpkg", *options, "--install", package)
    assert done.returncode == 0, done.stderr
    library = root / "usr" / "lib" / "jumpseat"
    assert run(root / "usr" / "bin" / "jumpseat").stdout == f"{library}\n"
    assert (library / ABOUT).read_text() == "deb\n"
    assert "Copyright" in (root / "usr" / "share" / "doc" / "jumpseat" / "copyright").read_text()
    assert run("dpkg", *options, "--purge", "jumpseat").returncode == 0
    assert not library.exists()
