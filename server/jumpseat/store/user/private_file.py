"""Small private files in the home folder with one JSON object each, shared by several processes.

A change reads, changes and replaces the file under a lock, so that no process undoes a change of another; readers
see the old object or the new one. A change blocks until it has the lock: do not call it in the event loop's thread.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import orjson

from jumpseat.errors import StoreError
from jumpseat.system.private_files import create_private_folder

log = logging.getLogger(__name__)

T = TypeVar("T")

LARGEST_BYTES: Final = 4 * 1024 * 1024
LOCK_TIMEOUT_S: Final = 2.0
"""How long a change waits in which no other one succeeds: each takes milliseconds, on a busy disk more."""
LOCK_LIMIT_S: Final = 30.0
"""How long a change waits in any case: the lock is given to anybody, not to those who wait the longest."""
_RETRY_S: Final = 0.002


class PrivateFile:
    """A private file (mode 0600); if it is invalid, it counts as empty and the next change renames it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Any]:
        """Read the object; empty if there is no file or it is invalid."""
        try:
            values = self._load()
        except (OSError, ValueError) as error:
            log.warning("%s is ignored: %s", self._path, error)
            return {}
        return values or {}

    def change(self, change: Callable[[dict[str, Any]], T]) -> T:
        """Call ``change`` with the object, write the object, and return the result of ``change``.

        Raises:
            StoreError: the file cannot be written, or another process holds the lock.
        """
        try:
            create_private_folder(self._path.parent)
            with self._locked():
                try:
                    values = self._load() or {}
                except ValueError as error:
                    log.warning("%s is renamed: %s", self._path, error)
                    self._path.replace(self._path.with_name(self._path.name + ".broken"))
                    values = {}
                result = change(values)
                self._write(orjson.dumps(values, option=orjson.OPT_INDENT_2) + b"\n")
        except OSError as error:
            raise StoreError(f"cannot write {self._path.name!r}: {error.strerror or error}") from error
        return result

    def reload(self) -> None:
        """Do nothing: the file is read at each use."""

    def _load(self) -> dict[str, Any] | None:
        try:
            with self._path.open("rb") as file:
                content = file.read(LARGEST_BYTES + 1)
        except FileNotFoundError:
            return None
        if len(content) > LARGEST_BYTES:
            raise ValueError(f"more than {LARGEST_BYTES} bytes")
        values = orjson.loads(content)
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
        return cast("dict[str, Any]", values)

    def _write(self, content: bytes) -> None:
        draft = self._path.parent / f".{uuid.uuid4().hex}.tmp"
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise

    def _state(self) -> tuple[int, int] | None:
        """Return what is another one after each change of the file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    @contextmanager
    def _locked(self) -> Generator[None]:
        # A separate file, because the file itself is replaced.
        lock = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            began = moved = time.monotonic()
            state = self._state()
            while True:
                try:
                    _lock(lock)
                    break
                except (BlockingIOError, PermissionError):
                    now = time.monotonic()
                    if (seen := self._state()) != state:
                        # Others change the file: it is their number that delays this one.
                        state, moved = seen, now
                    if now - moved > LOCK_TIMEOUT_S or now - began > LOCK_LIMIT_S:
                        raise StoreError(f"{self._path.name!r} is locked by another process") from None
                    time.sleep(_RETRY_S)
            yield
        finally:
            os.close(lock)


def _lock(fd: int) -> None:
    """Lock a file until it is closed.

    Raises:
        OSError: another process holds the lock.
    """
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
