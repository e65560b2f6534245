"""The choice of tools at each door: names in the configuration and in arguments, and names that do not exist."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio

SAYS = {"text": "Hi."}


@pytest.mark.parametrize(
    ("config", "args", "expected"),
    [
        ('offered = ["view", "glob"]', (), {"view", "glob"}),
        ('offered = ["minimal", "glob"]', (), {"bash", "create", "edit", "glob", "grep", "view"}),
        ('offered = "all"', ("--tools", "minimal"), {"bash", "create", "edit", "grep", "view"}),
        ('offered = "all"', ("--tools", "view"), {"view"}),
        ('offered = "all"', ("--tools", "none"), set[str]()),
    ],
)
async def test_a_client_that_chooses_no_tools_gets_those_of_the_user(
    tmp_path: Path, config: str, args: tuple[str, ...], expected: set[str]
) -> None:
    async with running_server(tmp_path, config=f"[tools]\n{config}\n", args=args) as server:
        session = await server.wire.create(scripted(SAYS, SAYS))
        found = await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": session})
        assert {tool["name"] for tool in found["tools"]} & {*expected, "web_fetch", "sql"} == expected
        chosen = await server.wire.create(scripted(SAYS, SAYS), availableTools=["sql"])
        found = await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": chosen})
        assert {tool["name"] for tool in found["tools"]} == {"sql"}
        chosen = await server.wire.create(scripted(SAYS, SAYS), availableTools=["@default"])
        found = await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": chosen})
        assert {tool["name"] for tool in found["tools"]} >= {"bash", "edit", "view", "web_fetch", "sql"}


async def test_a_session_warns_once_of_chosen_tools_that_do_not_exist(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(
            scripted(SAYS, SAYS),
            availableTools=["view", "greb", "mcp:*", "builtin:*", "@minimal", "mine"],
            excludedTools=["nothing_like_it"],
            tools=[{"name": "mine"}],
        )
        events = [*await wire.prompt(session), *await wire.prompt(session)]
        told = [event["data"] for event in events if event["type"] == "session.warning"]
    assert [(data["warningType"], data["message"]) for data in told] == [
        (
            "tools",
            "The choice of tools names some that do not exist: 'greb' (did you mean 'grep'?), 'nothing_like_it'.",
        )
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "hi", "--tools", "view,greb"), "--tools: unknown tool 'greb', did you mean 'grep'?"),
        (
            ("run", "hi", "--deny-tool", "web_fech"),
            "--deny-tool: unknown tool 'web_fech', did you mean 'web_fetch'?",
        ),
        (("acp", "--tools", "minimul"), "--tools: unknown tool 'minimul', did you mean 'minimal'?"),
        (("run", "hi", "--tools", "bogus"), "--tools: unknown tool 'bogus', expected minimal, default, all"),
        (("--stdio", "--tools", "view,bogus"), "--tools: unknown tool 'bogus', expected minimal, default, all"),
        (("--headless", "--tools", "default,view"), "--tools: 'default' stands alone"),
        (("acp", "--tools", ","), "--tools: expected names of tools, or none for no tools"),
    ],
)
def test_a_name_of_no_tool_on_the_command_line_is_an_error(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    ("offered", "told"),
    [
        ('"bogus"', "unknown tool 'bogus', expected minimal, default, all"),
        ('["view", "greb"]', "unknown tool 'greb', did you mean 'grep'?"),
        ('["default", "view"]', "'default' stands alone"),
    ],
)
def test_a_name_of_no_tool_in_the_configuration_is_an_error(tmp_path: Path, offered: str, told: str) -> None:
    (tmp_path / ".jumpseat").mkdir()
    (tmp_path / ".jumpseat" / "config.toml").write_text(f"[tools]\noffered = {offered}\n")
    done = run(tmp_path, "acp")
    assert done.returncode == 2
    assert f"config.toml: tools.offered: {told}" in done.stderr


def test_names_of_declared_tools_and_of_those_of_others_are_accepted(tmp_path: Path) -> None:
    (tmp_path / ".jumpseat" / "tools").mkdir(parents=True)
    declared = 'TOOL = {"name": "of_file", "description": "d", "cmd": "true"}\n'
    (tmp_path / ".jumpseat" / "tools" / "of_file.py").write_text(declared)
    table = '[tools.of_table]\ndescription = "d"\ncmd = "true"\n'
    (tmp_path / ".jumpseat" / "config.toml").write_text(table)
    names = "of_file,of_table,custom:mine,web-search,server/*,lsp,minimal"
    assert run(tmp_path, "acp", "--tools", names).returncode == 0


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [executable(), *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
