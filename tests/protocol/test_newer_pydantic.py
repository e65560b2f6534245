"""A version of pydantic that lazy models were not tested with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson

from jumpseat_protocol.envelope import encode_frame


def test_a_server_with_a_newer_pydantic_answers_and_warns_of_its_slower_start(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import pydantic\npydantic.VERSION = '2.99.0'\n")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    ping = encode_frame(orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}))

    done = subprocess.run(
        [sys.executable, "-m", "jumpseat", "--stdio"],
        input=ping,
        capture_output=True,
        env=environ,
        timeout=120,
        check=True,
    )

    assert b'"timestamp"' in done.stdout
    assert b"pydantic 2.99.0 is newer than the tested" in done.stderr
