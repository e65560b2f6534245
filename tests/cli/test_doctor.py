"""``jumpseat doctor``: what it finds on a machine, and what it says to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from jumpseat.network.site import has_page
from jumpseat.system.installation import how_to_add_page
from tests.support.forked import executable


def doctor(home: Path, *args: str, **env: str) -> tuple[int, str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "COPILOT_HOME": str(home), **env}
    command = [executable(), "doctor", *args]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def findings(output: str, section: str) -> list[dict[str, Any]]:
    return json.loads(output)["sections"][section]


def test_a_machine_without_a_model_is_told_what_to_do(tmp_path: Path) -> None:
    code, shown = doctor(tmp_path / "home")
    assert code == 1
    assert "✗ no model yet\n      jumpseat setup connects one" in shown
    for section in ("installed", "configured", "reachable", "confined", "editors and SDKs"):
        assert f"{section}\n" in shown


def test_a_file_with_a_mistake_and_a_key_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("[retry]\nattempt = 1\n")
    code, shown = doctor(home, "--json")
    (fault,) = [one for one in findings(shown, "configured") if one["state"] == "fault"]
    assert (code, "config.toml:2: retry.attempt: unknown, did you mean 'attempts'?" in fault["text"]) == (1, True)


def test_a_model_that_works_has_no_fault_and_no_key_is_shown(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "script.yaml").write_text("turns: [{text: ready}]\nafter_last: repeat\n")
    (home / "config.toml").write_text(
        'default_model = "play/one"\n[adapters.play]\ntype = "scripted"\nscript = "script.yaml"\nmodels = ["one"]\n'
    )
    code, shown = doctor(home, "--try", "--json", OPENAI_API_KEY="sk-not-to-be-shown")
    reached = [one["text"] for one in findings(shown, "reachable")]
    assert "default model play/one: Asked for one word, the model answered 'ready'." in reached
    assert "openai: OPENAI_API_KEY is set" in reached
    assert (code, json.loads(shown)["faults"], "sk-not-to-be-shown" in shown) == (0, 0, False)


def test_a_required_sandbox_that_does_not_work_and_a_missing_page_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    elsewhere = "landlock" if sys.platform == "darwin" else "seatbelt"
    (home / "config.toml").write_text(f'[sandbox]\nmode = "require"\nmechanisms = ["{elsewhere}"]\n')
    _, shown = doctor(home, "--json")
    (fault,) = [one["text"] for one in findings(shown, "confined") if one["state"] == "fault"]
    assert fault == 'sandbox.mode is "require" and nothing confines commands here: none can run'
    (page,) = [one for one in findings(shown, "installed") if one["text"].startswith("the page for browsers")]
    assert page["todo"] == ("jumpseat web opens it" if has_page() else how_to_add_page())
