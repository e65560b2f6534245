"""Custom agents in files, over the real wire: their locations, and their use in sessions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jumpseat.store.project.agents import SUFFIXES, TOOLS
from jumpseat.tools.builtin import BUILTIN_NAMES
from tests.support.fake_openai import fake_openai, says
from tests.support.mcp_servers import list_servers, status, stdio
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

PROMPT = "You review code."


def write(
    folder: Path, name: str = "reviewer.agent.md", *, front: str = "description: Reviews.", text: str = PROMPT
) -> Path:
    """Write an agent into ``folder``; returns its file."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{front}\n---\n\n{text}\n")
    return path


async def list_agents(wire: Wire, session: str, method: str = "session.agent.list") -> dict[str, JsonObject]:
    return {agent["name"]: agent for agent in (await wire.call(method, {"sessionId": session}))["agents"]}


async def request_parts(wire: Wire, session: str) -> tuple[str, set[str]]:
    """Return the system message and the tools of the next model request."""
    request = await wire.call("jumpseat.session.nextRequest", {"sessionId": session, "prompt": "hi"})
    tools = {tool["function"]["name"] for tool in request["body"].get("tools", ())}
    return request["body"]["messages"][0]["content"], tools


PROVIDER = {"type": "openai", "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "k"}


async def select(wire: Wire, session: str, name: str = "reviewer") -> JsonObject:
    return (await wire.call("session.agent.select", {"sessionId": session, "name": name}))["agent"]


async def test_the_model_may_start_agents_in_files_from_its_first_request_on(tmp_path: Path) -> None:
    write(tmp_path / "home" / "agents")
    write(tmp_path / "home" / "agents", "hidden.md", front="description: Hides.\ninfer: false")
    write(tmp_path / "home" / "agents", "explore.md", front="description: Explores better.")
    async with fake_openai({"hi": [says("hello")]}) as model, running_server(tmp_path) as server:
        wire = server.wire
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "k"}
        session = await wire.create(provider, model="m", excludedBuiltinAgents=["research"])
        await wire.prompt(session, "hi")
        (tool,) = (t["function"] for t in model.requests[0]["tools"] if t["function"]["name"] == "task")
        asked = {"sessionId": session, "includeBuiltInAgents": True}
        listed = (await wire.call("session.agent.list", asked))["agents"]
        with_own = await list_agents(wire, session)

    offered = tool["parameters"]["properties"]["agent_type"]["enum"]
    assert set(offered) == {"explore", "task", "general-purpose", "code-review", "security-review", "reviewer"}
    assert "- reviewer: Reviews." in tool["description"]
    assert "- explore: Explores better." in tool["description"]
    sources = {agent["name"]: agent["source"] for agent in listed}
    assert sources == {
        **dict.fromkeys(("explore", "hidden", "reviewer"), "user"),
        **dict.fromkeys(("task", "general-purpose", "code-review", "security-review"), "builtin"),
    }
    assert with_own.keys() == {"explore", "hidden", "reviewer"}


async def test_a_session_can_run_an_agent_of_the_user(tmp_path: Path) -> None:
    front = "name: The Reviewer\ndescription: Reviews.\ntools: read, Grep, bash\nmodel: other/model"
    path = write(tmp_path / "home" / "agents", front=front)
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(PROVIDER, model="m")
        agent = await select(wire, session)
        system, tools = await request_parts(wire, session)
        agents = await list_agents(wire, session)

    assert agent == agents["reviewer"]
    assert agent == {
        "name": "reviewer",
        "id": "reviewer",
        "displayName": "The Reviewer",
        "description": "Reviews.",
        "path": str(path),
        "source": "user",
        "userInvocable": True,
        "tools": ["view", "grep", "glob", "bash", "read_bash", "write_bash", "stop_bash", "list_bash"],
        "model": "other/model",
        "models": ["other/model"],
    }
    assert system.endswith(f"\n\n{PROMPT}")
    # The others join with the first command in the background.
    assert tools == {"view", "grep", "glob", "bash"}


async def test_an_agent_in_a_file_can_be_selected_at_creation_and_survives_a_resume(
    tmp_path: Path,
) -> None:
    write(tmp_path / "home" / "agents")
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "ok"}), agent="reviewer")
        await wire.prompt(session)
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("session.resume", {"sessionId": session, "provider": PROVIDER, "model": "m"})
        current = (await wire.call("session.agent.getCurrent", {"sessionId": session}))["agent"]
        system, _ = await request_parts(wire, session)
        error = await wire.error_of("session.create", {"provider": PROVIDER, "model": "m", "agent": "nobody"})

    assert current["name"] == "reviewer"
    assert system.endswith(f"\n\n{PROMPT}")
    assert error["message"] == "agent: unknown agent 'nobody'; the agents in customAgents and in files: 'reviewer'"


