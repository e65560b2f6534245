"""The tools for which a hook in a file runs."""

from __future__ import annotations

from pathlib import Path

from jumpseat.agent.session.hooks import HookCommand
from jumpseat.tools.hooks.matching import matches


def test_a_hook_that_guards_edits_or_new_files_runs_for_patches(tmp_path: Path) -> None:
    def runs_for(tool: str, matcher: str | None, *, pascal_case: bool = False) -> bool:
        command = HookCommand("preToolUse", "project", tmp_path, (), "", pascal_case, matcher)
        return matches(command, tool)

    for matcher in ("Edit", "Write", "MultiEdit|Write", "Edit.*", "*", None):
        assert runs_for("apply_patch", matcher, pascal_case=True)
    for matcher in ("edit", "create", "edit|create", "apply_patch", ".*", None):
        assert runs_for("apply_patch", matcher)
    assert not runs_for("apply_patch", "Read|Bash", pascal_case=True)
    assert not runs_for("apply_patch", "view|bash")
    assert not runs_for("edit", "apply_patch")
