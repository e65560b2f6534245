"""The stored parts of one session, wherever they lie: its log, ``workspace.yaml``, plan, summaries and options."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

import msgspec
import msgspec.json
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.clock import iso_time, local_day, utc_now
from jumpseat.agent.interfaces import Announcements, Brief, RunUsage, VirtualFiles
from jumpseat.agent.session.metrics import ModelUsage
from jumpseat.store.session.checkpoints import Checkpoint, Checkpoints, Plan
from jumpseat.store.session.client_metadata import ClientMetadata
from jumpseat.store.session.daily_usage import add_to_days
from jumpseat.store.session.draft import Draft
from jumpseat.store.session.event_log import Replay
from jumpseat.store.session.files import FileState
from jumpseat.store.session.state_files import StateFiles, store_error
from jumpseat.store.session.workspace import Workspace, parse_workspace
from jumpseat_protocol.events import Event, WorkingDirectoryContext

if TYPE_CHECKING:
    from jumpseat.store.session.database import TodoRows
    from jumpseat.store.session.file_changes import FileChangeLog

log = logging.getLogger(__name__)

WORKSPACE: Final = "workspace.yaml"
OBJECTIVE: Final = "autopilot-objective.json"
BRIEF: Final = "project-brief.json"
PREFIX: Final = "last-request.json"
RUNS: Final = "runs.jsonl"
MOST_RUNS: Final = 10_000
"""The latest runs that are read."""


class _StoredBrief(Struct, frozen=True):
    cwd: str
    brief: Brief


class StoredLog(Protocol):
    """The event log of one session."""

    @property
    def announcements(self) -> Announcements | None:
        """See :class:`jumpseat.agent.interfaces.EventLog`."""
        ...

    def append(self, event: Event) -> None:
        """See :class:`jumpseat.agent.interfaces.EventLog`, also for the next two methods."""
        ...

    def sync_soon(self) -> None: ...

    async def flush(self) -> None: ...

    async def save(self) -> None:
        """Store all events safely now."""
        ...

    def open(self) -> IO[bytes]:
        """Open the content for reading; empty if there is no log. The caller closes the file.

        Raises:
            StoreError: the log cannot be read.
        """
        ...

    def read(self) -> Replay:
        """Return the events.

        Raises:
            StoreError: the log cannot be read.
        """
        ...

    def repair(self) -> Replay:
        """Return the events, and mend a last line that a crash has torn.

        Raises:
            StoreError: the log cannot be read or repaired.
        """
        ...

    def truncate(self, event_id: str) -> tuple[Replay, int] | None:
        """Remove an event and all later ones; return the rest, and the number of removed events.

        The result is ``None`` if the log has no such event.

        Raises:
            InvalidRequestError: the event is the first one, which a log must have.
            StoreError: the log cannot be read or truncated.
        """
        ...

    def exists(self) -> bool:
        """Return whether anything was ever logged."""
        ...

    def changed_s(self) -> float | None:
        """Return the time of the last write, in Unix time; ``None`` if there is no log."""
        ...

    def size_bytes(self) -> int:
        """Return the size; 0 if there is no log."""
        ...


class StoredFiles(Protocol):
    """The files that clients store in one session. Names come from clients, and must not lead out of the folder.

    All methods raise ``InvalidRequestError`` if a name or its target is not as expected, and ``StoreError`` if the
    storage fails.
    """

    def path(self, name: str) -> str:
        """Return the path of a file, for clients and models."""
        ...

    async def names(self) -> list[str]:
        """Return the paths of all files, relative to the folder and sorted."""
        ...

    async def read(self, name: str) -> str:
        """Read a file."""
        ...

    async def write(self, name: str, content: str) -> bool:
        """Create or replace a file; return whether it is new."""
        ...

    async def stat(self, name: str) -> FileState:
        """Return the state of a file or folder."""
        ...

    async def create_folder(self, name: str, *, recursive: bool) -> None:
        """Create a folder; ``recursive`` creates its parents, too, and allows it to exist."""
        ...

    async def remove(self, name: str, *, recursive: bool, force: bool) -> None:
        """Remove a file or an empty folder, with ``recursive`` any folder; with ``force``, it may be missing."""
        ...

    async def rename(self, source: str, destination: str) -> bool:
        """Rename a file or folder; return whether an existing file was replaced."""
        ...


class StoredDatabase(Protocol):
    """The SQLite database in which the session's model keeps its todos."""

    async def run(self, query: str) -> tuple[str, bool]:
        """Run SQL statements; return their results as text for the model, and whether todos have changed.

        Raises:
            StoreError: a statement failed.
        """
        ...

    async def todos(self) -> TodoRows:
        """Return the todos and their dependencies; empty if there is no database or it cannot be read."""
        ...


