"""Build the packages for npm from the folder of ``make standalone``.

The package of a platform contains the folder. The package ``@jumpseat/cli`` has the command and the function that
finds the executable; it depends on the packages of all platforms in ``dist``, of which npm installs the right one.
They are in a scope, because the names of all platforms then have one owner.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from archives import pack_tar
from contents import ROOT, MissingError
from interpreter import NotMovableError
from standalone import folder_name, platform_name

from jumpseat_protocol.version import __version__

NAME: Final = "@jumpseat/cli"
SOURCES: Final = ROOT / "packaging" / "npm"
_ARCHIVE: Final = "jumpseat-cli"

_COMMON: Final[Mapping[str, Any]] = {
    "version": __version__,
    "license": "MIT",
    "engines": {"node": ">=20"},
}


def archive_name(platform: str = "") -> str:
    """Return the name of the archive of a platform's package, or of the one with the command."""
    return f"{_ARCHIVE}-{platform}-{__version__}.tgz" if platform else f"{_ARCHIVE}-{__version__}.tgz"


def platforms(dist: Path) -> list[str]:
    """Return the platforms whose packages are in a folder."""
    pattern = re.compile(rf"{_ARCHIVE}-([a-z0-9]+-[a-z0-9]+)-{re.escape(__version__)}\.tgz")
    found = (pattern.fullmatch(file.name) for file in dist.iterdir())
    return sorted(match[1] for match in found if match is not None)


def pack_platform(dist: Path) -> Path:
    """Write the package of this platform, and return its path.

    Raises:
        MissingError: the folder is not built.
        NotMovableError: there is no standalone form for this platform.
    """
    folder, platform = dist / folder_name(), platform_name()
    if not (folder / "NOTICE").is_file():
        raise MissingError(f"{folder} does not exist: `make standalone` builds it")
    system, processor = platform.split("-")
    about: dict[str, Any] = {
        "name": f"{NAME}-{platform}",
        "description": f"jumpseat for {platform}: the executable, used by {NAME}",
        **_COMMON,
        "os": [system],
        "cpu": [processor],
    }
    if system == "linux":
        about["libc"] = ["glibc"]
    (installer,) = folder.rglob("jumpseat-*.dist-info/INSTALLER")
    contents: dict[str, Path | bytes] = {
        "package": folder,
        "package/package.json": _json(about),
        f"package/{installer.relative_to(folder).as_posix()}": b"npm\n",
    }
    pack_tar(dist / archive_name(platform), contents)
    return dist / archive_name(platform)


def pack_command(dist: Path) -> Path:
    """Write the package with the command, for all platforms whose packages are in ``dist``; return its path."""
    about = {
        "name": NAME,
        "description": "The open agent server behind the Copilot SDK protocol",
        **_COMMON,
        "main": "index.js",
        "types": "index.d.ts",
        "bin": {"jumpseat": "command.js"},
        "optionalDependencies": {f"{NAME}-{platform}": __version__ for platform in platforms(dist)},
    }
    contents: dict[str, Path | bytes] = {
        "package": SOURCES,
        "package/package.json": _json(about),
        "package/LICENSE": ROOT / "LICENSE",
    }
    pack_tar(dist / archive_name(), contents)
    return dist / archive_name()


def _json(value: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(value, indent=2)}\n".encode()


def main() -> int:
    """Build both packages in ``dist``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument(
        "--only-command", action="store_true", help="build the package with the command, for the others in dist"
    )
    arguments = parser.parse_args()
    if not re.fullmatch(r"\d+\.\d+\.\d+", __version__):
        print(f"error: npm has no version {__version__!r}", file=sys.stderr)
        return 1
    try:
        built = [] if arguments.only_command else [pack_platform(arguments.dist)]
        built.append(pack_command(arguments.dist))
    except (MissingError, NotMovableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for archive in built:
        print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
