"""The state of a session in version 2: foreground work, open questions, and work in the background. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from jumpseat.acp.translation.updates import JsonObject, Translator, Update, stop_reason_of
from jumpseat_protocol import events

ASKED: Final = (
    events.PermissionRequested,
    events.UserInputRequested,
    events.ExitPlanModeRequested,
    events.AutoModeSwitchRequested,
    events.ElicitationRequested,
)
ANSWERED: Final = (
    events.PermissionCompleted,
    events.UserInputCompleted,
    events.ExitPlanModeCompleted,
    events.AutoModeSwitchCompleted,
    events.ElicitationCompleted,
)
ERRORS: Final[Mapping[str, int]] = {"authentication": -32000}
"""The codes of errors that end a run, by their types; all others are internal errors."""


class Activity(Struct):
    """The state of one session. ``is_running`` returns whether its queue runs a prompt or a command.

    Without ``knows_background`` nothing is said about work in the background: some began before the editor came.
    """

    is_running: Callable[[], bool]
    is_working: bool = False
    knows_background: bool = True
    _stopped: JsonObject = field(default_factory=dict[str, Any])
    _failure: events.SessionError | None = None
    _questions: set[str] = field(default_factory=set[str])
    # The calls that have started sub-agents in the background, and their ids for the editor.
    _agents: dict[str, str] = field(default_factory=dict[str, str])
    _sent: JsonObject | None = None

    def steps(self, event: events.Event, translator: Translator, terminals: list[str]) -> Iterator[Update]:
        """Return the updates after an event; ``terminals`` are those of commands in the background."""
        before = self._snapshot(translator, terminals) if self._sent is None else self._sent
        yield from self._agent_steps(event, translator)
        payload = event.payload
        if isinstance(payload, ASKED):
            self._questions.add(payload.request_id)
        elif isinstance(payload, ANSWERED):
            self._questions.discard(payload.request_id)
        elif event.agent_id is None:
            self._note(payload, translator)
        self._sent = before
        yield from self.changed(translator, terminals)

    def begin(self, translator: Translator) -> None:
        """Note that work begins in the foreground."""
        if not self.is_working:
            translator.usage.reset()
        self.is_working, self._failure = True, None

    def end(self, translator: Translator, reason: str) -> None:
        """Note that the work in the foreground has ended."""
        if self.is_working:
            self._stopped = {"stopReason": reason, "usage": translator.usage.wire()}
            if reason == "error" and (failure := self._failure) is not None:
                code = ERRORS.get(failure.error_type, -32603)
                self._stopped["error"] = {"code": code, "message": failure.reason}
        self.is_working = False
        self._questions.clear()

    def changed(self, translator: Translator, terminals: list[str]) -> Iterator[Update]:
        """Return the state, if it differs from what the editor knows."""
        state = self._snapshot(translator, terminals)
        if state != self._sent:
            self._sent = state
            yield Update(state)

    def repeated(self, translator: Translator, terminals: list[str]) -> Update:
        """Return the state, whether the editor knows it or not."""
        self._sent = self._snapshot(translator, terminals)
        return Update(self._sent)

    def keeps_open(self, call_id: str) -> bool:
        """Return whether the sub-agent of a call works on after its result."""
        return call_id in self._agents

    def _note(self, payload: events.EventPayload | events.UnknownPayload, translator: Translator) -> None:
        match payload:
            case events.UserMessage(is_prompt=True) | events.TurnStart() | events.SystemNotification():
                self.begin(translator)
            case events.SessionError():
                self._failure = payload
            case events.AssistantIdle() | events.SessionIdle() if not self.is_running():
                reason = stop_reason_of(translator.usage.finish_reason)
                if self._failure is not None:
                    reason = "error"
                self.end(translator, "cancelled" if payload.aborted else reason)
            case _:
                pass

    def _agent_steps(self, event: events.Event, translator: Translator) -> Iterator[Update]:
        match event.payload:
            case events.SubagentStarted(execution_mode="background", parent_id=None) as started:
                if (call := translator.running(started.tool_call_id)) is not None:
                    self._agents[started.tool_call_id] = call.id
            case events.SubagentCompleted() as ended:
                yield from self._agent_ended(ended.tool_call_id, "cancelled" if ended.cancelled else "completed")
            case events.SubagentFailed() as failed:
                yield from self._agent_ended(failed.tool_call_id, "failed")
            case _:
                pass

    def _agent_ended(self, call_id: str, status: str) -> Iterator[Update]:
        if (shown_id := self._agents.pop(call_id, None)) is not None:
            yield Update({"sessionUpdate": "tool_call_update", "toolCallId": shown_id, "status": status})

    def _snapshot(self, translator: Translator, terminals: list[str]) -> JsonObject:
        state: JsonObject = {"sessionUpdate": "state_update"}
        if not self.is_working:
            state |= {"state": "idle", **self._stopped}
        elif self._is_blocked(translator):
            state["state"] = "requires_action"
        else:
            state["state"] = "running"
        if self.knows_background:
            state["background"] = [
                *({"type": "terminal", "terminalId": one} for one in terminals),
                *({"type": "tool_call", "toolCallId": one} for one in self._agents.values()),
            ]
        return state

    def _is_blocked(self, translator: Translator) -> bool:
        """Return whether every call that runs waits for an answer. A question may be about any call."""
        return bool(self._questions) and translator.running_calls() <= len(self._questions)
