"""The small files of a session in a virtual file system: held in memory, and stored by the client soon after.

Changes are sent one after the other, in their order. A change that fails is tried again, after longer and longer
times, and the ones behind it wait: what the client has stored is always a state that the session was in. An append
whose answer was lost is checked before it is repeated, so that no event is stored twice.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal

import anyio
import anyio.from_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.errors import StoreError
from jumpseat.store.session.waiters import Waiters
from jumpseat.store.session_fs.file_system import FileSystem

log = logging.getLogger(__name__)

GATHER_S: Final = 0.1
"""Time for which appended events are gathered, so that one request stores several."""
WAITS_S: Final = (0.1, 1.0, 2.0, 4.0, 8.0)
"""Times before a failed change is tried again; the last one is used from then on."""


class _Change(Struct):
    """A change that is not stored yet. ``is_tried`` means that it may have been stored without an answer."""

    number: int
    kind: Literal["write", "append", "remove", "new"]
    name: str
    data: bytes = b""
    is_tried: bool = False

    def can_take(self, name: str) -> bool:
        """Return whether more data can be appended to the file with this change."""
        return self.kind == "append" and self.name == name and not self.is_tried


class ClientFiles:
    """Implements :class:`jumpseat.store.session.state_files.StateFiles`.

    ``on_failure`` is called with the reason when a change fails, and again fails at once.
    """

    def __init__(self, file_system: FileSystem, tasks: TaskGroup) -> None:
        self._fs = file_system
        self._tasks = tasks
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._content: dict[str, bytes | bytearray] = {}
        # How much of the appended files is known to be stored, in bytes.
        self._stored: dict[str, int] = {}
        self._folders: set[str] = set()
        self._changes: deque[_Change] = deque()
        self._added = 0
        self._waiters = Waiters()
        self._hurry = anyio.Event()
        self._running = False
        self._sent: _Change | None = None
        self._ended = False
        self._failure: StoreError | None = None
        self.on_failure: Callable[[str], None] | None = None

    async def load(self, names: Sequence[str], folder: str) -> None:
        """Read the files with these names, and all files in ``folder``.

        Raises:
            StoreError: the client fails.
        """
        found = await self._fs.entries(self.path(folder))
        in_folder = [f"{folder}/{entry.name}" for entry in found if entry.type == "file"]
        for name in (*names, *in_folder):
            await self.refresh(name)

    # --- what the server sees -----------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        return self._fs.provider.path(name)

    def read(self, name: str) -> bytes | None:
        with self._lock:
            content = self._content.get(name)
            return None if content is None else bytes(content)

    def names(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        with self._lock:
            return sorted(name.removeprefix(prefix) for name in self._content if name.startswith(prefix))

    def write(self, name: str, data: bytes) -> None:
        with self._lock:
            self._content[name] = data
            # An older content that is not being sent yet is not needed any more.
            for change in [change for change in self._changes if change.name == name]:
                if change is not self._sent:
                    self._changes.remove(change)
        self._add("write", name, data)

    def write_new(self, name: str, data: bytes) -> None:
        """Write a file that is not read again here, and so is not held in memory once it is stored."""
        self._add("new", name, data)

    def append(self, name: str, data: bytes) -> int:
        with self._lock:
            content = self._content.get(name)
            if not isinstance(content, bytearray):
                content = self._content[name] = bytearray(content or b"")
            content += data
            size = len(content)
            last = self._changes[-1] if self._changes else None
            if last is not None and last.can_take(name) and last is not self._sent:
                last.data += data
                return size
        self._add("append", name, data)
        return size

    def remove(self, name: str) -> bool:
        with self._lock:
            existed = self._content.pop(name, None) is not None
        if existed:
            self._add("remove", name, b"")
        return existed

    async def refresh(self, name: str) -> None:
        if any(change.name == name for change in self._changes):
            return
        content = await self._fs.read(self.path(name))
        if any(change.name == name for change in self._changes):
            return
        if content is None:
            self._content.pop(name, None)
            self._stored.pop(name, None)
        else:
            self._content[name] = content.encode("utf-8", "surrogatepass")
            self._stored[name] = len(self._content[name])

    # --- storing ------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        if not self._changes:
            return
        if self._ended:
            raise StoreError("the session is closed")
        self._start()
        self._hurry.set()
        await self._waiters.wait(self._added)

    def retry(self) -> None:
        """Try a failed change again now, because the client may have come back."""
        self._hurry.set()

    def end(self) -> None:
        """Send no more changes."""
        self._ended = True
        self._hurry.set()
        self._wake(StoreError("the session is closed"))

    @property
    def unsaved(self) -> int:
        """The number of changes that are not stored."""
        return len(self._changes)

    def _add(self, kind: Literal["write", "append", "remove", "new"], name: str, data: bytes) -> None:
        with self._lock:
            self._added += 1
            self._changes.append(_Change(self._added, kind, name, data))
        if threading.get_ident() == self._thread:
            self._start()
        else:
            anyio.from_thread.run_sync(self._start)

    def _start(self) -> None:
        if not self._running and not self._ended:
            self._running = True
            self._hurry = anyio.Event()
            self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        attempt = 0
        try:
            if self._changes[0].kind == "append":
                await self._pause(GATHER_S)
            while self._changes and not self._ended:
                change = self._sent = self._changes[0]
                try:
                    await self._store(change)
                except StoreError as error:
                    change.is_tried, self._sent = True, None
                    # A single failure is none that anybody has to know of.
                    if attempt:
                        self._fail(error)
                    await self._pause(WAITS_S[min(attempt, len(WAITS_S) - 1)])
                    attempt += 1
                    continue
                attempt, self._failure = 0, None
                with self._lock:
                    self._changes.remove(change)
                    self._sent = None
                self._wake(None)
        finally:
            self._running, self._sent = False, None
            if self._changes:
                self._wake(self._failure or StoreError("the server is ending"))

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._hurry.wait()
        self._hurry = anyio.Event()

    def _fail(self, error: StoreError) -> None:
        first, self._failure = self._failure is None, error
        if first:
            log.warning("session %s: cannot be stored by its client: %s", self._fs.session_id, error)
            if self.on_failure is not None:
                self.on_failure(f"The session cannot be stored at the moment: {error}")
        self._wake(error)

    def _wake(self, error: StoreError | None) -> None:
        stored = self._changes[0].number - 1 if self._changes else self._added
        self._waiters.wake(stored, error)

    async def _store(self, change: _Change) -> None:
        path = self.path(change.name)
        match change.kind:
            case "append":
                await self._append(change, path)
            case "remove":
                await self._fs.remove(path, force=True)
                self._stored.pop(change.name, None)
            case "new":
                await self._create_folder(path)
                await self._fs.write(path, _text(change.data))
            case "write":
                await self._create_folder(path)
                # A client that is killed leaves the old content or the new one.
                draft = f"{path}.tmp"
                await self._fs.write(draft, _text(change.data))
                await self._fs.rename(draft, path)
                self._stored[change.name] = len(change.data)

    async def _append(self, change: _Change, path: str) -> None:
        data, before = change.data, self._stored.get(change.name, 0)
        await self._create_folder(path)
        if change.is_tried:
            state = await self._fs.stat(path)
            size = state.size if state is not None else 0
            if size == before + len(data):
                self._stored[change.name] = size
                return
            if size != before:
                await self._rewrite(change, path)
                return
        change.is_tried = True
        # What is appended meanwhile is the next change.
        await self._fs.append(path, _text(data))
        self._stored[change.name] = before + len(data)

    async def _rewrite(self, change: _Change, path: str) -> None:
        """Store the whole of a file again, of which the client has stored an unknown part."""
        with self._lock:
            content = bytes(self._content.get(change.name, b""))
            later = [other for other in self._changes if other is not change and other.name == change.name]
            for other in later:
                self._changes.remove(other)
        change.data = content
        await self._fs.write(f"{path}.tmp", _text(content))
        await self._fs.rename(f"{path}.tmp", path)
        self._stored[change.name] = len(content)

    async def _create_folder(self, path: str) -> None:
        folder = (
            path.replace("\\", "/").rpartition("/")[0] if self._fs.provider.windows else path.rpartition("/")[0]
        )
        if folder not in self._folders:
            await self._fs.create_folder(folder or "/")
            self._folders.add(folder)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
