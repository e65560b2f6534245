"""Pack the extension for VS Code together with the folder of ``make standalone``, for this platform.

The extension of ``make vsix`` contains no server and runs on all platforms. This one has the folder as ``server``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import ZipFile

from archives import pack_zip
from contents import MissingError
from standalone import folder_name, pack_in_dist, platform_name

from jumpseat_protocol.version import __version__

MANIFEST: Final = "extension.vsixmanifest"
TYPES: Final = "[Content_Types].xml"
SERVER: Final = "extension/server"


def pack_extension(dist: Path) -> Path:
    """Write the extension for this platform, and return its path.

    Raises:
        MissingError: the extension or the folder is not built.
        NotMovableError: there is no standalone form for this platform.
    """
    platform = platform_name()
    folder = dist / folder_name()
    numbers = ".".join(re.findall(r"\d+", __version__)[:3])
    plain = dist / f"jumpseat-{numbers}.vsix"
    if not (folder / "NOTICE").is_file() or not plain.is_file():
        raise MissingError(f"{folder} or {plain} does not exist: `make vsix-standalone` builds them")
    contents: dict[str, Path | bytes] = {SERVER: folder}
    with ZipFile(plain) as archive:
        contents |= {name: archive.read(name) for name in archive.namelist()}
    (installer,) = folder.rglob("jumpseat-*.dist-info/INSTALLER")
    contents[f"{SERVER}/{installer.relative_to(folder).as_posix()}"] = b"vsix\n"
    contents[MANIFEST] = _replaced(contents[MANIFEST], b"<Identity ", f'<Identity TargetPlatform="{platform}" ')
    contents[TYPES] = _replaced(contents[TYPES], b"</Types>", f"{_types(contents[TYPES], folder)}</Types>")
    packed = dist / f"jumpseat-{platform}-{numbers}.vsix"
    pack_zip(packed, contents)
    return packed


def _replaced(content: Path | bytes, old: bytes, new: str) -> bytes:
    assert isinstance(content, bytes)
    assert content.count(old) == 1
    return content.replace(old, new.encode())


def _types(known: Path | bytes, folder: Path) -> str:
    """Return the declarations of the endings that the extension alone does not have."""
    assert isinstance(known, bytes)
    endings = {PurePosixPath(file.name).suffix for file in folder.rglob("*")} - {""}
    new = sorted(ending for ending in endings if f'"{ending}"'.encode() not in known)
    return "".join(f'<Default Extension="{ending}" ContentType="application/octet-stream"/>' for ending in new)


def main() -> int:
    """Build the extension in ``dist``."""
    return pack_in_dist(__doc__, pack_extension)


if __name__ == "__main__":
    sys.exit(main())
