"""The hints to the names that were meant."""

from __future__ import annotations

import pytest

from jumpseat_protocol.members import misspelt

KNOWN = ("stream", "tools", "has_vision", "timeouts")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("strem", "stream"),
        ("streamm", "stream"),
        ("tolls", "tools"),
        ("tosol", None),
        ("toosl", "tools"),
        ("hasVision", "has_vision"),
        ("timeout", "timeouts"),
        ("tools", None),
        ("my_tools", None),
        ("can_stream", None),
        ("", None),
    ],
)
def test_a_name_with_one_wrong_letter_is_misspelt_and_another_name_is_not(name: str, meant: str | None) -> None:
    assert misspelt(name, KNOWN) == meant
