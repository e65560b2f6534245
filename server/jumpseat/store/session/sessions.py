"""Sessions on disk: one folder per session under ``session-state``.

``events.jsonl`` is the source of truth; ``workspace.yaml`` holds what lists show, so that listing sessions reads no
logs. Other programs may read both at any time, even while a session is live. Neither holds secrets.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio.lowlevel
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup

from jumpseat.agent.clock import iso_time
from jumpseat.errors import InvalidRequestError, SessionNotFoundError, StoreError
from jumpseat.store.session.daily_usage import Days, UsageOfSessions, day_before, days_of, sum_days
from jumpseat.store.session.database import SessionDatabase
from jumpseat.store.session.event_log import FileEventLog, LogSyncer, read_log
from jumpseat.store.session.files import WorkspaceFiles
from jumpseat.store.session.index import SessionIndex, join
from jumpseat.store.session.ownership import Ownership, marked_by_other_program
from jumpseat.store.session.state_files import DiskFiles
from jumpseat.store.session.storage import WORKSPACE, SessionStorage
from jumpseat.store.session.table import Entry
from jumpseat.store.session.workspace import Workspace, parse_workspace
from jumpseat.system.file_trees import delete_folder, walk
from jumpseat.system.private_files import create_private_folder, owner_only, restrict_contents, write_new_file
from jumpseat_protocol.sessions import SessionContext, SessionMetadata

if TYPE_CHECKING:
    from jumpseat.store.session.model_calls import ModelCallFile
    from jumpseat.store.session.pruning import Pruned

SESSIONS: Final = "session-state"
"""The folder of all sessions in a home folder."""
SUMMARY_LENGTH: Final = 100
# How much of a log is searched for a first prompt or answer, if the folder does not tell.
SCAN_BYTES: Final = 1 << 18
_WORD: Final = re.compile(r"\S+")
_PROMPT: Final = b'"type":"user.message"'
_ANSWER: Final = b'"type":"assistant.message"'
_COMMAND: Final = '\n\n<user_command line="'
_COMMAND_END: Final = "</user_command>"


class SessionFolder(SessionStorage):
    """A session whose files lie in a folder of the disk."""

    def __init__(self, path: Path, syncer: LogSyncer, ownership: Ownership) -> None:
        super().__init__(path.name, DiskFiles(path))
        self.path = path
        self._own_folders = (path / "temp", path / "files")
        self._ownership = ownership
        self._log = FileEventLog(f"{path}/events.jsonl", syncer, self.note_time)

    @property
    def own_folders(self) -> tuple[Path, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._own_folders

    @property
    def shown_path(self) -> str:
        return str(self.path)

    @property
    def log(self) -> FileEventLog:
        return self._log

    @property
    def database(self) -> SessionDatabase:
        return SessionDatabase(self.path / "session.db")

    @property
    def files(self) -> WorkspaceFiles:
        return WorkspaceFiles(self.path / "files")

    @property
    def model_calls(self) -> ModelCallFile:
        # Imported here: lists need no model calls.
        from jumpseat.store.session.model_calls import ModelCallFile

        return ModelCallFile(self.path, self.state)

    def save_output(self, name: str, data: bytes, folder: str | None) -> str:
        path = (Path(folder) if folder is not None else self.path / "temp") / name
        write_new_file(path, data)
        return str(path)

    def create(self, workspace: Workspace, *, is_new: bool = True) -> None:
        try:
            made = create_private_folder(self.path)
            self._ownership.claim(self.path, is_new=made)
            if is_new and not made and self.log.exists():
                raise InvalidRequestError(f"session {self.session_id!r} already exists")
            self.write_workspace(workspace)
        except OSError as error:
            raise StoreError(f"cannot create the session folder: {error.strerror or error}") from error

    async def close(self, *, keep: bool) -> None:
        if keep:
            self.discard()
        else:
            self.log.close()
            self.remove()

    def discard(self) -> None:
        self.log.end()
        self.release()

    async def delete(self) -> None:
        # A closed session has no owner: another process may claim it first.
        if self.path.exists():
            self.claim()
        self.remove()

    def metadata(self) -> SessionMetadata | None:
        """Return the metadata that lists show; ``None`` if the folder is no session or was never prompted."""
        changed_s = self.log.changed_s()
        if changed_s is None:
            return None
        workspace = self.read_workspace()
        listed = self.listed(workspace, changed_s) if workspace is not None else None
        return None if listed is None else SessionMetadata.model_validate(listed)

    def listed(self, workspace: Workspace, changed_s: float) -> dict[str, Any] | None:
        """Return the entry of lists on the wire; ``None`` for a session that was never prompted."""
        return _listed(workspace, f"{self.path}/events.jsonl", changed_s)

    def claim(self) -> None:
        self._ownership.claim(self.path)

    def release(self) -> None:
        self._ownership.release(self.path)

    def in_use(self) -> bool:
        return self._ownership.has_other_owner(self.path) or marked_by_other_program(self.path)

    def size_bytes(self) -> int:
        """Return the size of all files, without following links."""
        size = 0
        for folder, _, files in walk(self.path):
            for name in files:
                # Files may be removed meanwhile.
                with suppress(OSError):
                    size += os.lstat(os.path.join(folder, name)).st_size
        return size

    def remove(self) -> None:
        """Remove the folder, as far as possible, then give up the ownership."""
        delete_folder(self.path)
        self.release()


class SessionStore:
    """All sessions under one home."""

    def __init__(self, home: Path, tasks: TaskGroup) -> None:
        self.ownership = Ownership(home)
        self._root = home / SESSIONS
        self._files = DiskFiles(self._root)
        self._syncer = LogSyncer(tasks)
        self._sees: Callable[[str | None], bool] | None = None
        self._index = SessionIndex(self._root, self._examine, _is_name)
        self._usage = UsageOfSessions(self._root, WORKSPACE)
        self._summing = anyio.Lock()
        self.ownership.on_change = self._index.touch

    def seen_by(self, sees: Callable[[str | None], bool]) -> SessionStore:
        """Return a view in which only those sessions exist for whose ``created_by`` ``sees`` is true."""
        view = copy(self)
        view._sees = sees
        return view

    def folder(self, session_id: str) -> SessionFolder:
        """Return the folder of a session, existing or not.

        Raises:
            SessionNotFoundError: the id is not a valid name of a folder.
        """
        return SessionFolder(session_path(self._root, session_id), self._syncer, self.ownership)

    def get_existing(self, session_id: str) -> SessionFolder:
        """Return the folder of a stored session.

        Raises:
            SessionNotFoundError: there is no log of such a session.
        """
        folder = self.folder(session_id)
        if not folder.log.path.is_file() or not self._is_seen(folder):
            raise SessionNotFoundError(session_id)
        return folder

    def model_calls(self, session_id: str) -> ModelCallFile | None:
        """Return the file with the model calls of a session, which need not exist.

        It is ``None`` for an id that no folder can have: clients that store sessions themselves choose any.
        """
        return self.folder(session_id).model_calls if _is_name(session_id) else None

    def list(self, context: Mapping[str, str] | None = None) -> list[SessionMetadata]:
        """Return the sessions that were prompted, the last changed first.

        ``context`` has values on the wire that the context of a session must have, by default none.
        """
        found = (entry.json for entry in self._entries(context))
        return [SessionMetadata.model_validate_json(json) for json in found if json is not None]

    def list_json(self, context: Mapping[str, str] | None = None) -> Sequence[bytes | memoryview]:
        """Return :meth:`list` as a JSON array of its entries on the wire, in parts."""
        if not context and self._sees is None:
            return self._index.json(self.ownership.names())
        return (join(self._entries(context)),)

    async def prepare_list(self) -> None:
        """Look at the files that the next list would look at, while other tasks go on."""
        await self._index.prepare(self.ownership.names)

    def latest(self, not_after: str | None = None, context: Mapping[str, str] | None = None) -> Iterator[bytes]:
        """Return the entries of :meth:`list` on the wire, the last changed first.

        Those that have changed after the time ``not_after`` (ISO 8601) may be left out.
        """
        # The times of entries are cut to milliseconds.
        until_ns = (_milliseconds(not_after) + 1) * 1_000_000 if not_after is not None else None
        found = (entry.json for entry in self._entries(context, until_ns))
        return (json for json in found if json is not None)

    def _entries(
        self, context: Mapping[str, str] | None = None, not_after_ns: int | None = None
    ) -> Iterator[Entry]:
        entries = self._index.entries(self.ownership.names(), not_after_ns)
        if (sees := self._sees) is not None:
            entries = (entry for entry in entries if sees(entry.created_by))
        if context:
            places = Places()
            entries = (entry for entry in entries if places.fit(context, entry))
        return entries

    def _examine(self, name: str, changed_s: float) -> Entry:
        """Return what lists show of a session."""
        try:
            content = self._files.read(f"{name}/{WORKSPACE}")
        except OSError:
            content = None
        workspace = parse_workspace(name, content) if content is not None else None
        if workspace is None:
            return Entry(None, None)
        listed = _listed(workspace, f"{self._root}/{name}/events.jsonl", changed_s)
        # A copy: the bytes of orjson take at least four KiB for as long as they are kept.
        return Entry(workspace.created_by, bytes(memoryview(orjson.dumps(listed))) if listed is not None else None)

    def last_id(self) -> str | None:
        """Return the id of the session that changed last; ``None`` if there are no sessions."""
        return next((orjson.loads(entry.json)["sessionId"] for entry in self._entries() if entry.json), None)

    def iter_stored(self) -> Iterator[SessionFolder]:
        """Yield the folders of all sessions that have a log, prompted or not, in no particular order."""
        return (folder for folder in self._folders() if folder.log.path.is_file())

    async def sizes(self) -> dict[str, int]:
        """Return the size of each stored session, in bytes."""

        def measure() -> dict[str, int]:
            return {folder.path.name: folder.size_bytes() for folder in self.iter_stored()}

        return await anyio.to_thread.run_sync(measure)

    async def usage_by_day(self, now_s: float, days: int) -> Days:
        """Return the usage on the day of a Unix time and on ``days`` days before it."""
        first_day, since_s = day_before(now_s, days)
        sees = self._sees

        def add_up() -> Days:
            found = self._usage.workspaces(self._names(), since_s)
            return sum_days((days_of(one) for one in found if sees is None or sees(one.created_by)), first_day)

        async with self._summing:
            return await anyio.to_thread.run_sync(add_up)

    async def in_use(self, session_ids: Iterable[str]) -> list[str]:
        """Return those of the sessions that another process has open."""
        used: list[str] = []
        for session_id in session_ids:
            used += [session_id] if self._is_in_use(session_id) else []
            await anyio.lowlevel.checkpoint()
        return used

    def _is_in_use(self, session_id: str) -> bool:
        try:
            return self.get_existing(session_id).in_use()
        except SessionNotFoundError:
            return False

    def describe(self, session_id: str, modified_time: str) -> tuple[SessionMetadata, bool] | None:
        """Return the metadata of a stored session, and whether lists show it; ``None`` if it is not known.

        ``modified_time`` is that of the metadata.
        """
        try:
            folder = self.get_existing(session_id)
        except SessionNotFoundError:
            return None
        workspace = folder.read_workspace()
        return None if workspace is None else (workspace.metadata(modified_time), folder.metadata() is not None)

    async def find_prunable(
        self,
        before_s: float,
        *,
        named_too: bool,
        concerns: Callable[[str], bool],
        is_open: Callable[[str], bool],
    ) -> Pruned:
        """Find the sessions that have not changed since ``before_s``, in Unix time, and that ``concerns`` accepts.

        Sessions that are open, for ``is_open`` or in another process, or named (unless ``named_too``), are skipped.
        """
        # Imported here: few servers need it.
        from jumpseat.store.session.pruning import find_prunable

        def find() -> Pruned:
            folders = self.iter_stored()
            return find_prunable(folders, before_s, named_too=named_too, concerns=concerns, is_open=is_open)

        return await anyio.to_thread.run_sync(find)

    def find(self, prefix: str) -> str | None:
        """Return the session with that id, or the only one whose id begins with ``prefix``; else ``None``."""
        found = [folder.path.name for folder in self.iter_stored() if folder.path.name.startswith(prefix)]
        if prefix in found:
            return prefix
        return found[0] if len(found) == 1 else None

    def find_best(self, context: SessionContext | None) -> str | None:
        """Return the session that fits ``context`` best, the last changed of equals; ``None`` without sessions."""

        places, wanted = Places(), context.wire() if context is not None else {}

        def fit(session: SessionMetadata) -> tuple[bool, ...]:
            other = session.context.wire() if session.context is not None else {}
            return tuple(
                name in wanted and places.same(name, wanted[name], other.get(name))
                for name in ("cwd", "gitRoot", "repository", "branch")
            )

        # `max` returns the first of equal ones, which is the last changed.
        best = max(self.list(), key=fit, default=None) if context is not None else next(iter(self.list()), None)
        return best.session_id if best is not None else None

    def fork(
        self, source: SessionFolder, session_id: str, up_to: str | None, name: str | None, created_by: str | None
    ) -> None:
        """Copy a session under a new id for a token: its events before ``up_to``, its plan and its files.

        Raises:
            InvalidRequestError: there is no such event, or no prompt to copy.
            StoreError: the copy cannot be written.
        """
        # Imported here: few sessions are forked.
        from jumpseat.store.session.forks import copy_small_files, events_of_fork, log_of_fork, workspace_of_fork

        records = events_of_fork(source.path.name, read_log(source.log.path).records, up_to)
        fork = self.folder(session_id)
        old = source.workspace or source.read_workspace()
        workspace = workspace_of_fork(old, session_id, name, created_by)
        try:
            fork.create(workspace)
            with open(fork.log.path, "wb", opener=owner_only) as file:
                file.writelines(log_of_fork(records, session_id))
            if source.files.root.is_dir():
                shutil.copytree(source.files.root, fork.files.root, symlinks=True)
            source.database.copy_to(fork.database.path)
            copy_small_files(source, fork, records)
            # Copies have the modes of files that the model's tools have written.
            restrict_contents(fork.path)
        except (OSError, shutil.Error, RecursionError) as error:
            fork.remove()
            raise StoreError(f"cannot copy the session: {error}") from error
        fork.release()

    def _folders(self) -> Iterator[SessionFolder]:
        for name in self._names():
            folder = SessionFolder(self._root / name, self._syncer, self.ownership)
            if self._is_seen(folder):
                yield folder

    def _names(self) -> Iterator[str]:
        try:
            return filter(_is_name, os.listdir(self._root))
        except OSError:
            return iter(())

    def _is_seen(self, folder: SessionFolder) -> bool:
        return self._sees is None or self._sees(folder.created_by)


def _listed(workspace: Workspace, log_path: str, changed_s: float) -> dict[str, Any] | None:
    """Return the entry of lists on the wire; ``None`` for a session that was never prompted, nor named by its user.

    Logs of other programs, and of processes that were killed, have no mark that tells whether there is an answer.
    """
    beginning = None
    is_named = workspace.user_named
    if workspace.summary is None and not is_named and _PROMPT not in (beginning := _beginning_of(log_path)):
        return None
    unanswered = False
    if not workspace.answered:
        beginning = _beginning_of(log_path) if beginning is None else beginning
        unanswered = len(beginning) < SCAN_BYTES and _PROMPT in beginning and _ANSWER not in beginning
    return workspace.listed(iso_time(changed_s), unanswered=unanswered)


def _milliseconds(time: str) -> int:
    """Return the milliseconds since 1970 of a time.

    Raises:
        ValueError: it is no time.
    """
    return round(datetime.fromisoformat(time).timestamp() * 1000)


def _beginning_of(log_path: str) -> bytes:
    try:
        with open(log_path, "rb") as file:
            return file.read(SCAN_BYTES)
    except OSError:
        return b""


class Places:
    """Compares the contexts of sessions: folders by their real paths, which are remembered."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def fit(self, context: Mapping[str, str], entry: Entry) -> bool:
        """Return whether the context of a session, as lists show it, has all values of ``context``."""
        known = orjson.loads(entry.json or b"{}").get("context", {})
        return all(self.same(name, value, known.get(name)) for name, value in context.items())

    def same(self, name: str, one: str, other: str | None) -> bool:
        """Return whether two values of a member of a context mean the same."""
        if one == other:
            return True
        return other is not None and name in ("cwd", "gitRoot") and self._real_path(one) == self._real_path(other)

    def _real_path(self, path: str) -> str:
        if path not in self._real:
            try:
                self._real[path] = os.path.realpath(path)
            except (OSError, ValueError):
                self._real[path] = path
        return self._real[path]


