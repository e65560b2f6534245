"""Peers with faults, and how clients and scripts take them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import anyio
import pytest

from jumpseat_testkit.faults.page import page
from jumpseat_testkit.faults.report import Finding, kinds_of, try_script
from jumpseat_testkit.faults.table import FAULTS
from jumpseat_testkit.protocols import SPOKEN, ProtocolName
from jumpseat_testkit.steps import parse_script
from tests.script.scripts import one_turn
from tests.support.commands import run_command
from tests.support.forked import Program, executable

ROOT = Path(__file__).parents[2]
PEER = Program(str(ROOT / "testkit" / "jumpseat_testkit" / "faults" / "__main__.py"))


@pytest.fixture
def forked_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the peers, of which there are fifty for each protocol, instead of importing them for each fault."""
    python = tmp_path / "python"
    # The arguments before those of the peer are `-P -m jumpseat_testkit.faults`.
    python.write_text(
        f'#!/bin/sh\n[ "$3" = jumpseat_testkit.faults ] || exit 3\n'
        f'shift 3\nexec {shlex.quote(executable(PEER, "peer"))} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))


@pytest.mark.anyio
@pytest.mark.thorough
@pytest.mark.usefixtures("forked_peers")
@pytest.mark.parametrize("protocol", SPOKEN)
async def test_a_script_finds_every_fault_and_accepts_what_is_unusual(protocol: ProtocolName) -> None:
    script = parse_script(one_turn(protocol, within=6), "x")
    found: list[Finding] = []
    limiter = anyio.CapacityLimiter(4)

    async def look(kind: str) -> None:
        async with limiter:
            async for finding in try_script(script, "x", [kind]):
                found.append(finding)

    async with anyio.create_task_group() as tasks:
        for kind in kinds_of("all", protocol):
            tasks.start_soon(look, kind)
    assert [finding for finding in found if not finding.ok] == []
    assert len(found) > 40


def test_a_client_is_tried_and_each_outcome_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "turn.json"
    script.write_text(json.dumps(one_turn("acp-1", within=20)))
    outcomes: dict[str, str] = {}

    def run(kinds: str, client: str, *more: str) -> int:
        arguments = ["--faults", kinds, "--protocol", "acp-1", "--client", client, *more, "--json"]
        code = run_command(["script", *arguments])
        outcomes.update({one["kind"]: one["how"] for one in json.loads(capsys.readouterr().out)})
        return code

    player = f"{shlex.quote(sys.executable)} -P -m jumpseat script {shlex.quote(str(script))} --server {{peer}}"
    assert run("two_answers,split_frames", player) == 0
    assert outcomes == {"two_answers": "told", "split_frames": "went on"}
    assert run("two_answers", "true {peer}") == 1
    assert outcomes["two_answers"] == "went on"
    assert run("two_answers", "sh -c 'kill -SEGV $$' {peer}") == 1
    assert outcomes["two_answers"] == "crash"
    assert run("two_answers", "sh -c 'sleep 60' {peer}", "--within", "0.5") == 1
    assert outcomes["two_answers"] == "hang"


def test_unknown_faults_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["script", "--faults", "all"]) == 2
    assert "expected one script FILE, or --client COMMAND" in capsys.readouterr().err
    assert run_command(["script", "--fault", "no_such_thing"]) == 2
    assert "unknown fault 'no_such_thing'" in capsys.readouterr().err
    assert run_command(["script", "--fault", "no_length", "--protocol", "acp-1"]) == 2
    assert "does not exist in the protocol 'acp-1'" in capsys.readouterr().err


def test_the_page_about_faults_is_that_of_the_table() -> None:
    assert (ROOT / "docs" / "script-faults.md").read_text() == page(), "python -m jumpseat_testkit.faults.page"
    assert sum(not fault.is_harmless for fault in FAULTS.values()) >= 40
