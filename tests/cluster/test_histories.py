"""The checker of histories: it accepts what a correct server does, and finds each kind of seeded fault."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Final, TypeVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.cluster.histories import Answer, Attachment, History, JsonObject, Kind, problems

T = TypeVar("T")
Fault = Callable[[random.Random, History], None]


class Made:
    """Makes a correct history: clients come and go, and owners die, while prompts with tool calls are run."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.history = History("s")
        self._attached: dict[str, Attachment] = {}
        self._working = False

    def make(self, runs: int) -> History:
        self._emit("session.start")
        self._attach("first")
        for run in range(runs):
            self._run(run)
        for attachment in self._attached.values():
            attachment.to_the_end = True
        return self.history

    def _run(self, run: int) -> None:
        self._emit("user.message", messageId=f"m{run}", delivery="idle")
        for turn in range(self.choose.randint(1, 3)):
            call = f"{run}-{turn}"
            self._emit("assistant.turn_start")
            self._emit("assistant.message", toolRequests=[{"toolCallId": call}])
            self._emit("tool.execution_start", toolCallId=call)
            self._emit("external_tool.requested", requestId=f"r{call}", toolCallId=call)
            self._come_and_go()
            if self.choose.random() < 0.2:
                # The owner dies: another one records the interruption.
                self._emit("tool.execution_complete", toolCallId=call, success=False, error={"message": "x"})
                self._answer(call, "late", accepted=False)
                break
            result = self._answer(call, "right", accepted=self.choose.choice([True, None]))
            self._emit("external_tool.completed", requestId=f"r{call}")
            self._emit("tool.execution_complete", toolCallId=call, success=True, result={"content": result})
            if self.choose.random() < 0.5:
                self._answer(call, "second", accepted=False)
        self._emit("assistant.message")
        self._come_and_go()
        self._emit("session.idle", ephemeral=True)

    def _answer(self, call: str, text: str, *, accepted: bool | None) -> str:
        self.history.answers.append(Answer("any", f"r{call}", f"{text} {call}", accepted))
        return f"{text} {call}"

    def _come_and_go(self) -> None:
        if self.choose.random() < 0.3:
            self._attach(f"client {len(self.history.attachments)}")
        if len(self._attached) > 1 and self.choose.random() < 0.3:
            del self._attached[self.choose.choice(sorted(self._attached))]

    def _attach(self, name: str) -> None:
        self._attached[name] = Attachment(name)
        self.history.attachments.append(self._attached[name])
        self._emit("session.resume")

    def _emit(self, kind: str, *, ephemeral: bool = False, **data: object) -> None:
        log = self.history.log
        event: JsonObject = {"id": f"e{self.choose.getrandbits(64)}", "type": kind, "data": data}
        event["parentId"] = log[-1]["id"] if log else None
        if ephemeral:
            event["ephemeral"] = True
        else:
            log.append(event)
        for attachment in self._attached.values():
            attachment.events.append(event)


def correct(seed: int) -> History:
    return Made(random.Random(seed)).make(4)


@given(st.integers(0, 2**32))
def test_a_correct_history_has_no_problem(seed: int) -> None:
    assert problems(correct(seed)) == []


# --- faults -------------------------------------------------------------------------------------------------------


def _pick(choose: random.Random, given: Sequence[T]) -> T:
    """Return one of what is given; another history is tried if there is nothing."""
    assume(given)
    return choose.choice(given)


def _rechain(log: list[JsonObject]) -> None:
    """Make each event name the one before, so that only the fault itself can be found."""
    for place, event in enumerate(log):
        log[place] = {**event, "parentId": log[place - 1]["id"] if place else None}


def _told(history: History) -> list[JsonObject]:
    return [event for attachment in history.attachments for event in attachment.persisted()]


