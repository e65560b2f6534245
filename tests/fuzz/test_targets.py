"""The short part of fuzzing: every target with its seeds, and with the same made-up inputs each time."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.corpus import SEEDS, kept_seeds, seeds
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.support.cases import all_cases

MOST_SEED_BYTES = 1 << 20
SHORT = settings(phases=(Phase.explicit, Phase.generate, Phase.shrink))


def test_each_folder_of_seeds_belongs_to_a_target_and_all_are_small() -> None:
    assert {folder.name for folder in SEEDS.iterdir()} <= set(TARGETS)
    assert sum(path.stat().st_size for path in SEEDS.rglob("*") if path.is_file()) < MOST_SEED_BYTES


@pytest.mark.parametrize("name", TARGETS)
def test_the_property_holds_for_seeds_and_made_up_inputs(name: str) -> None:
    target = TARGETS[name]
    with target.open() as check:
        with all_cases() as case:
            for number, seed in enumerate([b"", *kept_seeds(name)]):
                with case(f"seed {number}: {seed[:200]!r}"):
                    check(seed)

        @settings(SHORT, max_examples=target.short)
        @given(made_up(name, target))
        def try_one(data: bytes) -> None:
            check(data)

        try_one()


def made_up(name: str, target: Target) -> st.SearchStrategy[bytes]:
    """Return inputs of a target: pieces in any order, changed seeds, and any bytes."""
    piece = st.sampled_from([*target.pieces, *"a1 \n"]).map(str.encode)
    joined = st.lists(piece, max_size=24).map(b"".join)
    kept = [seed for seed in seeds(name, target) if 0 < len(seed) <= 2048]
    kinds = [joined, joined, st.binary(max_size=200)]
    if kept:
        kinds.append(st.builds(changed, st.sampled_from(kept), st.integers(0, 2048), st.integers(0, 16), joined))
    return st.one_of(kinds)


def changed(seed: bytes, at: int, removed: int, added: bytes) -> bytes:
    """Return ``seed`` with some bytes replaced."""
    at %= len(seed) + 1
    return seed[:at] + added + seed[at + removed :]
