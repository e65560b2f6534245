"""Version 2 of ACP, from the translation of version 1. It follows the draft of :data:`jumpseat.acp.draft.DRAFT`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from jumpseat.acp.draft import shapes
from jumpseat.acp.draft.activity import Activity
from jumpseat.acp.draft.patches import patches_of
from jumpseat.acp.draft.terminals import Terminals
from jumpseat.acp.translation.updates import Compaction, Step, Translator, Update
from jumpseat.acp.translation.versions import Version
from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat_protocol import events

Payload: TypeAlias = events.EventPayload | events.UnknownPayload


CAPABILITIES: Final[dict[str, Any]] = {
    "session": {
        "prompt": {"image": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}, "acp": {}},
        "delete": {},
        "additionalDirectories": {},
        "systemPrompt": {"mode": {"override": {}}},
        "fork": {},
        "status": {},
        "title": {},
    },
    "auth": {"status": {}},
    "providers": {},
}


class Draft(Version):
    """Version 2."""

    number = 2

    def follow(self, translator: Translator, running: Callable[[], bool], *, working: bool) -> Follower:
        return Follower(translator, Activity(running, running(), knows_background=not working))

    def update(self, body: dict[str, Any]) -> dict[str, Any] | None:
        return shapes.update_of(body)

    def permission(self, params: dict[str, Any]) -> dict[str, Any]:
        return shapes.permission_of(params)

    def opened(self, opened: dict[str, Any], commands: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return shapes.opened_of(opened, commands)

    def status(self, status: str, running: bool = False, waiting: bool = False) -> dict[str, Any]:
        if status != "open":
            return {"status": status}
        state = "idle" if not running else "requires_action" if waiting else "running"
        return {"status": status, "state": {"state": state}}

    def options(self, options: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return shapes.options_of(options)


class Follower(Struct):
    """The steps of the translator, with the terminals and the state of the session."""

    translator: Translator
    activity: Activity
    terminals: Terminals = field(default_factory=Terminals)

    def __post_init__(self) -> None:
        self.translator.whole, self.translator.render = True, patches_of

    def steps(self, event: events.Event, *, lossy: bool = False) -> Iterator[Step]:
        """Return the steps for ``event``; see :meth:`jumpseat.acp.translation.updates.Translator.steps`."""
        payload = event.payload if event.agent_id is None else None
        if isinstance(payload, events.ToolExecutionPartialResult) and not lossy:
            yield from self.terminals.show(self.translator.running(payload.tool_call_id), payload.partial_output)
        yield from self._before(payload)
        for step in self.translator.steps(event, lossy=lossy):
            self._refine(step, payload)
            yield step
        yield from self._after(payload)
        yield from self.activity.steps(event, self.translator, self.terminals.background)

    def replay(self, payload: Payload) -> Iterator[Update | Compaction]:
        """Return the updates for an event of the log."""
        yield from self._before(payload)
        for step in self.translator.replay(payload):
            self._refine(step, payload)
            yield step
        yield from self._after(payload)

    def end_replay(self) -> Iterator[Update]:
        """Return the updates after those of the log."""
        self.translator.end_replay()
        yield from self.terminals.end_all()

    def resumed(self) -> Iterator[Update]:
        """Return the state of the session."""
        yield self.activity.repeated(self.translator, self.terminals.background)

    def begin(self) -> Iterator[Update]:
        """Return the updates at the begin of work without a prompt, such as a slash command."""
        self.activity.begin(self.translator)
        yield from self.activity.changed(self.translator, self.terminals.background)

    def end(self, reason: str) -> Iterator[Update]:
        """Return the updates at the end of such work."""
        self.activity.end(self.translator, reason)
        yield from self.activity.changed(self.translator, self.terminals.background)

    def _before(self, payload: Payload | None) -> Iterator[Update]:
        match payload:
            case events.ToolExecutionComplete():
                yield from self.terminals.complete(self.translator.running(payload.tool_call_id), payload)
            case events.SystemNotification():
                yield from self.terminals.end(payload)
            case _:
                pass

    def _after(self, payload: Payload | None) -> Iterator[Update]:
        if isinstance(payload, events.ToolExecutionStart):
            yield from self.terminals.begin(self.translator, payload)

    def _refine(self, step: Step, payload: Payload | None) -> None:
        """Give the end of a call the status that version 1 does not have."""
        if not isinstance(step, Update) or not isinstance(payload, events.ToolExecutionComplete):
            return
        if payload.error is not None and payload.error.message == INTERRUPTED:
            step.body["status"] = "cancelled"
        elif payload.success and self.activity.keeps_open(payload.tool_call_id):
            step.body["status"] = "in_progress"