def _place(choose: random.Random, history: History, kind: str | None = None) -> int:
    """Return the place in the log of an announced event of a kind."""
    ids = {event["id"] for event in _told(history) if kind in (None, event["type"])}
    return _pick(choose, [place for place, event in enumerate(history.log) if event["id"] in ids])


def lose_an_event(choose: random.Random, history: History) -> None:
    del history.log[_place(choose, history)]


def lose_the_last_events(choose: random.Random, history: History) -> None:
    del history.log[_place(choose, history) :]


def change_an_event(choose: random.Random, history: History) -> None:
    place = _place(choose, history)
    history.log[place] = {**history.log[place], "timestamp": "another"}


def store_an_event_twice(choose: random.Random, history: History) -> None:
    place = _place(choose, history)
    history.log.insert(choose.randint(place, len(history.log)), history.log[place])


def store_a_prompt_twice(choose: random.Random, history: History) -> None:
    place = _place(choose, history, "user.message")
    history.log.insert(place, {**history.log[place], "id": "another"})


def ask_twice(choose: random.Random, history: History) -> None:
    place = _place(choose, history, "external_tool.requested")
    history.log.insert(place, {**history.log[place], "id": "another"})


def announce_twice(choose: random.Random, history: History) -> None:
    attachment = _pick(choose, [one for one in history.attachments if one.events])
    attachment.events.append(_pick(choose, attachment.events))


def swap_stored_events(choose: random.Random, history: History) -> None:
    # Two that one client was told of.
    attachment = max(history.attachments, key=lambda one: len(one.persisted()))
    first = _pick(choose, attachment.persisted()[:-1])
    place = history.log.index(first)
    history.log[place : place + 2] = reversed(history.log[place : place + 2])


def swap_announcements(choose: random.Random, history: History) -> None:
    attachment = max(history.attachments, key=lambda one: len(one.events))
    places = [place for place, event in enumerate(attachment.events) if not event.get("ephemeral")]
    first = _pick(choose, range(len(places) - 1))
    one, other = places[first : first + 2]
    events = attachment.events
    events[one], events[other] = events[other], events[one]


def withhold_an_event(choose: random.Random, history: History) -> None:
    attachment = max(history.attachments, key=lambda one: len(one.events))
    del attachment.events[attachment.events.index(_pick(choose, attachment.persisted()[1:-1]))]


def withhold_the_last_events(_choose: random.Random, history: History) -> None:
    attachment = next(one for one in history.attachments if one.to_the_end)
    assume(len(attachment.persisted()) > 1)
    del attachment.events[-2]


def accept_two_answers(choose: random.Random, history: History) -> None:
    answer = _pick(choose, history.answers)
    history.answers += [Answer("a", answer.request_id, "x", True), Answer("b", answer.request_id, "x", True)]


def complete_a_request_twice(choose: random.Random, history: History) -> None:
    completed = [event for event in history.log if event["type"] == "external_tool.completed"]
    history.log.append({**_pick(choose, completed), "id": "another"})


def store_two_results(choose: random.Random, history: History) -> None:
    results = [event for event in history.log if event["type"] == "tool.execution_complete"]
    history.log.append({**_pick(choose, results), "id": "another"})


def store_no_result(choose: random.Random, history: History) -> None:
    results = [place for place, event in enumerate(history.log) if event["type"] == "tool.execution_complete"]
    del history.log[_pick(choose, results)]


def _replace_result(choose: random.Random, history: History, text: Callable[[JsonObject], str]) -> None:
    places = [
        place
        for place, event in enumerate(history.log)
        if event["type"] == "tool.execution_complete" and event["data"]["success"]
    ]
    event = history.log[_pick(choose, places)]
    event["data"]["result"] = {"content": text(event)}


def replace_an_accepted_answer(choose: random.Random, history: History) -> None:
    accepted = [answer for answer in history.answers if answer.accepted]
    assume(accepted)
    answer = _pick(choose, accepted)
    other = Answer("other", answer.request_id, "other", None)
    history.answers.append(other)
    for event in history.log:
        if event["type"] == "tool.execution_complete" and f"r{event['data']['toolCallId']}" == answer.request_id:
            event["data"]["result"] = {"content": "other"}


