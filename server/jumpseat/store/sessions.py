"""Sessions on disk: one folder per session under ``session-state``.

``events.jsonl`` is the source of truth; ``workspace.yaml`` holds what lists show, so that listing sessions reads no
logs. Other programs may read both at any time, even while a session is live. Neither holds secrets.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import orjson
from anyio.abc import TaskGroup

from jumpseat.agent.clock import iso_time, utc_now
from jumpseat.agent.session.metrics import ModelUsage
from jumpseat.deep_folders import delete_folder, walk
from jumpseat.errors import InvalidRequestError, SessionNotFoundError, StoreError
from jumpseat.owner_only import create_private_folder, owner_only, restrict_contents
from jumpseat.store.checkpoints import Checkpoint, Checkpoints
from jumpseat.store.client_metadata import ClientMetadata
from jumpseat.store.event_log import FileEventLog, read_log
from jumpseat.store.files import WorkspaceFiles
from jumpseat.store.options import keep_tracking
from jumpseat.store.ownership import Ownership, marked_by_other_program
from jumpseat.store.session_database import SessionDatabase
from jumpseat.store.workspace import Workspace, read_workspace
from jumpseat_protocol.events import WorkingDirectoryContext
from jumpseat_protocol.sessions import SessionContext, SessionMetadata

if TYPE_CHECKING:
    from jumpseat.store.file_changes import FileChangeLog

log = logging.getLogger(__name__)

SUMMARY_LENGTH: Final = 100
# How much of a log is searched for a first prompt or answer, if the folder does not tell.
SCAN_BYTES: Final = 1 << 18
_PROMPT: Final = b'"type":"user.message"'
_ANSWER: Final = b'"type":"assistant.message"'


class SessionFolder:
    """The files of a session."""

    def __init__(self, path: Path, tasks: TaskGroup, ownership: Ownership) -> None:
        self.path = path
        self._ownership = ownership
        self.log = FileEventLog(path / "events.jsonl", tasks, self._note_time)
        self.usage: Callable[[], Mapping[str, ModelUsage]] | None = None
        """Returns the usage of the session, which is stored with the other changes."""
        self._workspace: Workspace | None = None

    @property
    def output_dir(self) -> Path:
        """The folder for tool outputs that are too large for the model."""
        return self.path / "temp"

    @property
    def plan_path(self) -> Path:
        return self.path / "plan.md"

    @property
    def database(self) -> SessionDatabase:
        """The database in which the session's model keeps its todos."""
        return SessionDatabase(self.path / "session.db")

    @property
    def changes(self) -> FileChangeLog:
        """The changes that the file tools of the session have made."""
        from jumpseat.store.file_changes import FileChangeLog

        return FileChangeLog(self.path / "changes.jsonl")

    @property
    def client_metadata(self) -> ClientMetadata:
        """The strings that clients keep with the session."""
        return ClientMetadata(self.path / "client-metadata.json")

    @property
    def files(self) -> WorkspaceFiles:
        """The files that clients store in the session."""
        return WorkspaceFiles(self.path / "files")

    @property
    def checkpoints(self) -> Checkpoints:
        """The summaries of the conversation."""
        return Checkpoints(self.path / "checkpoints")

    @property
    def workspace(self) -> Workspace | None:
        """The content of ``workspace.yaml`` of a live session."""
        return self._workspace

    @property
    def created_by(self) -> str | None:
        """The name of the connection token that created the session; ``None`` if that had no name."""
        workspace = self._workspace or self.read_workspace()
        return workspace.created_by if workspace is not None else None

    def create(self, workspace: Workspace, *, is_new: bool = True) -> None:
        """Create the folder, and make this process the owner of the session.

        Raises:
            InvalidRequestError: the session exists, but ``is_new``.
            SessionInUseError: another process owns the session.
            StoreError: the folder cannot be written.
        """
        try:
            create_private_folder(self.path)
            self.claim()
            if is_new and self.log.path.exists():
                raise InvalidRequestError(f"session {self.path.name!r} already exists")
            self._write_workspace(workspace)
        except OSError as error:
            raise StoreError(f"cannot create the session folder: {error.strerror or error}") from error

    def set_summary(self, summary: str) -> None:
        """Set the summary, unless there is one; from then on lists show the session."""
        workspace = self._workspace
        if workspace is None or workspace.summary is not None:
            return
        workspace.summary, workspace.updated_at = summary, utc_now()
        try:
            self._write_workspace(workspace)
            # Not in `create`, where creating files takes most of the time.
            self.checkpoints.write_index()
        except OSError as error:
            log.error("cannot write %s: %s", self.path / "workspace.yaml", error.strerror or error)

    def set_marks(self, *, answered: bool, one_off: bool) -> None:
        """Set what lists show besides the summary. The first ones are written with the summary."""
        workspace, marks = self._workspace, (answered or None, one_off or None)
        if workspace is None or (workspace.answered, workspace.one_off) == marks:
            return
        workspace.answered, workspace.one_off = marks
        if workspace.summary is not None:
            self._write_or_log(workspace)

    def rename(self, name: str, *, by_user: bool) -> None:
        """Set the session's name, which lists show instead of its first prompt.

        Raises:
            StoreError: the file cannot be written.
        """
        self._change(name=name, user_named=by_user)

    def move(self, context: WorkingDirectoryContext) -> None:
        """Set the working directory, in which the session will be resumed.

        Raises:
            StoreError: the file cannot be written.
        """
        self._change(
            cwd=context.cwd, git_root=context.git_root, repository=context.repository, branch=context.branch
        )

    def add_checkpoint(self, title: str, text: str, after: int) -> Checkpoint:
        """Write a summary under a number above ``after``.

        Raises:
            StoreError: the file cannot be written.
        """
        checkpoint = self.checkpoints.add(title, text, after)
        self._change(summary_count=len(self.checkpoints.list()))
        return checkpoint

    def drop_checkpoints(self, after: int) -> None:
        """Remove the summaries with numbers above ``after``.

        Raises:
            StoreError: a summary cannot be removed.
        """
        self.checkpoints.drop_after(after)
        self._change(summary_count=len(self.checkpoints.list()))

    def _note_time(self) -> None:
        """Write the time of the last change, for programs that read the folders themselves.

        Not after every turn: replacing a file takes as long as everything else that a turn writes.
        """
        changed_s = self.log.changed_s()
        if self._workspace is None or self._workspace.summary is None or changed_s is None:
            return
        self._write_or_log(replace(self._workspace, updated_at=iso_time(changed_s)))

    def _write_or_log(self, workspace: Workspace) -> None:
        try:
            self._write_workspace(workspace)
        except OSError as error:
            log.error("cannot write %s: %s", self.path / "workspace.yaml", error.strerror or error)

    def _change(self, **values: Any) -> None:
        if self._workspace is None:
            return
        try:
            self._write_workspace(replace(self._workspace, updated_at=utc_now(), **values))
        except OSError as error:
            raise StoreError(f"cannot write workspace.yaml: {error.strerror or error}") from error

    def _write_workspace(self, workspace: Workspace) -> None:
        """Replace ``workspace.yaml`` atomically."""
        if self.usage is not None and (used := self.usage()):
            workspace.usage = orjson.dumps(used).decode()
        target = self.path / "workspace.yaml"
        draft = target.with_suffix(f".{os.getpid()}.tmp")
        with open(draft, "w", encoding="utf-8", opener=owner_only) as file:
            file.write(workspace.encode())
        draft.replace(target)
        self._workspace = workspace

    def read_workspace(self) -> Workspace | None:
        """Read ``workspace.yaml``; return ``None`` if it is missing or invalid."""
        return read_workspace(self.path)

    def metadata(self) -> SessionMetadata | None:
        """Return the metadata that lists show; ``None`` if the folder is no session or was never prompted."""
        try:
            changed_s = self.log.path.stat().st_mtime
        except OSError:
            return None
        workspace = self.read_workspace()
        if workspace is None or (workspace.summary is None and _PROMPT not in self._beginning()):
            return None
        metadata = workspace.metadata(iso_time(changed_s))
        if not workspace.answered and self._is_unanswered():
            metadata.unanswered = True
        return metadata

    def claim(self) -> None:
        """Make this process the owner of the session. Does nothing if it is already.

        Raises:
            SessionInUseError: another process owns the session.
            InvalidRequestError: this process owns the session under another name.
            SessionNotFoundError: there is no such folder.
            StoreError: the session cannot be locked.
        """
        self._ownership.claim(self.path)

    def release(self) -> None:
        """Give up the ownership of the session. Does nothing if this process does not own it."""
        self._ownership.release(self.path)

    def in_use(self) -> bool:
        """Return whether another process owns the session, or a running one of another program has marked it."""
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

    def _is_unanswered(self) -> bool:
        """Return whether the log has a prompt and no answer.

        Logs of other programs, and of processes that were killed, have no mark that tells it.
        """
        beginning = self._beginning()
        return len(beginning) < SCAN_BYTES and _PROMPT in beginning and _ANSWER not in beginning

    def _beginning(self) -> bytes:
        try:
            with self.log.path.open("rb") as file:
                return file.read(SCAN_BYTES)
        except OSError:
            return b""


