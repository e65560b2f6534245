"""``make release-check`` on archives with faults: each check finds its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from jumpseat_protocol.version import __version__

ROOT: Final = Path(__file__).parents[2]
PLATFORM: Final = "linux-x64"
FOLDER: Final = f"jumpseat-{__version__}-{PLATFORM}"
SITE: Final = "python/lib/python3/site-packages"
MANIFEST: Final = f'<Identity Version="{__version__}"/>'
METADATA: Final = f"Version: {__version__}\n"


def write(path: Path, files: Mapping[str, str]) -> None:
    if path.suffix in {".whl", ".vsix"}:
        with ZipFile(path, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text.encode()), 0o644
            tar.addfile(info, io.BytesIO(text.encode()))


def write_archives(dist: Path) -> None:
    """Write all archives of a release, without a page, with one foreign version and without most licences."""
    server = {
        f"{SITE}/jumpseat-{__version__}.dist-info/METADATA": METADATA,
        f"{SITE}/silent_one-1.0.dist-info/METADATA": "",
        f"{SITE}/named-2.0.dist-info/METADATA": "",
        "python/lib/libreadline.so.8": "",
        "NOTICE": "\nnamed 2.0\n",
        "jumpseat": "",
    }
    about = {"version": __version__, "name": f"@jumpseat/cli-{PLATFORM}"}
    command = {"version": __version__, "optionalDependencies": {about["name"]: "0.0.1"}}
    archives: Mapping[str, Mapping[str, str]] = {
        f"jumpseat-{__version__}-py3-none-any.whl": {"j.dist-info/METADATA": METADATA, "tests/test_a.py": ""},
        f"jumpseat-{__version__}.tar.gz": {"j/PKG-INFO": METADATA, "j/LICENSE": ""},
        f"jumpseat_testkit-{__version__}-py3-none-any.whl": {"t.dist-info/METADATA": METADATA, "t/LICENSE": ""},
        f"jumpseat-testkit-{__version__}.tgz": {
            "package/package.json": json.dumps({"version": __version__}),
            "package/LICENSE": "",
        },
        f"{FOLDER}.tar.gz": {f"{FOLDER}/{name}": text for name, text in server.items()},
        f"jumpseat-cli-{__version__}.tgz": {"package/package.json": json.dumps(command), "package/command.js": ""},
        f"jumpseat-cli-{PLATFORM}-{__version__}.tgz": {
            f"package/{name}": text for name, text in (server | {"package.json": json.dumps(about)}).items()
        },
        f"jumpseat-{__version__}.vsix": {"extension.vsixmanifest": MANIFEST},
        "jumpseat-0.0.1.vsix": {},
    }
    for name, files in archives.items():
        write(dist / name, files)


def check(dist: Path) -> str:
    program = str(ROOT / "packaging" / "release" / "check.py")
    done = subprocess.run(
        [sys.executable, program, "--dist", str(dist)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the names of the archives are those of Linux")
def test_each_check_finds_its_fault(tmp_path: Path) -> None:
    write_archives(tmp_path)
    missing = check(tmp_path)
    assert f"jumpseat-{PLATFORM}-{__version__}.vsix is missing" in missing
    assert "jumpseat-0.0.1.vsix is of another version" in missing

    write(tmp_path / f"jumpseat-{PLATFORM}-{__version__}.vsix", {"extension.vsixmanifest": "<Identity/>"})
    found = check(tmp_path)
    for problem in (
        f"npm, dependency: '0.0.1', expected '{__version__}'",
        f"jumpseat-{PLATFORM}-{__version__}.vsix: its manifest has another version",
        f"{FOLDER}.tar.gz: the page is missing",
        "py3-none-any.whl: contains tests/test_a.py",
        f"{FOLDER}/jumpseat is not executable",
        "py3-none-any.whl: LICENSE is missing",
        "NOTICE lacks silent_one 1.0",
        "libreadline.so.8 is unknown",
    ):
        assert problem in found
    assert "NOTICE lacks named" not in found
    assert f"jumpseat-{__version__}.tar.gz: LICENSE" not in found
