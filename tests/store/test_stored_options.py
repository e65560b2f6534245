"""The options that a session has again when it is resumed."""

from __future__ import annotations

from pathlib import Path

import orjson

from jumpseat.agent.settings import SessionSettings
from jumpseat.sessions.options import apply_options
from jumpseat.store.session.options import FILE, read_options, write_options
from jumpseat.store.session.state_files import DiskFiles


def test_a_resumed_session_has_the_options_that_are_not_those_of_a_session_without_any(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    plain = SessionSettings(cwd=tmp_path)
    changed = SessionSettings(
        cwd=tmp_path,
        default_excluded_tools=["bash"],
        hosted_tools=["web_search"],
        autopilot_continues=7,
        autopilot_continuation=False,
        lost_mcp_servers={"docs": "TOKEN"},
    )
    for settings in (changed, plain):
        write_options(files, settings)
        stored = read_options(files)
        resumed = SessionSettings(cwd=tmp_path)
        apply_options(resumed, stored.options)
        if stored.own is not None:
            resumed.lost_mcp_servers = stored.own.lost_mcp_servers
        assert resumed == settings
    # A validator of each would be built to read them.
    names = {"defaultAgent", "hostedTools", "autopilot", "lostMcpServers", "lostAgentServers"}
    assert names.isdisjoint(orjson.loads(files.read(FILE) or b""))
