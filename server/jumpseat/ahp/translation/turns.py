"""The state of one turn while its events are translated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.ahp.states.values import JsonObject

Phase: TypeAlias = Literal["streamed", "declared", "running"]


class Call(Struct):
    """A tool call without a result: its arguments are ``streamed``, or its answer is complete, or it runs.

    ``id`` is that for clients, in which no two calls of a turn may have the same; some models use an id again.
    ``sent_chars`` counts the characters of the arguments that were sent. ``is_foreign``: the call is that of a
    sub-agent, of which only its question is shown. ``client`` is the id of the client that runs the call, and
    ``request_id`` that of the question for its result; ``input`` are the arguments that are not shown as final yet,
    because that client would begin too early. ``blocks`` are the parts of its content that refer to other channels,
    of which ``terminal`` is that of its command.
    """

    id: str
    tool: str
    phase: Phase
    sent_chars: int = 0
    intention: str | None = None
    title: str = ""
    is_foreign: bool = False
    client: str | None = None
    request_id: str | None = None
    input: str | None = None
    blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    terminal: str | None = None


class Turn(Struct):
    """An open turn, of which ``interaction_id`` is that of its prompt, and ``message_ids`` those of its messages.

    ``last_at`` is the time of its last stored event.
    ``owners`` are the ids of the clients that run tools, by the names of the tools.

    ``works`` is true while a call of the model and its tools are not done, which is so after a crash, too.
    ``calls_tools``: the last answer of the model does. ``only_asks``: the turn has no prompt, but questions that
    came while there was no turn, and lasts as long as they are open.
    """

    id: str
    interaction_id: str
    started_at: str
    last_at: str
    message_ids: set[str] = field(default_factory=set[str])
    works: bool = False
    calls_tools: bool = False
    only_asks: bool = False
    aborted: bool = False
    error: JsonObject | None = None
    usage: JsonObject = field(default_factory=lambda: JsonObject())
    sent_chars: dict[str, int] = field(default_factory=dict[str, int])
    _calls: dict[str, list[Call]] = field(default_factory=dict[str, list[Call]])
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    _counts: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def duration(self) -> int:
        """Return the time from the beginning to the last stored event, in milliseconds."""
        passed = datetime.fromisoformat(self.last_at) - datetime.fromisoformat(self.started_at)
        return max(0, passed // timedelta(milliseconds=1))

    def add_call(self, call_id: str, tool: str, phase: Phase) -> Call:
        """Add a call and return it."""
        count = self._counts[call_id] = self._counts.get(call_id, 0) + 1
        call = Call(call_id if count == 1 else f"{call_id}#{count}", tool, phase, client=self.owners.get(tool))
        self._calls.setdefault(call_id, []).append(call)
        return call

    def calls(self) -> Iterator[Call]:
        """Return all calls without a result."""
        return (call for calls in self._calls.values() for call in calls)

    def call(self, call_id: str | None, *phases: Phase) -> Call | None:
        """Return the first call with an id, in the given phases or in any; ``None`` if there is none."""
        calls = self._calls.get(call_id or "", ())
        return next((call for call in calls if not phases or call.phase in phases), None)

    def running(self, call_id: str | None) -> Call | None:
        """Return the last running call with an id, which is the one that its events are about."""
        calls = [call for call in self._calls.get(call_id or "", ()) if call.phase == "running"]
        return calls[-1] if calls else None

    def end_call(self, call_id: str) -> Call | None:
        """Remove and return the first running call with an id."""
        call = self.call(call_id, "running")
        if call is not None:
            self._calls[call_id].remove(call)
        return call
