"""Random edits with random slips, of real files and of any text: what lands is right, nothing is damaged."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from unicodedata import normalize

import pytest
from benchmarks.edits import KINDS, judge, make_cases, source_files
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpseat.tools.edits.engine import Edit, Landed, Refused, apply_edit
from jumpseat.tools.edits.reading import skeleton

ROOT = Path(__file__).parent.parent.parent.parent
TEXTS = st.text(alphabet=" \t\n\rab1(.\"'\u201c-\u2013\u00a0&;lt\\ne\u0301", max_size=40)
PLAIN = st.text(alphabet=" \t\n\rab1(.\"'\u201c-\u2013\u00a0;e\u0301", max_size=40)
BLANKS = st.text(alphabet=" \t\n", max_size=4)


@pytest.mark.thorough
def test_edits_of_this_project_land_as_without_their_slips_and_damage_nothing() -> None:
    files = source_files([str(ROOT / "server"), str(ROOT / "clients")], 1)
    verdicts: Counter[str] = Counter()
    wanted = 0
    for name, kind in KINDS.items():
        for case in make_cases(files, kind, 10, random.Random(name)):
            verdicts[judge(case)] += 1
            wanted += case.after is not None
    assert verdicts.total() > 10 * len(KINDS) - 10
    assert set(verdicts) <= {"right", "refused"}
    assert verdicts["refused"] < 0.03 * wanted


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS, TEXTS, BLANKS)
def test_an_edit_of_any_text_replaces_one_passage_or_says_why_not(
    before: str, old: str, after: str, new: str
) -> None:
    text = before + old + after
    result = apply_edit(text, Edit(old, new + "b" + old[:3]), "x")
    if isinstance(result, Refused):
        assert result.reason
        assert result.reason.count("\n") < 30
    else:
        assert visible(result.text) == visible(before) + visible(new + "b" + old[:3]) + visible(after)


@settings(max_examples=300, deadline=None)
@given(PLAIN, PLAIN, PLAIN)
def test_an_edit_changes_what_is_visible_at_one_place_only(text: str, old: str, new: str) -> None:
    result = apply_edit(text, Edit(old, new), "x")
    if isinstance(result, Landed):
        wanted, made = visible(text), visible(result.text)
        places = [start for start in range(len(wanted) + 1) if wanted.startswith(visible(old), start)]
        assert made in {wanted[:at] + visible(new) + wanted[at + len(visible(old)) :] for at in places}


def visible(text: str) -> str:
    return normalize("NFD", skeleton(text).replace("\n", ""))
