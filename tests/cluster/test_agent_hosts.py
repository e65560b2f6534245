"""The Agent Host Protocol in a cluster: any replica serves any session, whoever owns it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copy
from typing import Any, Final

import pytest

from jumpseat.store.user.connection_tokens import FILE, ConnectionTokenFile
from tests.ahp.client import ROOT, Client, check_equal, connected, raw
from tests.cluster.replicas import Replicas, running_replicas
from tests.support.server import JsonObject, calls, scripted

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

MODEL: Final = '[adapters.fake]\ntype = "scripted"\nscript = "script.json"\nmodels = ["one"]\n'
PREFIX: Final = "jumpseat serves WebSocket clients on port "
TOOL: Final = {"name": "look_up", "description": "Look up", "inputSchema": {"type": "object"}}
HELPER: Final[JsonObject] = {
    "id": "call-1",
    "name": "task",
    "arguments": {"name": "helper", "agent_type": "task", "description": "Help", "prompt": "look it up"},
}
SCRIPT: Final[JsonObject] = {
    "prompts": [
        {"when": "make a file", "turns": [calls("create", path="made.txt", file_text="x"), {"text": "Done."}]},
        {"when": "my tool", "turns": [calls("look_up", word="seat"), {"text": "It says: {{last_tool_result}}"}]},
        {"when": "hang on", "turns": [{"deltas": ["I", " am"], "hang": True}]},
        {
            "when": "ask a helper",
            "turns": [{"tool_calls": [HELPER]}, {"text": "Asked."}],
        },
        {"when": "look it up", "turns": [calls("look_up", word="seat"), {"text": "It says: {{last_tool_result}}"}]},
        {
            "when": "serve it",
            "turns": [
                calls(
                    "bash",
                    command="echo up; until [ -e stop ]; do sleep 0.05; done; exit 3",
                    mode="async",
                    detach=True,
                ),
                {"text": "Served."},
            ],
        },
        {"turns": [{"deltas": ["Hel", "lo"]}] * 9},
    ]
}


def home_of(folder: Path, number: int) -> Path:
    return folder / f"replica{number}" / "home"


@asynccontextmanager
async def hosts(folder: Path, count: int = 2, **options: Any) -> AsyncGenerator[tuple[Replicas, list[int]]]:
    """Run replicas whose models are scripted, and yield their WebSocket ports, too."""
    for number in range(count):
        home_of(folder, number).mkdir(parents=True, exist_ok=True)
        (home_of(folder, number) / "script.json").write_text(json.dumps(SCRIPT))
    settings: Any = {"more": MODEL, "args": ("--ws-port", "0"), "patience_s": 5, "limit_s": 250, **options}
    async with running_replicas(folder, count, **settings) as replicas:
        yield replicas, [int((await server.next_line()).removeprefix(PREFIX)) for server in replicas.servers]


async def needed(client: Client) -> JsonObject:
    """Return the question that is open, once there is one."""
    while not client.states[client.session].get("inputNeeded"):
        await client.action("session/inputNeededSet")
    (question,) = client.states[client.session]["inputNeeded"]
    return question


async def end_of_turn(client: Client) -> list[JsonObject]:
    """Return the parts of the last turn, once it has ended."""
    while client.states[client.chat].get("activeTurn") is not None:
        await client.any_action()
    await client.settle()
    return client.states[client.chat]["turns"][-1]["responseParts"]


async def test_a_sub_agent_of_another_replica_is_a_chat_and_may_use_a_tool_of_a_client_here(tmp_path: Path) -> None:
    async with (
        hosts(tmp_path) as (_, (here, there)),
        connected(here, "a") as owner,
        connected(there, "b") as guest,
    ):
        uri = await owner.create()
        await guest.join(uri)
        tool = {"clientId": "b", "tools": [TOOL]}
        await guest.echo(await guest.dispatch("session/activeClientSet", activeClient=tool))
        await owner.prompt("t1", "ask a helper")
        question = await needed(guest)
        assert question["chat"] != guest.chat
        await guest.subscribe(question["chat"])
        refused = await guest.echo(await guest.dispatch("chat/isReadChanged", question["chat"], isRead=True))
        assert "only watch" in refused["rejectionReason"]
        result = {"success": True, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": "blue"}]}
        call = {"turnId": question["turnId"], "toolCallId": question["toolCall"]["toolCallId"]}
        await guest.echo(await guest.dispatch("chat/toolCallComplete", question["chat"], **call, result=result))
        assert (await end_of_turn(guest))[-1]["content"] == "Asked."
        (turn,) = guest.states[question["chat"]]["turns"]
        assert turn["responseParts"][-1]["content"] == "It says: blue"
        await end_of_turn(owner)
        await owner.join_parts()
        await check_equal(there, guest)
        await check_equal(here, owner)
        assert owner.states[question["chat"]] == guest.states[question["chat"]]


async def test_a_session_of_another_replica_is_like_one_of_this(tmp_path: Path) -> None:
    async with (
        hosts(tmp_path) as (_, (here, there)),
        connected(here, "a") as owner,
        connected(there, "b") as guest,
    ):
        uri = await owner.create()
        assert (await guest.notification("root/sessionAdded"))["summary"]["resource"] == uri
        await guest.join(uri)
        assert (await guest.prompt("t1", "hi"))["action"]["turnId"] == "t1"
        assert (await end_of_turn(guest))[0]["content"] == "Hello"
        assert "rejectionReason" in await guest.prompt("t1", "again")
        (item,) = (await guest.call("listSessions"))["items"]
        assert (item["resource"], item["title"]) == (uri, "hi")

        # The first answer counts, on whatever replica.
        await owner.prompt("t2", "make a file")
        call = (await needed(guest))["toolCall"]["toolCallId"]
        await check_equal(there, guest)
        decision: JsonObject = {"turnId": "t2", "toolCallId": call, "approved": True, "selectedOptionId": "once"}
        won = await guest.echo(await guest.dispatch("chat/toolCallConfirmed", **decision))
        lost = await owner.echo(await owner.dispatch("chat/toolCallConfirmed", **decision))
        assert ("rejectionReason" in won, "rejectionReason" in lost) == (False, True)
        await end_of_turn(owner)
        await end_of_turn(guest)
        await guest.prompt("t3", "hang on")
        await guest.action("chat/delta")
        await guest.echo(await guest.dispatch("chat/turnCancelled", turnId="t3", duration=1))
        await guest.echo(await guest.dispatch("session/titleChanged", title="Named"))
        await owner.action("session/titleChanged")
        await end_of_turn(owner)
        await end_of_turn(guest)
        assert owner.states[owner.chat] == guest.states[guest.chat]
        await check_equal(there, guest)
        await check_equal(here, owner)

        completions = await guest.call("completions", guest.chat, kind="userMessage", text="/comp", offset=5)
        assert any(found["insertText"].startswith("/compact") for found in completions["items"])
        await guest.call("disposeSession", uri)
        for client in (owner, guest):
            # It may come before the response.
            while not any(message.get("method") == "root/sessionRemoved" for message in client.received):
                await client.settle()
        assert (await owner.request("subscribe", uri))["error"]["code"] == -32001


async def test_tools_of_a_client_follow_it_to_another_replica(tmp_path: Path) -> None:
    tools = {"clientId": "b", "tools": [TOOL]}
    async with hosts(tmp_path, 3) as (replicas, (here, there, third)), connected(here, "a") as owner:
        uri = await owner.create()
        async with connected(there, "b") as guest:
            await guest.join(uri)
            sent = await owner.dispatch("session/activeClientSet", activeClient=tools)
            assert "rejectionReason" in await owner.echo(sent)
            await guest.echo(await guest.dispatch("session/activeClientSet", activeClient=tools))
            await guest.prompt("t1", "my tool")
            assert (await needed(guest))["clientId"] == "b"
            await replicas.servers[1].kill()
        async with raw(third, "b") as again:
            assert await again.reconnect(guest) == "snapshot"
            question = await needed(again)
            names = {"turnId": "t1", "toolCallId": question["toolCall"]["toolCallId"]}
            result = {"success": True, "pastTenseMessage": "x", "content": [{"type": "text", "text": "a seat"}]}
            for sender, is_refused in ((owner, True), (again, False), (again, True)):
                sent = await sender.dispatch("chat/toolCallComplete", **names, result=result)
                assert ("rejectionReason" in await sender.echo(sent)) == is_refused
            assert (await end_of_turn(again))[-1]["content"] == "It says: a seat"
            await check_equal(third, again)
            left = {"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}}
            await again.socket.send(json.dumps(left))
            await owner.action("session/activeClientRemoved")
            await check_equal(here, owner)


async def test_clients_go_on_when_the_owner_is_killed(tmp_path: Path) -> None:
    async with hosts(tmp_path) as (replicas, (here, there)):
        async with connected(here, "a") as owner, connected(there, "b") as guest:
            await guest.join(await owner.create())
            await guest.prompt("t1", "hello")
            await end_of_turn(guest)
            await guest.prompt("t2", "make a file")
            await needed(guest)
            await replicas.servers[0].kill()
            await guest.socket.wait_closed()  # type: ignore[attr-defined]
        async with raw(there, "b") as again, raw(there, "a") as other:
            assert await again.reconnect(guest) == "snapshot"
            assert await other.reconnect(owner) == "snapshot"
            assert {uri: other.states[uri] for uri in owner.states} == other.states
            await end_of_turn(again)
            first, second = again.states[again.chat]["turns"]
            assert (first["id"], first["state"]) == ("t1", "complete")
            assert first["responseParts"][0]["content"] == "Hello"
            assert (second["id"], second["state"]) == ("t2", "cancelled")
            assert "rejectionReason" in await again.prompt("t2", "hello")
            await again.prompt("t3", "hello")
            await end_of_turn(again)
            await end_of_turn(other)
            assert other.states[other.chat] == again.states[again.chat]
            await check_equal(there, again)


async def test_background_and_drafts_are_those_of_the_owner_and_drafts_outlive_it(tmp_path: Path) -> None:
    draft = {"text": "half a sen", "origin": {"kind": "user"}}
    async with hosts(tmp_path) as (replicas, (here, there)):
        async with connected(here, "a") as owner, connected(there, "b") as guest:
            await guest.join(await owner.create(config={"autoApprove": True}))
            await guest.prompt("t1", "serve it")
            while not (work := guest.states[guest.chat].get("backgroundWork")):
                await guest.any_action()
            terminal = work[0]["terminal"]
            await guest.subscribe(terminal)
            while not guest.states[terminal]["content"]:
                await guest.any_action()
            await owner.join_parts()
            await check_equal(there, guest)
            await check_equal(here, owner)
            (Path(owner.states[owner.session]["workingDirectories"][0].removeprefix("file://")) / "stop").touch()
            while guest.states[guest.chat]["backgroundWork"]:
                await guest.any_action()
            assert guest.states[terminal]["lifecycle"] == {"status": "exited", "exitCode": 3}
            assert "rejectionReason" not in await guest.echo(await guest.dispatch("chat/draftChanged", draft=draft))
            await check_equal(here, owner)
            await replicas.servers[0].kill()
            await guest.socket.wait_closed()  # type: ignore[attr-defined]
        async with raw(there, "b") as again:
            assert await again.reconnect(guest) == "snapshot"
            assert again.states[again.chat]["draft"] == draft
            assert "backgroundWork" not in again.states[again.chat]


async def test_changes_are_shown_and_undone_on_any_replica(tmp_path: Path) -> None:
    async with hosts(tmp_path) as (replicas, (here, there)):
        async with connected(here, "a") as owner, connected(there, "b") as guest:
            await guest.join(await owner.create(config={"autoApprove": True}))
            whole = f"{guest.session}/changeset/session"
            assert (await guest.subscribe(whole))["files"] == []
            await guest.prompt("t1", "make a file")
            await end_of_turn(guest)
            await shown(guest, whole, 1)
            ref = guest.states[whole]["files"][0]["edit"]["after"]["content"]["uri"]
            assert (await guest.call("resourceRead", uri=ref))["data"] == "x"
            await owner.subscribe(whole)
            await check_equal(there, guest)
            unknown = f"{guest.session}/changeset/turn/t9"
            assert (await guest.request("subscribe", unknown))["error"]["code"] == -32001
            refused = await guest.request("invokeChangesetOperation", whole, operationId="redo")
            assert refused["error"]["code"] == -32602
            answer = await guest.call("invokeChangesetOperation", whole, operationId="undo")
            assert answer == {"message": "1 file undone."}
            await shown(guest, whole, 0)
            await shown(owner, whole, 0)
            await guest.prompt("t2", "make a file")
            await end_of_turn(guest)
            await shown(guest, whole, 1)
            await replicas.servers[0].kill()
            await guest.socket.wait_closed()  # type: ignore[attr-defined]
        async with raw(there, "b") as again:
            assert await again.reconnect(guest) == "snapshot"
            assert again.states[whole] == guest.states[whole]
            assert (await again.call("invokeChangesetOperation", whole, operationId="undo"))["message"]
            await shown(again, whole, 0)


async def shown(client: Client, uri: str, count: int) -> None:
    """Wait until a changeset has a number of files, and can be undone if it has any."""
    wanted = "idle" if count else "disabled"
    while (len(client.states[uri]["files"]), client.states[uri]["operations"][0]["status"]) != (count, wanted):
        await client.any_action()


async def test_numbers_of_one_replica_are_no_replay_of_another(tmp_path: Path) -> None:
    async with hosts(tmp_path) as (_, (here, there)), connected(here, "a") as owner:
        async with connected(there, "b") as guest:
            await guest.join(await owner.create())
        for port, expected in ((there, "replay"), (here, "snapshot"), (there, "snapshot"), (there, "replay")):
            await owner.prompt(f"t{port}{expected}{len(owner.received)}", "hello")
            await end_of_turn(owner)
            async with raw(port, "b") as again:
                assert await again.reconnect(guest) == expected
                await again.settle()
                await check_equal(port, again)
                print(
                    port, expected, json.dumps(again.states[again.chat]), "\n", json.dumps(owner.states[owner.chat])
                )
                assert again.states[again.chat] == owner.states[owner.chat]
            guest = again


async def test_two_tokens_see_nothing_of_each_other_on_any_replica(tmp_path: Path) -> None:
    home_of(tmp_path, 0).mkdir(parents=True)
    home_of(tmp_path, 1).mkdir(parents=True)
    tokens = ConnectionTokenFile(home_of(tmp_path, 0))
    ada_query, eve_query = (f"?tkn={tokens.add(name, all_sessions=False)}" for name in ("ada", "eve"))
    copy(home_of(tmp_path, 0) / FILE, home_of(tmp_path, 1) / FILE)
    async with (
        hosts(tmp_path, without_token=()) as (_, (here, there)),
        connected(here, "ada", ada_query) as ada,
        connected(there, "eve", eve_query) as eve,
        connected(there, "ada too", ada_query) as too,
    ):
        uri = await ada.create()
        await too.join(uri)
        await too.prompt("t1", "hello")
        await end_of_turn(too)
        for channel in (uri, ada.chat):
            assert (await eve.request("subscribe", channel))["error"]["code"] == -32001
        assert (await eve.call("listSessions"))["items"] == []
        assert (await eve.request("disposeSession", uri))["error"]["code"] == -32001
        assert (await eve.request("createSession", uri))["error"]["code"] == -32003
        await eve.dispatch("session/titleChanged", uri, title="stolen")
        async with raw(there, "eve too", eve_query) as other:
            wanted: JsonObject = {"clientId": "eve too", "lastSeenServerSeq": 0, "subscriptions": [ROOT, uri]}
            answer = await other.call("reconnect", **wanted)
            assert [snapshot["resource"] for snapshot in answer["snapshots"]] == [ROOT]
        await eve.settle()
        await too.settle()
        assert all(message.get("id") or message["params"].get("channel") == ROOT for message in eve.received)
        assert uri not in json.dumps([one for one in eve.received if "method" in one])
        assert too.states[uri]["title"] != "stolen"
        await check_equal(there, too, query=ada_query)
        await ada.settle()
        assert ada.states[ada.chat] == too.states[too.chat]


async def test_files_are_read_on_the_host_where_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("text")
    async with (
        hosts(tmp_path, hosts=["one", "two"]) as (_, (here, there)),
        connected(here, "a") as owner,
        connected(there, "b") as guest,
    ):
        uri = await owner.create(workingDirectories=[folder.as_uri()])
        await guest.notification("root/sessionAdded")
        await owner.prompt("t1", "hello")
        await end_of_turn(owner)
        for port_client in (owner, guest):
            found = await port_client.call("resourceRead", uri=(folder / "a.txt").as_uri())
            assert found["data"] == "text"
        answer = await guest.request("resourceRead", uri=(tmp_path / "other").as_uri())
        assert answer["error"]["code"] == -32009
        await guest.join(uri)
        assert guest.states[guest.chat]["turns"][0]["id"] == "t1"


async def test_a_session_of_the_other_door_of_another_replica(tmp_path: Path) -> None:
    async with hosts(tmp_path) as (replicas, (_, there)), connected(there, "b") as guest:
        wire = await replicas.connect(0)
        session = await wire.create(scripted({"text": "from the SDK"}))
        uri = f"ahp-session:/{session}"
        assert (await guest.notification("root/sessionAdded"))["summary"]["resource"] == uri
        await guest.join(uri)
        await wire.call("session.send", {"sessionId": session, "prompt": "begin"})
        await guest.action("chat/turnComplete")
        assert (await end_of_turn(guest))[0]["content"] == "from the SDK"
        await check_equal(there, guest)
