"""Declared tools over the real wire: sources, trust, registration by clients, and the request to the model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jumpseat.tools.builtin import BUILTIN_NAMES
from tests.support.mcp_servers import status, stdio
from tests.support.model_server import ModelServer
from tests.support.server import JsonObject, RunningServer, running_server

pytestmark = pytest.mark.anyio

SAY = 'description = "Say it"\ncmds = [["echo", "${text}"]]\n[parameters.text]\ntype = "string"\n'


def write(path: Path, text: str = SAY) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def script(*calls: tuple[str, JsonObject]) -> JsonObject:
    turns: list[JsonObject] = [{"tool_calls": [{"name": name, "arguments": args}]} for name, args in calls]
    return {"provider": {"type": "scripted", "script": {"turns": [*turns, {"text": "done"}] * 3}}}


def at(provider: ModelServer) -> JsonObject:
    return {"type": "openai", "baseUrl": f"{provider.url}/v1", "apiKey": "k"}


async def tools_of(server: RunningServer, session: str = "s", prompt: str = "hi", **options: Any) -> list[str]:
    """Return the tools of a session after a prompt, without the built-in ones."""
    wire = server.wire
    if options or session == "s":
        await wire.call("session.create", {"sessionId": session, **script(), **options})
    await wire.call("session.sendAndWait", {"sessionId": session, "prompt": prompt})
    tools = (await wire.call("session.tools.getCurrentMetadata", {"sessionId": session}))["tools"]
    return sorted(tool["name"] for tool in tools if tool["name"] not in BUILTIN_NAMES)


async def result_of(server: RunningServer, tool: str, args: JsonObject, **options: Any) -> str:
    """Return the result of a tool call in a session that allows everything."""
    wire = server.wire
    await wire.call("session.create", {"sessionId": "s", **script((tool, args)), **options})
    await wire.call("session.permissions.setApproveAll", {"sessionId": "s", "enabled": True})
    await wire.call("session.sendAndWait", {"sessionId": "s", "prompt": "go"})
    completion = await wire.event("tool.execution_complete", session="s")
    return completion["data"].get("result", completion["data"].get("error"))["content"]


async def test_a_tool_in_the_home_folder_is_offered_to_every_session(tmp_path: Path) -> None:
    write(tmp_path / "home" / "tools" / "say.toml")
    async with running_server(tmp_path) as server:
        assert await result_of(server, "say", {"text": "hi"}) == "hi\n<exited with exit code 0>"


async def test_tools_can_be_declared_in_the_configuration_and_in_python(tmp_path: Path) -> None:
    write(tmp_path / "home" / "tools" / "twice.py", 'TOOL = {"cmds": [lambda args: "x" * 2]}\n')
    write(
        tmp_path / "home" / "tools" / "more.py",
        'TOOLS = [{"name": "a", "cmds": [["true"]]}, lambda: {"name": "b", "cmds": [["true"]]}]\n',
    )
    config = '[tools.say]\ncmds = [["echo", "${text}"]]\nparameters.text.type = "string"\n'
    async with running_server(tmp_path, config=config) as server:
        assert await tools_of(server) == ["a", "b", "say", "twice"]


async def test_an_invalid_tool_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    tools = tmp_path / "home" / "tools"
    write(tools / "say.toml")
    write(tools / "bad.toml", "cmdz = 1\n")
    write(tools / "worse.toml", "=\n")
    write(tools / "worst.py", "raise SystemExit(1)\n")
    write(tools / "none.py", "TOOL = 3\n")
    write(tools / "bash.toml")
    write(tools / "sql.toml")
    write(tools / "odd name.toml")
    async with running_server(tmp_path, config='[tools.empty]\ndescription = "x"\n') as server:
        assert await tools_of(server) == ["say"]
        listed_tools = (await server.wire.call("jumpseat.tools.list", {}))["tools"]

    problems = {tool["name"]: tool.get("problem") for tool in listed_tools}
    assert problems.pop("say") is None
    assert "bad.toml:1: cmdz: unknown, did you mean 'cmds'?" in problems["bad"]
    assert "worst.py: cannot be run: SystemExit: 1" in problems["worst"]
    assert "expected a mapping called TOOL" in problems["none"]
    assert "'bash' is a built-in tool; set overrides_built_in_tool to replace it" in problems["bash"]
    assert "'odd name' cannot be the name of a tool" in problems["odd name"]
    config = tmp_path / "home" / "config.toml"
    assert problems["empty"] == f"{config}:1: tools.empty: expected cmds: a list of commands or functions"
    assert problems["worse"] is not None


async def test_a_declared_tool_can_replace_a_built_in_one_if_it_declares_that(tmp_path: Path) -> None:
    write(tmp_path / "home" / "tools" / "view.toml", f"overrides_built_in_tool = true\n{SAY}")
    async with running_server(tmp_path) as server:
        assert await result_of(server, "view", {"text": "hi"}) == "hi\n<exited with exit code 0>"


async def test_tools_of_a_project_are_offered_if_its_folder_is_trusted(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project / ".jumpseat" / "tools" / "say.toml")
    (project / ".git").mkdir()
    (project / "inner").mkdir()
    (tmp_path / "outside").mkdir()
    config = f'trusted_folders = ["{project}"]\n'
    async with running_server(tmp_path, config=config) as server:
        assert await tools_of(server, "in", workingDirectory=str(project)) == ["say"]
        assert await tools_of(server, "inner", workingDirectory=str(project / "inner")) == ["say"]
        assert await tools_of(server, "out", workingDirectory=str(tmp_path / "outside")) == []


async def test_tools_of_an_untrusted_project_are_not_read(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    tools = tmp_path / ".jumpseat" / "tools"
    write(tools / "spy.py", f"open({str(ran)!r}, 'w').close()\nTOOL = {{'cmds': [['true']]}}\n")
    write(tmp_path / "elsewhere" / "say.toml")
    async with running_server(tmp_path) as server:
        assert await tools_of(server) == []
        listing = await server.wire.call("jumpseat.tools.list", {"workingDirectory": str(tmp_path)})

    assert (listing, ran.exists()) == ({"tools": []}, False)


async def test_a_link_out_of_a_trusted_project_is_not_followed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(tmp_path / "elsewhere" / "say.toml")
    (project / ".jumpseat" / "tools").mkdir(parents=True)
    os.symlink(tmp_path / "elsewhere" / "say.toml", project / ".jumpseat" / "tools" / "say.toml")
    config = f'trusted_folders = ["{project}"]\n'
    async with running_server(tmp_path, config=config) as server:
        assert await tools_of(server, workingDirectory=str(project)) == []


async def test_a_changed_file_applies_from_the_next_prompt_on(tmp_path: Path) -> None:
    path = tmp_path / "home" / "tools" / "say.toml"
    write(path)
    async with running_server(tmp_path) as server:
        assert await tools_of(server) == ["say"]
        write(path, SAY.replace("cmds", 'name = "tell"\ncmds'))
        assert await tools_of(server, "t") if False else True
        await server.wire.call("session.sendAndWait", {"sessionId": "s", "prompt": "again"})
        listing = await server.wire.call("session.tools.getCurrentMetadata", {"sessionId": "s"})
        assert "tell" in [tool["name"] for tool in listing["tools"]]


async def test_filters_treat_declared_tools_as_custom_ones(tmp_path: Path) -> None:
    write(tmp_path / "home" / "tools" / "say.toml")
    write(tmp_path / "home" / "tools" / "tell.toml")
    async with running_server(tmp_path) as server:
        assert await tools_of(server, "a", availableTools=["custom:say", "view"]) == ["say"]
        assert await tools_of(server, "b", availableTools=["custom:*"]) == ["say", "tell"]
        assert await tools_of(server, "c", excludedTools=["say"]) == ["tell"]
        assert await tools_of(server, "d", availableTools=["view"]) == []


async def test_a_tool_choice_can_name_a_declared_tool_of_the_first_session(tmp_path: Path) -> None:
    write(tmp_path / "home" / "tools" / "say.toml")
    async with running_server(tmp_path) as server:
        choice = {"mode": "specific", "toolName": "say"}
        await server.wire.call("session.create", {**script(), "toolChoice": choice})


# --- mentions and groups -----------------------------------------------------------------------------------------


GROUP = 'tools = ["say", "tell", "bash"]\nprompt = "the house tools (${tools})"\nsystem_prompt = "Speak softly."\n'


async def test_tools_offered_on_mention_are_there_once_mentioned_and_after_a_resume(
    tmp_path: Path,
) -> None:
    tools = tmp_path / "home" / "tools"
    write(tools / "say.toml", f"on_mention = true\n{SAY}")
    write(tools / "tell.toml", f'on_mention = true\nsystem_prompt = "Tell the truth."\n{SAY}')
    write(tools / "house.toml", GROUP)
    async with running_server(tmp_path) as server:
        assert await tools_of(server) == []
        assert await tools_of(server, "t", "say it with @{say} and @{nothing}", streaming=False) == ["say"]
        message = await server.wire.event("user.message", session="t")
        assert "\n\nsay it with the `say` tool and @{nothing}\n\n" in message["data"]["transformedContent"]
        assert message["data"]["content"] == "say it with @{say} and @{nothing}"
        assert await tools_of(server, "u", "use @{house}", streaming=False) == ["say", "tell"]
        message = await server.wire.event("user.message", session="u")
        assert "use the house tools (`say`, `tell`, `bash`)" in message["data"]["transformedContent"]
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": "u", **script()})
        assert await tools_of(server, "u") == ["say", "tell"]


async def test_default_tools_and_groups_are_in_every_session(tmp_path: Path) -> None:
    tools = tmp_path / "home" / "tools"
    write(tools / "say.toml", f"on_mention = true\n{SAY}")
    write(tools / "tell.toml", f"on_mention = true\n{SAY}")
    write(tools / "house.toml", 'tools = ["say"]\n')
    async with running_server(tmp_path, config='default_tools = ["house"]\n') as server:
        assert await tools_of(server) == ["say"]


async def test_a_tool_is_offered_if_its_condition_holds(tmp_path: Path) -> None:
    text = """
