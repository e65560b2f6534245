"""The page about what is served says what the tables of the door say."""

from __future__ import annotations

from pathlib import Path

from jumpseat.ahp.connection import AFTER, BEFORE
from jumpseat.ahp.coverage import ACTIONS_SENT, UNSERVED, page
from jumpseat.ahp.live.dispatches import SERVED
from jumpseat.ahp.states import changeset, chat, root, session, terminal
from jumpseat.ahp.translation.shapes import ACTIONS

PAGE = Path(__file__).parents[2] / "docs" / "ahp-coverage.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "python -m jumpseat.ahp.coverage > docs/ahp-coverage.md"


def test_the_tables_agree() -> None:
    assert not UNSERVED.keys() & {*BEFORE, *AFTER}
    assert ACTIONS.keys() >= SERVED
    known = {*root.REDUCERS, *session.REDUCERS, *chat.REDUCERS, *changeset.REDUCERS, *terminal.REDUCERS}
    assert {*ACTIONS_SENT, *ACTIONS} <= known
