"""One session: its settings, its events, its clients, and the prompts that wait for their turn.

A session outlives connections. It publishes every event in one place (:meth:`Session.emit`): persisted ones are
written to the log first and announced second. What running a prompt means is the loop's business.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from anyio.abc import TaskGroup

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.client import Attachment, Client
from jumpseat.agent.clock import utc_now
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat.agent.conversation.mentions import mentions
from jumpseat.agent.conversation.portability import Portability
from jumpseat.agent.interfaces import EventLog, ModelSource, ToolRunner
from jumpseat.agent.permissions.facts import PathScope
from jumpseat.agent.permissions.judge import MAX_PROMPTS, PermissionJudge
from jumpseat.agent.permissions.permissions import Permissions, Policy
from jumpseat.agent.permissions.questions import CANCELLED
from jumpseat.agent.retry import RetryPolicy
from jumpseat.agent.secrets import Secrets
from jumpseat.agent.session.clients import Clients
from jumpseat.agent.session.compactor import CompactionPolicy, Compactor
from jumpseat.agent.session.event_buffer import EventBuffer
from jumpseat.agent.session.hooks import HOOK_TIMEOUT_S, Hooks
from jumpseat.agent.session.metrics import Metrics
from jumpseat.agent.session.queue import Callbacks, Prompt, Queue, QueuedCommand
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import NoSkills, Skills
from jumpseat.errors import StoreError
from jumpseat_protocol import events

log = logging.getLogger(__name__)

LIMITS: Final = "session_limits"
"""Where a message comes from that tells the model what it may still use up."""


@dataclass(frozen=True, slots=True)
class SessionServices:
    """The services that all sessions of a process share.

    ``run_command`` returns whether the commands queued behind it have to wait for a new request. ``on_change`` is
    called at most once per run of a changed session. ``keep_options`` stores the options of a session that changed
    them itself. ``keep_checkpoint`` stores a summary under a title and returns its number and its path.
    ``hook_timeout_s`` limits one hook, and the rewriting of the system message. ``compaction`` applies where a
    session does not configure it.
    """

    tasks: TaskGroup
    models: ModelSource
    make_tools: Callable[[Session], ToolRunner]
    read_instructions: Callable[[SessionSettings], str]
    run_prompt: Callable[[Session, Prompt], Awaitable[None]]
    run_command: Callable[[Session, QueuedCommand], Awaitable[bool]]
    retry: RetryPolicy
    allow_unasked: bool
    allow_old_clients: bool
    on_change: Callable[[Session], None]
    hook_timeout_s: float = HOOK_TIMEOUT_S
    secrets: Secrets = field(default_factory=Secrets)
    policy: Policy = field(default_factory=Policy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    skills: Callable[[Session], Skills] = lambda _session: NoSkills()
    keep_options: Callable[[Session], None] = lambda _session: None
    keep_checkpoint: Callable[[Session, str, str], tuple[int, str | None]] = lambda session, _title, _summary: (
        session.conversation.checkpoint + 1,
        None,
    )


class Session:
    def __init__(
        self,
        session_id: str,
        settings: SessionSettings,
        event_log: EventLog,
        services: SessionServices,
        started_at: str,
    ) -> None:
        self.id = session_id
        self.settings = settings
        self.started_at = started_at
        self.services = services
        self.conversation = Conversation()
        self.clients = Clients(session_id, self.emit, self._tell)
        self.hooks = Hooks(session_id, settings, self.emit, self.clients.hook_client, services.hook_timeout_s)
        # What the `sessionStart` hook is told before the first prompt; `None` once it has fired.
        self.start_source: str | None = "new"
        self.latest_prompts: deque[str] = deque(maxlen=MAX_PROMPTS)
        folder = event_log.path.parent
        self.permissions = Permissions(
            self.emit,
            self.clients.can_ask_permission,
            self._may_run_unasked,
            PathScope(
                cwd=lambda: settings.cwd,
                session_folders=(folder / "temp", folder / "files"),
                guarded=services.policy.guarded,
            ),
            services.policy,
            PermissionJudge(
                services.models,
                settings,
                self.clients.ask_token,
                lambda: self.latest_prompts,
                services.policy.judge,
            ),
        )
        self.tools: ToolRunner = services.make_tools(self)
        self.metrics = Metrics()
        self.compactor = Compactor(services.tasks)
        self.queue = Queue(
            session_id,
            services.tasks,
            Callbacks(
                prompt=lambda prompt: services.run_prompt(self, prompt),
                command=lambda command: services.run_command(self, command),
                changed=lambda: self.emit(events.PendingMessagesModified()),
                ended=self._idle,
            ),
        )
        # The provider of the last call, and what it could not be given as it was; the client has been told.
        self.portability: tuple[str, Portability] = ("", Portability())
        # The tools that its provider does not have; the client has been told.
        self.hosted_tools_missing: list[str] = []
        # What it was last asked for that it is known not to do; the client has been told.
        self.capability = ""
        # Why the custom agent cannot have its model; the client has been told.
        self.agent_model_missing = ""
        self._event_buffer: EventBuffer | None = None
        self.event_count = 0
        self.first_prompt: str | None = None
        # The tools and groups that prompts have mentioned so far.
        self.mentions: set[str] = set()
        # The tools that were called, or found by a search.
        self.tools_in_use: set[str] = set()
        # What the model was told last of the limits.
        self.limits_told: str | None = None
        self.last_event_id: str | None = None
        self._log = event_log
        self._changed = False

    # --- events -------------------------------------------------------------------------------------------------

    def emit(self, payload: events.EventPayload, *, ephemeral: bool = False) -> events.Event:
        """Publish an event: number it, write it down if it is persisted, then tell every attached client.

        ``ephemeral`` keeps out of the log what is persisted otherwise.

        Raises:
            StoreError: a persisted event could not be written; nobody was told of it.
        """
        payload = self.services.secrets.mask(payload) if self.services.secrets else payload
        event = events.Event(str(uuid.uuid4()), utc_now(), self.last_event_id, payload, ephemeral=ephemeral)
        if isinstance(payload, events.UserMessage):
            event.id = payload.message_id
        if event.persisted:
            self._log.append(event)
            self.apply(event.id, payload)
            self._changed = True
        else:
            self.metrics.apply(payload)
        self._announce(event)
        if self._changed and not self.queue.running:
            self._report_change()
            self._log.sync_soon()
        return event

    def apply(self, event_id: str | None, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Take a persisted event into account; live ones come from :meth:`emit`, old ones from the log."""
        self.metrics.apply(payload)
        self._advance(event_id, payload)

    def rewind(self, history: Iterable[tuple[str | None, events.EventPayload | events.UnknownPayload]]) -> None:
        """Go back to where the log was cut to ``history``. Settings, metrics and what is written elsewhere stay."""
        self.compactor.size_then = None
        self.conversation = Conversation()
        self.event_count = 0
        self.last_event_id = None
        self.limits_told = None
        self.mentions.clear()
        self.tools_in_use.clear()
        for event_id, payload in history:
            self._advance(event_id, payload)
        if self._event_buffer is not None:
            self._event_buffer.forget()

    @property
    def event_buffer(self) -> EventBuffer:
        """The latest events, for clients that poll; they are kept from the first look on."""
        if self._event_buffer is None:
            self._event_buffer = EventBuffer()
        return self._event_buffer

    def _advance(self, event_id: str | None, payload: events.EventPayload | events.UnknownPayload) -> None:
        self.last_event_id = event_id
        self.event_count += 1
        if self.first_prompt is None and isinstance(payload, events.UserMessage) and payload.source is None:
            self.first_prompt = payload.content
        if isinstance(payload, events.UserMessage) and payload.source is None:
            self.latest_prompts.append(payload.content)
        if isinstance(payload, events.UserMessage) and payload.source == LIMITS:
            self.limits_told = payload.content
        if isinstance(payload, events.SessionCompactionComplete) and payload.success:
            # It is not in the summary.
            self.limits_told = None
        if isinstance(payload, events.UserMessage) and payload.source is None:
            self.mentions.update(mentions(payload.content))
        if isinstance(payload, events.ToolExecutionStart):
            self.tools_in_use.add(payload.tool_name)
        if isinstance(payload, events.ToolSearchActivated):
            self.tools_in_use.update(payload.tool_names)
        self.conversation.apply(payload)

    def _announce(self, event: events.Event, only: Client | None = None) -> None:
        if self._event_buffer is not None:
            self._event_buffer.add(event, self.event_count)
        for client in self.clients if only is None else [only]:
            client.deliver(self.id, event)

    def _report_change(self) -> None:
        self._changed = False
        self.services.on_change(self)

    async def drained(self) -> None:
        """Wait for the attached clients to keep up."""
        for client in self.clients:
            await client.drained()

    @property
    def transcript_path(self) -> str:
        """The file of the session's log."""
        return str(self._log.path)

    def use_model(
        self, model: str, source: str | None, *, reasoning_effort: str | None = None, cause: str | None = None
    ) -> None:
        """Call another model from the next call on; the log says so, for who resumes the session.

        Settings of the adapter that the new one does not take are taken back, and the client is told.
        """
        settings = self.settings
        previous, settings.model = settings.model, model
        self.compactor.size_then = None
        settings.reasoning_effort = reasoning_effort or settings.reasoning_effort
        self.emit(
            events.SessionModelChange(
                new_model=model,
                previous_model=previous,
                reasoning_effort=reasoning_effort,
                source=source,
                cause=cause,
            )
        )
        self.drop_unsupported_settings()

    def drop_unsupported_settings(self) -> None:
        """Settings of the adapter that the model does not take are gone from now on, and the client is told."""
        settings = self.settings
        if settings.adapter_settings and (unfit := self.services.models.unfit_settings(settings)):
            kept = {key: value for key, value in settings.adapter_settings.items() if key not in unfit}
            settings.adapter_settings = kept
            gone = ", ".join(unfit)
            text = f"{settings.model} cannot be given these adapterSettings, which are taken back: {gone}."
            self.emit(events.SessionWarning(warning_type="portability", message=text))
            self.services.keep_options(self)

    def agent_changed(self, before: str | None) -> None:
        """Say that the session works as another agent than ``before``, where it does.

        One that is gone from its settings is no longer worked as.
        """
        agent = self.settings.custom_agent
        self.settings.agent = None if agent is None else agent.name
        if self.settings.agent == before:
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
        """Let a client take part; attaching again replaces what it brought before.

        Raises:
            InvalidRequestError: a tool has the name of another client's tool, or of a built-in one without saying
                that it replaces it.
        """
        self.tools.check(attachment.tools)
        self.clients.attach(attachment)

    async def detach(self, attachment: Attachment) -> None:
        """Let a client leave that has said so; its hook is told while it is still there to be asked."""
        if attachment.has_hooks and not attachment.leaving:
            attachment.leaving = True
            await self.hooks.session_end("complete", attachment.client)
        # It may have come back in the meantime.
        if self.clients.get(attachment.client) is attachment:
            self.clients.detach(attachment.client)

    def tool_question(self, request_id: str, call: ToolUseBlock) -> events.ExternalToolRequested:
        """What clients are asked when one of their tools is called."""
        return events.ExternalToolRequested(
            request_id=request_id,
            session_id=self.id,
            tool_call_id=call.id,
            tool_name=call.name,
            arguments=call.arguments,
            working_directory=str(self.settings.cwd),
        )

    def waits_for_absent_client(self) -> bool:
        """Whether a run waits for a client that is gone."""
        return not len(self.clients) and bool(self.open_questions())

    def open_questions(self) -> list[events.ExternalToolRequested | events.PermissionRequested]:
        """What clients were asked to run and to permit, and nobody has answered yet."""
        calls = [self.tool_question(one.id, one.question) for one in self.clients.external_calls.open()]
        return [
            *calls,
            *(self.permissions.questions.event(one) for one in self.permissions.questions.pending.open()),
        ]

    def _may_run_unasked(self) -> bool:
        """Whether the operator allows what no attached client can be asked about."""
        return self.services.allow_unasked or (
            self.services.allow_old_clients and self.clients.any_speaks_protocol_2()
        )

    def add_context(self, text: str, source: str = "hook") -> None:
        """Tell the model something that is not from the user; it comes in as a message of its own."""
        self.emit(
            events.UserMessage(content=text, transformed_content=text, message_id=str(uuid.uuid4()), source=source)
        )

    # --- prompts ------------------------------------------------------------------------------------------------

    @property
    def compaction_policy(self) -> CompactionPolicy:
        """When the conversation is compacted by itself."""
        return self.services.compaction.overridden_by(self.settings.infinite_sessions)

    @property
    def agent_mode(self) -> events.AgentMode:
        """How the prompt that runs is to be worked on: as it says itself, else as the session does."""
        prompt = self.queue.prompt
        return (prompt.agent_mode if prompt is not None else None) or self.settings.mode

    def change_mode(self, mode: events.SessionMode) -> None:
        """Work on in another mode, the prompt that runs included."""
        if self.queue.prompt is not None:
            self.queue.prompt.agent_mode = mode
        previous, self.settings.mode = self.settings.mode, mode
        if mode != previous:
            self.emit(events.SessionModeChanged(new_mode=mode, previous_mode=previous))

    def send(self, prompt: Prompt, mode: Literal["enqueue", "immediate"] = "enqueue") -> None:
        """Queue a prompt and return at once. ``immediate`` slips it into the prompt that runs now.

        Raises:
            SessionNotFoundError: the session is closed.
        """
        if mode == "immediate":
            self.queue.steer(prompt)
        else:
            self.queue.add(prompt)

    def abort(self, reason: str) -> Awaitable[None]:
        """Stop what runs, a compaction too, and forget what waits: a prompt sent after this call is not touched.

        Returns:
            What to await for all to be quiet.
        """
        stopped = self.queue.abort(reason)
        # Behind what may wait for it, which is not to go on now.
        self.compactor.cancel()
        return stopped

    def flush(self) -> None:
        """Have the log brought to the disk."""
        self._log.sync_soon()

    async def close(self, grace_s: float | None = None) -> None:
        """End the session's work; its log stays. Nothing can be sent to it any more.

        ``grace_s`` is how long commands may take to end by themselves, where it is not to be the usual time.
        """
        stopped = self.queue.close()
        self.compactor.cancel()
        # Before the run has ended, because it may wait for just these commands.
        await self.tools.close(grace_s)
        await stopped
        # A run may have begun one just when it was stopped.
        self.compactor.cancel()
        await self.compactor.finished()
        self.permissions.questions.pending.close_all(CANCELLED)
        self.clients.close()
        self._log.sync_soon()
        if self._event_buffer is not None:
            self._event_buffer.close()

    def _idle(self, aborted: bool) -> events.Event:
        """The end of a run: `session.idle` is its last word."""
        if self._changed:
            self._report_change()
        flag = True if aborted else None
        self._announce_ephemeral(events.AssistantIdle(aborted=flag))
        idle = self._announce_ephemeral(events.SessionIdle(mode=self.settings.mode, aborted=flag))
        self._log.sync_soon()
        return idle

    def _tell(self, client: Client, payload: events.EventPayload) -> None:
        self._announce_ephemeral(payload, client)

    def _announce_ephemeral(self, payload: events.EventPayload, only: Client | None = None) -> events.Event:
        payload = self.services.secrets.mask(payload)
        event = events.Event(str(uuid.uuid4()), utc_now(), self.last_event_id, payload)
        self._announce(event, only)
        return event

    def record_abort(self) -> None:
        """Write down that the user stopped the run. Called by the loop on its way out."""
        self.emit(events.Abort(reason=self.queue.abort_reason))
        self.emit(events.PendingMessagesModified())

    def fail(self, payload: events.SessionError) -> events.Event:
        """Publish a final error; one that cannot be written down is announced all the same."""
        try:
            return self.emit(payload)
        except StoreError as error:
            log.error("session %s: its error is not in the log: %s", self.id, error)
            return self._announce_ephemeral(payload)