class SessionStore:
    """All sessions under one home."""

    def __init__(self, home: Path, tasks: TaskGroup) -> None:
        self.ownership = Ownership(home)
        self._root = home / "session-state"
        self._tasks = tasks
        self._sees: Callable[[str | None], bool] | None = None

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
        if not _is_name(session_id):
            raise SessionNotFoundError(session_id[:200])
        return SessionFolder(self._root / session_id, self._tasks, self.ownership)

    def get_existing(self, session_id: str) -> SessionFolder:
        """Return the folder of a stored session.

        Raises:
            SessionNotFoundError: there is no log of such a session.
        """
        folder = self.folder(session_id)
        if not folder.log.path.is_file() or not self._is_seen(folder):
            raise SessionNotFoundError(session_id)
        return folder

    def list(self) -> list[SessionMetadata]:
        """Return all sessions that were prompted, the last changed first."""
        found = [metadata for folder in self._folders() if (metadata := folder.metadata()) is not None]
        return sorted(found, key=lambda metadata: metadata.modified_time, reverse=True)

    def last_id(self) -> str | None:
        """Return the id of the session that changed last; ``None`` if there are no sessions."""
        found = self.list()
        return found[0].session_id if found else None

    def iter_stored(self) -> Iterator[SessionFolder]:
        """Yield the folders of all sessions that have a log, prompted or not, in no particular order."""
        return (folder for folder in self._folders() if folder.log.path.is_file())

    def find(self, prefix: str) -> str | None:
        """Return the session with that id, or the only one whose id begins with ``prefix``; else ``None``."""
        found = [folder.path.name for folder in self.iter_stored() if folder.path.name.startswith(prefix)]
        if prefix in found:
            return prefix
        return found[0] if len(found) == 1 else None

    def find_best(self, context: SessionContext | None) -> str | None:
        """Return the session that fits ``context`` best, the last changed of equals; ``None`` without sessions."""

        def fit(session: SessionMetadata) -> tuple[bool, ...]:
            other = session.context
            return tuple(
                other is not None
                and (value := getattr(context, name)) is not None
                and getattr(other, name) == value
                for name in ("cwd", "git_root", "repository", "branch")
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
        records = read_log(source.log.path).records
        if up_to is not None:
            place = next((place for place, record in enumerate(records) if record.get("id") == up_to), None)
            if place is None:
                raise InvalidRequestError(f"Event {up_to} not found in session {source.path.name}")
            records = records[:place]
        if not any(record["type"] == "user.message" for record in records):
            raise InvalidRequestError(f"Session {source.path.name} not found or has no persisted events")
        old = source.workspace or source.read_workspace()
        now = utc_now()
        fork = self.folder(session_id)
        workspace = (
            replace(old, id=session_id) if old else Workspace(session_id, cwd="", created_at="", updated_at="")
        )
        workspace.created_at = workspace.updated_at = now
        workspace.created_by, workspace.usage = created_by, None
        workspace.name, workspace.user_named = name or workspace.name, bool(name) or workspace.user_named
        try:
            fork.create(workspace)
            with open(fork.log.path, "wb", opener=owner_only) as file:
                file.writelines(_of_fork(record, session_id) for record in records)
            if source.plan_path.is_file():
                shutil.copyfile(source.plan_path, fork.plan_path)
            if source.files.root.is_dir():
                shutil.copytree(source.files.root, fork.files.root, symlinks=True)
            source.checkpoints.copy_to(fork.checkpoints, _last_checkpoint(records))
            fork.drop_checkpoints(_last_checkpoint(records))
            source.database.copy_to(fork.database.path)
            if keep_tracking(source.path, fork.path):
                source.changes.copy_to(fork.changes, {str(record.get("id")) for record in records})
            # Copies have the modes of files that the model's tools have written.
            restrict_contents(fork.path)
        except (OSError, shutil.Error, RecursionError) as error:
            fork.remove()
            raise StoreError(f"cannot copy the session: {error}") from error
        fork.release()

    def _folders(self) -> Iterator[SessionFolder]:
        try:
            names = os.listdir(self._root)
        except OSError:
            return
        for name in filter(_is_name, names):
            folder = SessionFolder(self._root / name, self._tasks, self.ownership)
            if self._is_seen(folder):
                yield folder

    def _is_seen(self, folder: SessionFolder) -> bool:
        return self._sees is None or self._sees(folder.created_by)


def _last_checkpoint(records: Sequence[dict[str, Any]]) -> int:
    """Return the number of the latest checkpoint in ``records``; 0 if there is none."""
    for record in reversed(records):
        data = record.get("data")
        if record["type"] == "session.compaction_complete" and isinstance(data, dict):
            number = cast("dict[str, Any]", data).get("checkpointNumber")
            if isinstance(number, int):
                return number
    return 0


def _of_fork(record: dict[str, Any], session_id: str) -> bytes:
    """Encode an event as a log line of a fork, with the fork's id in ``session.start``."""
    if record["type"] == "session.start" and isinstance(record.get("data"), dict):
        record = {**record, "data": {**record["data"], "sessionId": session_id}}
    return orjson.dumps(record) + b"\n"


def shorten(prompt: str) -> str:
    """Shorten a prompt to one line of at most ``SUMMARY_LENGTH`` characters."""
    line = " ".join(prompt.split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"


def _is_name(session_id: str) -> bool:
    """Return whether an id is a valid name of one folder, on disk and in JSON."""
    try:
        size = len(session_id.encode())
    except UnicodeEncodeError:
        return False
    return 0 < size <= 200 and session_id not in (".", "..") and not re.search(r"[/\\\0]", session_id)
