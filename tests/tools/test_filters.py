"""Filters of a session's tools."""

from __future__ import annotations

import pytest

from jumpseat.tools.filters import SourceName, is_offered


@pytest.mark.parametrize(
    ("available", "excluded", "expected"),
    [
        (None, [], True),
        ([], [], False),
        (["view"], [], True),
        (["edit", "builtin:view"], [], True),
        (["builtin:*"], [], True),
        (["custom:*", "mcp:*"], [], False),
        (["custom:view"], [], False),
        (["View", "view ", "*", "vi*", "builtin:vi*", "builtin"], [], False),
        (None, ["view"], False),
        (None, ["builtin:view"], False),
        (None, ["builtin:*"], False),
        (None, ["custom:*", "custom:view", "edit"], True),
        (["view"], ["view"], False),
        (["view"], ["builtin:*"], False),
        (["builtin:view"], ["view"], False),
        (["builtin:*"], ["custom:view"], True),
    ],
)
def test_a_builtin_tool_is_offered_if_it_is_available_and_not_excluded(
    available: list[str] | None, excluded: list[str], expected: bool
) -> None:
    assert is_offered("view", "builtin", available, excluded) is expected


@pytest.mark.parametrize("source", ["builtin", "custom", "mcp"])
def test_patterns_apply_to_the_source_they_name(source: SourceName) -> None:
    others = [f"{other}:*" for other in ("builtin", "custom", "mcp") if other != source]

    assert is_offered("a-b", source, [f"{source}:*"], others)
    assert is_offered("a-b", source, [f"{source}:a-b"], [])
    assert not is_offered("a-b", source, others, [])
    assert not is_offered("a-b", source, None, [f"{source}:*"])
