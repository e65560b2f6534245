"""Matching of paths against the patterns of rules."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from random import Random

import pytest

from jumpseat.agent.permissions.rules import path_matches


def reference(pattern: str, path: str) -> bool:
    """Match a pattern of a rule by trying everything."""
    if pattern.endswith("/**"):
        pattern = pattern.removesuffix("/**")
    last = pattern.rpartition("/")[2]
    if not re.search(r"[*?]", last):
        return any(tried(pattern, path[:end]) for end in range(len(path) + 1) if path[end : end + 1] in ("", "/"))
    return tried(pattern, path)


def tried(pattern: str, path: str) -> bool:
    if pattern.startswith("/**/"):
        return path.startswith("/") and any(
            tried(pattern[4:], path[end:]) for end in range(1, len(path) + 1) if path[end - 1] == "/"
        )
    if pattern.startswith("**"):
        return any(tried(pattern[2:], path[end:]) for end in range(len(path) + 1))
    if pattern.startswith("*"):
        ends = itertools.takewhile(lambda end: "/" not in path[:end], range(len(path) + 1))
        return any(tried(pattern[1:], path[end:]) for end in ends)
    if not pattern:
        return not path
    same = path[:1] not in ("", "/") if pattern[0] == "?" else path[:1] == pattern[0]
    return same and tried(pattern[1:], path[1:])


def test_a_pattern_matches_what_trying_everything_matches() -> None:
    chance = Random(0)
    outcomes: Counter[bool] = Counter()
    wildcards = ["a", "b", "/", "*", "?", "**", "/**/", "*a", "ab"]
    for _ in range(5000):
        pattern = "".join(chance.choices(wildcards, k=chance.randrange(8)))
        path = "".join(chance.choices(["a", "b", "/", "ab", "/a"], k=chance.randrange(9)))
        pattern, path = re.sub(r"\*{3,}", "**", f"/x{pattern}"), f"/x{path}"
        if "//" in pattern + path or pattern.endswith("/") or path.endswith("/") or "**/**" in pattern:
            # Neither is a normal path, or the pattern means the same as a shorter one.
            continue
        assert path_matches(pattern, path) == reference(pattern, path), (pattern, path)
        outcomes[reference(pattern, path)] += 1
    assert outcomes[True] > 100
    assert outcomes[False] > 100


@pytest.mark.parametrize(
    "pattern",
    [
        "/x/" + "*a" * 60 + "*b",
        "/**/a" * 40 + "/b",
        "/x/" + "a*" * 60 + "/**/b",
        "/x/a**a*b",
        "/x/**a*b**c",
        "/x/**?*b/c",
        "/x/**a/a*a/b**b",
        "/**/a*b**",
    ],
)
def test_a_pattern_with_many_wildcards_is_matched_in_linear_time(pattern: str) -> None:
    started = time.process_time()
    assert not path_matches(pattern, "/x/" + "a" * 50_000)
    assert not path_matches(pattern, "/x" + "/a" * 25_000)
    assert not path_matches(pattern, "/x" + "/aa" * 15_000 + "/a")
    assert time.process_time() - started < 2