def lose_an_answered_request(choose: random.Random, history: History) -> None:
    history.answers.append(Answer("a", f"unknown {choose.random()}", "x", True))


def store_an_invented_result(choose: random.Random, history: History) -> None:
    _replace_result(choose, history, lambda _event: "invented")


def use_a_refused_answer(choose: random.Random, history: History) -> None:
    def refuse(event: JsonObject) -> str:
        call = event["data"]["toolCallId"]
        history.answers.append(Answer("late", f"r{call}", "refused", False))
        return "refused"

    _replace_result(choose, history, refuse)


def _idles(attachment: Attachment) -> list[int]:
    return [place for place, event in enumerate(attachment.events) if event["type"] == "session.idle"]


def withhold_an_idle(choose: random.Random, history: History) -> None:
    events = max(history.attachments, key=lambda one: len(_idles(one))).events
    places = _idles(Attachment("", events))
    assume(len(places) > 1 and events[-1]["type"] == "session.idle")
    # Of the first run, the client may have seen nothing; without the last one, it may have left.
    assume(any(event["type"] == "user.message" for event in events[: places[0]]))
    del events[_pick(choose, places[:-1])]


def withhold_the_last_idle(choose: random.Random, history: History) -> None:
    attachment = _pick(choose, [one for one in history.attachments if one.to_the_end])
    places = [-1, *_idles(attachment)]
    assume(any(event["type"] == "assistant.message" for event in attachment.events[places[-2] + 1 :]))
    del attachment.events[-1]


def announce_a_second_idle(choose: random.Random, history: History) -> None:
    attachment = max(history.attachments, key=lambda one: len(one.events))
    place = _pick(choose, _idles(attachment))
    attachment.events.insert(place, {**attachment.events[place], "id": "another"})


FAULTS: Final[dict[Fault, Kind]] = {
    lose_an_event: "lost",
    lose_the_last_events: "lost",
    change_an_event: "lost",
    store_an_event_twice: "twice",
    store_a_prompt_twice: "twice",
    ask_twice: "twice",
    announce_twice: "twice",
    swap_stored_events: "order",
    swap_announcements: "order",
    withhold_an_event: "unheard",
    withhold_the_last_events: "unheard",
    accept_two_answers: "answered",
    complete_a_request_twice: "answered",
    store_two_results: "answered",
    store_no_result: "answered",
    replace_an_accepted_answer: "answered",
    lose_an_answered_request: "lost",
    store_an_invented_result: "answered",
    use_a_refused_answer: "answered",
    withhold_an_idle: "idle",
    withhold_the_last_idle: "idle",
    announce_a_second_idle: "idle",
}


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_a_seeded_fault_is_found(fault: Fault, seed: int) -> None:
    choose = random.Random(seed)
    history = deepcopy(Made(choose).make(4))
    fault(choose, history)

    assert FAULTS[fault] in {problem.kind for problem in problems(history)}


RECHAINED: Final = [lose_an_event, store_a_prompt_twice, swap_stored_events]


@pytest.mark.parametrize("fault", RECHAINED, ids=lambda fault: fault.__name__)
@given(seed=st.integers(0, 2**32))
def test_a_fault_is_found_in_a_log_that_is_a_chain(fault: Fault, seed: int) -> None:
    choose = random.Random(seed)
    history = deepcopy(Made(choose).make(4))
    fault(choose, history)
    _rechain(history.log)

    # The events name other ones now: that is another fault.
    for attachment in history.attachments:
        stored = {event["id"]: event for event in history.log}
        attachment.events = [stored.get(event["id"], event) for event in attachment.events]
    assert FAULTS[fault] in {problem.kind for problem in problems(history)}
