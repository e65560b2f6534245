"""Seeded faults are reproducible, compile, and change the stated lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.faults import faults_in, seeded

SERVER = Path(__file__).parents[2] / "server" / "jumpseat"

SOURCE = '''\
async def take(items, limit):
    """Take items."""
    if len(items) > limit:
        items = items[:limit]
    return await send(
        items,
    )
'''


def test_each_kind_of_fault_is_found_and_applied() -> None:
    found = faults_in("module.py", SOURCE)

    assert [(fault.kind, fault.lines, fault.text) for fault in found] == [
        ("comparison", (3, 3), "    if (len(items) <= limit):\n"),
        ("line", (4, 4), "        pass\n"),
        ("await", (5, 7), "    return (send(items))\n"),
        ("line", (5, 7), "    pass\n"),
    ]
    assert found[1].applied_to(SOURCE) == SOURCE.replace("        items = items[:limit]\n", "        pass\n")


@pytest.mark.thorough
def test_the_same_seed_draws_the_same_faults_and_each_compiles() -> None:
    drawn = seeded(SERVER, ("rpc", "store"), 60, seed=1)

    assert drawn == seeded(SERVER, ("rpc", "store"), 60, seed=1)
    assert drawn != seeded(SERVER, ("rpc", "store"), 60, seed=2)
    for fault in drawn:
        source = (SERVER / fault.path).read_text()
        changed = fault.applied_to(source)
        compile(changed, fault.path, "exec")
        assert changed != source
