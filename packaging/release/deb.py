"""Pack the folder of ``make standalone`` as a package for Debian, Ubuntu and their like: ``make deb``.

The folder is ``/usr/lib/jumpseat``, the command a link in ``/usr/bin``. It needs ``dpkg-deb``, which writes the
same bytes from the same files if ``SOURCE_DATE_EPOCH`` is set.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from contents import ROOT, MissingError
from standalone import folder_name, pack_in_dist, platform_name

from jumpseat_protocol.version import __version__

ARCHITECTURES: Final = {"linux-x64": "amd64", "linux-arm64": "arm64"}

CONTROL: Final = """\
Package: jumpseat
Version: {version}
Architecture: {architecture}
Maintainer: the authors of jumpseat <noreply@localhost>
Installed-Size: {kilobytes}
Depends: libc6 (>= {libc})
Recommends: git
Section: devel
Priority: optional
Description: agent for the terminal, editors and programs, with any model
 An agent that works in your folders with the model that you choose. It asks
 before it changes or runs anything, and confines commands in a sandbox.
 .
 This package contains its own Python.
"""


def pack(dist: Path) -> Path:
    """Write the package for this platform, and return its path.

    Raises:
        MissingError: the folder is not built, or there is no dpkg-deb.
        NotMovableError: there is no standalone form for this platform.
    """
    architecture = ARCHITECTURES.get(platform_name())
    folder = dist / folder_name()
    if not (folder / "NOTICE").is_file():
        raise MissingError(f"{folder} does not exist: `make standalone` builds it")
    if architecture is None or shutil.which("dpkg-deb") is None:
        raise MissingError("packages for Debian need Linux and dpkg-deb")
    # 1.0.0rc1 is older than 1.0.0 for Debian only with a tilde.
    version = re.sub(r"(?<=\d)(?=(?:a|b|rc|\.dev)\d)", "~", __version__)
    packed = dist / f"jumpseat_{version}_{architecture}.deb"
    # Beside the folder, so that its files can be linked.
    with TemporaryDirectory(dir=dist) as staging:
        _lay_out(folder, Path(staging), version, architecture)
        command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", staging, str(packed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MissingError(done.stderr.strip())
    return packed


def _lay_out(folder: Path, staging: Path, version: str, architecture: str) -> None:
    staging.chmod(0o755)
    lib, about = staging / "usr" / "lib" / "jumpseat", staging / "usr" / "share" / "doc" / "jumpseat"
    shutil.copytree(folder, lib, symlinks=True, copy_function=os.link)
    (installer,) = lib.rglob("jumpseat-*.dist-info/INSTALLER")
    installer.unlink()
    installer.write_text("deb\n")
    (staging / "usr" / "bin").mkdir()
    (staging / "usr" / "bin" / "jumpseat").symlink_to("../lib/jumpseat/jumpseat")
    about.mkdir(parents=True)
    (about / "copyright").write_text(
        f"{(ROOT / 'LICENSE').read_text()}\nThe licences of all that is contained: /usr/lib/jumpseat/NOTICE\n"
    )
    size = sum(file.lstat().st_size for file in lib.rglob("*") if file.is_file())
    (staging / "DEBIAN").mkdir()
    (staging / "DEBIAN" / "control").write_text(
        CONTROL.format(
            version=version,
            architecture=architecture,
            kilobytes=-(-size // 1024),
            libc=platform.libc_ver()[1] or "2.28",
        )
    )


def main() -> int:
    """Build the package in ``dist``."""
    return pack_in_dist(__doc__, pack)


if __name__ == "__main__":
    sys.exit(main())
