"""Whatever approvals cover, a real bash runs it without touching anything outside of what was approved."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jumpseat.agent.permissions.approvals import ApprovalRecord
from jumpseat.tools.shell.process import git_settings
from jumpseat_protocol.permissions import SessionApproval
from tests.agent.permissions import attacks
from tests.agent.permissions.test_hostile_calls import decide, permissions, shell

APPROVED = ApprovalRecord(SessionApproval(kind="commands", command_identifiers=list(attacks.APPROVED)))


def test_the_corpus_of_attacks_is_large() -> None:
    assert len({line for lines in attacks.LINES.values() for line in lines}) >= 200


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind) for kind in attacks.LINES])
def test_lines_that_approvals_cover_touch_nothing_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    template = tmp_path / "template"
    attacks.build(template)
    harm: list[str] = []
    ran: list[str] = []
    for number, line in enumerate(attacks.LINES[kind]):
        project = template / "all" / "project"
        if decide(permissions(project, approvals=[APPROVED]), shell(line)).status != "allowed":
            continue
        ran.append(line)
        project, guarded = attacks.build(tmp_path / str(number))
        before = [contents(path) for path in guarded]
        done = subprocess.run(
            [shutil.which("bash") or "bash", "--norc", "--noprofile", "-c", line],
            cwd=project,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **git_settings({})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if attacks.CANARY in done.stdout + done.stderr or [contents(path) for path in guarded] != before:
            harm.append(line)
    assert harm == []
    # Otherwise the other classes would prove nothing.
    if kind == "harmless lines that resemble the others":
        assert ran == list(attacks.LINES[kind])


def contents(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
