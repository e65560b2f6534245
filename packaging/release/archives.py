"""Write archives: the same bytes from the same files, whose times and owners are left out."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

LEVEL: Final = 6


def pack_tar(archive: Path, contents: Mapping[str, Path | bytes]) -> None:
    """Write a ``.tar.gz`` with files, folders and texts by their names in the archive."""
    time = _time()
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", LEVEL, raw, mtime=time) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content, executable in _members(contents):
            info = tarfile.TarInfo(name)
            info.mtime, info.mode = time, 0o755 if executable else 0o644
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.size = content.stat().st_size
                with content.open("rb") as file:
                    tar.addfile(info, file)


def pack_zip(archive: Path, contents: Mapping[str, Path | bytes]) -> None:
    """Write the same as a ``.zip``, in which programs stay executable."""
    with ZipFile(archive, "w", ZIP_DEFLATED, compresslevel=LEVEL) as packed:
        for name, content, executable in _members(contents):
            info = ZipInfo(name, (1980, 1, 1, 12, 0, 0))
            info.compress_type = ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (0o100755 if executable else 0o100644) << 16
            packed.writestr(info, content if isinstance(content, bytes) else content.read_bytes())


def _members(contents: Mapping[str, Path | bytes]) -> Iterator[tuple[str, Path | bytes, bool]]:
    """Yield names, contents, and whether the files are executable; names of files have precedence over folders."""
    found: dict[str, Path | bytes] = {}
    for name, content in contents.items():
        if isinstance(content, bytes) or content.is_file():
            continue
        found |= {
            f"{name}/{file.relative_to(content).as_posix()}": file for file in content.rglob("*") if file.is_file()
        }
    found |= {name: one for name, one in contents.items() if isinstance(one, bytes) or one.is_file()}
    for name, content in sorted(found.items()):
        yield name, content, isinstance(content, Path) and os.access(content, os.X_OK)


def _time() -> int:
    """Return the time of all files, in seconds: that of the commit, if the caller knows it."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "315576000"))
