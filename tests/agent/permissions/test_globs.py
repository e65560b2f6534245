"""Patterns of command lines are expanded like the shell does it, in bounded time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from jumpseat.agent.permissions.globs import MAX_ENTRIES, MAX_NAMES, GlobBudget, expand_globs


def test_a_pattern_stands_for_at_least_what_the_shell_finds(tmp_path: Path) -> None:
    for name in ("a/b/c.py", "a/b/d.txt", "a/x.py", "b/b/c.py", "-option", "we ird/[x]", ".hidden/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    patterns = [
        "*",
        "*/",
        "a*",
        "*/*/*.py",
        "./a/?.py",
        "../*/a",
        "**/*.py",
        "a**",
        "[ab]/b",
        "no*",
        "*/../b",
        "*o*/*",
    ]
    patterns.append(f"{tmp_path}/*/b")
    missing: dict[str, set[str]] = {}
    for pattern in patterns:
        script = f'printf "%s\\0" {pattern}'
        found = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, check=True
        ).stdout.decode()
        shown = {name.rstrip("/") for name in found.split("\0") if name}
        budget = GlobBudget()
        missing[pattern] = shown - set(expand_globs([pattern], tmp_path, budget))
        assert not budget.exceeded
    assert {pattern: names for pattern, names in missing.items() if names} == {}


def test_patterns_that_match_too_much_or_search_too_much_say_so(tmp_path: Path) -> None:
    for number in range(MAX_NAMES + 1):
        (tmp_path / f"f{number}").touch()
    found = GlobBudget()
    assert len(expand_globs(["f*", "g*"], tmp_path, found)) == MAX_NAMES + 1
    assert found.exceeded
    # Folders of many entries at each level, none of which matches.
    deep = tmp_path / "deep"
    for one in range(200):
        (deep / str(one)).mkdir(parents=True)
        os.link(tmp_path / "f0", deep / str(one) / "f")
    searched = GlobBudget(entries=150)
    assert expand_globs(["deep/*/none*"], tmp_path, searched) == ["deep/*/none*"]
    assert searched.exceeded
    assert GlobBudget().entries == MAX_ENTRIES
