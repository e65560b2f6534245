"""A session: its settings, events, clients and queued prompts.

A session outlives connections. All events are published by :meth:`Session.emit`, which writes persisted events to
the log before it announces them. Prompts are run by :mod:`jumpseat.agent.turns.loop`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.client import Attachment, Client
from jumpseat.agent.clock import Clock, SystemClock, new_id, utc_now
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat.agent.conversation.portability import Portability
from jumpseat.agent.encoded_history import WrittenBudget, WrittenMessages
from jumpseat.agent.interfaces import Brief, EventLog, ModelSource, ResolvedModel, Storage, ToolRunner
from jumpseat.agent.observation import Observers, TraceContext, headers_of
from jumpseat.agent.permissions.judge import PermissionJudge
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions, Policy
from jumpseat.agent.permissions.questions import CANCELLED
from jumpseat.agent.projection import Parts, parts_changed
from jumpseat.agent.retry import RetryPolicy
from jumpseat.agent.secrets import Secrets
from jumpseat.agent.session.autopilot import Autopilot
from jumpseat.agent.session.canvases import Canvases
from jumpseat.agent.session.clients import Clients
from jumpseat.agent.session.compactor import CompactionPolicy, Compactor
from jumpseat.agent.session.delivery import Delivery
from jumpseat.agent.session.history import History, LoggedEvent
from jumpseat.agent.session.hooks import HOOK_TIMEOUT_S, HookCommands, Hooks, NoHookCommands
from jumpseat.agent.session.metrics import Metrics, RunClock
from jumpseat.agent.session.project import LOOKING, ProjectBriefs
from jumpseat.agent.session.queue import Queue
from jumpseat.agent.session.queue_items import Prompt, QueuedCommand, Run, Stopped
from jumpseat.agent.session.schedules import Schedules
from jumpseat.agent.session.sub_agents import AgentLimits, RunningAgents, SubAgentIdentity
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import NoSkills, Skills
from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat_protocol import events
from jumpseat_protocol.permissions import AssistedApproval, CustomToolPermission, PermissionRequest

if TYPE_CHECKING:
    # Most sessions have none.
    from jumpseat.agent.profiles import Profile
    from jumpseat.agent.session.budget import SessionBudget
    from jumpseat.agent.session.client_tasks import ClientTasks
    from jumpseat.agent.session.prefix import SentPrefix

log = logging.getLogger(__name__)


_PORTABLE: Final = ("", Portability())

AllowOldClients: TypeAlias = bool | Literal["client_tools"]
"""Calls that run although a client of protocol 2 cannot be asked: all, or only those of its own tools."""


def store_no_options(_session: Session) -> None:
    """Do nothing: the session has no file for its options."""


def store_no_checkpoint(session: Session, _title: str, _summary: str) -> tuple[int, str | None]:
    """Return the number of a summary that is not stored in a file."""
    return session.conversation.checkpoint + 1, None


class SessionServices(Struct, frozen=True):
    """The services that all sessions of a process share.

    ``run_command`` returns whether the commands queued behind it have to wait for a new request. ``on_change`` is
    called at most once per run of a changed session. ``store_options`` stores the options of a session that changed
    them itself. ``store_checkpoint`` stores a summary under a title and returns its number and its path.
    ``hook_timeout_s`` limits one hook, and the rewriting of the system message. ``compaction`` applies where a
    session does not configure it. ``observers`` receive records of what sessions do. ``find_budget`` returns the
    budget of the session of a main agent; ``None`` without limits. ``read_brief`` describes the project of a
    session, in any thread. With ``None``, the options of sessions decide whether a session ``describes_projects``
    to its model, and whether it ``reminds_of_checks``.
    ``read_agent`` reads the events of a sub-agent from the log, in any thread.
    """

    tasks: TaskGroup
    models: ModelSource
    make_tools: Callable[[Session], ToolRunner]
    read_instructions: Callable[[SessionSettings], str]
    run_prompt: Callable[[Session, Prompt], Awaitable[None]]
    run_command: Callable[[Session, QueuedCommand], Awaitable[bool]]
    retry: RetryPolicy
    allow_unasked: bool
    allow_old_clients: AllowOldClients
    on_change: Callable[[Session], None] = lambda _session: None
    hook_timeout_s: float = HOOK_TIMEOUT_S
    hook_commands: Callable[[Session], HookCommands] = lambda _session: NoHookCommands()
    secrets: Secrets = field(default_factory=Secrets)
    policy: Policy = field(default_factory=Policy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    skills: Callable[[Session], Skills] = lambda _session: NoSkills()
    observers: Observers = field(default_factory=Observers)
    store_options: Callable[[Session], None] = store_no_options
    read_agent: Callable[[Session, str], Iterable[LoggedEvent]] = lambda _session, _agent_id: ()
    clock: Clock = field(default_factory=SystemClock)
    agent_limits: AgentLimits = field(default_factory=AgentLimits)
    written_budget: WrittenBudget = field(default_factory=WrittenBudget)
    store_checkpoint: Callable[[Session, str, str], tuple[int, str | None]] = store_no_checkpoint
    find_budget: Callable[[Session], SessionBudget | None] = lambda _session: None
    read_brief: Callable[[SessionSettings], Brief] = lambda _settings: Brief()
    describes_projects: bool | None = None
    reminds_of_checks: bool | None = None


class Work(Struct):
    """The changes of a prompt: they were ``checked`` since, or the model was ``reminded`` of that."""

    checked: bool = False
    reminded: bool = False


class Warned(Struct):
    """The last warning to clients, so that it is not repeated with each prompt.

    ``portability``: the provider of the last call, and the content that it could not be sent unchanged.
    ``hosted_tools``: those that the provider does not have. ``capability``: what the model is known to lack.
    ``agent_model``: why the model of the custom agent is not available. ``written_calls``: whether its model has
    written a call as text. ``dropped_tools``: whether the server of the model seems to drop the tools.
    ``tools``: names that no tool has.
    ``members``: those of requests that have no effect.
    """

    portability: tuple[str, Portability] = _PORTABLE
    hosted_tools: Sequence[str] = ()
    capability: str = ""
    agent_model: str = ""
    written_calls: bool = False
    dropped_tools: bool = False
    tools: frozenset[str] = frozenset()
    members: set[str] = field(default_factory=set[str])


class Session:
    """A session that is live in this process. ``started_at`` is an ISO 8601 timestamp.

    ``identity`` is set for the session of a sub-agent, ``root`` is the session of the main agent.
    """

    identity: SubAgentIdentity | None = None

    def __init__(
        self,
        session_id: str,
        settings: SessionSettings,
        storage: Storage,
        services: SessionServices,
        started_at: str,
    ) -> None:
        self.id = session_id
        self.settings = settings
        self.started_at = started_at
        self.services = services
        self.storage = storage
        self.history = History()
        self.written = WrittenMessages(services.written_budget)
        self.clients = self._make_clients()
        # One bound method for all parts: each access to the name makes another.
        emit = self.emit
        self.canvases = Canvases(session_id, settings, self.clients, emit)
        self.hooks = Hooks(
            session_id,
            settings,
            emit,
            self.clients.hook_client,
            self._make_hook_commands(),
            services.hook_timeout_s,
            None if self.identity is None else self.identity.members,
        )
        # The source that the `sessionStart` hook gets before the first prompt; `None` after the hook was called.
        self.start_source: str | None = "new"
        self.permissions = self._make_permissions(storage.own_folders)
        self.tools: ToolRunner = services.make_tools(self)
        self.metrics = Metrics()
        self.run_clock = RunClock(self.metrics.total, storage.append_run)
        self.compactor = Compactor(services.tasks)
        self.queue = Queue(
            session_id,
            services.tasks,
            _QueueCallbacks(self),
        )
        self.autopilot = Autopilot(
            settings,
            self.metrics,
            storage,
            emit,
            most=services.agent_limits.continues,
            available=self.identity is None,
        )
        self.schedules = Schedules(services.tasks, services.clock, self.send, emit)
        self.warned = Warned()
        # The last request to the model of the session, once there was one.
        self.sent_prefix: SentPrefix | None = None
        # The agents that have used the ids of calls: "" is the main agent.
        self.call_owners: dict[str, str] = {}
        # The tools of clients that the model was offered and does not know to be gone, in the order of the offer.
        self._offered: dict[str, None] = {}
        # The trace of the request that opened the session here.
        self.opened_in: TraceContext | None = None
        self._log = storage.log
        self.delivery = Delivery(session_id, self.clients, storage.log.announcements)
        self._changed = False
        # The tokens of a prompt that the model of the last request takes.
        self.prompt_limit: int | None = None
        # The name of the model that was resolved last, as in the settings, and its profile.
        self._profile: tuple[str | None, Profile] | None = None
        # Whether a run that has not ended yet was aborted, and not only interrupted.
        self._aborted = False
        # The sub-agents, and the tasks of clients, once the session has had one.
        self.agents: RunningAgents | None = None
        self.client_tasks: ClientTasks | None = None
        # The budget of the session of a main agent, once a model is called under one.
        self.budget: SessionBudget | None = None
        self.project = ProjectBriefs(session_id, storage, services.read_brief)
        # The work of the running prompt, once it has changed a file.
        self.work: Work | None = None
        # Whether the user has denied a command that checks the work.
        self.refuses_checks = False

    def _make_clients(self) -> Clients:
        return Clients(self.id, self.emit, self._tell, lambda: self.settings.options.model or "default")

    def _make_hook_commands(self) -> HookCommands:
        return self.services.hook_commands(self)

    def _make_permissions(self, own_folders: tuple[Path, ...]) -> Permissions:
        """Create the permission state; ``own_folders`` are the folders on the disk that are the session's own."""
        services, settings = self.services, self.settings
        return Permissions(
            self.emit,
            self.clients.can_ask_permission,
            self._may_run_unasked,
            PathScope(
                cwd=lambda: settings.cwd,
                session_folders=own_folders,
                guarded=services.policy.guarded,
                trusts=services.policy.is_trusted,
            ),
            services.policy,
            self._judge,
            services.observers,
            self.id,
            lambda: settings.host_policies,
            datetime.fromisoformat(self.started_at).timestamp(),
        )

    async def _judge(self, request: PermissionRequest, model: str | None) -> AssistedApproval:
        services = self.services
        judge = PermissionJudge(
            services.models,
            self.settings,
            self.clients.ask_token,
            lambda: self.history.latest_prompts,
            services.policy.judge,
            services.observers,
            self.id,
            self.permissions.judging_instructions,
            self.admit,
        )
        return await judge(request, model)

    # --- events -------------------------------------------------------------------------------------------------

    def emit(self, payload: events.EventPayload, *, ephemeral: bool = False) -> events.Event:
        """Publish an event: number it, write it to the log if it is persisted, then announce it to all clients.

        ``ephemeral`` keeps an event out of the log that would be persisted otherwise.

        Raises:
            StoreError: a persisted event could not be written, and was not announced.
        """
        event = self._make_event(payload, ephemeral=ephemeral)
        if event.persisted:
            self._log.append(event)
            self.apply(event.id, event.payload)
            # Lists show nothing of further clients, and each would be told to every connection of the server.
            joins = isinstance(payload, events.SessionResume) and len(self.clients) > 1
            self._changed = self._changed or not joins
        else:
            self.metrics.apply(event.payload)
        self._announce(event)
        if not self.working and (self._changed or event.persisted):
            if self._changed:
                self._report_change()
            self._log.sync_soon()
        return event

    def emit_for(
        self, agent: SubAgentIdentity, payload: events.EventPayload, *, ephemeral: bool = False
    ) -> events.Event:
        """Publish an event of a sub-agent, as :meth:`emit` does. The conversation of this session is unaffected."""
        event = self._make_event(payload, ephemeral=ephemeral)
        event.agent_id = agent.id
        if event.persisted:
            self._log.append(event)
            self.history.count(event.id)
            self._changed = True
        self.metrics.apply_of_agent(event.payload)
        self._announce(event)
        return event

    def _make_event(self, payload: events.EventPayload, *, ephemeral: bool) -> events.Event:
        payload = self.services.secrets.mask(payload) if self.services.secrets else payload
        event = events.Event.of(new_id(), utc_now(), self.history.last_event_id, payload, ephemeral=ephemeral)
        if isinstance(payload, events.UserMessage):
            event.id = payload.message_id
        return event

    def apply(self, event_id: str | None, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Update the state of the session with a persisted event, from :meth:`emit` or from the log."""
        self.history.count(event_id)
        kind: type[Any] = type(payload)
        # One table instead of the `apply` of each part, for logs of thousands of events.
        for part, apply in self.applied.get(kind, ()):
            apply(getattr(self, part), payload)

    applied: ClassVar[Parts] = parts_changed(
        history=History,
        conversation=Conversation,
        metrics=Metrics,
        schedules=Schedules,
        autopilot=Autopilot,
        canvases=Canvases,
    )
    """The events that change the state of a session, with the parts that each of them changes."""

    def count_for_agent(self, event_id: str | None, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Count an event of a sub-agent, from the log."""
        self.history.count(event_id)
        self.metrics.apply_of_agent(payload)

    def rewind(self, history: Iterable[LoggedEvent]) -> None:
        """Rebuild the conversation from ``history`` after the log was truncated. Settings and metrics stay."""
        self.compactor.last_size = None
        self.history.rewind(self._pass_canvases(history))
        self.delivery.invalidate()

    @property
    def conversation(self) -> Conversation:
        """Return the conversation so far."""
        return self.history.conversation

    def _pass_canvases(self, history: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
        """Apply events to the canvases on their way. The events of a long session are never all in memory."""
        for event in history:
            if event[1] is None:
                self.canvases.apply(event[2])
            yield event

    def _announce(self, event: events.Event, only: Client | None = None) -> None:
        if self.identity is None:
            self.run_clock.note(event)
        self.delivery.send(event, self.history.event_count, only)

    def _report_change(self) -> None:
        self._changed = False
        self.services.on_change(self)

    async def drain_clients(self) -> None:
        """Wait until an attached client has caught up with the events sent to it: a slower one delays no other."""
        await self.clients.drain()

    @property
    def log(self) -> EventLog:
        """Return the log of the session."""
        return self._log

    @property
    def transcript_path(self) -> str:
        """Return the path of the session's log."""
        return f"{self.storage.shown_path}/events.jsonl"

    def use_model(
        self, model: str, source: str | None, *, reasoning_effort: str | None = None, cause: str | None = None
    ) -> None:
        """Switch to another model from the next call on. The log records it for resumed sessions.

        Adapter settings that the new model does not accept are dropped, with a warning.
        """
        settings = self.settings
        previous, effort = settings.options.model, reasoning_effort or settings.options.reasoning_effort
        edit_tools = self.profile().edit_tools
        settings.set_options(model=model, reasoning_effort=effort)
        self.compactor.last_size = None
        self.emit(
            events.SessionModelChange(
                new_model=model,
                previous_model=previous,
                reasoning_effort=reasoning_effort,
                source=source,
                cause=cause,
            )
        )
        if self.profile().edit_tools != edit_tools:
            self.emit(events.SessionToolsUpdated(model=model))
        self.drop_unsupported_settings()

    def note_profile(self, model: str | None, profile: Profile) -> None:
        """Remember the profile of the model that the settings call ``model``."""
        self._profile = model, profile

    def profile(self, settings: SessionSettings | None = None) -> Profile:
        """Return the profile of the model of these settings, judged by its name if it has not been resolved yet."""
        model = (settings or self.settings).for_model().options.model
        if self._profile is not None and self._profile[0] == model:
            return self._profile[1]
        # Imported with the first session that offers tools.
        from jumpseat.agent.profiles import profile_of

        return profile_of(model or "")

    def drop_unsupported_settings(self) -> None:
        """Drop the adapter settings that the model does not accept, and warn the client."""
        settings = self.settings
        if settings.options.adapter_settings and (unfit := self.services.models.unsupported_settings(settings)):
            kept = {key: value for key, value in settings.options.adapter_settings.items() if key not in unfit}
            settings.set_options(adapter_settings=kept)
            dropped = ", ".join(unfit)
            text = f"{settings.options.model} does not accept these adapterSettings, which are dropped: {dropped}."
            self.emit(events.SessionWarning(warning_type="portability", message=text))
            self.services.store_options(self)

    def announce_agent(self, before: str | None) -> None:
        """Publish that the custom agent differs from ``before``, if it does.

        An agent that is no longer in the settings is deselected.
        """
        agent = self.settings.custom_agent
        self.settings.set_options(agent=None if agent is None else agent.name)
        if self.settings.options.agent == before:
            return
        if agent is None:
            self.emit(events.SubagentDeselected())
        else:
            self.emit(
                events.SubagentSelected(
                    agent_name=agent.name,
                    agent_display_name=agent.display_name or agent.name,
                    tools=agent.tools,
                )
            )

    # --- clients ------------------------------------------------------------------------------------------------

    def attach(self, attachment: Attachment) -> None:
        """Attach a client; attaching again replaces what it provided before.

        Raises:
            InvalidRequestError: a tool has the name of another client's tool, or the name of a built-in tool
            without
                declaring that it replaces it.
        """
        self.tools.check(attachment.tools)
        self.clients.attach(attachment)

    async def detach(self, attachment: Attachment) -> None:
        """Detach a client that asked to leave, after the ``sessionEnd`` hooks were called."""
        is_last = len(self.clients) == 1
        if (attachment.has_hooks or is_last) and not attachment.leaving:
            attachment.leaving = True
            client = attachment.client if attachment.has_hooks else None
            await self.hooks.session_end("complete", client, is_last=is_last)
            if is_last and self.start_source is None:
                self.start_source = "resume"
        # The client may have attached again in the meantime.
        if self.clients.get(attachment.client) is attachment:
            self.clients.detach(attachment.client)

    async def call_start_hook(self) -> str | None:
        """Report the start of a sub-agent; returns text for its first prompt. The main agent has no such hook."""
        return None

    async def call_stop_hook(self, run: Run, *, again: bool) -> str | None:
        """Report the answer of a sub-agent; returns why it has to go on, if so. The main agent has no such hook.

        ``again`` means that a hook has already made it go on.
        """
        return None

    def note_offered_tools(self, names: Iterable[str]) -> None:
        """Remember which tools of clients a request offers to the model."""
        if of_clients := self.clients.tools():
            self._offered |= dict.fromkeys(name for name in names if name in of_clients)

    def tools_gone(self) -> list[str]:
        """Return the tools of clients that the model was offered, and that have left with their clients."""
        if not self._offered:
            return []
        left = self._offered.keys() - self.clients.tools().keys()
        return [name for name in self._offered if name in left.difference(self.tools.names())] if left else []

    def take_tools_gone(self) -> list[str]:
        """Return :meth:`tools_gone` for the model, which is told once."""
        gone = self.tools_gone()
        for name in gone:
            del self._offered[name]
        return gone

    def tool_question(self, request_id: str, call: ToolUseBlock) -> events.ExternalToolRequested:
        """Build the event that asks clients to run one of their tools."""
        return events.ExternalToolRequested(
            request_id=request_id,
            session_id=self.id,
            tool_call_id=call.id,
            tool_name=call.name,
            arguments=call.arguments,
            working_directory=str(self.settings.cwd),
            **headers_of(self.services.observers.trace_context()),
        )

    def waits_for_absent_client(self) -> bool:
        """Return whether a run waits for an answer although no client is attached."""
        return not len(self.clients) and bool(self.open_questions())

    def open_questions(self) -> list[events.ExternalToolRequested | events.PermissionRequested]:
        """Return the tool calls and permission requests that no client has answered yet."""
        calls = [self.tool_question(call.id, call.question) for call in self.clients.external_calls.open()]
        return [
            *calls,
            *(self.permissions.questions.event(question) for question in self.permissions.questions.pending.open()),
        ]

    def _may_run_unasked(self, request: PermissionRequest) -> bool:
        """Return whether the operator allows a call that no attached client can be asked about."""
        if self.services.allow_unasked:
            return True
        match self.services.allow_old_clients:
            case "client_tools":
                return isinstance(request, CustomToolPermission) and self.clients.runs_tool_over_protocol_2(
                    request.tool_name
                )
            case allowed:
                return allowed and self.clients.any_speaks_protocol_2()

    def add_context(self, text: str, source: str = "hook") -> None:
        """Add a message for the model that is not from the user. ``source`` names where it comes from."""
        self.emit(events.UserMessage(content=text, transformed_content=text, message_id=new_id(), source=source))

    def clear_context(self, prompt: Prompt) -> int:
        """Remove the conversation, and continue the running prompt with ``prompt`` alone.

        Returns:
            The number of messages that were removed.

        Raises:
            InvalidRequestError: no tool call of the session runs.
        """
        if self.queue.prompt is None or not self.conversation.open_calls():
            raise InvalidRequestError(
                "session.history.clearContext must be called from inside a tool handler: no tool call is running"
            )
        self.compactor.cancel()
        self.compactor.last_size = None
        # The last message would hold the results of the calls that still run.
        cleared = len(self.conversation.messages()) - 1
        self.emit(events.SessionContextCleared(initial_message=prompt.text, messages_cleared=cleared))
        self.queue.steer_first(prompt)
        return cleared

    # --- prompts ------------------------------------------------------------------------------------------------

    @property
    def root(self) -> Session:
        """Return the session of the main agent: this one, unless it is that of a sub-agent."""
        return self

    def untold_notifications(self) -> list[events.SystemNotification]:
        """Return what the model has to be told about sub-agents before the next prompt."""
        return [] if self.agents is None else self.agents.take_untold()

    @property
    def working(self) -> bool:
        """Return whether a run or a sub-agent is at work."""
        return self.queue.running or (self.agents is not None and self.agents.working)

    @property
    def cause(self) -> Prompt | None:
        """Return the prompt of the user that is worked on, if any."""
        return self.queue.prompt

    @property
    def reminds_of_checks(self) -> bool:
        """Return whether the model is reminded of the project's check."""
        return _is_on(self.services.reminds_of_checks, self.root.settings.options.check_reminder)

    async def describe_project(self) -> str:
        """Return the description of the project for the model; empty where it has no use of one."""
        described = _is_on(self.services.describes_projects, self.settings.options.project_brief)
        if not described or LOOKING.isdisjoint(self.tools.names()):
            return ""
        return await self.root.project.describe(self.settings)

    async def admit(self, resolved: ResolvedModel) -> None:
        """Check that the budgets allow another call of a model.

        Raises:
            BudgetError: they do not.
            StoreError: the usage of the day is unknown.
        """
        if (budget := self.services.find_budget(self.root)) is not None:
            await budget.admit(resolved)

    async def report_budget(self) -> None:
        """Warn the user about budgets that are almost used up."""
        if (budget := self.root.budget) is not None:
            await budget.report()

    @property
    def compaction_policy(self) -> CompactionPolicy:
        """Return when the conversation is compacted automatically."""
        return self.services.compaction.overridden_by(self.settings.options.infinite_sessions)

    @property
    def agent_mode(self) -> events.AgentMode:
        """Return the mode of the running prompt, or else that of the session."""
        prompt = self.queue.prompt
        return (prompt.agent_mode if prompt is not None else None) or self.settings.mode

    @property
    def reads_only(self) -> bool:
        """Return whether calls may change nothing: in plan mode, and for what was asked of sub-agents in it."""
        return self.agent_mode == "plan"

    def begin_prompt(self, prompt: Prompt) -> None:
        """Give a prompt that continues the work of an earlier one the mode of that one, others a new budget."""
        if prompt.notification is not None or prompt.continues:
            prompt.agent_mode = prompt.agent_mode or ("plan" if self.history.plans else None)
            return
        self.work = None
        if self.budget is not None:
            self.budget.begin_prompt()

    def change_mode(self, mode: events.SessionMode) -> None:
        """Set the mode of the session and of the running prompt. An objective is paused outside of autopilot."""
        self.history.plans = False
        if self.queue.prompt is not None:
            self.queue.prompt.agent_mode = mode
        previous, self.settings.mode = self.settings.mode, mode
        if mode != previous:
            self.emit(events.SessionModeChanged(new_mode=mode, previous_mode=previous))
            if previous == "autopilot":
                self.autopilot.leave()

    def send(self, prompt: Prompt, mode: Literal["enqueue", "immediate"] = "enqueue") -> None:
        """Queue a prompt and return at once. ``immediate`` steers the running prompt with it.

        Raises:
            SessionNotFoundError: the session is closed.
        """
        if mode == "immediate":
            self.queue.steer(prompt)
        else:
            self.queue.add(prompt)

    def abort(self, reason: str) -> Stopped:
        """Abort the run, the sub-agents and any compaction, and drop the queue. Later prompts are not affected.

        Returns:
            An awaitable that ends when nothing runs any more.
        """
        self._aborted = self.queue.running
        stopped = self.queue.abort(reason)
        # After the queue: a prompt that waits for the compaction must not continue.
        self.compactor.cancel()
        return stopped if self.agents is None else self.agents.abort(stopped)

    def interrupt(self, *, flush: bool) -> Stopped | None:
        """Stop the running prompt or command. The queued ones run next if ``flush``, and are dropped otherwise.

        Returns:
            An awaitable that ends when the run has ended; ``None`` if nothing runs.
        """
        if not self.queue.can_interrupt:
            return None
        self.report_interruption()
        stopped = self.queue.interrupt("user_abort", flush=flush)
        self.compactor.cancel()
        return stopped

    def report_interruption(self) -> None:
        """Publish what a user is about to interrupt: tool calls, or a call of the model, if any."""
        prompt = self.queue.prompt
        if prompt is None or prompt.turn_begun_s is None or not self.queue.can_interrupt:
            return
        calls = self.conversation.open_calls()
        self._announce_ephemeral(
            events.AgentInterrupted(
                activity="tool_call" if calls else "model_call",
                turn=prompt.turn,
                elapsed_ms=int((anyio.current_time() - prompt.turn_begun_s) * 1000),
                model=self.settings.for_model().options.model,
                tool_call_ids=[call.id for call in calls] or None,
                tool_names=[call.name for call in calls] or None,
            )
        )

    def flush(self) -> None:
        """Schedule an ``fsync`` of the log."""
        self._log.sync_soon()

    async def close(self, grace_s: float | None = None) -> None:
        """End all work of the session; its log stays. No prompt can be sent to it afterwards.

        ``grace_s`` is the time in seconds that running commands have to end by themselves; ``None`` is the default.
        """
        self.schedules.close()
        stopped = self.queue.close()
        self.compactor.cancel()
        if self.agents is not None:
            await self.agents.close(grace_s)
        # Before the run has ended, because it may wait for these commands.
        await self.tools.close(grace_s)
        await self.hooks.commands.close(grace_s)
        await stopped
        # The run may have started a compaction just before it was stopped.
        self.compactor.cancel()
        await self.compactor.wait_until_finished()
        self.permissions.questions.pending.close_all(CANCELLED)
        self.clients.close()
        self._log.sync_soon()
        self.delivery.close()

    def end_run(self, aborted: bool) -> events.Event | None:
        """Publish the end of a run; ``session.idle`` is its last event, and waits for sub-agents in the background.

        Returns:
            The event ``session.idle``; ``None`` if it follows later.
        """
        if self._changed:
            self._report_change()
        flag = True if aborted else None
        self._announce_ephemeral(events.AssistantIdle(aborted=flag))
        if self._aborted and self.agents is not None:
            # A command may have gone to the background between the abort and the end of its run.
            self.agents.forget_commands()
        self._aborted = False
        if self.agents is not None and self.agents.go_on():
            return None
        return self._become_idle(flag)

    def end_background_work(self) -> None:
        """Publish ``session.idle`` after the last sub-agent has ended, if a run has left that open."""
        unsettled = self.queue.unsettled
        if self.queue.running or not unsettled:
            return
        if self._changed:
            self._report_change()
        self.queue.settle(self._become_idle(True if any(run.aborted for run in unsettled) else None))

    def _become_idle(self, aborted: bool | None) -> events.Event:
        self.autopilot.settle()
        idle = self._make_ephemeral(events.SessionIdle(mode=self.settings.mode, aborted=aborted))
        self.delivery.keep(idle)
        self._announce(idle)
        self._log.sync_soon()
        return idle

    def _tell(self, client: Client, payload: events.EventPayload) -> None:
        self._announce_ephemeral(payload, client)

    def _announce_ephemeral(self, payload: events.EventPayload, only: Client | None = None) -> events.Event:
        event = self._make_ephemeral(payload)
        self._announce(event, only)
        return event

    def _make_ephemeral(self, payload: events.EventPayload) -> events.Event:
        payload = self.services.secrets.mask(payload)
        return events.Event.of(new_id(), utc_now(), self.history.last_event_id, payload, ephemeral=True)

    def record_abort(self) -> None:
        """Publish that the user aborted the run. Called when a run is cancelled."""
        self.emit(events.Abort(reason=self.queue.abort_reason))
        self.emit(events.PendingMessagesModified())

    def announce_pause(self) -> None:
        """Publish that the model has stopped in the middle of a run."""
        self._announce_ephemeral(events.AssistantIdle())

    def fail(self, payload: events.SessionError) -> events.Event:
        """Publish the error that ends a prompt. If it cannot be written to the log, it is announced anyway."""
        try:
            return self.emit(payload)
        except StoreError as error:
            log.error("session %s: cannot write an error to the log: %s", self.id, error)
            return self._announce_ephemeral(payload)


class _QueueCallbacks:
    """Runs the items of a session's queue. Implements :class:`jumpseat.agent.session.queue.Callbacks`.

    One object with one reference, where five functions would take ten times the memory of each session.
    """

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def run_prompt(self, prompt: Prompt) -> Awaitable[None]:
        self._session.begin_prompt(prompt)
        return self._session.services.run_prompt(self._session, prompt)

    def run_command(self, command: QueuedCommand) -> Awaitable[bool]:
        return self._session.services.run_command(self._session, command)

    def on_change(self) -> None:
        self._session.emit(events.PendingMessagesModified())

    def store(self) -> Awaitable[None]:
        return self._session.log.flush()

    def end_run(self, aborted: bool) -> events.Event | None:
        return self._session.end_run(aborted)


def _is_on(by_server: bool | None, by_client: bool | None) -> bool:
    """Return whether an option is on: the server can switch it off for all, and decides for clients that do not."""
    return bool(by_server) if by_server is False or by_client is None else by_client
