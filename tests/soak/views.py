"""What clients have seen of a server, and the rules for it that always hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

JsonObject = dict[str, Any]

_WORK = frozenset({"user.message", "assistant.turn_start", "tool.execution_start", "assistant.message"})


@dataclass
class View:
    """The events of a session that a client has received since it attached."""

    persisted: list[JsonObject] = field(default_factory=list[JsonObject])
    questions: dict[str, str] = field(default_factory=dict[str, str])
    """The open tool calls and permission requests: their ids, and ``tool`` or ``permission``."""
    working: bool = False
    """Whether a prompt runs."""
    begun: bool = False
    """Whether there are signs of a run since the last ``session.idle``."""
    idles: int = 0

    def take(self, event: JsonObject) -> str | None:
        """Note an event; returns the rule that it breaks, if any."""
        kind, data = event["type"], event["data"]
        if kind == "session.snapshot_rewind":
            self.persisted.clear()
        if not event.get("ephemeral"):
            self.persisted.append(event)
        if kind == "external_tool.requested":
            self.questions[data["requestId"]] = "tool"
        elif kind == "permission.requested":
            self.questions[data["requestId"]] = "permission"
        elif kind in ("external_tool.completed", "permission.completed"):
            self.questions.pop(data["requestId"], None)
        elif kind in _WORK and (kind != "user.message" or data.get("source") is None):
            self.working = self.begun = True
        elif kind in ("abort", "hook.start", "pending_messages.modified"):
            # A run can end before its prompt is accepted.
            self.begun = True
        elif kind == "session.idle":
            # The client may have attached in the middle of the run.
            if not self.begun and self.idles:
                return "a second session.idle without a run between them"
            self.working = self.begun = False
            self.idles += 1
        return None


def problem_of_log(log: Sequence[JsonObject], view: View) -> str | None:
    """Return how the events that a client received differ from the end of the log, if they do."""
    if not view.persisted:
        return None
    ids = [event["id"] for event in log]
    first = view.persisted[0]["id"]
    if first not in ids:
        return f"{view.persisted[0]['type']} was announced and is not in the log"
    start = ids.index(first)
    expected = list(log[start:])
    if expected == view.persisted:
        return None
    for place, (logged, told) in enumerate(zip(expected, view.persisted, strict=False)):
        if logged != told:
            return f"event {start + place} is {logged} in the log, and was announced as {told}"
    return (
        f"the log has {len(expected)} events, of which {len(view.persisted)} were announced;"
        f" the next is {(expected or view.persisted)[min(len(expected), len(view.persisted)) - 1]}"
    )


def problem_of_calls(log: Sequence[JsonObject], *, ended: bool) -> str | None:
    """Return the call of a log with more than one result; if all runs have ``ended``, also one without any."""
    left: Counter[tuple[str, str]] = Counter()
    for event in log:
        data = event["data"]
        # Sub-agents count their calls for themselves.
        agent = event.get("agentId", "")
        if event["type"] == "assistant.message":
            requests: list[JsonObject] = data.get("toolRequests") or []
            left.update((agent, request["toolCallId"]) for request in requests)
        elif event["type"] == "tool.execution_start" and left[agent, data["toolCallId"]] < 1:
            return f"call {data['toolCallId']} is started, and the model has not made it"
        elif event["type"] == "tool.execution_complete":
            left[agent, data["toolCallId"]] -= 1
            if left[agent, data["toolCallId"]] < 0:
                return f"call {data['toolCallId']} has more than one result"
    without = [call for (_, call), count in left.items() if count]
    return f"calls without a result: {without}" if ended and without else None


def problem_of_agents(log: Sequence[JsonObject], *, ended: bool) -> str | None:
    """Return the sub-agent of a log with more than one end; if all runs have ``ended``, also one without any."""
    ends: Counter[str] = Counter()
    started = [event["agentId"] for event in log if event["type"] == "subagent.started"]
    for event in log:
        if event["type"] in ("subagent.completed", "subagent.failed"):
            ends[event["agentId"]] += 1
    if many := [agent for agent, count in ends.items() if count > 1]:
        return f"sub-agents with more than one end: {many}"
    without = [agent for agent in started if not ends[agent]]
    return f"sub-agents without an end: {without}" if ended and without else None


def problem_of_parents(log: Sequence[JsonObject]) -> str | None:
    """Return the event of a log that does not name the event before it, if there is one."""
    for before, event in pairwise(log):
        if event["parentId"] != before["id"]:
            return f"{event['type']} {event['id']} follows {before['id']}, and names {event['parentId']}"
    return None
