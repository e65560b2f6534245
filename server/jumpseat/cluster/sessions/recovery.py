"""The rest of a run whose replica was killed: its interruption is recorded and announced, or the run continues.

The end of each run is stored before it is announced. No client has seen the end of a run without a stored end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.cluster.sessions.missed_events import with_ends
from jumpseat.sessions.registry import SessionRegistry
from jumpseat_protocol import events


class LastRun(Struct):
    """State of the main agent's last run, according to the log and the ends of runs.

    ``has_ended`` says that its end is stored, ``is_open`` that there is more to do in it. ``started`` are the calls
    that have begun, ``asked`` those that wait for a permission.
    """

    has_ended: bool = True
    is_open: bool = False
    open_turn: str | None = None
    started: set[str] = field(default_factory=set[str])
    asked: set[str] = field(default_factory=set[str])
    _has_calls: bool = False

    def read(self, records: Iterable[dict[str, Any]]) -> None:
        """Apply the events of a log, with the ends of runs."""
        for record in records:
            if record.get("agentId") is None:
                self._apply(record["type"], record.get("data") or {})

    def _apply(self, kind: str, data: dict[str, Any]) -> None:
        match kind:
            case "user.message":
                self.is_open, self._has_calls = True, False
                self.has_ended = self.has_ended and data.get("delivery") is None
            case "assistant.turn_start":
                self.is_open, self.open_turn = True, data.get("turnId")
                self.has_ended = False
            case "session.idle":
                self.is_open, self.open_turn, self.has_ended = False, None, True
            case "assistant.message":
                self._has_calls = bool(data.get("toolRequests"))
            case "assistant.turn_end":
                self.is_open, self.open_turn = self._has_calls, None
            case "tool.execution_start":
                self.started.add(str(data.get("toolCallId")))
            case "permission.requested":
                self.asked.add(_call_of(data))
            case "permission.completed":
                self.asked.clear()
            case "abort" | "session.error" | "session.shutdown":
                self.is_open, self.open_turn = False, None
            case _:
                pass


async def recover(
    session: Session, registry: SessionRegistry, ends: Iterable[dict[str, Any]], *, go_on: bool
) -> None:
    """Record that a run was interrupted, if one was, and announce ``session.idle`` then.

    ``go_on`` lets the run continue instead: client tools and permissions are asked for again. A call that has begun
    to change something here is not repeated.

    Raises:
        StoreError: the session is lost again.
    """
    if session.working:
        return
    run = LastRun()
    run.read(with_ends(registry.storage(session).log.read().records, ends))
    message = "The replica that ran the session is gone; another one has taken the session over."
    session.emit(events.SessionWarning(warning_type="taken_over", message=message))
    if run.open_turn is not None:
        session.emit(events.TurnEnd(turn_id=run.open_turn))
    if run.is_open and go_on:
        # What clients run, and tasks of MCP servers, have not ended with the replica.
        kept = {*run.asked, *session.history.mcp_tasks}
        clients_tools = session.clients.tools()
        for call in session.conversation.open_calls():
            if call.id in run.started and call.name not in clients_tools and call.id not in kept:
                _interrupt(session, call.id)
        session.send(Prompt("", continues=True, source="continuation"))
        return
    for call in session.conversation.open_calls():
        _interrupt(session, call.id)
    if run.is_open:
        # SDKs leave out an abort whose reason they do not know; the warning tells the real one.
        session.emit(events.Abort(reason="remote_command"))
        session.end_run(True)
    elif not run.has_ended:
        session.end_run(False)


def _interrupt(session: Session, call_id: str) -> None:
    error = events.ToolError(message=INTERRUPTED, code="failure")
    session.emit(events.ToolExecutionComplete(tool_call_id=call_id, success=False, error=error))


def _call_of(data: dict[str, Any]) -> str:
    request = data.get("permissionRequest") or data
    return str(request.get("toolCallId"))
