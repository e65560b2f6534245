"""The session of a sub-agent: its own conversation, inside the session of the main agent.

It has its own conversation, queue, tools and settings. Log, clients, permissions and files are those of the main
agent's session, whose clients see its events with the id of the sub-agent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.clock import new_id, utc_now
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.agent.session.clients import Clients
from jumpseat.agent.session.hooks import HookCommands
from jumpseat.agent.session.queue_items import Prompt, Run, Stopped
from jumpseat.agent.session.session import Session, SessionServices, store_no_checkpoint, store_no_options
from jumpseat.agent.session.sub_agents import SubAgentIdentity
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol import events
from jumpseat_protocol.sessions import CustomAgentConfig, DefaultAgentConfig, SystemMessageConfig

_OF_MAIN: Final = (events.ExternalToolRequested, events.ExternalToolCompleted)
"""Questions to clients, which are those of the main agent's session."""
_OF_NOBODY: Final = (events.PendingMessagesModified, events.AssistantIdle)
"""Events about the queue of the main agent, which a sub-agent has no part in."""
_DELTAS: Final = (events.MessageStart, events.MessageDelta, events.ReasoningDelta, events.ToolCallDelta)


class SubAgentSession(Session):
    """The session of one sub-agent. ``on_event`` is called with each of its events."""

    def __init__(
        self,
        root: Session,
        identity: SubAgentIdentity,
        settings: SessionSettings,
        on_event: Callable[[events.Event], None],
    ) -> None:
        self.identity = identity
        self._root = root
        self._on_event = on_event
        super().__init__(root.id, settings, root.storage, _services(root.services), root.started_at)
        # Whether the hook for the start of the agent is still to be called.
        self.is_new = False
        self.canvases.detach()
        self.canvases = root.canvases
        self.start_source = None

    @property
    def root(self) -> Session:
        return self._root

    @property
    def cause(self) -> Prompt | None:
        return self.root.queue.prompt or self._identity.cause

    @property
    def reads_only(self) -> bool:
        return super().reads_only or self.root.reads_only

    @property
    def _identity(self) -> SubAgentIdentity:
        assert self.identity is not None, "set by the constructor"
        return self.identity

    def _make_clients(self) -> Clients:
        return self.root.clients

    def _make_hook_commands(self) -> HookCommands:
        return self.root.hooks.commands

    def _make_permissions(self, own_folders: tuple[Path, ...]) -> Permissions:
        return self.root.permissions

    def emit(self, payload: events.EventPayload, *, ephemeral: bool = False) -> events.Event:
        if isinstance(payload, _OF_MAIN):
            return self.root.emit(payload, ephemeral=ephemeral)
        if isinstance(payload, _OF_NOBODY) or (
            isinstance(payload, _DELTAS) and not self.root.settings.options.include_sub_agent_streaming_events
        ):
            return self._unpublished(payload)
        if getattr(payload, "parent_tool_call_id", "") is None:
            payload.parent_tool_call_id = self._identity.call_id  # pyright: ignore[reportAttributeAccessIssue]
        event = self.root.emit_for(self._identity, payload, ephemeral=ephemeral)
        if event.persisted:
            self.apply(event.id, event.payload)
        else:
            self.metrics.apply(event.payload)
        self._on_event(event)
        return event

    def fail(self, payload: events.SessionError) -> events.Event:
        """Return the error that ends a prompt, unpublished: clients would take it for the end of the session's run.

        The agent that has started this one gets the error.
        """
        return self._unpublished(payload)

    async def call_start_hook(self) -> str | None:
        if not self.is_new:
            return None
        self.is_new = False
        # Like the events of the call, the hooks for the start and the end are those of the main agent's session.
        answer = await self.root.hooks.subagent_start(self.transcript_path, self._facts())
        return answer.additional_context

    async def call_stop_hook(self, run: Run, *, again: bool) -> str | None:
        response = answer_of(run) or ""
        answer = await self.root.hooks.subagent_stop(self.transcript_path, self._facts(), response, again=again)
        if answer.decision == "block":
            return answer.reason or "Go on."
        run.response = answer.modified_response
        return None

    def _facts(self) -> JsonObject:
        """Return what hooks are told about the agent."""
        identity = self._identity
        return {
            **identity.members,
            "agentName": identity.type,
            "agentDisplayName": identity.name,
            "agentDescription": identity.description,
        }

    def abort(self, reason: str) -> Stopped:
        stopped = self.queue.abort(reason)
        self.compactor.cancel()
        return stopped

    async def close(self, grace_s: float | None = None) -> None:
        stopped = self.queue.close()
        self.compactor.cancel()
        await self.tools.close(grace_s)
        await stopped
        self.compactor.cancel()
        await self.compactor.wait_until_finished()

    def record_abort(self) -> None:
        """Publish nothing: the end of the sub-agent says that it was cancelled."""

    def end_run(self, aborted: bool) -> events.Event:
        return self._unpublished(events.AssistantIdle(aborted=aborted or None))

    def _unpublished(self, payload: events.EventPayload) -> events.Event:
        return events.Event.of(new_id(), utc_now(), self.history.last_event_id, payload, ephemeral=True)


def answer_of(run: Run) -> str | None:
    """Return the text of a run's answer; ``None`` if it has none, or one that only calls tools."""
    payload = run.answer.payload if run.answer is not None else None
    if not isinstance(payload, events.AssistantMessage) or payload.tool_requests or run.aborted:
        return None
    return (run.response if run.response is not None else payload.content) or None


def _ignore_change(_session: Session) -> None:
    """Do nothing: the session of the main agent reports changes."""


def _services(of_root: SessionServices) -> SessionServices:
    """Return the services of a sub-agent's session, which neither stores options nor summaries in files."""
    return replace(
        of_root,
        on_change=_ignore_change,
        store_options=store_no_options,
        store_checkpoint=store_no_checkpoint,
    )


def settings_for(settings: SessionSettings, agent: CustomAgentConfig) -> SessionSettings:
    """Return the settings of a sub-agent that an agent with ``settings`` starts.

    The client's text for the system message is left out: it describes the main agent. An agent without tools of its
    own has those of the agent that starts it.
    """
    if agent.tools is None and settings.custom_agent is not None:
        agent = agent.model_copy(update={"tools": settings.custom_agent.tools})
    return settings.with_options(
        agent=agent.name,
        custom_agents=[agent, *(other for other in settings.options.custom_agents if other.name != agent.name)],
        system_message=SystemMessageConfig(),
        streaming=settings.options.streaming and settings.options.include_sub_agent_streaming_events,
        default_agent=DefaultAgentConfig(),
        tool_choice=None,
        response_format=None,
    )
