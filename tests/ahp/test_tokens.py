"""Clients of two tokens see nothing of each other, whatever one of them tries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from jumpseat.ahp.states.values import JsonObject
from jumpseat.store.user.connection_tokens import ConnectionTokenFile
from tests.ahp.client import ROOT, check_equal, connected, door_server, raw
from tests.support.server import calls

pytestmark = pytest.mark.anyio

SCRIPT: Final[JsonObject] = {
    "prompts": [
        {"when": "make a file", "turns": [calls("create", path="made.txt", file_text="x"), {"text": "Done."}]},
        {"turns": [{"text": "secret words"}] * 9},
    ]
}
MESSAGE: Final = {"text": "x", "origin": {"kind": "user"}}
TIME: Final = "2026-11-28T00:00:00.000Z"


async def test_two_tokens_see_nothing_of_each_other(tmp_path: Path) -> None:
    tokens = ConnectionTokenFile(tmp_path / "home")
    ada_query, eve_query = (f"?tkn={tokens.add(name, all_sessions=False)}" for name in ("ada", "eve"))
    async with (
        door_server(tmp_path, SCRIPT, without_token=()) as (_, port),
        connected(port, "ada", ada_query) as ada,
        connected(port, "eve", eve_query) as eve,
    ):
        uri = await ada.create()
        await ada.prompt("t1", "hello")
        await ada.action("chat/turnComplete")
        await ada.prompt("t2", "make a file")
        while not ada.states[uri].get("inputNeeded"):
            await ada.action("session/inputNeededSet")
        call = ada.states[uri]["inputNeeded"][0]["toolCall"]["toolCallId"]
        await ada.settle()
        states = dict(ada.states)

        # Requests: as if the session did not exist, under any name of it.
        session = uri.removeprefix("ahp-session:/")
        for channel in (uri, ada.chat, f"jumpseat:/{session}", f"{uri}/changeset/session"):
            answer = await eve.request("subscribe", channel)
            assert answer["error"]["code"] == -32001, channel
            assert (await eve.request("fetchTurns", channel, cursor="t1"))["error"]["code"] == -32001
        assert (await eve.request("disposeSession", uri))["error"]["code"] == -32001
        assert (await eve.call("listSessions"))["items"] == []
        assert (await eve.request("createSession", uri))["error"]["code"] == -32003

        # Actions: ignored without an echo, as on channels that do not exist.
        attempts: list[tuple[str, str, dict[str, Any]]] = [
            ("chat/toolCallConfirmed", ada.chat, {"turnId": "t2", "toolCallId": call, "approved": True}),
            ("chat/turnCancelled", ada.chat, {"turnId": "t2", "duration": 1}),
            ("chat/turnStarted", ada.chat, {"turnId": "t3", "startedAt": TIME, "message": MESSAGE}),
            ("chat/pendingMessageSet", ada.chat, {"kind": "queued", "id": "q", "message": MESSAGE}),
            ("chat/truncated", ada.chat, {}),
            ("chat/draftChanged", ada.chat, {"draft": MESSAGE}),
            ("session/titleChanged", uri, {"title": "stolen"}),
            ("session/configChanged", uri, {"config": {"autoApprove": True}}),
            ("session/isReadChanged", uri, {"isRead": True}),
            ("session/activeClientSet", uri, {"activeClient": {"clientId": "eve", "tools": []}}),
            ("session/activeClientRemoved", uri, {"clientId": "ada"}),
        ]
        for kind, channel, members in attempts:
            await eve.dispatch(kind, channel, **members)
        await eve.settle()

        # The place of the client itself: the same id with another token is another client.
        for method in ("initialize", "reconnect"):
            async with raw(port, "ada", eve_query) as thief:
                params: JsonObject = {"protocolVersions": ["1.0.0"], "initialSubscriptions": [uri, ada.chat]}
                place: JsonObject = {"lastSeenServerSeq": 0, "subscriptions": [uri, ada.chat]}
                answer = await thief.call(method, clientId="ada", **params, **place)
                assert (answer.get("snapshots", []), answer.get("actions", [])) == ([], [])
                await thief.dispatch("chat/turnCancelled", ada.chat, turnId="t2", duration=1)
                await thief.dispatch("session/activeClientRemoved", uri, clientId="ada")
                await thief.settle()
                assert not any("method" in message for message in thief.received)
        async with raw(port, "other", eve_query) as other:
            wanted: JsonObject = {
                "clientId": "other",
                "lastSeenServerSeq": 0,
                "subscriptions": [ROOT, uri, ada.chat],
            }
            answer = await other.call("reconnect", **wanted)
            assert [one["resource"] for one in answer.get("snapshots", ())] in ([], [ROOT])
            assert answer.get("actions", []) == []
            assert "secret words" not in str(other.received)

        # Nothing has reached the one, nothing has happened to the other.
        assert not any("method" in message for message in eve.received)
        await ada.settle()
        assert ada.states == states
        await ada.echo(await ada.dispatch("chat/toolCallConfirmed", turnId="t2", toolCallId=call, approved=False))
        await ada.action("chat/turnComplete")
        await check_equal(port, ada, query=ada_query)
        await ada.call("disposeSession", uri)
        await ada.settle()
        assert any(message.get("method") == "root/sessionRemoved" for message in ada.received)
        await eve.settle()
        assert not any("method" in message for message in eve.received)


async def test_an_id_in_a_session_is_that_of_the_first_token_that_uses_it(tmp_path: Path) -> None:
    tokens = ConnectionTokenFile(tmp_path / "home")
    ada_query = f"?tkn={tokens.add('ada', all_sessions=False)}"
    chief_query = f"?tkn={tokens.add('chief', all_sessions=True)}"
    async with (
        door_server(tmp_path, SCRIPT, without_token=()) as (_, port),
        connected(port, "one", ada_query) as ada,
        connected(port, "one", chief_query) as chief,
        connected(port, "two", chief_query) as second,
    ):
        tool = {"name": "look_up", "inputSchema": {"type": "object"}}
        await chief.join(await ada.create(activeClient={"clientId": "one", "tools": [tool]}))
        for kind, members in (
            ("session/activeClientRemoved", {"clientId": "one"}),
            ("session/titleChanged", {"title": "taken"}),
        ):
            assert "another token" in (await chief.echo(await chief.dispatch(kind, **members)))["rejectionReason"]
        leaving = {"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": ada.session}}
        await chief.socket.send(json.dumps(leaving))
        await chief.settle()
        await second.join(ada.session)
        assert "rejectionReason" not in await second.echo(await second.dispatch("session/titleChanged", title="T"))
        await ada.action("session/titleChanged")
        assert [one["clientId"] for one in ada.states[ada.session]["activeClients"]] == ["one"]


async def test_two_tokens_read_nothing_of_each_others_files(tmp_path: Path) -> None:
    tokens = ConnectionTokenFile(tmp_path / "home")
    ada_query, eve_query = (f"?tkn={tokens.add(name, all_sessions=False)}" for name in ("ada", "eve"))
    for name in ("ada", "eve"):
        (tmp_path / name / "folder").mkdir(parents=True)
        (tmp_path / name / "folder" / "notes.txt").write_text(f"words of {name}")
    (tmp_path / "eve" / "link").symlink_to(tmp_path / "ada")
    async with (
        door_server(tmp_path, SCRIPT, without_token=()) as (_, port),
        connected(port, "ada", ada_query) as ada,
        connected(port, "eve", eve_query) as eve,
    ):
        await ada.create(workingDirectories=[(tmp_path / "ada").as_uri()])
        theirs = tmp_path / "ada" / "folder" / "notes.txt"
        places = [
            theirs,
            tmp_path / "eve" / ".." / "ada" / "folder" / "notes.txt",
            theirs.parent,
            theirs.parent.parent,
        ]

        async def check_denied() -> None:
            for place in places:
                for method in ("resourceRead", "resourceList", "resourceResolve", "resourceRequest"):
                    answer = await eve.request(method, uri=f"file://{place}", read=True)
                    assert answer.get("error", {}).get("code") == -32009, (method, place, answer)

        await check_denied()
        await eve.create(workingDirectories=[(tmp_path / "eve").as_uri()])
        places += [tmp_path / "eve" / "link" / "folder" / "notes.txt", tmp_path / "eve" / "link"]
        await check_denied()
        # Also where a session of hers names the folder in a prompt.
        message = {"text": "hello @../ada/folder/notes.txt", "origin": {"kind": "user"}}
        attachment = {"type": "resource", "label": "notes", "uri": theirs.as_uri()}
        started = {"turnId": "t1", "startedAt": TIME, "message": {**message, "attachments": [attachment]}}
        await eve.dispatch("chat/turnStarted", **started)
        await eve.settle()
        await check_denied()
        found = await eve.call("completions", eve.chat, kind="userMessage", text="@not", offset=4)
        assert "ada" not in str(found)
        assert "words of ada" not in str(eve.received)
        own = (tmp_path / "eve" / "folder" / "notes.txt").as_uri()
        assert (await eve.call("resourceRead", uri=own, encoding="utf-8"))["data"] == "words of eve"
        assert (await ada.call("resourceRead", uri=theirs.as_uri(), encoding="utf-8"))["data"] == "words of ada"
