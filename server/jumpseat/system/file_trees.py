"""Check, walk and delete folders; of any depth, because commands can nest them deeper than Python's stack.

``os.walk`` (before Python 3.12) and ``shutil.rmtree`` call themselves for each level.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from jumpseat.errors import InvalidRequestError


def walk(folder: Path | str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the paths of ``folder`` and of all folders below, each with the names of its folders and other entries.

    Links are not followed, and are among the other entries. Folders that cannot be read are left out.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        path = waiting.pop()
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError:
            continue
        yield path, folders, others
        waiting += [os.path.join(path, name) for name in folders]


def states_of(folders: Iterable[Path], skipped: str, limit: int) -> list[tuple[str, tuple[int, ...]]] | None:
    """Return the paths below ``folders``, with numbers that change when the file does; sorted.

    What is below folders with the name ``skipped`` is left out. Returns ``None`` if there are more than ``limit``
    files, or if some cannot be looked at.
    """
    found: list[tuple[str, tuple[int, ...]]] = []
    for folder in set(folders):
        for path, below, names in walk(folder):
            if skipped in below:
                below.remove(skipped)
            for name in names:
                try:
                    status = os.lstat(f"{path}/{name}")
                except OSError:
                    return None
                # Any program can set the other times as it likes.
                state = status.st_ino, status.st_size, status.st_mode, status.st_ctime_ns
                found.append((f"{path}/{name}", state))
                if len(found) > limit:
                    return None
    return sorted(found)


def delete_folder(folder: Path) -> None:
    """Delete a folder with its contents, as far as possible."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        with suppress(OSError):
            # Not looked up in PATH, which may name a folder that commands can write to.
            path = {"PATH": os.defpath}
            subprocess.run(["rm", "-rf", "--", str(folder)], check=False, env=path, stderr=subprocess.DEVNULL)


def existing_folder(member: str, path: str) -> Path:
    """Return the folder ``path`` as an absolute path; ``member`` is its name in the request.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    folder = Path(path)
    # Unlike Path.is_dir, this raises for no path: a name may be too long, or a parent folder closed.
    if not os.path.isdir(folder):
        raise InvalidRequestError(f"{member} {path!r} is not a directory")
    return folder.absolute()
