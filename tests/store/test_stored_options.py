"""The options that a session has again when it is resumed."""

from __future__ import annotations

from pathlib import Path

import orjson

from jumpseat.agent.settings import SessionSettings
from jumpseat.sessions.options import apply_options
from jumpseat.store.session.options import FILE, read_options, write_options
from jumpseat.store.session.state_files import DiskFiles
from jumpseat_protocol.sessions import AutopilotOptions, DefaultAgentConfig


def test_a_resumed_session_has_the_options_that_are_not_those_of_a_session_without_any(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    plain = SessionSettings(cwd=tmp_path)
    changed = SessionSettings.of(
        tmp_path,
        default_agent=DefaultAgentConfig(excluded_tools=["bash"]),
        hosted_tools=["web_search"],
        autopilot=AutopilotOptions(max_continues=7, continuation_enabled=False),
    )
    changed.lost_mcp_servers = {"docs": "TOKEN"}
    for settings in (changed, plain):
        write_options(files, settings)
        options, own = read_options(files)
        resumed = apply_options(SessionSettings(cwd=tmp_path), options)
        resumed.lost_mcp_servers = own.lost_mcp_servers
        assert resumed == settings
    assert orjson.loads(files.read(FILE) or b"") == {}
