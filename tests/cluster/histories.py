"""The history of a session as its clients have seen it, and the rules that it must obey whatever has failed.

A history is judged after the session has come to rest: from what each client was told while it was attached, the
answers that clients gave to tool calls, and the events that are stored at the end. :func:`problems` finds

- ``lost``: an announced event that is not stored, or is stored differently,
- ``twice``: an event or a prompt that is stored twice, or was announced twice to one client,
- ``order``: events that were announced in another order than they are stored in, or that do not form a chain,
- ``unheard``: a stored event that an attached client was not told of, though it was told of later ones,
- ``answered``: a tool call with more than one answer or result, or with none, or with a result that nobody gave,
- ``idle``: a run that ends without ``session.idle`` or with more than one, for one of the clients.

Callers add ``server`` for a process that ends badly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tests.soak.views import View, problem_of_calls, problem_of_parents

JsonObject: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["lost", "twice", "order", "unheard", "answered", "idle", "server"]


@dataclass
class Attachment:
    """The time from a client's request to open a session to the end of its connection.

    ``events`` are all that it was told, ``to_the_end`` says that it was attached when the session had come to rest.
    """

    client: str
    events: list[JsonObject] = field(default_factory=list[JsonObject])
    to_the_end: bool = False

    def persisted(self) -> list[JsonObject]:
        """Return the events that must be stored."""
        return [event for event in self.events if not event.get("ephemeral")]


@dataclass(frozen=True)
class Answer:
    """The answer of a client to a tool call. ``accepted`` is ``None`` if the server did not say."""

    client: str
    request_id: str
    text: str
    accepted: bool | None


@dataclass
class History:
    """What is known of a session at its end. ``log`` are its stored events."""

    session: str
    log: list[JsonObject] = field(default_factory=list[JsonObject])
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    answers: list[Answer] = field(default_factory=list[Answer])


@dataclass(frozen=True)
class Problem:
    """A broken rule."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def problems(history: History) -> list[Problem]:
    """Return the rules that a history breaks."""
    found = [*_of_log(history.log), *_of_answers(history)]
    places = {event["id"]: place for place, event in enumerate(history.log)}
    for attachment in history.attachments:
        found += _of_events(history.log, places, attachment)
        found += _of_idles(attachment)
    return found


def _of_log(log: Sequence[JsonObject]) -> Iterator[Problem]:
    for what, values in (
        ("event", [event["id"] for event in log]),
        ("prompt", [event["data"].get("messageId") for event in log if event["type"] == "user.message"]),
        ("request", [event["data"]["requestId"] for event in log if event["type"] == "external_tool.requested"]),
    ):
        for value in _repeated(values):
            yield Problem("twice", f"{what} {value} is stored twice")
    if problem := problem_of_parents(log):
        yield Problem("order", problem)
    if problem := problem_of_calls(log, ended=True):
        yield Problem("answered", problem)


def _of_events(log: Sequence[JsonObject], places: dict[str, int], attachment: Attachment) -> Iterator[Problem]:
    told = attachment.persisted()
    for value in _repeated([event["id"] for event in attachment.events]):
        yield Problem("twice", f"event {value} was announced twice to {attachment.client}")
    last: int | None = None
    for event in told:
        name = f"{event['type']} {event['id']}, announced to {attachment.client},"
        place = places.get(event["id"])
        if place is None:
            yield Problem("lost", f"{name} is not stored: {event['data']}")
            continue
        if log[place] != event:
            yield Problem("lost", f"{name} is stored as {log[place]}")
        if last is not None and place < last:
            yield Problem("order", f"{name} is stored before the event that was announced before")
        elif last is not None and place > last + 1:
            missing = [f"{one['type']} {one['id']}" for one in log[last + 1 : place]]
            yield Problem("unheard", f"{attachment.client} was not told of {missing}")
        last = place
    if attachment.to_the_end and last is not None and last < len(log) - 1:
        missing = [f"{one['type']} {one['id']}" for one in log[last + 1 :]]
        yield Problem("unheard", f"{attachment.client} was not told of the last events: {missing}")


def _of_answers(history: History) -> Iterator[Problem]:
    # A call is asked for again where a run goes on at another replica: by another request.
    calls: dict[str, str] = {}
    completed: list[str] = []
    for event in history.log:
        if event["type"] == "external_tool.requested":
            calls[event["data"]["requestId"]] = event["data"]["toolCallId"]
        elif event["type"] == "external_tool.completed":
            completed.append(event["data"]["requestId"])
    for request_id in _repeated(completed):
        yield Problem("answered", f"request {request_id} is completed twice")
    by_call: dict[str, list[Answer]] = {}
    for answer in history.answers:
        call = calls.get(answer.request_id)
        if call is not None:
            by_call.setdefault(call, []).append(answer)
        elif answer.accepted:
            yield Problem("lost", f"request {answer.request_id}, whose answer was accepted, is not stored")
    for call, answers in by_call.items():
        accepted = [answer for answer in answers if answer.accepted]
        if len(accepted) > 1:
            names = [f"{answer.client} ({answer.request_id})" for answer in accepted]
            yield Problem("answered", f"more than one answer to call {call} was accepted: {names}")
    for event in history.log:
        data = event["data"]
        if event["type"] == "tool.execution_complete" and data["toolCallId"] in calls.values():
            yield from _of_result(event, by_call.get(data["toolCallId"], []))


def _of_result(event: JsonObject, answers: Sequence[Answer]) -> Iterator[Problem]:
    data: JsonObject = event["data"]
    call: str = data["toolCallId"]
    result: str | None = data["result"]["content"] if data["success"] else None
    if result is not None and all(answer.text != result for answer in answers):
        yield Problem("answered", f"the result of call {call} is nobody's answer: {result!r}")
    for answer in answers:
        if answer.accepted is False and answer.text == result:
            yield Problem("answered", f"the result of call {call} is an answer that was refused: {result!r}")
        elif answer.accepted and answer.text != result:
            yield Problem("answered", f"the accepted answer of {answer.client} is not the result of call {call}")


def _of_idles(attachment: Attachment) -> Iterator[Problem]:
    view = View()
    for event in attachment.events:
        kind, data = event["type"], event["data"]
        if (
            kind == "user.message"
            and data.get("delivery") == "idle"
            and view.working
            and data.get("source") is None
        ):
            yield Problem("idle", f"{attachment.client} was told of prompt {event['id']} before the run's end")
        if view.take(event):
            yield Problem("idle", f"{attachment.client} was told twice of the end of a run: {event['id']}")
    if attachment.to_the_end and view.working:
        yield Problem("idle", f"{attachment.client} was not told of the end of the last run")


def _repeated(values: Sequence[str | None]) -> list[str]:
    return [value for value, count in Counter(values).items() if value is not None and count > 1]
