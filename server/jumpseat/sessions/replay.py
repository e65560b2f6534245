"""Restore a session from the events of its log."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

from jumpseat.agent.session.history import LoggedEvent
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.store.session.event_log import Records
from jumpseat_protocol import events

if TYPE_CHECKING:
    from jumpseat.agent.subagents.history import AgentHistory
    from jumpseat.agent.subagents.lost_commands import LostCommands


NOT_REPLAYED: Final[Mapping[str, events.UnknownPayload]] = {
    kind.type: events.UnknownPayload(type=kind.type, data={})
    for kind in (
        events.TurnStart,
        events.TurnEnd,
        events.ExternalToolRequested,
        events.ExternalToolCompleted,
        events.PermissionRequested,
        events.PermissionCompleted,
        events.HookStart,
        events.HookEnd,
    )
}
"""The frequent events that change no state of a session: decoding them takes half of the time of a replay."""


_CALLED_AGAIN: Final = events.UnknownPayload(type=events.ToolExecutionStart.type, data={})


_TOOL_START: Final = events.ToolExecutionStart.type


_ANSWERED_S: Final = 0.05
"""The time in which a client that resumes a session has its answer, after the log was read."""


_FOLLOWED: Final = frozenset({"task", "read_agent", "bash", "read_bash", "write_bash", "stop_bash"})
"""The tools whose calls change the state of sub-agents or of commands in the background."""


def replay_records(session: Session, records: Iterable[dict[str, Any]]) -> None:
    """Apply the events of a log to ``session``: its conversation, model, mode and agent."""
    # Nearly everything that is made here stays: looking for garbage meanwhile takes a tenth of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        _replay(session, records)
    finally:
        if collects:
            _collect_later()


def _collect_later() -> None:
    """Look for garbage again after the answer to the client: to go through all new objects takes milliseconds."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        gc.enable()
    else:
        loop.call_later(_ANSWERED_S, gc.enable)


def _replay(session: Session, records: Iterable[dict[str, Any]]) -> None:
    settings, history = session.settings, session.history
    agents: AgentHistory | None = None
    commands: LostCommands | None = None
    # Imported late: only a session that is resumed has records.
    from jumpseat.sessions.plain_records import PlainRecords

    plain = PlainRecords(session)
    called: set[object] = set()
    event_id: str | None = None
    # Counted, but not yet in the history.
    passed = 0
    for record in chain.from_iterable(_batches(records)):
        last_id, kind = event_id, record["type"]
        event_id = own_id if type(own_id := record.get("id")) is str and own_id else last_id
        agent_id = record.get("agentId")
        if agent_id is None or not isinstance(agent_id, str):
            agent_id = None
            if kind in NOT_REPLAYED or (kind == _TOOL_START and _tool_name(record) in called):
                passed += 1
                continue
            apply = plain.uncounted.get(kind)
            if apply is not None and apply(record.get("data")):
                passed += 1
                continue
        if passed:
            history.count_all(passed, last_id)
            passed = 0
        if (
            agent_id is None
            and kind == events.UserMessage.type
            and plain.apply_prompt(event_id, record.get("data"))
        ):
            continue
        payload = _decode(record, agent_id, called)
        if agents is None and (agent_id is not None or _starts_agent(payload)):
            # Imported late: most sessions have no sub-agents.
            from jumpseat.agent.subagents.subagents import sub_agents

            agents = sub_agents(session).history()
            plain.leave(agents.awaits)
        if agents is not None:
            agents.apply((event_id, agent_id, payload))
        if agent_id is not None:
            session.count_for_agent(event_id, payload)
            continue
        if isinstance(payload, events.UnknownPayload):
            history.count(event_id)
            continue
        if commands is None and isinstance(payload, events.ToolExecutionStart) and payload.tool_name == "bash":
            # Imported late, too.
            from jumpseat.agent.subagents.lost_commands import LostCommands

            commands = LostCommands()
            plain.leave(commands.awaits)
        if commands is not None:
            commands.apply(payload)
        session.apply(event_id, payload)
        replay_setting(settings, payload)
    history.count_all(passed, event_id)
    if commands is not None and commands.left:
        from jumpseat.agent.subagents.subagents import sub_agents

        sub_agents(session).commands.report_lost(commands.left)


def _starts_agent(payload: events.EventPayload | events.UnknownPayload) -> bool:
    return isinstance(payload, events.ToolExecutionStart) and payload.tool_name == "task"


def replay_setting(settings: SessionSettings, payload: events.EventPayload | events.UnknownPayload) -> None:
    """Apply an event of a log to the settings that the log holds: model, mode and agent."""
    match payload:
        case events.SessionStart():
            settings.set_options(model=settings.options.model or payload.selected_model)
            settings.set_options(reasoning_effort=settings.options.reasoning_effort or payload.reasoning_effort)
        case events.SessionResume():
            # The options that the resuming client sent.
            settings.set_options(model=payload.selected_model or settings.options.model)
            settings.set_options(reasoning_effort=payload.reasoning_effort or settings.options.reasoning_effort)
        case events.SessionModelChange():
            settings.set_options(model=payload.new_model)
            settings.set_options(reasoning_effort=payload.reasoning_effort or settings.options.reasoning_effort)
        case events.SessionModeChanged():
            settings.mode = payload.new_mode
        case events.SubagentSelected():
            settings.set_options(agent=payload.agent_name)
        case events.SubagentDeselected():
            settings.set_options(agent=None)
        case _:
            pass


def decode_records(records: Iterable[dict[str, Any]]) -> Iterator[LoggedEvent]:
    """Yield the events of a log; an event without an id has that of the event before it.

    Those that change no state are not decoded, nor is the start of a call of a tool that was called before.
    """
    called: set[object] = set()
    for event_id, record in _with_ids(records):
        agent_id = record.get("agentId")
        agent_id = agent_id if isinstance(agent_id, str) else None
        yield event_id, agent_id, _decode(record, agent_id, called)


def _with_ids(records: Iterable[dict[str, Any]]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    last: str | None = None
    for record in records:
        event_id = record.get("id")
        if isinstance(event_id, str) and event_id:
            last = event_id
        yield last, record


def _batches(records: Iterable[dict[str, Any]]) -> Iterable[Iterable[dict[str, Any]]]:
    return records.batches() if isinstance(records, Records) else (records,)


def _decode(
    record: dict[str, Any], agent_id: str | None, called: set[object]
) -> events.EventPayload | events.UnknownPayload:
    """Decode the payload of an event. ``called`` are the tools that the main agent has called before."""
    kind = record["type"]
    if agent_id is not None:
        return events.decode_payload(kind, record.get("data"))
    if (skipped := NOT_REPLAYED.get(kind)) is not None:
        return skipped
    if kind == events.ToolExecutionStart.type and _tool_name(record) in called:
        return _CALLED_AGAIN
    payload = events.decode_payload(kind, record.get("data"))
    if isinstance(payload, events.ToolExecutionStart) and payload.tool_name not in _FOLLOWED:
        called.add(payload.tool_name)
    return payload


def _tool_name(record: dict[str, Any]) -> object:
    data = record.get("data")
    name = cast("dict[str, Any]", data).get("toolName") if isinstance(data, dict) else None
    # Lists and objects cannot be in a set.
    return name if isinstance(name, str) else None
