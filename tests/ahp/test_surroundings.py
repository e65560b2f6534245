"""What surrounds a conversation: files, completions, commands, customizations, marks, drafts, models."""

from __future__ import annotations

import os
from base64 import b64decode
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from jumpseat.ahp.live.client_marks import LARGEST_DRAFT_BYTES
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.attachments import uri_of
from jumpseat.store.user.connection_tokens import ConnectionTokenFile
from tests.ahp.client import ROOT, Client, check_equal, connected, door_server
from tests.support.guarded_mcp_server import guarded
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.anyio

SCRIPT: Final[JsonObject] = {"prompts": [{"turns": [{"text": "Fine."}] * 9}]}


async def refused(client: Client, method: str, **params: Any) -> int:
    return (await client.request(method, **params))["error"]["code"]


async def test_files_are_read_in_the_folders_of_sessions_and_nowhere_else(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    (work / "deep").mkdir(parents=True)
    other.mkdir()
    (work / "a.txt").write_text("hällo\n")
    (work / "b.bin").write_bytes(b"\xff\x00")
    (other / "secret").write_text("no")
    (work / "out").symlink_to(other)
    (work / "inside").symlink_to(work / "a.txt")
    os.mkfifo(work / "pipe")
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        assert await refused(client, "resourceRead", uri=uri_of(str(work / "a.txt"))) == -32009
        await client.create(workingDirectories=[uri_of(str(work))])
        read = await client.call("resourceRead", uri=uri_of(str(work / "a.txt")))
        assert read == {"data": "hällo\n", "encoding": "utf-8", "contentType": "text/plain"}
        assert (await client.call("resourceRead", uri=uri_of(str(work / "inside"))))["data"] == "hällo\n"
        binary = await client.call("resourceRead", uri=uri_of(str(work / "b.bin")))
        assert (binary["encoding"], b64decode(binary["data"])) == ("base64", b"\xff\x00")
        listed = await client.call("resourceList", uri=uri_of(str(work)))
        kinds = {entry["name"]: entry["type"] for entry in listed["entries"]}
        assert kinds == {
            "a.txt": "file",
            "b.bin": "file",
            "deep": "directory",
            "inside": "symlink",
            "out": "symlink",
            "pipe": "file",
        }
        found = await client.call("resourceResolve", uri=uri_of(str(work / "a.txt")))
        assert (found["type"], found["size"]) == ("file", 7)
        assert await client.call("resourceRequest", uri=uri_of(str(work)), read=True) == {}
        for outside in (
            other / "secret",
            work / "out" / "secret",
            work / ".." / "other" / "secret",
            tmp_path,
            Path("/etc/passwd"),
        ):
            for method in ("resourceRead", "resourceList", "resourceResolve"):
                assert await refused(client, method, uri=uri_of(str(outside))) == -32009, outside
        assert await refused(client, "resourceRead", uri="http://localhost/a") == -32009
        assert await refused(client, "resourceRequest", uri=uri_of(str(work)), write=True) == -32009
        assert await refused(client, "resourceRead", uri=uri_of(str(work / "none"))) == -32008
        assert await refused(client, "resourceRead", uri=uri_of(str(work / "a.txt" / "x"))) == -32008
        assert await refused(client, "resourceRead", uri=uri_of(str(work / "pipe"))) == -32602
        assert await refused(client, "resourceRead", uri=uri_of(str(work)) + "/%00") == -32602
        assert await refused(client, "resourceList", uri=uri_of(str(work / "a.txt"))) == -32602
        assert await refused(client, "resourceWrite", uri=uri_of(str(work / "a.txt")), data="x") == -32601


async def test_a_token_reads_files_of_its_own_sessions_only(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    tokens = ConnectionTokenFile(tmp_path / "home")
    ours, theirs = (f"?tkn={tokens.add(name, all_sessions=False)}" for name in ("ours", "theirs"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("mine")
    uri = uri_of(str(tmp_path / "work" / "a.txt"))
    async with (
        door_server(tmp_path, SCRIPT, without_token=()) as (_, port),
        connected(port, "a", ours) as a,
        connected(port, "b", theirs) as b,
    ):
        await a.create(workingDirectories=[uri_of(str(tmp_path / "work"))])
        assert (await a.call("resourceRead", uri=uri))["data"] == "mine"
        assert await refused(b, "resourceRead", uri=uri) == -32009
        assert (await b.request("completions", a.chat, kind="userMessage", text="/", offset=1))["error"]["code"]


async def test_completions_and_slash_commands(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.md").write_text("x")
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create(workingDirectories=[uri_of(str(tmp_path / "work"))])
        found = await client.call("completions", client.chat, kind="userMessage", text="𝄞 @no", offset=6)
        assert found["items"] == [
            {
                "insertText": "@notes.md",
                "rangeStart": 3,
                "rangeEnd": 6,
                "attachment": {
                    "type": "resource",
                    "label": "notes.md",
                    "uri": uri_of(str(tmp_path / "work" / "notes.md")),
                    "displayKind": "file",
                },
            }
        ]
        found = await client.call("completions", client.chat, kind="userMessage", text="/he", offset=3)
        assert "/help" in [item["insertText"] for item in found["items"]]
        echo = await client.prompt("t1", "/help")
        assert "rejectionReason" not in echo
        await client.action("chat/turnComplete")
        (turn,) = client.states[client.chat]["turns"]
        assert "/help" in turn["responseParts"][0]["content"]
        await client.prompt("t2", "hello")
        await client.action("chat/turnComplete")
        await check_equal(port, client)


async def test_customizations_of_a_session(tmp_path: Path) -> None:
    work = tmp_path / "work"
    skill = work / ".github" / "skills" / "knit" / "SKILL.md"
    agent = work / ".github" / "agents" / "tester.agent.md"
    for path, text in (
        (skill, "---\nname: knit\ndescription: Knits socks\n---\nKnit.\n"),
        (agent, "---\nname: tester\ndescription: Tests\n---\nTest.\n"),
        (work / "AGENTS.md", "Be kind.\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    async with (
        door_server(tmp_path, SCRIPT) as (server, port),
        server.connect() as sdk,
        connected(port, "a") as client,
    ):
        options = {
            "workingDirectory": str(work),
            "enableConfigDiscovery": True,
            "enableSkills": True,
            "model": "fake/one",
        }
        created = await sdk.call("session.create", options)
        await client.join(f"ahp-session:/{created['sessionId']}")
        while "customizations" not in client.states[client.session]:
            await client.action("session/customizationsChanged")
        found = client.states[client.session]["customizations"]
        children = {child["uri"]: child for folder in found for child in folder.get("children", ())}
        assert children[uri_of(str(skill))]["description"] == "Knits socks"
        assert children[uri_of(str(work / "AGENTS.md"))]["type"] == "rule"
        assert children[uri_of(str(agent))]["type"] == "agent"
        off = [{"kind": "session", "enabled": False}]
        for wrong in (uri_of(str(agent)), "mcp:none", "none"):
            echo = await client.echo(
                await client.dispatch("session/customizationToggled", id=wrong, enablement=off)
            )
            assert "rejectionReason" in echo
        echo = await client.echo(
            await client.dispatch("session/customizationToggled", id=uri_of(str(skill)), enablement=off)
        )
        assert "rejectionReason" not in echo
        listed = await sdk.call("session.skills.list", {"sessionId": created["sessionId"]})
        assert [one["enabled"] for one in listed["skills"] if one["name"] == "knit"] == [False]
        await check_equal(port, client)
        found = client.states[client.session]["customizations"]
        children = {child["uri"]: child for folder in found for child in folder.get("children", ())}
        assert children[uri_of(str(skill))]["enabled"] is False


async def test_marks_survive_a_restart_and_are_listed(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        uri = await client.create()
        await client.prompt("t1", "hello")
        await client.action("chat/turnComplete")
        await client.echo(await client.dispatch("session/isArchivedChanged", isArchived=True))
        await client.echo(await client.dispatch("session/isReadChanged", isRead=True))
        (item,) = (await client.call("listSessions"))["items"]
        assert item["status"] == 1 | 32 | 64
        await check_equal(port, client)
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        (item,) = (await client.call("listSessions"))["items"]
        assert item["status"] == 1 | 32 | 64
        await client.join(uri)
        assert client.states[uri]["status"] == 1 | 32 | 64
        await client.echo(await client.dispatch("session/isArchivedChanged", isArchived=False))
        assert (await client.call("listSessions"))["items"][0]["status"] == 1 | 32


async def test_a_draft_survives_a_restart_and_is_seen_by_others(tmp_path: Path) -> None:
    draft: JsonObject = {"text": "half a sen", "origin": {"kind": "user"}, "model": {"id": "fake/one"}}
    kept = tmp_path / "home" / "session-state"
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        uri = await client.create()
        await client.prompt("t1", "hello")
        await client.action("chat/turnComplete")
        for wrong in ([1], {"text": 5}, {**draft, "model": "one"}, {**draft, "origin": {"kind": "agent"}}):
            assert "rejectionReason" in await client.echo(await client.dispatch("chat/draftChanged", draft=wrong))
        for text in ("half", "half a sen"):
            await client.echo(await client.dispatch("chat/draftChanged", draft={**draft, "text": text}))
        assert client.states[client.chat]["draft"] == draft
        await check_equal(port, client)
        with anyio.fail_after(WAIT_S):
            while not any(b"half a sen" in path.read_bytes() for path in kept.glob("*/client-metadata.json")):
                await client.settle()
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "b") as client:
        await client.join(uri)
        assert client.states[client.chat]["draft"] == draft
        assert "rejectionReason" not in await client.echo(await client.dispatch("chat/draftChanged"))
        assert "draft" not in client.states[client.chat]
        large = {**draft, "text": "x" * (LARGEST_DRAFT_BYTES + 1)}
        assert "rejectionReason" not in await client.echo(await client.dispatch("chat/draftChanged", draft=large))
        await check_equal(port, client)


async def test_models_are_listed_and_completed(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        (agent,) = client.states[ROOT]["agents"]
        names = [model["id"] for model in agent["models"]]
        found = await client.call("sessionConfigCompletions", property="model", query=names[0][:3].upper())
        assert names[0] in [item["value"] for item in found["items"]]
        assert await refused(client, "sessionConfigCompletions", property="mode") == -32602


async def test_mcp_servers_take_tokens_and_are_stopped_and_started(tmp_path: Path) -> None:
    async with (
        ModelServer(answer=guarded) as far,
        door_server(tmp_path, SCRIPT) as (server, port),
        server.connect() as sdk,
        connected(port, "a") as client,
    ):
        servers = {"far": {"type": "http", "url": far.url, "tools": ["*"]}}
        created = await sdk.call("session.create", {"model": "fake/one", "mcpServers": servers})
        await client.join(f"ahp-session:/{created['sessionId']}")
        state = await server_state(client, "authRequired")
        assert state["resource"] == {"resource": far.url}
        assert await refused(client, "authenticate", resource="https://else", token="one") == -32602
        assert await client.call("authenticate", resource=far.url, token="one") == {}
        await server_state(client, "ready")
        for kind, wanted in (("Stop", "stopped"), ("Start", "ready")):
            echo = await client.echo(await client.dispatch(f"session/mcpServer{kind}Requested", id="mcp:far"))
            assert "rejectionReason" not in echo
            await server_state(client, wanted)
        echo = await client.echo(await client.dispatch("session/mcpServerStopRequested", id="mcp:none"))
        assert "rejectionReason" in echo
        await check_equal(port, client)


async def server_state(client: Client, wanted: str) -> JsonObject:
    """Wait until the only MCP server has a state, and return it."""
    while True:
        for item in client.states[client.session].get("customizations") or ():
            if item["type"] == "mcpServer" and item["state"]["kind"] == wanted:
                return item["state"]
        await client.any_action()