class SessionStorage:
    """The parts of one session that all kinds of storage have.

    Subclasses say where the files lie (``state``, ``path``), and add what depends on that.
    """

    own_folders: tuple[Path, ...] = ()
    """The folders on the disk that the server made for the session's model."""

    def __init__(self, session_id: str, state: StateFiles) -> None:
        self.session_id = session_id
        self.state = state
        self.usage: Callable[[], Mapping[str, ModelUsage]] | None = None
        """Returns the usage of the session, which is stored with the other changes."""
        self._workspace: Workspace | None = None

    # --- what the kinds of storage add --------------------------------------------------------------------------

    @property
    def shown_path(self) -> str:
        """The path of the session's folder, for clients."""
        raise NotImplementedError

    @property
    def log(self) -> StoredLog:
        """The event log."""
        raise NotImplementedError

    @property
    def files(self) -> StoredFiles:
        """The files that clients store in the session."""
        raise NotImplementedError

    @property
    def database(self) -> StoredDatabase | None:
        """The database of the session's model; ``None`` if the storage has none."""
        raise NotImplementedError

    @property
    def virtual_files(self) -> VirtualFiles | None:
        """The files that are not on the disk, if there are any."""
        return None

    def save_output(self, name: str, data: bytes, folder: str | None) -> str:
        """Store a tool output that is too large for the model, in ``folder`` if given; returns its path.

        Raises:
            OSError: it cannot be stored.
        """
        raise NotImplementedError

    def claim(self) -> None:
        """Make this process the owner of the session. Does nothing if it is already.

        Raises:
            SessionInUseError: another process owns the session.
            InvalidRequestError: this process owns the session under another name.
            SessionNotFoundError: there is no such session.
            StoreError: the session cannot be locked.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Give up the ownership of the session. Does nothing if this process does not own it."""
        raise NotImplementedError

    def in_use(self) -> bool:
        """Return whether another program has the session open, as far as that can be known."""
        raise NotImplementedError

    def create(self, workspace: Workspace, *, is_new: bool = True) -> None:
        """Create the session, and make this process its owner.

        Raises:
            InvalidRequestError: the session exists, but ``is_new``.
            SessionInUseError: another process owns the session.
            StoreError: the session cannot be written.
        """
        raise NotImplementedError

    async def close(self, *, keep: bool) -> None:
        """End the use of the session by this process. Unless ``keep``, its files may be removed."""
        raise NotImplementedError

    def stop_storing(self) -> None:
        """Store no more changes: another process has taken the session over, and refuses none by itself."""

    def discard(self) -> None:
        """End the use of a session whose opening failed. What is stored stays."""
        raise NotImplementedError

    async def delete(self) -> None:
        """Remove everything that is stored.

        Raises:
            SessionInUseError: another process owns the session.
            StoreError: it cannot be removed.
        """
        raise NotImplementedError

    # --- what they share ----------------------------------------------------------------------------------------

    def read_objective(self) -> str | None:
        """Return the file with the objective of the autopilot, if there is one."""
        try:
            content = self.state.read(OBJECTIVE)
        except OSError:
            return None
        return None if content is None else content.decode("utf-8", "replace")

    def write_objective(self, content: str | None) -> None:
        """Replace that file; ``None`` removes it.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            if content is None:
                self.state.remove(OBJECTIVE)
            else:
                self.state.write(OBJECTIVE, content.encode("utf-8", "replace"))
        except OSError as error:
            raise store_error("write", OBJECTIVE, error) from error

    def read_brief(self, cwd: str) -> Brief | None:
        """Return the description of the project in a working directory, if it is stored with the session."""
        try:
            stored = msgspec.json.decode(self.state.read(BRIEF) or b"null", type=_StoredBrief | None)
        except (OSError, ValueError, msgspec.MsgspecError):
            return None
        return stored.brief if stored is not None and stored.cwd == cwd else None

    def write_brief(self, cwd: str, brief: Brief) -> None:
        """Store the description of the project in a working directory, in place of another one.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            self.state.write(BRIEF, msgspec.json.encode(_StoredBrief(cwd, brief)))
        except (OSError, UnicodeEncodeError) as error:
            raise store_error("write", BRIEF, error) from error

    def read_prefix(self) -> bytes | None:
        """Return the digest of the beginning of the last request, if it is stored with the session."""
        try:
            return self.state.read(PREFIX) if self.virtual_files is None else None
        except OSError:
            return None

    def write_prefix(self, digest: bytes) -> None:
        """Store the digest of the beginning of a request, unless the files of the session are virtual.

        Raises:
            StoreError: it cannot be written.
        """
        if self.virtual_files is not None:
            return
        try:
            self.state.write(PREFIX, digest)
        except OSError as error:
            raise store_error("write", PREFIX, error) from error

    def append_run(self, run: RunUsage) -> None:
        """Store the time and the usage of a run that has ended; a failure is logged.

        Unless the files of the session are virtual: clients keep those, and are asked about each.
        """
        if self.virtual_files is not None:
            return
        try:
            self.state.append(RUNS, msgspec.json.encode(run) + b"\n")
        except OSError as error:
            log.error("cannot write %s: %s", self.state.path(RUNS), error.strerror or error)

    def read_runs(self) -> list[RunUsage]:
        """Return the runs that were stored, the latest last; damaged ones are left out."""
        try:
            stored = self.state.read(RUNS) or b""
        except OSError:
            return []
        runs: list[RunUsage] = []
        for line in stored.splitlines()[-MOST_RUNS:]:
            with suppress(msgspec.DecodeError):
                runs.append(msgspec.json.decode(line, type=RunUsage))
        return runs

    @property
    def plan(self) -> Plan:
        """The plan of the session."""
        return Plan(self.state)

    @property
    def changes(self) -> FileChangeLog:
        """The changes that the tools of the session have made to files."""
        from jumpseat.store.session.file_changes import FileChangeLog

        return FileChangeLog(self.state)

    @property
    def client_metadata(self) -> ClientMetadata:
        """The strings that clients keep with the session."""
        return ClientMetadata(self.state)

    @property
    def draft(self) -> Draft:
        """The prompt that a person has begun to write."""
        return Draft(self.state)

    @property
    def checkpoints(self) -> Checkpoints:
        """The summaries of the conversation."""
        return Checkpoints(self.state)

    @property
    def workspace(self) -> Workspace | None:
        """The content of ``workspace.yaml`` of a live session."""
        return self._workspace

    @property
    def created_by(self) -> str | None:
        """The name of the connection token that created the session; ``None`` if that had no name."""
        workspace = self._workspace or self.read_workspace()
        return workspace.created_by if workspace is not None else None

    def read_workspace(self) -> Workspace | None:
        """Read ``workspace.yaml``; return ``None`` if it is missing or invalid."""
        try:
            content = self.state.read(WORKSPACE)
        except OSError:
            return None
        return None if content is None else parse_workspace(self.session_id, content)

    def set_summary(self, summary: str) -> None:
        """Set the summary, unless there is one; from then on lists show the session."""
        workspace = self._workspace
        if workspace is None or workspace.summary is not None:
            return
        workspace.summary, workspace.updated_at = summary, utc_now()
        self.write_or_log(workspace)
        try:
            # Not in `create`, where creating files takes most of the time.
            self.checkpoints.write_index()
        except OSError as error:
            log.error("cannot write the list of checkpoints: %s", error.strerror or error)

    def set_marks(self, *, answered: bool, one_off: bool) -> None:
        """Set what lists show besides the summary. The first ones are written with the summary."""
        workspace, marks = self._workspace, (answered or None, one_off or None)
        if workspace is None or (workspace.answered, workspace.one_off) == marks:
            return
        workspace.answered, workspace.one_off = marks
        if workspace.summary is not None:
            self.write_or_log(workspace)

    def rename(self, name: str, *, by_user: bool) -> None:
        """Set the session's name, which lists show instead of its first prompt.

        Raises:
            StoreError: the file cannot be written.
        """
        if self._workspace is None:
            # No session has these files open.
            self._workspace = self.read_workspace()
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

    def note_time(self) -> None:
        """Write the time of the last change, for programs that read the files themselves.

        Not after every turn: replacing a file takes as long as everything else that a turn writes.
        """
        if self._workspace is None or self._workspace.summary is None:
            return
        changed_s = self.log.changed_s()
        if changed_s is None:
            return
        self.write_or_log(replace(self._workspace, updated_at=iso_time(changed_s)))

    def write_workspace(self, workspace: Workspace) -> None:
        """Replace ``workspace.yaml``.

        Raises:
            OSError: the file cannot be written.
        """
        if self.usage is not None and (used := self.usage()):
            workspace.usage_days = add_to_days(workspace, used, local_day(time.time()))
            workspace.usage = msgspec.json.encode(used).decode()
        self.state.write(WORKSPACE, workspace.encode().encode())
        self._workspace = workspace

    def write_or_log(self, workspace: Workspace) -> None:
        """Replace ``workspace.yaml``; a failure is logged."""
        try:
            self.write_workspace(workspace)
        except OSError as error:
            log.error("cannot write %s: %s", self.state.path(WORKSPACE), error.strerror or error)

    def _change(self, **values: Any) -> None:
        if self._workspace is None:
            return
        try:
            self.write_workspace(replace(self._workspace, updated_at=utc_now(), **values))
        except OSError as error:
            raise store_error("write", WORKSPACE, error) from error
