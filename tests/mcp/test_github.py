"""GitHub's own MCP server, which every session has and which is disabled unless somebody wants it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.mcp.test_http import answer
from tests.mcp.test_login import status
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply
from tests.support.server import JsonObject, RunningServer, Wire, running_server, scripted

pytestmark = pytest.mark.anyio
NAME = "github-mcp-server"
TOKEN = "gho_of-the-session"


class GitHub:
    """The Copilot API of a site, with its MCP server."""

    def __init__(self) -> None:
        self.moved_to: str | None = None

    def __call__(self, request: SeenRequest) -> Reply:
        if not request.path.startswith("/mcp"):
            return json_reply({"login": "mona", "copilot_plan": "individual"})
        if self.moved_to is not None:
            return Reply(status=307, headers={"Location": self.moved_to})
        return answer(request)


@asynccontextmanager
async def site(
    folder: Path, github: GitHub, config: str | None = None
) -> AsyncGenerator[tuple[RunningServer, ModelServer]]:
    """Run a site, and a server that reaches it."""
    async with ModelServer(answer=github) as api:
        environ = {"COPILOT_API_URL": api.url, "COPILOT_DEBUG_GITHUB_API_URL": f"{api.url}/github"}
        async with running_server(folder, env=environ, config=config) as server:
            yield server, api


async def entry(wire: Wire, session: str) -> JsonObject:
    listed = await wire.call("session.mcp.list", {"sessionId": session})
    return next(server for server in listed["servers"] if server["name"] == NAME)


async def connected(wire: Wire, session: str) -> JsonObject:
    """Return the entry after a turn, once the server is not being started any more."""
    await wire.prompt(session)
    while (found := await entry(wire, session))["status"] == "pending":
        pass
    return found


def sent(api: ModelServer) -> list[tuple[str, dict[str, str]]]:
    """Return the paths of the requests to the MCP server, with the headers that matter."""
    names = ("authorization", "x-mcp-toolsets", "x-mcp-tools", "x-mcp-insiders")
    return [
        (request.path, {name: request.headers[name] for name in names if name in request.headers})
        for request in api.requests
        if request.path.startswith("/mcp")
    ]


async def test_it_is_listed_as_disabled_and_nothing_is_sent(tmp_path: Path) -> None:
    async with site(tmp_path, GitHub()) as (server, api):
        session = await server.wire.create(scripted({"text": "hi"}), gitHubToken=TOKEN)

        assert await connected(server.wire, session) == {"name": NAME, "status": "disabled", "source": "builtin"}
        assert await server.wire.call("mcp.listBuiltinServerNames") == {"names": [NAME]}
        assert sent(api) == []


@pytest.mark.parametrize(
    ("wanted", "path", "headers"),
    [
        ({}, "/mcp/readonly", {}),
        (
            {"enableAllTools": True, "enableInsidersMode": True, "additionalTools": ["ignored"]},
            "/mcp",
            {"x-mcp-toolsets": "all", "x-mcp-insiders": "true"},
        ),
        (
            {"additionalToolsets": ["actions", "default"], "additionalTools": ["get_me"]},
            "/mcp",
            {"x-mcp-toolsets": "default,actions", "x-mcp-tools": "get_me"},
        ),
    ],
)
async def test_a_client_that_configures_it_gets_the_tools_it_asks_for(
    tmp_path: Path, wanted: JsonObject, path: str, headers: dict[str, str]
) -> None:
    async with site(tmp_path, GitHub()) as (server, api):
        wire = server.wire
        session = await wire.create(
            scripted({"text": "hi"}, {"text": "again"}), gitHubToken=TOKEN, githubMcpToolConfig=wanted
        )

        assert (await connected(wire, session))["status"] == "connected"

        assert {(at, json.dumps(with_, sort_keys=True)) for at, with_ in sent(api)} == {
            (path, json.dumps({"authorization": f"Bearer {TOKEN}", **headers}, sort_keys=True))
        }
        started = next(event for event in wire.events(session) if event["type"] == "session.start")
        assert started["data"]["githubMcpToolConfig"] == wanted
        assert TOKEN not in json.dumps(wire.messages)
        assert TOKEN not in server.stderr


async def test_it_is_kept_with_the_session_and_can_be_removed(tmp_path: Path) -> None:
    async with site(tmp_path, GitHub()) as (server, _):
        session = await server.wire.create(scripted({"text": "hi"}), gitHubToken=TOKEN, githubMcpToolConfig={})
        await server.wire.prompt(session)
    async with site(tmp_path, GitHub()) as (server, _):
        wire = server.wire
        provider = scripted({"text": "hi"}, {"text": "hi"})
        await wire.call("session.resume", {"sessionId": session, "provider": provider, "gitHubToken": TOKEN})
        assert (await connected(wire, session))["status"] == "connected"

        assert await wire.call("session.mcp.removeGitHub", {"sessionId": session}) == {"removed": True}

        assert (await connected(wire, session))["status"] == "disabled"
        assert await wire.call("session.mcp.removeGitHub", {"sessionId": session}) == {"removed": False}


async def test_it_is_enabled_and_disabled_while_the_session_is_open(tmp_path: Path) -> None:
    async with site(tmp_path, GitHub()) as (server, _):
        wire = server.wire
        session = await wire.create(scripted(*[{"text": "hi"}] * 3), gitHubToken=TOKEN)
        named = {"sessionId": session, "serverName": NAME}

        await wire.call("session.mcp.enable", named)
        assert (await connected(wire, session))["status"] == "connected"
        await wire.call("session.mcp.disable", named)
        assert (await entry(wire, session))["status"] == "disabled"
        await wire.call("session.mcp.enable", named)
        await status(wire, session, NAME, "connected")


async def test_the_operator_can_enable_it_for_all_sessions_and_a_session_can_do_without(tmp_path: Path) -> None:
    async with site(tmp_path, GitHub(), config="[mcp]\ngithub = true\n") as (server, api):
        wire = server.wire
        session = await wire.create(scripted({"text": "hi"}), gitHubToken=TOKEN)
        assert (await connected(wire, session))["status"] == "connected"
        assert {path for path, _ in sent(api)} == {"/mcp/readonly"}

        without = await wire.create(scripted({"text": "hi"}), gitHubToken=TOKEN, disabledMcpServers=[NAME])
        assert (await connected(wire, without))["status"] == "disabled"


async def test_a_session_without_a_login_is_told_that_it_needs_one(tmp_path: Path) -> None:
    async with site(tmp_path, GitHub()) as (server, api):
        session = await server.wire.create(scripted({"text": "hi"}), githubMcpToolConfig={})

        found = await connected(server.wire, session)

        assert (found["status"], found["error"]) == ("needs-auth", "the server requires a login")
        assert sent(api) == []


async def test_the_token_does_not_follow_a_redirect(tmp_path: Path) -> None:
    github = GitHub()
    async with ModelServer(answer=GitHub()) as elsewhere, site(tmp_path, github) as (server, _):
        github.moved_to = f"{elsewhere.url}/mcp/readonly"
        session = await server.wire.create(scripted({"text": "hi"}), gitHubToken=TOKEN, githubMcpToolConfig={})

        found = await connected(server.wire, session)

        assert found["status"] == "failed"
        assert elsewhere.requests == []
