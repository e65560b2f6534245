"""Restoring a session from its log."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.session.session import Session
from jumpseat.sessions.replay import NOT_REPLAYED, replay_setting
from jumpseat_protocol.events import EVENT_TYPES
from tests.protocol.samples import sample
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio


async def test_the_events_that_a_replay_does_not_decode_change_no_state(tasks: TaskGroup) -> None:
    session = make_session(tasks, script=[{"text": "Hello."}]).session
    before = state_of(session)
    for kind in NOT_REPLAYED:
        payload = sample(EVENT_TYPES[kind])

        session.apply("event-1", payload)
        replay_setting(session.settings, payload)

        session.history.event_count, session.history.last_event_id = 0, None
        assert state_of(session) == before, kind


def state_of(session: Session) -> Any:
    """Return everything that events may change."""
    history = {name: value for name, value in vars(session.history).items() if name != "conversation"}
    conversation = session.history.conversation
    return copy.deepcopy(
        (history, vars(conversation), session.metrics, session.schedules.entries(), session.settings)
    )
