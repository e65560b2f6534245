"""Options of sessions over the wire, also after a resume by a client that does not repeat them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.server import JsonObject, Wire, running_server, scripted
from tests.support.skills import write_skill

pytestmark = pytest.mark.anyio

PROVIDER = {"type": "openai", "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "k"}


async def offered(wire: Wire, session: str) -> dict[str, JsonObject]:
    """Return the tools of the next model request by name."""
    request = await wire.call("jumpseat.session.nextRequest", {"sessionId": session, "prompt": "hi"})
    return {tool["function"]["name"]: tool["function"] for tool in request["body"]["tools"]}


async def kinds(wire: Wire, session: str) -> set[str]:
    """Return the kinds of sub-agents that the model is offered."""
    return set((await offered(wire, session))["task"]["parameters"]["properties"]["agent_type"]["enum"])


async def test_a_client_chooses_the_kinds_of_sub_agents_and_adds_a_folder_of_agents(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "team"
    folder.mkdir(parents=True)
    (folder / "critic.md").write_text("---\ndescription: Judges.\n---\nYou judge.\n")
    options = {
        "workingDirectory": str(tmp_path / "work"),
        "agentDirectories": ["team"],
        "includedBuiltinAgents": ["explore", "task"],
        "excludedBuiltinAgents": ["task"],
    }
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "ok"}), **options)
        await server.wire.prompt(session)
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("session.resume", {"sessionId": session, "provider": PROVIDER, "model": "m"})
        asked = {"sessionId": session, "includeBuiltInAgents": True}
        listed = {agent["name"]: agent for agent in (await wire.call("session.agent.list", asked))["agents"]}
        assert listed.keys() == {"explore", "critic"}
        assert listed["critic"]["path"] == str(folder / "critic.md")
        assert "source" not in listed["critic"]
        assert await kinds(wire, session) == {"explore", "critic"}

        # The folder stays the same in another working directory; null lifts the limit on the built-in kinds.
        change = {"workingDirectory": str(tmp_path), "includedBuiltinAgents": None}
        await wire.call("session.options.update", {"sessionId": session, **change})
        assert {"explore", "general-purpose", "critic"} <= await kinds(wire, session)
        await wire.call("session.options.update", {"sessionId": session, "agentDirectories": []})
        assert "critic" not in await kinds(wire, session)
        found = await wire.call("agents.discover", {"agentDirectories": [str(folder)], "excludeHostAgents": True})
        assert [agent["name"] for agent in found["agents"]] == ["critic"]


async def test_a_client_adds_folders_to_the_working_directory(tmp_path: Path) -> None:
    work, more = tmp_path / "work", tmp_path / "more"
    work.mkdir()
    (more / ".github" / "agents").mkdir(parents=True)
    (more / ".github" / "agents" / "critic.md").write_text("---\ndescription: Judges.\n---\nYou judge.\n")
    write_skill(more / ".github" / "skills")
    options = {"workingDirectory": str(work), "additionalDirectories": ["../more", "../gone"]}

    async def allows(wire: Wire, session: str) -> bool:
        asked = {"sessionId": session, "path": str(more / "note.txt")}
        return (await wire.call("session.permissions.paths.isPathWithinAllowedDirectories", asked))["allowed"]

    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "ok"}), enableConfigDiscovery=True, **options)
        assert await allows(wire, session)
        (warning,) = [event for event in wire.events(session) if event["type"] == "session.warning"]
        assert "gone" in warning["data"]["message"]
        assert [agent["name"] for agent in await listed(wire, session, "agent", "agents")] == ["critic"]
        (skill,) = await listed(wire, session, "skills", "skills")
        assert (skill["source"], skill["commandName"]) == ("project", "tea")
        await wire.prompt(session)
        undiscovered = await wire.create(scripted(), **options)
        assert await listed(wire, undiscovered, "agent", "agents") == []
    async with running_server(tmp_path) as server:
        # Folders are a matter of permission, and therefore not stored.
        await server.wire.call("session.resume", {"sessionId": session, "provider": PROVIDER, "model": "m"})
        assert not await allows(server.wire, session)
        again = {"sessionId": session, "provider": PROVIDER, "additionalDirectories": ["../more"]}
        await server.wire.call("session.resume", again)
        assert await allows(server.wire, session)
        request = await server.wire.call("jumpseat.session.nextRequest", {"sessionId": session, "prompt": "hi"})
        assert str(more) in request["body"]["messages"][0]["content"]


async def listed(wire: Wire, session: str, namespace: str, member: str) -> list[JsonObject]:
    return (await wire.call(f"session.{namespace}.list", {"sessionId": session}))[member]


async def test_a_client_takes_the_question_tool_from_the_model(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        asking = {"requestUserInput": True, "model": "m"}
        session = await server.wire.create(PROVIDER, **asking)
        assert "ask_user" in await offered(server.wire, session)
        await server.wire.call("session.options.update", {"sessionId": session, "askUserDisabled": True})
        assert "ask_user" not in await offered(server.wire, session)
        created = await server.wire.create(scripted({"text": "ok"}), requestUserInput=True, askUserDisabled=True)
        await server.wire.prompt(created)
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": created, "provider": PROVIDER, **asking})
        assert "ask_user" not in await offered(server.wire, created)