def on(ctx):
    return ctx["adapter"] == "other"

def fails():
    raise ValueError("hidden")

CMDS = [["true"]]
TOOLS = [
    {"name": "yes", "cmds": CMDS, "enabled": lambda cwd: cwd.endswith("/")or True},
    {"name": "no", "cmds": CMDS, "enabled": False},
    {"name": "adapter", "cmds": CMDS, "enabled": on},
    {"name": "failing", "cmds": CMDS, "enabled": fails, "system_prompt": "never"},
]
"""
    write(tmp_path / "home" / "tools" / "some.py", text)
    async with running_server(tmp_path) as server:
        assert await tools_of(server) == ["yes"]


# --- from a client -----------------------------------------------------------------------------------------------


async def test_a_command_tool_registered_by_a_client_always_requires_approval(tmp_path: Path) -> None:
    declaration = {
        "name": "say",
        "description": "Say it",
        "cmds": [["echo", "${text}"]],
        "parameters": {"text": {"type": "string"}},
        "requires_approval": False,
    }
    async with running_server(tmp_path) as server:
        wire = server.wire
        answer = await wire.call("jumpseat.tools.register", {"declaration": declaration})
        assert answer["tool"] == {
            "name": "say",
            "kind": "tool",
            "description": "Say it",
            "origin": "client",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": False,
            },
            "commands": [["echo", "${text}"]],
            "env": [],
            "handlers": [],
            "approval": "always",
            "timeoutS": 300,
            "onMention": False,
            "parallel": False,
        }
        assert await wire.call("jumpseat.tools.get", {"name": "say"}) == answer
        await wire.call(
            "session.create", {"sessionId": "s", "requestPermission": True, **script(("say", {"text": "x"}))}
        )
        await wire.call("session.send", {"sessionId": "s", "prompt": "go"})
        request = await wire.event("permission.requested", session="s")
        assert request["data"]["permissionRequest"]["fullCommandText"] == "echo x"
        await wire.call("session.abort", {"sessionId": "s"})


WRONG: list[tuple[JsonObject, str]] = [
    ({}, "the declaration needs a name"),
    ({"name": "a b", "cmds": [["true"]]}, "'a b' cannot be the name of a tool"),
    ({"name": "bash", "cmds": [["true"]]}, "a tool 'bash' exists already"),
    ({"name": "mine", "cmds": [["true"]]}, "a tool 'mine' exists already"),
    ({"name": "x"}, "expected cmds"),
    ({"name": "x", "cmds": [[]]}, "tool 'x': cmds[0]: expected a list of strings, a string or a function"),
    ({"name": "x", "cmds": [["true"]], "env": {"key": "file:/etc/passwd"}}, "env cannot be registered"),
    ({"name": "x", "cmds": [["true"]], "handlers": {"setup": 1}}, "handlers cannot be registered"),
    ({"name": "x", "tools": ["bash"]}, "tool 'x': groups cannot be registered"),
    ({"name": "x", "cmds": [["echo", "${p}"]]}, "tool 'x': cmds[0]: ${p} is neither in env nor a parameter"),
    (
        {"name": "x", "cmds": [["true"]], "parameters": {"type": "object", "required": 1}},
        "is not a JSON Schema",
    ),
    ({"name": "x", "cmds": [["true"]], "timeout_s": -1}, "timeout_s: "),
]


async def test_invalid_registrations_of_tools_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "home" / "tools" / "mine.toml")
    async with running_server(tmp_path) as server:
        for declaration, expected in WRONG:
            error = await server.wire.error_of("jumpseat.tools.register", {"declaration": declaration})
            assert expected in error["message"]


async def test_requesting_an_unknown_tool_is_an_error(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("jumpseat.tools.get", {"name": "none"})
        assert "unknown declared tool 'none'" in error["message"]
        error = await server.wire.error_of("jumpseat.tools.list", {"workingDirectory": "here"})
        assert "is not an absolute path" in error["message"]
        error = await server.wire.error_of("jumpseat.tools.list", {"workingDirectory": "/no/such/folder"})
        assert error["message"] == "workingDirectory '/no/such/folder' is not a directory"


async def test_commands_die_with_the_server(tmp_path: Path) -> None:
    write(
        tmp_path / "home" / "tools" / "wait.toml",
        'cmds = [["sh", "-c", "trap \'\' TERM; echo $$ > pid; sleep 60"]]\n',
    )
    os.mkfifo(tmp_path / "pid")
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("session.create", {"sessionId": "s", **script(("wait", {}))})
        await wire.call("session.permissions.setApproveAll", {"sessionId": "s", "enabled": True})
        await wire.call("session.send", {"sessionId": "s", "prompt": "go"})
        with (tmp_path / "pid").open() as pid:
            assert pid.read().strip()
    # `running_server` checks that no process outlives the server.


# --- groups -------------------------------------------------------------------------------------------------------


RELEASE = 'tools = ["changelog", "bash", "gone", "mcp:testing"]\nsystem_prompt = "Change nothing that is tagged."\n'


def write_release(folder: Path) -> None:
    write(folder / "home" / "tools" / "changelog.toml", 'on_mention = true\ncmds = ["true"]\n')
    write(folder / "home" / "tools" / "release.toml", RELEASE)


async def next_request(server: RunningServer, session: str, prompt: str) -> tuple[str, set[str], str]:
    """Return the system message, the tools and the last message of the next model request."""
    params = {"sessionId": session, "prompt": prompt}
    body = (await server.wire.call("jumpseat.session.nextRequest", params))["body"]
    tools = {tool["function"]["name"] for tool in body.get("tools", ())}
    return body["messages"][0]["content"], tools, body["messages"][-1]["content"]


async def test_the_mention_of_a_group_names_its_available_tools(tmp_path: Path) -> None:
    write_release(tmp_path)
    async with ModelServer() as provider, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(
            at(provider), model="m", mcpServers={"testing": stdio(tools=["echo", "picture"])}
        )
        await status(wire, session, "testing", "connected")
        _, before, _ = await next_request(server, session, "hi")
        system, during, message = await next_request(server, session, "Use @{release}, @{mcp:testing}, @{gone}")
        _, after, _ = await next_request(server, session, "hi")
    servers = "`testing-echo`, `testing-picture`"
    assert f"Use the tools `changelog`, `bash`, {servers}, the tools {servers}, @{{gone}}" in message
    assert "Change nothing that is tagged." in system
    assert during - before == {"changelog"}
    # No tool was mentioned.
    assert after == before


async def test_a_group_can_contain_groups_even_in_a_circle(tmp_path: Path) -> None:
    write_release(tmp_path)
    write(tmp_path / "home" / "tools" / "all.toml", 'tools = ["release", "all"]\nsystem_prompt = "Take care."\n')
    async with ModelServer() as provider, running_server(tmp_path) as server:
        session = await server.wire.create(at(provider), model="m", availableTools=["all"])
        system, tools, message = await next_request(server, session, "Use @{all}")
        described = (await server.wire.call("jumpseat.tools.get", {"name": "all"}))["tool"]
    assert "Use the tools `changelog`, `bash`" in message
    assert tools == {"changelog", "bash"}
    assert "Take care." in system
    assert "Change nothing that is tagged." in system
    assert described["members"] == [{"name": "release", "origin": "home"}, {"name": "all", "origin": "home"}]


@pytest.mark.parametrize(
    ("options", "offered"),
    [
        ({"availableTools": ["release"]}, {"changelog", "bash"}),
        ({"availableTools": ["view", "custom:release"], "excludedTools": ["bash"]}, {"view", "changelog"}),
        ({"availableTools": ["release", "view"], "excludedTools": ["release"]}, {"view"}),
        (
            {"customAgents": [{"name": "a", "prompt": "x", "tools": ["release"]}], "agent": "a"},
            {"changelog", "bash"},
        ),
    ],
)
async def test_a_group_selects_its_tools_in_lists_of_tools(
    tmp_path: Path, options: JsonObject, offered: set[str]
) -> None:
    write_release(tmp_path)
    async with ModelServer() as provider, running_server(tmp_path) as server:
        session = await server.wire.create(at(provider), model="m", **options)
        _, tools, _ = await next_request(server, session, "hi")
    assert tools == offered


async def test_the_description_of_a_group_has_the_sources_of_its_tools(tmp_path: Path) -> None:
    write_release(tmp_path)
    async with running_server(tmp_path) as server:
        described = (await server.wire.call("jumpseat.tools.get", {"name": "release"}))["tool"]
    assert described["members"] == [
        {"name": "changelog", "origin": "home"},
        {"name": "bash", "origin": "built-in"},
        {"name": "gone"},
        {"name": "mcp:testing", "origin": "mcp"},
    ]
