"""Check everything that a release publishes, as it is in ``dist``: names, versions, contents, licences, changelog.

``make release-check`` builds it all first. Each check returns its problems as texts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias
from zipfile import ZipFile

import npm
from contents import PAGE, ROOT
from notice import LIBRARIES
from notice import NAME as NOTICE
from standalone import folder_name, platform_name

from jumpseat_protocol.version import __version__

sys.path.insert(0, str(ROOT / "packaging"))
from page_hook import sources_hash

Problems: TypeAlias = Iterator[str]

_FOREIGN: Final = re.compile(r"(^|/)(tests?/|node_modules/|\.git/|\.env|.*\.orig$|readline\.|_gdbm\.|_dbm\.)")
"""What must not be in our own archives. Packages of others in the folder may have such names."""


LARGEST_TEXT: Final = 1_000_000
"""The bytes of a file that is read."""


class Archive:
    """The files in an archive of any of the three kinds, by their names in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def files(self) -> Mapping[str, Callable[[], bytes]]:
        if self.path.suffix in {".whl", ".vsix", ".zip"}:
            zipped = ZipFile(self.path)
            return {name: lambda name=name: zipped.read(name) for name in zipped.namelist()}
        with tarfile.open(self.path) as tar:
            # In one pass: to go back, the archive would be unpacked from its beginning.
            read = {member.name: _content(tar, member) for member in tar if member.isfile()}
        return {name: lambda content=content: content for name, content in read.items()}

    def text(self, ending: str) -> str:
        """Return the text of the file whose name has an ending, the uppermost of several; empty if none."""
        found = sorted((name for name in self.files if name.endswith(ending)), key=lambda name: name.count("/"))
        return self.files[found[0]]().decode() if found else ""


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Return the content of a file in an archive, unless it is too large to be a text."""
    file = tar.extractfile(member) if member.size < LARGEST_TEXT else None
    return file.read() if file is not None else b""


class Release:
    """The archives of a version in a folder."""

    def __init__(self, dist: Path) -> None:
        self.dist = dist
        self.numbers = ".".join(re.findall(r"\d+", __version__)[:3])
        platform, ending = platform_name(), ".zip" if platform_name().startswith("win32") else ".tar.gz"
        self.wheel = Archive(dist / f"jumpseat-{__version__}-py3-none-any.whl")
        self.sources = Archive(dist / f"jumpseat-{__version__}.tar.gz")
        self.testkit = Archive(dist / f"jumpseat_testkit-{__version__}-py3-none-any.whl")
        self.npm_testkit = Archive(dist / f"jumpseat-testkit-{__version__}.tgz")
        self.standalone = Archive(dist / f"{folder_name()}{ending}")
        self.npm = Archive(dist / npm.archive_name())
        self.npm_platform = Archive(dist / npm.archive_name(platform))
        self.vsix = Archive(dist / f"jumpseat-{self.numbers}.vsix")
        self.vsix_platform = Archive(dist / f"jumpseat-{platform}-{self.numbers}.vsix")
        self.all = [one for one in vars(self).values() if isinstance(one, Archive)]


def names(release: Release) -> Problems:
    """All archives exist, and there are none of another version."""
    yield from (f"{one.path.name} is missing" for one in release.all if not one.path.is_file())
    kinds = {".whl", ".gz", ".tgz", ".zip", ".vsix"}
    for file in release.dist.iterdir():
        if file.suffix in kinds and f"-{__version__}" not in file.name and f"-{release.numbers}." not in file.name:
            yield f"{file.name} is of another version"


def versions(release: Release) -> Problems:
    """All archives say the same version."""
    package, platform = (
        json.loads(one.text("package/package.json")) for one in (release.npm, release.npm_platform)
    )
    said: dict[str, Any] = {
        "wheel": _field(release.wheel.text(".dist-info/METADATA")),
        "testkit": _field(release.testkit.text(".dist-info/METADATA")),
        "sources": _field(release.sources.text("/PKG-INFO")),
        "npm": package["version"],
        "npm, testkit": json.loads(release.npm_testkit.text("package/package.json"))["version"],
        "npm, platform": platform["version"],
        "npm, dependency": package["optionalDependencies"].get(platform["name"]),
        "standalone": _field(release.standalone.text(f"jumpseat-{__version__}.dist-info/METADATA")),
    }
    yield from (f"{name}: {text!r}, expected {__version__!r}" for name, text in said.items() if text != __version__)
    for one in (release.vsix, release.vsix_platform):
        if f' Version="{release.numbers}"' not in one.text("extension.vsixmanifest"):
            yield f"{one.path.name}: its manifest has another version than {release.numbers}"


def _field(metadata: str) -> str:
    found = re.search(r"^Version: (.+)$", metadata, re.MULTILINE)
    return found[1] if found else ""


def page(release: Release) -> Problems:
    """All copies of the server contain the page, built from these sources."""
    for one in (release.wheel, release.sources, release.standalone, release.npm_platform, release.vsix_platform):
        if not one.text(PAGE):
            yield f"{one.path.name}: the page is missing"
        elif one.text("network/static/SOURCES").strip() != sources_hash(ROOT):
            yield f"{one.path.name}: the page is built from other sources"


def contents(release: Release) -> Problems:
    """Our own archives contain nothing that does not belong to them, and programs can be run."""
    for one in (release.wheel, release.testkit, release.npm, release.npm_testkit, release.vsix):
        yield from (f"{one.path.name}: contains {name}" for name in one.files if _FOREIGN.search(name))
    for one, program in (
        (release.standalone, f"{folder_name()}/jumpseat"),
        (release.npm_platform, "package/jumpseat"),
        (release.npm, "package/command.js"),
    ):
        if one.path.suffix != ".zip":
            with tarfile.open(one.path) as tar:
                if not tar.getmember(program).mode & 0o100:
                    yield f"{one.path.name}: {program} is not executable"


def licenses(release: Release) -> Problems:
    """Each archive has our licence, and those of all that it contains."""
    for one in release.all:
        if not any(re.search(r"(^|/)LICENSE(\.txt)?$", name) for name in one.files):
            yield f"{one.path.name}: LICENSE is missing"
    for one in (release.wheel, release.sources, release.vsix):
        if not any(name.endswith("LICENSES.txt") for name in one.files):
            yield f"{one.path.name}: the licences of the page's packages are missing"
    for one in (release.standalone, release.npm_platform, release.vsix_platform):
        yield from (f"{one.path.name}: {problem}" for problem in _unnoticed(one))


def _unnoticed(archive: Archive) -> Problems:
    """Yield the packages and libraries in an archive that its NOTICE does not name."""
    text = archive.text(f"/{NOTICE}")
    for name in archive.files:
        package = re.search(r"site-packages/([^/]+)-([^-/]+)\.dist-info/METADATA$", name)
        if package is not None and package[1] != "jumpseat":
            title = re.escape(f"{package[1]} {package[2]}").replace("_", "[-_.]")
            if not re.search(rf"^{title}$", text, re.MULTILINE | re.IGNORECASE):
                yield f"{NOTICE} lacks {package[1]} {package[2]}"
        library = re.search(r"/python/lib/(lib[^/]+)\.so[^/]*$", name)
        if library is not None and library[1] in LIBRARIES and f"\n{name.rpartition('/')[2]}\n" not in text:
            yield f"{NOTICE} lacks {name}"
        if library is not None and library[1] not in LIBRARIES and not library[1].startswith("libpython"):
            yield f"the licence of {name} is unknown"


def changelog(_release: Release) -> Problems:
    """The newest section is that of the version, with a date and entries, and nothing is unreleased."""
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    unreleased = next((text for text in sections if text.startswith("Unreleased")), "Unreleased")
    if unreleased.partition("\n")[2].strip():
        yield "CHANGELOG.md: entries are under 'Unreleased'"
    newest = next((text for text in sections if not text.startswith("Unreleased")), "")
    title, _, body = newest.partition("\n")
    if not re.match(rf"\[?{re.escape(__version__)}\]?\W+\d{{4}}-\d\d-\d\d", title):
        yield f"CHANGELOG.md: the newest section is {title!r}, expected {__version__} and a date"
    if not re.search(r"^- ", body, re.MULTILINE):
        yield f"CHANGELOG.md: the section {title!r} has no entries"


def image(_release: Release) -> Problems:
    """The image file copies what exists, and hadolint, if it is installed, finds no fault in it."""
    file = ROOT / "packaging" / "Containerfile"
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", file.read_text(), re.MULTILINE)
    for source in (source for line in copied for source in line.split()):
        if not (ROOT / source).exists():
            yield f"{file.name}: {source} does not exist"
    beside = str(Path(sys.executable).parent)
    program = shutil.which("hadolint", path=os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]))
    if program is None:
        print("        (hadolint is not installed: the image file is checked by its parts alone)")
        return
    done = subprocess.run([program, file], capture_output=True, text=True, check=False)
    yield from done.stdout.splitlines()


CHECKS: Final[Sequence[Callable[[Release], Problems]]] = (
    names,
    versions,
    page,
    contents,
    licenses,
    changelog,
    image,
)


def main() -> int:
    """Run all checks; return 1 if one finds a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="default: dist")
    release = Release(parser.parse_args().dist)
    failed = False
    for check in CHECKS:
        try:
            problems = list(check(release))
        except (OSError, KeyError, ValueError) as error:
            problems = [f"{type(error).__name__}: {error}"]
        failed |= bool(problems)
        print(f"{'FAILED' if problems else 'ok':7} {check.__name__}: {check.__doc__}")
        print("".join(f"        {problem}\n" for problem in problems), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
