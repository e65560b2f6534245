"""The client at the beginning of docs/clients.md is complete, and the page of session options is up to date."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from jumpseat_protocol.options_page import page
from tests.support.limits import WAIT_S
from tests.support.pages import code_blocks

PAGE: Final = Path(__file__).parents[2] / "docs" / "session-options.md"
SCRIPT: Final = {
    "turns": [
        {"tool_calls": [{"name": "lookup_order", "arguments": {"order_id": "1042"}}]},
        {"tool_calls": [{"name": "bash", "arguments": {"command": "touch made", "description": "Make it"}}]},
        {"text": "Order 1042 has been dispatched."},
    ]
}


def test_the_client_streams_an_answer_runs_its_tool_and_asks_about_other_calls(tmp_path: Path) -> None:
    client, *_ = code_blocks("docs/clients.md", "python")
    assert len(client.splitlines()) < 60
    (tmp_path / "client.py").write_text(client)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "script.json").write_text(json.dumps(SCRIPT))
    configuration = 'default_model = "demo/scripted"\n[adapters.demo]\ntype = "scripted"\nscript = "script.json"\n'
    (tmp_path / "home" / "config.toml").write_text(configuration)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "client.py", "Where is order 1042?"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "COPILOT_HOME": str(tmp_path / "home")},
        input="y\n",
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    assert done.stdout.endswith("Order 1042 has been dispatched.")
    assert (done.stdout.count("Allow it?"), "touch made" in done.stdout) == (1, True)
    assert (tmp_path / "made").exists()


def test_the_page_of_session_options_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run python -m jumpseat_protocol.options_page > docs/session-options.md"
    )
