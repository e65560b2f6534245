"""The sessions of the process, shared by all connections: live ones by id, and stored ones.

A session is live from its creation or resume until its last client leaves or the process ends.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from msgspec.structs import replace

from jumpseat.agent.client import Attachment, Client
from jumpseat.agent.clock import utc_now
from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.model_calls.requests import check_choice
from jumpseat.agent.session.history import LoggedEvent
from jumpseat.agent.session.limits import limits_of
from jumpseat.agent.session.session import Session, SessionServices
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import (
    InvalidRequestError,
    SessionInUseError,
    SessionNotFoundError,
    StoreError,
    UnsupportedError,
)
from jumpseat.sandbox.session import Sandboxes
from jumpseat.sessions.access import EVERYTHING, Access
from jumpseat.sessions.handover import Handover
from jumpseat.sessions.replay import decode_events, replay_events, replay_setting
from jumpseat.store.session.options import write_options
from jumpseat.store.session.ownership import GiveUpRequest
from jumpseat.store.session.sessions import SessionFolder, SessionStore, shorten
from jumpseat.store.session.storage import SessionStorage
from jumpseat.store.session.workspace import workspace_of
from jumpseat.system.git import working_directory_context
from jumpseat.system.log_fields import fields
from jumpseat.system.programs import OwnPrograms
from jumpseat.tools.session_sandbox import note_edit, own_programs
from jumpseat_protocol import events
from jumpseat_protocol.sessions import SessionListFilter, SessionMetadata
from jumpseat_protocol.version import __version__

if TYPE_CHECKING:
    from jumpseat.tools.orchestrator.environment import Environment

log = logging.getLogger(__name__)

LOG_FORMAT_VERSION: Final = 1


class _Opening(NamedTuple):
    """A session that is being created (``is_new``) or loaded; ``ended`` is set at the end."""

    ended: anyio.Event
    is_new: bool


class SessionRegistry:
    """Creates, loads, closes and deletes sessions.

    ``announce`` sends a lifecycle notification to the connections that see the session; its arguments are the type,
    the session id, the metadata and the name of the token that created the session. ``seen_by`` returns the
    registry as connections with some rights see it, and is the only place that separates the sessions of tokens.
    The registry sets the members of ``services`` that store parts of sessions and announce their changes.
    """

    def __init__(
        self,
        store: SessionStore,
        sandboxes: Sandboxes | None,
        find_environment: Callable[[], Environment],
        services: SessionServices,
        announce: Callable[[str, str, dict[str, str] | None, str | None], None],
    ) -> None:
        self.store = store
        self._sandboxes = sandboxes
        self._find_environment = find_environment
        self._announce = announce
        self.tasks = services.tasks
        self._live: dict[str, Session] = {}
        self._closing: dict[str, anyio.Event] = {}
        # Set once the request that creates or loads the session has ended.
        self._opening: dict[str, _Opening] = {}
        # The same until those that waited are served: a request that arrives meanwhile is later than they are.
        self._opened: dict[str, anyio.Event] = {}
        self._storages: dict[str, SessionStorage] = {}
        self._access = EVERYTHING
        self._views: dict[Access, SessionRegistry] = {EVERYTHING: self}
        # Live sessions that were loaded from the disk: they are kept when they close, even without a prompt.
        self._loaded: set[str] = set()
        self._handover = Handover(store.ownership, services.tasks, self._give_up)
        self._services = replace(
            services,
            on_change=self._handle_change,
            store_options=self.store_options,
            read_agent=self._read_agent,
            store_checkpoint=self._store_checkpoint,
        )

    def seen_by(self, access: Access) -> SessionRegistry:
        """Return the registry for connections with these rights, without the sessions that they do not see."""
        view = self._views.get(access)
        if view is None:
            view = self._views[access] = copy(self)
            view._access = access
            if not access.all:
                view.store = self.store.seen_by(access.sees)
        return view

    @property
    def creator(self) -> str | None:
        """The name that new sessions bear: that of the connection's token, if it has one."""
        return self._access.name

    # --- creating and loading -----------------------------------------------------------------------------------

    def create(
        self,
        session_id: str | None,
        settings: SessionSettings,
        attachment: Attachment,
        storage: SessionStorage | None = None,
    ) -> Session:
        """Create a session and attach its first client; without ``storage``, it lies in a folder of the store.

        Raises:
            InvalidRequestError: the id is taken, or a tool or the provider is invalid.
            StoreError: the folder of the session cannot be made.
        """
        session_id = session_id or str(uuid.uuid4())
        storage = storage or self.store.folder(session_id)
        if session_id in self._live:
            raise _exists(session_id)
        self._services.models.check(settings)
        started_at = utc_now()
        session = self._open(session_id, settings, storage, started_at)
        created = False
        try:
            session.attach(attachment)
            check_choice(settings.options.tool_choice, session.tools.names)
            context = working_directory_context(settings.cwd, host_git=settings.options.enable_host_git_operations)
            workspace = workspace_of(
                session_id, context, started_at, created_by=self.creator, one_off=settings.options.one_off
            )
            storage.create(workspace)
            created = True
            self._announce("session.created", session_id, self._metadata(session), storage.created_by)
            session.emit(
                events.SessionStart(
                    session_id=session_id,
                    version=LOG_FORMAT_VERSION,
                    producer="jumpseat",
                    copilot_version=__version__,
                    start_time=started_at,
                    selected_model=settings.options.model,
                    reasoning_effort=settings.options.reasoning_effort,
                    session_limits=limits_of(settings),
                    context=context,
                    already_in_use=False,
                    github_mcp_tool_config=settings.options.github_mcp_tool_config.wire()
                    if settings.options.github_mcp_tool_config
                    else None,
                    sandbox=_sandbox_state(self._sandboxes, settings),
                )
            )
        except SessionInUseError:
            self.discard(session)
            raise _exists(session_id) from None
        except BaseException:
            if created and isinstance(storage, SessionFolder):
                storage.remove()
            self.discard(session)
            raise
        return session

    def own_programs(self, session: Session) -> OwnPrograms:
        """Return the programs of the server for work in a session's folders."""
        return own_programs(session, self._sandboxes)

    def note_edit(self, session: Session, place: Path) -> None:
        """Note that a file has a content that the model may have written. Returns at once."""
        if self._sandboxes is not None:
            note_edit(session, self._sandboxes, place)

    async def lacks_of_sandbox(self) -> str:
        """Return what the sandbox of this system lacks, so that no command may run unasked in it."""
        return "its sandbox is switched off" if self._sandboxes is None else await self._sandboxes.lacks()

    async def find_files(self, session: Session, pattern: str, *, depth: int | None, limit: int) -> list[str]:
        """Return the paths of files in a session's workspace that match a glob; ``depth`` limits the folders."""
        # Imported here: few clients ask for names.
        from jumpseat.sessions.workspace_names import workspace_names

        return await workspace_names(self._find_environment(), session, pattern, depth=depth, limit=limit)

    def live(self, session_id: str) -> Session:
        """Return a live session.

        Raises:
            SessionNotFoundError: there is no live session with that id.
            SessionInUseError: the session is live in another process.
        """
        session = self.get_live(session_id)
        if session is None:
            folder = self.store.folder(session_id)
            if self._access.sees(folder.created_by) and self.store.ownership.has_other_owner(folder.path):
                owner = self.store.ownership.owner(folder.path)
                raise SessionInUseError(session_id, owner and owner.pid, "resume it to continue it here")
            raise SessionNotFoundError(session_id)
        return session

    @contextmanager
    def opening(self, session_id: str, *, is_new: bool) -> Generator[None]:
        """Mark a session as being created (``is_new``) or loaded; requests about it wait until the block ends."""
        if session_id in self._opening:
            # Another request opens the session, too, and the first one counts.
            yield
            return
        opening = self._opening[session_id] = _Opening(anyio.Event(), is_new)
        try:
            yield
        finally:
            del self._opening[session_id]
            opening.ended.set()
            self._opened[session_id] = opening.ended
            # The event loop runs its task after those that it has just woken.
            self.tasks.start_soon(self._forget_opening, session_id, opening.ended)

    def awaited(self, session_id: str, *, to_resume: bool, waited: bool = False) -> anyio.Event | None:
        """Return the end of the opening that a request about a session waits for; ``None`` if it need not wait.

        A request ``to_resume`` a session waits until the session is created, but not for another resume. One that
        arrives before those are served that have ``waited`` is served after them.
        """
        if not waited and (opened := self._opened.get(session_id)) is not None:
            return opened
        opening = self._opening.get(session_id)
        if opening is None or session_id in self._live or (to_resume and not opening.is_new):
            return None
        return opening.ended

    async def _forget_opening(self, session_id: str, ended: anyio.Event) -> None:
        if self._opened.get(session_id) is ended:
            del self._opened[session_id]

    def get_live(self, session_id: str) -> Session | None:
        """Return the session if it is live in this process, and not being closed."""
        session = self._live.get(session_id)
        if session is None or not self._access.sees(self._storages[session_id].created_by):
            return None
        return session

    async def find_live(self, session_id: str) -> Session | None:
        """Return the session if it is live. If it is being closed, wait until its log is complete."""
        while (closed := self._closing.get(session_id)) is not None:
            await closed.wait()
        return self.get_live(session_id)

    def load(self, session_id: str, settings: SessionSettings, storage: SessionStorage | None = None) -> Session:
        """Load a stored session: its conversation, model, mode and agent. ``settings`` has the rest.

        Without ``storage``, the session is searched in the store.

        Raises:
            SessionNotFoundError: there is no such session.
            SessionInUseError: another process owns the session.
            StoreError: the log cannot be read or repaired.
        """
        storage = storage or self.store.get_existing(session_id)
        storage.claim()
        try:
            stored = storage.log.repair()
            workspace = storage.read_workspace()
        except BaseException:
            storage.release()
            raise
        if storage.in_use():
            log.warning("session %s is marked as in use by another program", session_id)
        started_at = workspace.created_at if workspace else utc_now()
        session = self._open(session_id, settings, storage, started_at)
        self._loaded.add(session_id)
        session.start_source = "resume"
        try:
            replay_events(session, stored.records.stored())
            if workspace is not None:
                session.metrics.earlier = workspace.model_usage()
            context = working_directory_context(settings.cwd)
            storage.create(workspace or workspace_of(session_id, context, started_at), is_new=False)
            if stored.torn_bytes:
                message = (
                    f"The last line of the session log was incomplete: {stored.torn_bytes} bytes were removed."
                )
                session.emit(events.SessionWarning(warning_type="log_repaired", message=message))
        except BaseException:
            self.discard(session)
            raise
        return session

    def close_open_calls(self, session: Session) -> None:
        """End the tool calls that an earlier process left open, each with the result for interrupted calls."""
        inner = [*session.history.inner_calls.items()]
        for call_id, outer in (*inner, *((call.id, None) for call in session.conversation.open_calls())):
            error = events.ToolError(message=INTERRUPTED, code="failure")
            session.emit(
                events.ToolExecutionComplete(
                    tool_call_id=call_id, success=False, error=error, parent_tool_call_id=outer
                )
            )

    async def take(self, session_id: str, *, abort: bool) -> None:
        """Make this process the owner of a stored session, and ask another owner to give it up.

        ``abort`` makes the other owner abort a running prompt. A caller that does not load the session afterwards
        has to release it.

        Raises:
            SessionNotFoundError: there is no such session.
            SessionInUseError: the owner does not give the session up.
        """
        if await self.find_live(session_id) is None:
            await self._handover.take(self.store.get_existing(session_id), abort=abort)

    def release(self, session_id: str) -> None:
        """Give up the ownership of a session, unless it is live."""
        if not self.is_open(session_id):
            self.store.folder(session_id).release()

    async def _give_up(self, session_id: str, request: GiveUpRequest) -> None:
        """Close a session that another process asks for, unless it runs a prompt that may not be aborted."""
        session = self._live.get(session_id)
        if session is None or (session.working and not request.force and not session.waits_for_absent_client()):
            return
        # The other process loads the session, which therefore must stay on the disk.
        self._loaded.add(session_id)
        message = f"Process {request.pid} has taken over the session. Resume the session to continue it here."
        try:
            session.emit(events.SessionWarning(warning_type="taken_over", message=message))
        except StoreError as error:
            log.error("session %s: cannot write to the log: %s", session_id, error)
        await self.close(session)

    def _open(
        self, session_id: str, settings: SessionSettings, storage: SessionStorage, started_at: str
    ) -> Session:
        self._storages[session_id] = storage
        session = Session(session_id, settings, storage, self._services, started_at)
        self._live[session_id] = session
        storage.usage = session.metrics.total
        self._handover.listen_soon()
        return session

    def discard(self, session: Session) -> None:
        """Remove a session whose opening failed from memory. Its files stay."""
        self._live.pop(session.id, None)
        self._loaded.discard(session.id)
        storage = self._storages.pop(session.id, None)
        if storage is not None:
            storage.discard()

    async def abandon(self, session: Session) -> None:
        """Close a new session that could not be stored."""
        created_by = self._storages[session.id].created_by
        with anyio.CancelScope(shield=True):
            await self.close(session)
        self._announce("session.deleted", session.id, None, created_by)

    def has_sessions_beside(self, client: Client) -> bool:
        """Return whether a visible session is open on the disk, or has this client."""
        visible = [session for session_id in self._live if (session := self.get_live(session_id)) is not None]
        return any(
            isinstance(self._storages[session.id], SessionFolder) or session.clients.get(client) is not None
            for session in visible
        )

    def live_sessions(self) -> list[Session]:
        """Return the live sessions of all clients."""
        return [*self._live.values()]

    # --- closing and deleting -----------------------------------------------------------------------------------

    async def detach_and_close(self, session_id: str, client: Client) -> None:
        """Detach a client from a session, and close the session if it was the last one. Ignores unknown ids."""
        session = self.get_live(session_id)
        if session is None:
            return
        attachment = session.clients.get(client)
        # Shielded, because a client that hangs up cancels its request: a session must not close halfway.
        with anyio.CancelScope(shield=True):
            if attachment is not None:
                await session.detach(attachment)
            if not len(session.clients):
                await self.close(session)

    def answers(
        self, client: Client, session_id: str, question: events.ExternalToolRequested | events.PermissionRequested
    ) -> bool:
        """Return whether ``client`` answers ``question``: it has the tool, or handles permissions."""
        session = self._live.get(session_id)
        attachment = session.clients.get(client) if session else None
        if attachment is None:
            return False
        if isinstance(question, events.ExternalToolRequested):
            return question.tool_name in attachment.tools
        return attachment.handles_permissions

    def store_options(self, session: Session) -> None:
        """Store the options and the working directory of a session, for resume."""
        storage, settings = self._storages[session.id], session.settings
        write_options(storage.state, settings, self._services.secrets)
        if storage.workspace is not None and storage.workspace.cwd != str(settings.cwd):
            storage.move(
                working_directory_context(settings.cwd, host_git=settings.options.enable_host_git_operations)
            )

    def _store_checkpoint(self, session: Session, title: str, summary: str) -> tuple[int, str | None]:
        """Write a checkpoint file and return its number and path; no path if the file cannot be written.

        The summary is in the log in either case.
        """
        after = session.conversation.checkpoint
        try:
            checkpoint = self._storages[session.id].add_checkpoint(title, summary, after)
        except StoreError as error:
            log.error("session %s: cannot write a checkpoint file: %s", session.id, error)
            return after + 1, None
        return checkpoint.number, checkpoint.path

    def detach_client(self, client: Client) -> None:
        """Detach a client whose connection is lost. Its sessions stay live, with their questions, for a resume."""
        for session in self._live.values():
            session.clients.detach(client)

    async def close(self, session: Session, grace_s: float | None = None, *, keep: bool = False) -> None:
        """Close a live session. Its files stay, unless it is new and empty, and not to ``keep``."""
        if not self.is_live(session):
            return
        storage = self._storages[session.id]
        # Removed first: a resume from here on waits for the complete log and loads it from the disk.
        del self._live[session.id]
        closed = self._closing[session.id] = anyio.Event()
        try:
            await session.close(grace_s)
        finally:
            is_named = storage.workspace is not None and storage.workspace.user_named
            keep = keep or is_named or session.history.first_prompt is not None or session.id in self._loaded
            keep = keep or storage.draft.exists()
            self._loaded.discard(session.id)
            try:
                await storage.close(keep=keep)
            finally:
                self._storages.pop(session.id, None)
                del self._closing[session.id]
                closed.set()
            log.info("session closed", extra=fields(session=session.id, events=session.history.event_count))

    async def delete(self, session_id: str) -> None:
        """Close a session and delete its files.

        Raises:
            SessionNotFoundError: there is no such session.
            SessionInUseError: another process owns the session.
        """
        session = await self.find_live(session_id)
        storage = self._storages[session_id] if session else self.store.get_existing(session_id)
        created_by = storage.created_by
        if session is not None:
            with anyio.CancelScope(shield=True):
                await self.close(session)
        await storage.delete()
        self._announce("session.deleted", session_id, None, created_by)
        log.info("session deleted", extra=fields(session=session_id))

    async def run_session_end_hooks(self) -> None:
        """Run the session-end hooks of all sessions concurrently."""
        async with anyio.create_task_group() as tasks:
            for session in self._live.values():
                tasks.start_soon(session.hooks.session_end, "user_exit")

    async def save(self, session_id: str) -> None:
        """Flush the log of a session to disk. Does nothing if it is not live."""
        if self.get_live(session_id) is not None:
            await self._storages[session_id].log.save()

    def is_live(self, session: Session) -> bool:
        """Return whether a session has not been closed since it was opened."""
        return self._live.get(session.id) is session

    def is_open(self, session_id: str) -> bool:
        """Return whether a session is live, or being closed."""
        return session_id in self._live or session_id in self._closing

    async def close_all(self, grace_s: float) -> None:
        """Close all sessions concurrently; their commands have ``grace_s`` seconds to end on their own."""
        async with anyio.create_task_group() as tasks:
            for session in list(self._live.values()):
                tasks.start_soon(self.close, session, grace_s)

    # --- changing history ---------------------------------------------------------------------------------------

    def truncate(self, session: Session, event_id: str) -> int:
        """Remove an event and all later ones from an idle session, and return the number of removed events.

        The session keeps its settings.

        Raises:
            InvalidRequestError: a prompt is running, there is no such event, or it is the first.
            StoreError: the log cannot be changed.
        """
        if session.working:
            raise InvalidRequestError("a prompt is running: abort it before truncating the history")
        # A running compaction would summarize events that are about to be removed.
        session.compactor.cancel()
        cut = self._storages[session.id].log.truncate(event_id)
        if cut is None:
            raise InvalidRequestError(f"Event {event_id} not found in session {session.id}")
        left, removed = cut
        session.rewind(decode_events(left.records.stored()))
        agents = None
        if session.agents is not None:
            from jumpseat.agent.subagents.subagents import sub_agents

            agents = sub_agents(session)
            agents.rewind(decode_events(left.records.stored()))
        session.emit(events.SessionSnapshotRewind(events_removed=removed, up_to_event_id=event_id))
        if agents is not None:
            # Some may have lost their ends.
            agents.end_interrupted()
        self._restate_settings(session, decode_events(left.records.stored()))
        return removed

    def _read_agent(self, session: Session, agent_id: str) -> Iterator[LoggedEvent]:
        """Yield the events of a sub-agent from the log.

        Raises:
            StoreError: the log cannot be read.
        """
        stored = self._storages[session.id].log.read().records.stored()
        return decode_events(event for event in stored if event.agent_id == agent_id)

    def _restate_settings(self, session: Session, history: Iterable[LoggedEvent]) -> None:
        """Write the settings of a session to its log again, if events that have set them were removed."""
        settings, logged = session.settings, SessionSettings(cwd=session.settings.cwd)
        for _, agent_id, payload in history:
            if agent_id is None:
                replay_setting(logged, payload)
        if settings.options.model is not None and settings.options.model != logged.options.model:
            session.emit(
                events.SessionModelChange(
                    new_model=settings.options.model,
                    previous_model=logged.options.model,
                    reasoning_effort=settings.options.reasoning_effort,
                )
            )
        if settings.mode != logged.mode:
            session.emit(events.SessionModeChanged(new_mode=settings.mode, previous_mode=logged.mode))
        session.announce_agent(logged.options.agent)

    def drop_checkpoints(self, session: Session) -> None:
        """Delete the checkpoints that are no longer part of a session's history.

        Raises:
            StoreError: a file cannot be deleted.
        """
        self._storages[session.id].drop_checkpoints(session.conversation.checkpoint)

    def fork(self, session_id: str, up_to: str | None, name: str | None) -> str:
        """Copy a live or stored session and return the id of the copy.

        Raises:
            SessionNotFoundError: there is no such session.
            InvalidRequestError: there is no event ``up_to``, or the session has never had a prompt.
            StoreError: the copy cannot be made.
        """
        live = self.get_live(session_id) is not None
        source = self._storages[session_id] if live else self.store.get_existing(session_id)
        new_id = str(uuid.uuid4())
        if not isinstance(source, SessionFolder):
            raise UnsupportedError("a copy of a session in the file system of a client")
        self.store.fork(source, new_id, up_to, name, self.creator)
        return new_id

    # --- reading ------------------------------------------------------------------------------------------------

    def list(self, session_filter: SessionListFilter | None = None) -> list[SessionMetadata]:
        """Return the stored sessions that have had a prompt and match the filter, last changed first."""
        return self.store.list(session_filter.wire() if session_filter is not None else None)

    def list_json(self, session_filter: SessionListFilter | None) -> Sequence[bytes | memoryview]:
        """Return :meth:`list` as a JSON array of its entries on the wire, in parts."""
        return self.store.list_json(session_filter.wire() if session_filter is not None else None)

    async def prepare_list(self) -> None:
        """Look at the files that the next list would look at, while other tasks go on."""
        await self.store.prepare_list()

    def latest(
        self, not_after: str | None = None, session_filter: SessionListFilter | None = None
    ) -> Iterator[bytes]:
        """Return the entries of :meth:`list` on the wire. See :meth:`SessionStore.latest`."""
        return self.store.latest(not_after, session_filter.wire() if session_filter is not None else None)

    def metadata(self, session_id: str) -> SessionMetadata | None:
        """Return the list entry of a stored session."""
        try:
            return self.store.get_existing(session_id).metadata()
        except SessionNotFoundError:
            return None

    def builtin_tools(self, model: str | None = None) -> list[ToolSpec]:
        """Return the built-in tools for ``model``, by default all, with those that only some sessions offer."""
        # Imported with the first tools.
        from jumpseat.tools.builtin import session_tools

        specs = [tool.spec for tool in (*self._find_environment().builtin_tools().values(), *session_tools())]
        if model is None:
            return specs
        # Imported with the first session that offers tools.
        from jumpseat.agent.profiles import profile_of
        from jumpseat.tools.filters import left_out

        hidden = left_out([spec.name for spec in specs], profile_of(model).edit_tools)
        return [spec for spec in specs if spec.name not in hidden]

    def storage(self, session: Session) -> SessionStorage:
        """Return the stored parts of a live session."""
        return self._storages[session.id]

    def stored_cwd(self, session_id: str) -> Path | None:
        """Return the working directory of a stored session; ``None`` if it no longer exists.

        Raises:
            SessionNotFoundError: there is no such session.
        """
        workspace = self.store.get_existing(session_id).read_workspace()
        cwd = Path(workspace.cwd) if workspace and workspace.cwd else None
        return cwd if cwd is not None and os.path.isdir(cwd) else None

    def _metadata(self, session: Session) -> dict[str, str]:
        """Return what is announced of a session, in its form on the wire."""
        times = {"startTime": session.started_at, "modifiedTime": utc_now()}
        prompt = session.history.first_prompt
        return times | ({"summary": summary} if prompt is not None and (summary := shorten(prompt)) else {})

    def _handle_change(self, session: Session) -> None:
        storage = self._storages.get(session.id)
        if storage is not None and session.history.first_prompt is not None:
            storage.set_marks(answered=session.history.answered, one_off=session.settings.options.one_off)
            storage.set_summary(shorten(session.history.first_prompt))
        self._announce(
            "session.updated",
            session.id,
            self._metadata(session),
            storage.created_by if storage is not None else None,
        )


def _exists(session_id: str) -> InvalidRequestError:
    return InvalidRequestError(f"session {session_id!r} already exists")


def _sandbox_state(sandboxes: Sandboxes | None, settings: SessionSettings) -> events.SandboxState | None:
    """Return the mode and, once it is known, the mechanism of a new session's sandbox; ``None`` if it is off."""
    if sandboxes is None or (mode := sandboxes.defaults.for_session(settings.options.sandbox_config).mode) == "off":
        return None
    mechanism = sandboxes.mechanism.name if sandboxes.mechanism is not None else "none"
    return events.SandboxState(mode=mode, mechanism=mechanism if sandboxes.probed else None)