@pytest.mark.parametrize("method", ["session.options.update", "session.resume"])
async def test_an_agent_in_a_file_can_be_selected_in_a_live_session(tmp_path: Path, method: str) -> None:
    write(tmp_path / "home" / "agents")
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "ok"}))
        await wire.call(method, {"sessionId": session, "agent": "reviewer"})
        current = (await wire.call("session.agent.getCurrent", {"sessionId": session}))["agent"]

    assert current is not None
    assert current["name"] == "reviewer"


async def test_the_nearest_agent_of_project_user_and_plugins_wins(tmp_path: Path) -> None:
    project, plugin = tmp_path / "project", tmp_path / "plugin"
    (project / ".git").mkdir(parents=True)
    below = project / "one" / "two"
    below.mkdir(parents=True)
    for folder in (
        below / ".github" / "agents",
        project / "one" / ".claude" / "agents",
        project / ".github" / "agents",
        tmp_path / "home" / "agents",
        plugin / "agents",
        tmp_path / ".github" / "agents",
    ):
        write(folder, "shared.md", text=f"In {folder}.")
        write(folder, f"{folder.parent.parent.name}-{folder.parent.name}.md")
    options = {"workingDirectory": str(below), "pluginDirectories": [str(plugin)]}
    async with running_server(tmp_path) as server:
        wire = server.wire
        with_project = await wire.create(PROVIDER, model="m", enableConfigDiscovery=True, **options)
        without = await wire.create(PROVIDER, model="m", **options)
        sources = {name: agent["source"] for name, agent in (await list_agents(wire, with_project)).items()}
        others = {name: agent["source"] for name, agent in (await list_agents(wire, without)).items()}
        await select(wire, with_project, "shared")
        system, _ = await request_parts(wire, with_project)

    user, brought = f"{tmp_path.name}-home", f"{tmp_path.name}-plugin"
    assert sources == {
        "shared": "project",
        "two-.github": "project",
        "one-.claude": "inherited",
        "project-.github": "project",
        user: "user",
        brought: "plugin",
    }
    assert others == {"shared": "user", user: "user", brought: "plugin"}
    assert system.endswith(f"In {below / '.github' / 'agents'}.")


async def test_an_agent_of_the_client_wins_over_a_file_with_its_name(tmp_path: Path) -> None:
    write(tmp_path / "home" / "agents")
    async with running_server(tmp_path) as server:
        wire = server.wire
        own = {"name": "reviewer", "prompt": "You are the client's."}
        session = await wire.create(PROVIDER, model="m", customAgents=[own])
        await select(wire, session)
        agents, (system, _) = await list_agents(wire, session), await request_parts(wire, session)

    assert agents.keys() == {"reviewer"}
    assert "path" not in agents["reviewer"]
    assert system.endswith("You are the client's.")


async def test_changed_files_apply_and_a_removed_agent_is_deselected(tmp_path: Path) -> None:
    path = write(tmp_path / "home" / "agents")
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(PROVIDER, model="m")
        await select(wire, session)
        write(tmp_path / "home" / "agents", text="You are new.")
        await list_agents(wire, session, "session.agent.reload")
        changed, _ = await request_parts(wire, session)
        path.unlink()
        left = await list_agents(wire, session, "session.agent.reload")
        gone, _ = await request_parts(wire, session)
        await wire.event("subagent.deselected", session=session)

    assert changed.endswith("You are new.")
    assert left == {}
    assert "You are new." not in gone


@pytest.mark.parametrize("way", ["metadata.setWorkingDirectory", "options.update"])
async def test_agents_of_a_project_are_deselected_when_its_folder_is_left(tmp_path: Path, way: str) -> None:
    first_project, second_project = tmp_path / "one", tmp_path / "two"
    write(first_project / ".github" / "agents")
    write(second_project / ".github" / "agents", "planner.agent.md")
    write(tmp_path / "home" / "agents", "mine.agent.md")
    async with running_server(tmp_path) as server:
        wire = server.wire
        options = {"workingDirectory": str(first_project), "enableConfigDiscovery": True}
        session = await wire.create(PROVIDER, model="m", **options)
        await select(wire, session)
        await wire.call(f"session.{way}", {"sessionId": session, "workingDirectory": str(second_project)})
        await wire.event("subagent.deselected")
        assert set(await list_agents(wire, session)) == {"mine", "planner"}
        assert PROMPT not in (await request_parts(wire, session))[0]
        await select(wire, session, "mine")
        await wire.call(f"session.{way}", {"sessionId": session, "workingDirectory": str(first_project)})
        current = await wire.call("session.agent.getCurrent", {"sessionId": session})
        assert set(await list_agents(wire, session)) == {"mine", "reviewer"}
    assert current["agent"]["name"] == "mine"