def as_typed(prompt: str) -> str:
    """Return a prompt without the output of the user's own commands, which the terminal chat adds for the model."""
    return prompt.partition(_COMMAND)[0] if prompt.endswith(_COMMAND_END) else prompt


def shorten(prompt: str) -> str:
    """Shorten a prompt of any length to one line of at most ``SUMMARY_LENGTH`` characters."""
    line = ""
    prompt = as_typed(prompt)
    for word in _WORD.finditer(prompt):
        line += (" " if line else "") + prompt[word.start() : min(word.end(), word.start() + SUMMARY_LENGTH + 1)]
        if len(line) > SUMMARY_LENGTH:
            return line[: SUMMARY_LENGTH - 1] + "…"
    return line


def session_path(root: Path, session_id: str) -> Path:
    """Return the path of a session's folder below that of all sessions.

    Raises:
        SessionNotFoundError: the id is not a valid name of a folder.
    """
    if not _is_name(session_id):
        raise SessionNotFoundError(session_id[:200])
    return root / session_id


def _is_name(session_id: str) -> bool:
    """Return whether an id is a valid name of one folder, on disk and in JSON."""
    try:
        size = len(session_id.encode())
    except UnicodeEncodeError:
        return False
    return 0 < size <= 200 and session_id not in (".", "..") and not re.search(r"[/\\\0]", session_id)
