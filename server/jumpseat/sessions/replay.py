"""Restore a session from the events of its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from jumpseat.agent.projection import Appliers
from jumpseat.agent.session.history import LoggedEvent
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.store.session.event_log import StoredEvent
from jumpseat_protocol import events

if TYPE_CHECKING:
    from jumpseat.agent.subagents.history import AgentHistory
    from jumpseat.agent.subagents.lost_commands import LostCommands


def replay_events(session: Session, stored: Iterable[StoredEvent]) -> None:
    """Apply the events of a log to ``session``: its conversation, model, mode and agent."""
    settings, history = session.settings, session.history
    agents: AgentHistory | None = None
    commands: LostCommands | None = None
    event_id: str | None = None
    for event in stored:
        # An event without an id has that of the event before it.
        event_id, agent_id = event.id or event_id, event.agent_id
        if agent_id is None and event.type not in APPLIED:
            history.count(event_id)
            continue
        payload = events.decode_json(event.type, event.data)
        called = payload.tool_name if isinstance(payload, events.ToolExecutionStart) else None
        if agents is None and (agent_id is not None or called == "task"):
            # Imported late: most sessions have no sub-agents.
            from jumpseat.agent.subagents.subagents import sub_agents

            agents = sub_agents(session).history()
        if agents is not None:
            agents.apply((event_id, agent_id, payload))
        if agent_id is not None:
            session.count_for_agent(event_id, payload)
            continue
        if commands is None and called == "bash":
            # Imported late, too.
            from jumpseat.agent.subagents.lost_commands import LostCommands

            commands = LostCommands()
        if commands is not None:
            commands.apply(payload)
        session.apply(event_id, payload)
        replay_setting(settings, payload)
    if commands is not None and commands.left:
        from jumpseat.agent.subagents.subagents import sub_agents

        sub_agents(session).commands.report_lost(commands.left)


def replay_setting(settings: SessionSettings, payload: events.EventPayload | events.UnknownPayload) -> None:
    """Apply an event of a log to the settings that the log holds: model, mode and agent."""
    kind: type[Any] = type(payload)
    if (apply := _SETTINGS.get(kind)) is not None:
        apply(settings, payload)


def _start(settings: SessionSettings, payload: events.SessionStart) -> None:
    settings.set_options(model=settings.options.model or payload.selected_model)
    settings.set_options(reasoning_effort=settings.options.reasoning_effort or payload.reasoning_effort)


def _resume(settings: SessionSettings, payload: events.SessionResume) -> None:
    # The options that the resuming client sent.
    settings.set_options(model=payload.selected_model or settings.options.model)
    settings.set_options(reasoning_effort=payload.reasoning_effort or settings.options.reasoning_effort)


def _change_model(settings: SessionSettings, payload: events.SessionModelChange) -> None:
    settings.set_options(model=payload.new_model)
    settings.set_options(reasoning_effort=payload.reasoning_effort or settings.options.reasoning_effort)


def _change_mode(settings: SessionSettings, payload: events.SessionModeChanged) -> None:
    settings.mode = payload.new_mode


def _select_agent(settings: SessionSettings, payload: events.SubagentSelected) -> None:
    settings.set_options(agent=payload.agent_name)


def _deselect_agent(settings: SessionSettings, _: events.SubagentDeselected) -> None:
    settings.set_options(agent=None)


_SETTINGS: Final[Appliers] = {
    events.SessionStart: _start,
    events.SessionResume: _resume,
    events.SessionModelChange: _change_model,
    events.SessionModeChanged: _change_mode,
    events.SubagentSelected: _select_agent,
    events.SubagentDeselected: _deselect_agent,
}


APPLIED: Final = frozenset(kind.type for kind in (*Session.applied, *_SETTINGS))
"""The types of events that change the state of a session. The others, half of a log, are counted."""


def decode_events(stored: Iterable[StoredEvent]) -> Iterator[LoggedEvent]:
    """Yield the events of a log; an event without an id has that of the event before it."""
    event_id: str | None = None
    for event in stored:
        event_id = event.id or event_id
        yield event_id, event.agent_id, events.decode_json(event.type, event.data)
