"""The reducers come to the same states as the official ones, and leave the state before untouched."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from jumpseat.ahp.states import changeset, terminal
from jumpseat.ahp.states.channels import REDUCERS
from jumpseat.ahp.states.chat import reduce_chat
from jumpseat.ahp.states.values import JsonObject
from tests.ahp.generated import INITIAL, MAKERS, actions
from tests.ahp.official import UPDATE, Case, plain, states
from tests.support.cases import all_cases

RECORDED: Final = Path(__file__).parent / "data" / "states.jsonl"
"""The states of the official reducers after the generated cases, in their order."""

KINDS: Final = ("chat", "chat", "chat", "session", "session", "root", "terminal", "changeset")


def cases(count: int) -> list[Case]:
    found: list[Case] = []
    for seed in range(count):
        random, reducer = Random(seed), KINDS[seed % len(KINDS)]
        steps = actions(random, reducer, random.randrange(1, 30))
        found.append({"reducer": reducer, "state": INITIAL[reducer], "actions": steps})
    return found


def folded(case: Case) -> JsonObject:
    state = case["state"]
    for action in case["actions"]:
        before = deepcopy(state)
        after = REDUCERS[case["reducer"]](state, action)
        assert state == before, "the old state was changed"
        assert after is state or after != state, f"{action['type']} makes a new state without a change"
        state = after
    return state


def check(found: list[Case], expected: list[Any]) -> None:
    with all_cases() as each:
        for seed, (case, state) in enumerate(zip(found, expected, strict=True)):
            with each(seed):
                assert plain(folded(case)) == plain(state)


def test_recorded_states_of_the_official_reducers() -> None:
    found = cases(100)
    if UPDATE:
        RECORDED.write_text("".join(f"{json.dumps(state, sort_keys=True)}\n" for state in states(found)))
    check(found, [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()])


@pytest.mark.thorough
def test_official_reducers() -> None:
    found = cases(3000)
    check(found, states(found))


def test_unknown_actions_change_nothing_and_unknown_members_survive() -> None:
    for reducer, initial in INITIAL.items():
        state = {**initial, "newer": {"member": 1}}
        assert REDUCERS[reducer](state, {"type": f"{reducer}/unheardOf", "turnId": "t1"}) is state
        for step in actions(Random(1), reducer, 60):
            state = REDUCERS[reducer](state, step)
        assert state["newer"] == {"member": 1}


def test_every_action_of_the_channels_is_generated() -> None:
    for reducer, makers in MAKERS.items():
        for name, make in makers.items():
            assert make(Random(0))["type"] == f"{reducer}/{name}"
    generated = {f"{kind}/{name}" for kind in ("terminal", "changeset") for name in MAKERS[kind]}
    assert generated == {*terminal.REDUCERS, *changeset.REDUCERS}


def test_queued_messages_that_an_order_leaves_out_stay_in_their_order() -> None:
    # Beside the official Rust reducer, which sorts them by their ids.
    waiting: list[JsonObject] = [{"id": name, "message": {}} for name in ("c", "b", "a")]
    state = {**INITIAL["chat"], "queuedMessages": waiting}
    after = reduce_chat(state, {"type": "chat/queuedMessagesReordered", "order": ["a", "unknown", "a"]})
    assert [message["id"] for message in after["queuedMessages"]] == ["a", "c", "b"]
