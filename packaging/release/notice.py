"""Write NOTICE: the licences of everything in the folder, from the files that came with each part."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

from contents import ROOT, MissingError
from msgspec import Struct

NAME: Final = "NOTICE"
_RULE: Final = "-" * 80
_LICENSES: Final = re.compile(r"LICEN[CS]E|COPYING|NOTICE", re.IGNORECASE)

LIBRARIES: Final = {
    "libbz2": "bzip2-1.0.6",
    "libcrypto": "Apache-2.0",
    "libexpat": "MIT",
    "libffi": "MIT",
    "liblzma": "0BSD",
    "libsqlite3": "blessing",
    "libssl": "Apache-2.0",
    "libz": "Zlib",
    "libzstd": "BSD-3-Clause",
}
"""The licences of libraries that Python brings. With another one, nothing is built before somebody has read it."""

_HEAD: Final = """\
jumpseat is published under the MIT licence, whose text is in LICENSE. This folder contains works of others as well,
each under its own licence, which follows.

The sources of programs under the LGPL (bubblewrap and its library) are published by their authors at the given
addresses, and with the packages that are named here. Each such program is a file of its own, which may be replaced.
"""


class Part(Struct, frozen=True):
    """A work in the folder: its name and version, the names of its licences, its origin, and the texts."""

    name: str
    licenses: str
    origin: str
    texts: Sequence[str]


def write_notice(folder: Path, packages: Sequence[Distribution], libraries: Mapping[str, Path], site: Path) -> None:
    """Write the file into ``folder``. ``libraries`` are the origins of copied libraries by name.

    Raises:
        MissingError: the licence of a part is unknown.
    """
    parts = [
        _python(),
        *sorted((_package(package) for package in packages), key=lambda part: part.name.lower()),
        *_libraries(libraries),
    ]
    page = site / "jumpseat" / "network" / "static" / "LICENSES.txt"
    if not page.is_file():
        raise MissingError("the licences of the page are missing: `make web` collects them")
    listed = "".join(f"  {part.name}: {part.licenses}\n" for part in parts)
    sections = [f"{part.name}\n{part.origin}\n\n" + "\n\n".join(part.texts).strip() for part in parts]
    sections.append(f"The page for browsers contains these packages:\n\n{page.read_text().strip()}")
    text = f"\n\n{_RULE}\n".join([f"{_HEAD}\n{listed}", *sections])
    (folder / NAME).write_text(f"{text}\n", encoding="utf-8")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")


def _python() -> Part:
    version = sys.version.split()[0]
    short = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [
        Path(sysconfig.get_path("stdlib"), "LICENSE.txt"),
        Path(sys.base_prefix, "LICENSE.txt"),
        # Debian keeps it with the documentation.
        Path(f"/usr/share/doc/python{short}/copyright"),
    ]
    for path in found:
        if path.is_file():
            return Part(
                f"Python {version}", "PSF-2.0", "https://www.python.org", [path.read_text(errors="replace")]
            )
    raise MissingError("the licence of Python is not among its files")


def _package(package: Distribution) -> Part:
    about = package.metadata
    classified = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or [] if line.startswith("License ::")
    ]
    expression = _field(package, "License-Expression") or _field(package, "License")
    # Some have the whole text in this field.
    name = expression if 0 < len(expression) < 60 and expression != "UNKNOWN" else ", ".join(classified)
    files = [file for file in package.files or () if ".dist-info" in file.parts[0] and _LICENSES.search(file.name)]
    if not files:
        raise MissingError(f"{package.name}: its files contain no licence")
    texts = [Path(str(package.locate_file(file))).read_text("utf-8", errors="replace") for file in files]
    return Part(f"{package.name} {package.version}", name or "see below", _address(package), texts)


def _field(package: Distribution, name: str) -> str:
    return (package.metadata.get_all(name) or [""])[0]


def _address(package: Distribution) -> str:
    urls = [line.split(", ", 1) for line in package.metadata.get_all("Project-URL") or []]
    ranked = sorted(urls, key=lambda pair: (pair[0].lower() != "upstream", "source" not in pair[0].lower()))
    return ranked[0][-1] if ranked else _field(package, "Home-page")


def _libraries(libraries: Mapping[str, Path]) -> Iterator[Part]:
    """Yield the libraries of the system that were copied, without that of Python itself."""
    for name, path in sorted(libraries.items()):
        if path.is_relative_to(sys.base_prefix) and sys.base_prefix != "/usr":
            continue
        package, license_name = _system_package(path), LIBRARIES.get(name.partition(".")[0])
        text = Path(f"/usr/share/doc/{package}/copyright")
        if license_name is None or not package or not text.is_file():
            raise MissingError(f"the licence of {path} is unknown: see LIBRARIES in {Path(__file__).name}")
        origin = f"from Debian's package {package}, whose source is at https://sources.debian.org"
        yield Part(name, license_name, origin, [text.read_text("utf-8", errors="replace")])


def _system_package(path: Path) -> str:
    """Return the package of Debian that a file belongs to; empty if it is unknown."""
    program = shutil.which("dpkg")
    # The database may know the file by the name before /usr was merged.
    for name in (str(path), str(path).removeprefix("/usr")):
        if program is not None:
            done = subprocess.run([program, "-S", name], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return done.stdout.partition(":")[0]
    return ""
