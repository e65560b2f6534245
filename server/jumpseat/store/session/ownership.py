"""The owner of a session: the one process that has it open and writes its log.

Each session folder has a lock, a range of one byte in ``owners/locks`` of the home. The kernel keeps these locks,
so that a lock ends with its process, however the process dies. A folder's range is derived from its name, without
case and links: all names of one folder have the same lock on a disk that ignores case, too. (Not from its inode,
which another folder gets when somebody deletes this one.) ``inuse.<pid>.lock`` in the folder names the owner for
people and other programs.

Each owner listens on a named pipe, ``owners/<name>.pipe``, for requests to give a session up. Windows has no such
pipes: a session changes its owner there only when the owner closes it.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import sys
import threading
import time
import unicodedata
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from msgspec import Struct
from pydantic import ValidationError

from jumpseat.errors import InvalidRequestError, SessionInUseError, SessionNotFoundError, StoreError
from jumpseat.system.private_files import create_private_folder, owner_only
from jumpseat_protocol.lazy_models import LazyModel

log = logging.getLogger(__name__)

_RANGES: Final = 1 << 62
# The first word in the marks of jumpseat processes; other programs leave their marks empty.
_OURS: Final = "jumpseat"
# Longest message that every system writes to a pipe in one piece.
_PIPE_BYTES: Final = 512
# Filesystems that have no locks fail with these.
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})


class GiveUpRequest(LazyModel):
    """A request of the process ``pid`` to give up the session with the lock ``lock``.

    With ``force``, the owner aborts a running prompt. The request is void after ``until_s``, in Unix time.
    """

    lock: int
    pid: int
    force: bool
    until_s: float


class Owner(Struct, frozen=True):
    """The owner of a session in another process. ``pipe`` is the name of its pipe; ``None`` if it has none."""

    pid: int
    pipe: str | None


class Ownership:
    """The sessions that this process owns, of those under one home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "owners"
        self._name = uuid.uuid4().hex
        self._fd: int | None = None
        # Folders with their locks, by their paths: the hash of a Path takes longer than that of its text.
        self._held: dict[str, tuple[Path, int]] = {}
        # By lock: two folders may have the same one.
        self._folders: dict[int, list[Path]] = {}
        self._warned = False
        # Called with the name of each folder that this process begins or ceases to own.
        self.on_change: Callable[[str], None] = lambda _name: None
        # Locks belong to the process, and are also tested in worker threads.
        self._mutex = threading.Lock()

    def claim(self, folder: Path, *, is_new: bool = False) -> None:
        """Make this process the owner of the session in ``folder``. Does nothing if it already is.

        ``is_new`` tells that the caller has just made the folder.

        Raises:
            SessionInUseError: another process owns the session.
            InvalidRequestError: this process owns the session under another name.
            SessionNotFoundError: there is no such folder.
            StoreError: the lock cannot be created.
        """
        with self._mutex:
            if str(folder) in self._held:
                return
            if not is_new and not os.path.isdir(folder):
                raise SessionNotFoundError(folder.name)
            lock = _lock_of(folder.name) if is_new else _lock_of_existing(folder)
            other = self.folder_of(lock)
            if other is not None and _is_same(folder, other):
                raise InvalidRequestError(f"session {folder.name!r} is live under the name {other.name!r}")
            if other is None and not self._lock(lock):
                owner = self.owner(folder)
                raise SessionInUseError(folder.name, owner.pid if owner is not None else None)
            self._held[str(folder)] = folder, lock
            self.on_change(folder.name)
            self._folders.setdefault(lock, []).append(folder)
            self._mark(folder, is_new=is_new)

    def release(self, folder: Path) -> None:
        """Give up the ownership of a session. Does nothing if this process does not own it."""
        with self._mutex:
            self.on_change(folder.name)
            _, lock = self._held.pop(str(folder), (None, None))
            if lock is not None:
                with suppress(OSError):
                    os.unlink(self._mark_of(folder))
                self._folders[lock].remove(folder)
                if not self._folders[lock]:
                    del self._folders[lock]
                    self._unlock(lock)

    def names(self) -> list[str]:
        """Return the names of the folders that this process owns."""
        with self._mutex:
            return [folder.name for folder, _ in self._held.values()]

    def has_other_owner(self, folder: Path) -> bool:
        """Return whether another process owns the session in ``folder``."""
        with self._mutex:
            try:
                lock = _lock_of_existing(folder)
                if lock in self._folders:
                    return False
                if not self._lock(lock):
                    return True
            except (OSError, StoreError):
                return False
            self._unlock(lock)
            return False

    def close(self) -> None:
        """Give up all sessions, at the end of the process."""
        for folder, _ in list(self._held.values()):
            self.release(folder)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def folder_of(self, lock: int) -> Path | None:
        """Return the folder of an owned session; ``None`` if none has that lock."""
        return next(iter(self._folders.get(lock, ())), None)

    def owner(self, folder: Path) -> Owner | None:
        """Return the process that has marked the session in ``folder`` last; ``None`` if none has."""
        for mark, pid in marks(folder):
            words = _read_mark(mark).split()
            # Not by the id: processes of two containers may have the same.
            if words[:1] == [_OURS] and words[1:] != [self._name]:
                return Owner(pid, words[1] if len(words) > 1 else None)
        return None

    # --- requests to give a session up ----------------------------------------------------------------------------

    def ask(self, folder: Path, *, force: bool, until_s: float) -> bool:
        """Ask the owner of a session to give it up; return whether the owner will read the request."""
        owner = self.owner(folder)
        if sys.platform == "win32" or owner is None or owner.pipe is None or not owner.pipe.isalnum():
            return False
        try:
            request = GiveUpRequest(lock=_lock_of_existing(folder), pid=os.getpid(), force=force, until_s=until_s)
            # Fails unless a process has the pipe open for reading.
            fd = os.open(self._pipe_of(owner.pipe), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            os.write(fd, request.model_dump_json().encode() + b"\n")
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    async def requests(self) -> AsyncIterator[GiveUpRequest]:
        """Yield the requests to this process to give up a session. Ends at once where there are no named pipes."""
        if sys.platform == "win32":
            return
        path = self._pipe_of(self._name)
        try:
            reader, writer = _open_pipe(path)
        except OSError as error:
            log.warning("sessions cannot be handed over to other processes: %s", error.strerror or error)
            return
        self._remove_unused_pipes()
        try:
            partial = b""
            while True:
                await anyio.wait_readable(reader)
                *lines, partial = (partial + os.read(reader, 1 << 16)).split(b"\n")
                partial = partial[-_PIPE_BYTES:]
                for line in lines:
                    with suppress(ValidationError):
                        request = GiveUpRequest.model_validate_json(line)
                        if request.until_s > time.time():
                            yield request
        finally:
            with suppress(OSError):
                path.unlink()
            os.close(reader)
            os.close(writer)

    def _pipe_of(self, name: str) -> Path:
        return self._folder / f"{name}.pipe"

    def _remove_unused_pipes(self) -> None:
        """Remove the pipes of processes that were killed."""
        if sys.platform == "win32":
            return
        try:
            pipes = [self._folder / name for name in os.listdir(self._folder) if name.endswith(".pipe")]
        except OSError:
            return
        for path in pipes:
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                if error.errno == errno.ENXIO:
                    with suppress(OSError):
                        path.unlink()

    # --- locks ----------------------------------------------------------------------------------------------------

    def _lock(self, lock: int) -> bool:
        """Lock a range; return ``False`` if another process has locked it."""
        if self._fd is None:
            try:
                create_private_folder(self._folder)
                self._fd = os.open(self._folder / "locks", os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise StoreError(f"cannot create the locks of sessions: {error.strerror or error}") from error
        try:
            _lock_range(self._fd, lock)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                self._warn_once()
                return True
            return False
        return True

    def _warn_once(self) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "the home folder is on a filesystem without locks: other processes can open its sessions too"
            )

    def _unlock(self, lock: int) -> None:
        if self._fd is not None:
            with suppress(OSError):
                _unlock_range(self._fd, lock)

    # --- marks ----------------------------------------------------------------------------------------------------

    def _mark(self, folder: Path, *, is_new: bool) -> None:
        """Name this process in ``folder``, and remove the marks of jumpseat processes that were killed."""
        with suppress(OSError):
            for mark, _ in marks(folder) if not is_new else ():
                if _read_mark(mark).startswith(_OURS):
                    mark.unlink()
            fd = owner_only(self._mark_of(folder), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                os.write(fd, f"{_OURS} {self._name}\n".encode())
            finally:
                os.close(fd)

    def _mark_of(self, folder: Path) -> str:
        return f"{folder}/inuse.{os.getpid()}.lock"


def marks(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the marks in a session folder, with the ids of the processes that they name."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        prefix, _, rest = name.partition(".")
        pid, _, suffix = rest.partition(".")
        if prefix == "inuse" and suffix == "lock" and pid.isdecimal():
            yield folder / name, int(pid)


def is_marked(folder: str) -> bool:
    """Return whether any program has marked the session in ``folder`` as in use, running or not.

    Raises:
        OSError: the folder cannot be read.
    """
    return any(name.startswith("inuse.") for name in os.listdir(folder))


def marked_by_other_program(folder: Path) -> bool:
    """Return whether a running process of another program has marked the session in ``folder`` as in use.

    Only Linux tells which processes run.
    """
    return any(
        pid != os.getpid() and Path(f"/proc/{pid}").exists() and not _read_mark(mark).startswith(_OURS)
        for mark, pid in marks(folder)
    )


def _read_mark(mark: Path) -> str:
    try:
        return mark.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _lock_of_existing(folder: Path) -> int:
    # Resolving takes a call for each folder of the path, and only the last one matters.
    return _lock_of(folder.resolve().name if os.path.islink(folder) else folder.name)


def _lock_of(own: str) -> int:
    """Return the lock of the folder whose name is ``own``."""
    name = unicodedata.normalize("NFKC", own).casefold()
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) % _RANGES


def _is_same(folder: Path, other: Path) -> bool:
    try:
        return folder.samefile(other)
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock_range(fd: int, start: int) -> None:
        os.lseek(fd, start, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _unlock_range(fd: int, start: int) -> None:
        os.lseek(fd, start, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock_range(fd: int, start: int) -> None:
        # Not `flock`, which locks whole files: each live session would need an open file.
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, start)

    def _unlock_range(fd: int, start: int) -> None:
        fcntl.lockf(fd, fcntl.LOCK_UN, 1, start)

    def _open_pipe(path: Path) -> tuple[int, int]:
        """Create a named pipe, with both of its ends open: without a writer, a reader would see its end."""
        # Renamed when it is open, because a pipe without a reader counts as unused.
        draft = path.with_suffix(".tmp")
        create_private_folder(path.parent)
        os.mkfifo(draft, 0o600)
        reader = os.open(draft, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(draft, os.O_WRONLY | os.O_NONBLOCK)
        draft.rename(path)
        return reader, writer