@pytest.mark.parametrize("trusted", [True, False])
async def test_servers_of_a_projects_agent_run_only_if_the_folder_is_trusted(tmp_path: Path, trusted: bool) -> None:
    project = tmp_path / "project"
    server_of = stdio()
    lines = [
        f"    command: {server_of['command']}",
        f"    args: {server_of['args']}",
        "    env: {A: '${{ secrets.A_KEY }}'}",
    ]
    write(project / ".github" / "agents", front="description: x\nmcp-servers:\n  far:\n" + "\n".join(lines))
    config = f'trusted_folders = ["{project}"]' if trusted else ""
    async with running_server(tmp_path, config=config, env={"A_KEY": "1"}) as server:
        wire = server.wire
        options = {"workingDirectory": str(project), "enableConfigDiscovery": True}
        session = await wire.create(PROVIDER, model="m", **options)
        await select(wire, session)
        if trusted:
            await status(wire, session, "far", "connected")
        servers = (await list_servers(wire, {"sessionId": session}))["servers"]

    assert [(mcp_server["name"], mcp_server["source"]) for mcp_server in servers] == (
        [("far", "workspace")] if trusted else []
    )


async def test_trust_in_a_folder_does_not_extend_to_agents_above_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "below").mkdir()
    write(project / ".github" / "agents", front="description: x\nmcp-servers:\n  far: {command: 'true'}")
    config = f'trusted_folders = ["{project / "below"}"]'
    async with running_server(tmp_path, config=config) as server:
        wire = server.wire
        options = {"workingDirectory": str(project / "below"), "enableConfigDiscovery": True}
        session = await wire.create(PROVIDER, model="m", **options)
        assert (await select(wire, session))["source"] == "project"
        servers = (await list_servers(wire, {"sessionId": session}))["servers"]

    assert servers == []


async def test_invalid_files_hide_no_others(tmp_path: Path) -> None:
    agents = tmp_path / "home" / "agents"
    write(agents)
    write(agents, "torn.md", front="description: [")
    write(agents, "list.md", front="- one")
    write(agents, "empty.md", text="")
    write(agents, "large.md", text="x" * 300_000)
    write(agents, "elsewhere.md", front="description: x\ntarget: vscode")
    write(agents, "README.md")
    write(agents, "notes.txt")
    (agents / "folder.md").mkdir()
    os.mkfifo(agents / "pipe.md")
    write(agents, "endless.md", front="description: x\nmcp-servers: &all\n  far: *all")
    write(agents, "numbers.md", front="description: x\nmcp-servers:\n  far: {1: 2}")
    write(
        agents, "odd.agent.md", front="name: 7\ndescription: [x]\ntools: {}\nmodel: []\nmcp-servers: 3\nskills: 4"
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(PROVIDER, model="m")
        found = await list_agents(wire, session)
        other = await wire.create(PROVIDER, model="m")
        await select(wire, other, "numbers")
        await status(wire, other, "far", "failed")

    assert found.keys() == {"reviewer", "odd", "numbers"}
    plain: dict[str, Any] = {"displayName": "odd", "description": "", "userInvocable": True}
    assert {name: found["odd"].get(name) for name in ("tools", "model", "skills")} == dict.fromkeys(
        ("tools", "model", "skills")
    )
    assert {name: found["odd"][name] for name in plain} == plain


async def test_agents_are_found_without_a_session(tmp_path: Path) -> None:
    write(tmp_path / "home" / "agents", "mine.md")
    write(tmp_path / "project" / ".github" / "agents", "ours.md", front="description: x\nuser-invocable: false")
    project = str(tmp_path / "project")
    async with running_server(tmp_path) as server:
        wire = server.wire

        async def asked(method: str, **params: Any) -> JsonObject:
            return await wire.call(method, params)

        both = await asked("agents.discover", projectPaths=[project])
        ours = await asked("agents.discover", projectPaths=[project], excludeHostAgents=True)
        paths = await asked("agents.getDiscoveryPaths", projectPaths=[project])
        error = await wire.error_of("agents.discover", {"projectPaths": ["project"]})

    assert [(agent["name"], agent["userInvocable"]) for agent in both["agents"]] == [
        ("ours", False),
        ("mine", True),
    ]
    assert [agent["name"] for agent in ours["agents"]] == ["ours"]
    assert [(path["scope"], path["preferredForCreation"]) for path in paths["paths"]] == [
        ("project", True),
        ("project", False),
        ("user", True),
    ]
    assert error["message"] == "'project' is not an absolute path"


def test_tool_names_in_files_refer_to_existing_tools() -> None:
    assert {tool for tools in TOOLS.values() for tool in tools} <= BUILTIN_NAMES
    assert SUFFIXES[-1] == ".md"
