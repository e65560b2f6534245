"""Files of sessions for clients: read only, in the folders of the sessions that the client sees.

A link may lead to another place in the folder, never out of it, also if it is created while the file is opened.
"""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from jumpseat.ahp.live.errors import NOT_FOUND, PERMISSION_DENIED, AhpError
from jumpseat.ahp.states.values import JsonObject, present
from jumpseat.system.nofollow import LinkInPathError, open_place

LARGEST_BYTES: Final = 16 << 20
"""The largest file that can be read."""
MOST_ENTRIES: Final = 10_000
"""The entries of a folder that are listed."""


def read(path: str, folders: Iterable[str], *, as_text: bool) -> JsonObject:
    """Return the content of a file; of one that is no text, in Base64.

    Raises:
        AhpError: the file is elsewhere, missing, no regular file or too large.
    """
    with os.fdopen(_opened(_placed(path, folders)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise AhpError.invalid(f"{path[:200]!r} is not a regular file")
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise AhpError.invalid(f"{path[:200]!r} has more than {LARGEST_BYTES} bytes")
    return content_of(data, path, as_text=as_text)


def content_of(data: bytes, name: str, *, as_text: bool) -> JsonObject:
    """Return some content as the result of a read."""
    found: JsonObject | None = None
    if as_text:
        try:
            found = {"data": data.decode(), "encoding": "utf-8"}
        except UnicodeDecodeError:
            found = None
    found = found or {"data": b64encode(data).decode(), "encoding": "base64"}
    return present({**found, "contentType": guess_type(name)[0]})


def list_entries(path: str, folders: Iterable[str]) -> list[JsonObject]:
    """Return the entries of a folder by name. Links are listed as such.

    Raises:
        AhpError: the folder is elsewhere, missing or no folder.
    """
    place = _placed(path, folders)
    descriptor = _opened(place)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise AhpError.invalid(f"{path[:200]!r} is not a folder")
        with os.scandir(descriptor if os.scandir in os.supports_fd else place) as entries:
            found = [(entry.name, _type_of(entry)) for entry, _ in zip(entries, range(MOST_ENTRIES), strict=False)]
    finally:
        os.close(descriptor)
    return [{"name": name, "type": kind} for name, kind in sorted(found)]


def resolve(path: str, folders: Iterable[str]) -> JsonObject:
    """Return what is known about a file or folder. Links are followed.

    Raises:
        AhpError: it is elsewhere or missing.
    """
    descriptor = _opened(_placed(path, folders))
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    is_folder = stat.S_ISDIR(status.st_mode)
    modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="milliseconds")
    return present(
        {
            "type": "directory" if is_folder else "file",
            "size": None if is_folder else status.st_size,
            "mtime": modified.replace("+00:00", "Z"),
            "contentType": None if is_folder else guess_type(path)[0],
            "etag": f"{status.st_mtime_ns:x}-{status.st_size:x}",
        }
    )


def _placed(path: str, folders: Iterable[str]) -> Path:
    """Return the place of a path, without links.

    Raises:
        AhpError: it is in none of the folders, or the path is invalid.
    """
    if "\0" in path:
        raise AhpError.invalid("a path contains a null character")
    wanted = Path(os.path.normpath(path))
    root = next((folder for folder in folders if wanted.is_relative_to(folder)), None)
    if root is not None:
        place = Path(os.path.realpath(wanted))
        if place.is_relative_to(os.path.realpath(root)):
            return place
    raise AhpError(PERMISSION_DENIED, f"{path[:200]!r} is in no folder of a session")


def _opened(place: Path) -> int:
    try:
        return open_place(place)
    except LinkInPathError:
        raise AhpError(PERMISSION_DENIED, f"{str(place)[:200]!r} is changing") from None
    except (FileNotFoundError, NotADirectoryError):
        raise AhpError(NOT_FOUND, f"{str(place)[:200]!r} does not exist") from None
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise AhpError(PERMISSION_DENIED, f"{str(place)[:200]!r}: {reason}") from None


def _type_of(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "symlink"
    return "directory" if entry.is_dir(follow_symlinks=False) else "file"
