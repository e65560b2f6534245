"""Whatever the log of a session holds, its next request follows the rules of each wire."""

from __future__ import annotations

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest
from tests.adapters.histories import WIRES, random_bodies


def check_histories(wire: str, count: int) -> None:
    adapter = load_adapter(wire)

    def body_of(request: ModelRequest) -> JsonObject:
        return adapter.request(Endpoint("http://h/v1"), request).body

    assert sum(1 for _ in random_bodies(wire, count, body_of)) == count


@pytest.mark.parametrize("wire", WIRES)
def test_random_histories_follow_the_rules_of_the_wire(wire: str) -> None:
    check_histories(wire, 150)


@pytest.mark.thorough
@pytest.mark.parametrize("wire", WIRES)
def test_thousands_of_random_histories_follow_the_rules_of_the_wire(wire: str) -> None:
    check_histories(wire, 3_000)
