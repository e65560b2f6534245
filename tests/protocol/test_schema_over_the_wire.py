"""The schema of the protocol and a real server: its recorded messages, and the command that prints the schema."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from jumpseat_protocol.schema import encoded
from tests.protocol.json_schema import SCHEMA_FILE, Document
from tests.support.cases import check_each
from tests.support.server import calls, running_server, scripted
from tests.transcripts.messages import Typed, typed_messages
from tests.transcripts.play import transcripts

STRICT: Final = Document(json.loads(SCHEMA_FILE.read_bytes()), strict=True)


def test_every_recorded_message_matches_the_schema_without_unknown_fields() -> None:
    def problems(typed: Typed) -> list[str]:
        return STRICT.problems(STRICT.at(*typed.spot), typed.value, " ".join(typed.spot))

    def check(path: Path) -> None:
        assert [problem for message in typed_messages(path) for problem in problems(message)] == []

    check_each({path.stem: path for path in transcripts()}, check)


@pytest.mark.anyio
async def test_results_with_events_match_the_schema_without_unknown_fields(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(calls("view", path="."), {"text": "Hello"}), streaming=True)
        for method in ("session.sendAndWait", "session.getMessages", "session.eventLog.read"):
            params = (
                {"sessionId": session, "prompt": "Hi"}
                if method == "session.sendAndWait"
                else {"sessionId": session}
            )
            answer = await server.wire.call(method, params)
            assert STRICT.problems(STRICT.at("clientRequests", method, "result"), answer) == []


def test_the_command_prints_the_schema_only() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jumpseat", "schema"], capture_output=True, timeout=120, check=True, text=True
    )
    assert (done.stdout, done.stderr) == (encoded().decode(), "")
    assert json.loads(done.stdout) == json.loads(SCHEMA_FILE.read_bytes())
