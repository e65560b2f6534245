"""Clients of the Agent Host Protocol work with the sessions of the server, beside clients of the other protocol."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from anyio.abc import ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from websockets.exceptions import InvalidStatus

from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.shapes import MOST_CONFIG_BYTES, MOST_ENTRIES, MOST_VALUES
from jumpseat.store.user.connection_tokens import ConnectionTokenFile
from tests.ahp.client import ROOT, Client, check_equal, connected, door_server, raw
from tests.support.editor import CONFIG
from tests.support.forked import INSTALLED
from tests.support.limits import WAIT_S
from tests.support.server import calls

pytestmark = pytest.mark.anyio

SCRIPT: Final[JsonObject] = {
    "prompts": [
        {
            "when": "make a file",
            "turns": [calls("create", path="made.txt", file_text="hello\n"), {"text": "All done."}],
        },
        {"when": "delete nothing", "turns": [calls("bash", command="rm -f nothing"), {"deltas": ["Do", "ne"]}]},
        {"when": "hang on", "turns": [{"text": "I am", "hang": True}]},
        {
            "when": "ask me",
            "turns": [calls("ask_user", question="Which?", choices=["Red", "Blue"]), {"text": "Fine."}],
        },
        {"when": "my tool", "turns": [calls("look_up", word="seat"), {"text": "It says: {{last_tool_result}}"}]},
        {"turns": [{"deltas": ["The ", "answer"]}] * 9},
    ]
}
MESSAGE: Final[JsonObject] = {"text": "x", "origin": {"kind": "user"}}


def parts(client: Client, turn: int = -1) -> list[JsonObject]:
    return client.states[client.chat]["turns"][turn]["responseParts"]


async def test_versions_and_order_of_the_handshake(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), raw(port, "a") as client:
        assert await client.call("ping") is None
        error = (await client.request("listSessions"))["error"]
        assert (error["code"], error["message"]) == (-32601, "Unhandled method listSessions")
        refused = await client.request("initialize", protocolVersions=["0.8.0"], clientId="a")
        assert refused["error"]["code"] == -32005
        assert refused["error"]["data"]["supportedVersions"]
        for invalid in ("1", "01.0.0", "1.0.0-beta"):
            answer = await client.request("initialize", protocolVersions=[invalid], clientId="a")
            assert answer["error"]["code"] == -32602
        result = await client.initialize(versions=("0.9.0", "2.0.0", "1.0.0", "0.10.0"))
        assert result["protocolVersion"] == "1.0.0"
        assert [agent["provider"] for agent in client.states[ROOT]["agents"]] == ["jumpseat"]
        assert (await client.request("reconnect", clientId="a"))["error"]["code"] == -32601
        assert (await client.request("subscribe", "ahp-session:/none"))["error"]["code"] == -32001
        assert (await client.request("createTerminal", "ahp-terminal:/1"))["error"]["code"] == -32601
        message = (await client.request("createSesion"))["error"]["message"]
        assert message == "Unhandled method createSesion, did you mean 'createSession'?"


async def test_a_turn_with_a_question_that_the_first_answer_settles(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as a, connected(port, "b") as b:
        uri = await a.create()
        assert (await a.request("createSession", uri))["error"]["code"] == -32003
        assert (await b.notification("root/sessionAdded"))["summary"]["resource"] == uri
        await b.join(uri)
        echo = await a.prompt("t1", "make a file")
        assert "rejectionReason" not in echo
        await b.action("session/inputNeededSet")
        await check_equal(port, b)
        (needed,) = b.states[uri]["inputNeeded"]
        call = needed["toolCall"]["toolCallId"]
        assert "+hello" in needed["toolCall"]["invocationMessage"]["markdown"]
        won = await b.echo(
            await b.dispatch(
                "chat/toolCallConfirmed", turnId="t1", toolCallId=call, approved=True, selectedOptionId="once"
            )
        )
        lost = await a.echo(
            await a.dispatch("chat/toolCallConfirmed", turnId="t1", toolCallId=call, approved=False)
        )
        assert ("rejectionReason" in won, "rejectionReason" in lost) == (False, True)
        for client in (a, b):
            if client.states[client.chat].get("activeTurn") is not None:
                await client.action("chat/turnComplete")
            await client.settle()
        assert a.states == b.states
        assert (tmp_path / "made.txt").read_text() == "hello\n"
        await check_equal(port, a)
        assert not any("rejectionReason" in message.get("params", {}) for message in b.received)
        (item,) = (await b.call("listSessions"))["items"]
        assert (item["resource"], item["status"]) == (uri, 1)


async def test_actions_that_are_refused_or_ignored(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create()
        refused: list[tuple[str, dict[str, Any]]] = [
            ("chat/turnComplete", {"turnId": "t1", "duration": 1}),
            ("chat/turnCancelled", {"turnId": "t1", "duration": 1}),
            (
                "chat/turnStarted",
                {"turnId": "t 1", "startedAt": "", "message": {"text": "x", "origin": {"kind": "user"}}},
            ),
            (
                "chat/turnStarted",
                {"turnId": "t1", "startedAt": "", "message": {"text": "x", "origin": {"kind": "agent"}}},
            ),
            ("chat/inputCompleted", {"requestId": "none", "response": "accept"}),
            # Clients with strict types could not read what others would be told.
            ("chat/pendingMessageSet", {"kind": "soon", "id": "q", "message": MESSAGE}),
            ("chat/pendingMessageSet", {"kind": "queued", "id": "q", "message": {**MESSAGE, "agent": 5}}),
            ("session/configChanged", {"config": {"note": 1}, "replace": "yes"}),
            ("session/activeClientSet", {"activeClient": {"clientId": "a", "tools": [], "displayName": 5}}),
            ("session/isReadChanged", {"isRead": True, "_meta": 5}),
            ("session/configChanged", {"config": {"mode": "unheard of"}}),
            ("session/activeClientSet", {"activeClient": {"clientId": "b", "tools": []}}),
            ("chat/unheardOf", {}),
            ("session/configChanged", {"config": {"note": "x" * MOST_CONFIG_BYTES}}),
            ("session/configChanged", {"config": {f"k{number}": 1 for number in range(MOST_ENTRIES + 1)}}),
            ("session/activeClientSet", {"activeClient": {"clientId": "a", "tools": [{}] * (MOST_ENTRIES + 1)}}),
            ("chat/queuedMessagesReordered", {"order": [str(n) for n in range(MOST_ENTRIES + 1)]}),
            ("chat/draftChanged", {"draft": [[1] * MOST_ENTRIES] * (MOST_VALUES // MOST_ENTRIES + 1)}),
        ]
        for kind, members in refused:
            assert "rejectionReason" in await client.echo(await client.dispatch(kind, **members)), kind
        # Each fits, all together do not.
        pairs = [{f"k{half}": "x" * (MOST_CONFIG_BYTES * 2 // 3)} for half in range(2)]
        for channel in ("", ROOT):
            kind = "root/configChanged" if channel else "session/configChanged"
            answers = [await client.echo(await client.dispatch(kind, channel, config=pair)) for pair in pairs]
            assert ["rejectionReason" in answer for answer in answers] == [False, True]
        await client.dispatch("chat/turnCancelled", "ahp-session:/none", turnId="t1")
        for number in (True, -1, 1 << 53, 1 << 70, 1.5, "1", None):
            action = {"type": "session/titleChanged", "title": "numbered"}
            params = {"channel": client.session, "clientSeq": number, "action": action}
            await client.socket.send(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
        await client.settle()
        assert client.states[client.session]["title"] != "numbered"
        await check_equal(port, client)


async def test_a_request_with_too_much_is_refused(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client, raw(port, "b") as other:
        many = [f"ahp-session:/{number}" for number in range(MOST_ENTRIES + 1)]
        requests: list[tuple[str, dict[str, Any]]] = [
            ("initialize", {"clientId": "b", "protocolVersions": ["1.0.0"], "initialSubscriptions": many}),
            ("initialize", {"clientId": "b", "protocolVersions": ["1.0.0"] * (MOST_ENTRIES + 1)}),
            ("reconnect", {"clientId": "b", "lastSeenServerSeq": 0, "subscriptions": many}),
        ]
        for method, params in requests:
            assert (await other.request(method, **params))["error"]["code"] == -32602, method
        tools = [{"name": f"t{number}"} for number in range(MOST_ENTRIES + 1)]
        refused = await client.request(
            "createSession", "ahp-session:/x", activeClient={"clientId": "a", "tools": tools}
        )
        assert refused["error"]["code"] == -32602


async def test_cancelling_keeps_what_waits_and_the_next_turn_comes_first(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create()
        await client.prompt("t1", "hang on")
        await client.action("chat/responsePart")
        message = {"text": "later", "origin": {"kind": "user"}}
        await client.echo(await client.dispatch("chat/pendingMessageSet", kind="queued", id="q1", message=message))
        second = await client.prompt("t2", "too early")
        assert "rejectionReason" in second
        await client.echo(await client.dispatch("chat/turnCancelled", turnId="t1", duration=1))
        assert [one["id"] for one in client.states[client.chat]["queuedMessages"]] == ["q1"]
        await check_equal(port, client)
        await client.prompt("t3", "hello")
        started = await client.action("chat/turnStarted")
        assert started["queuedMessageId"] == "q1"
        await client.action("chat/turnComplete")
        await check_equal(port, client)
        turns = client.states[client.chat]["turns"]
        assert [(turn["id"], turn["state"]) for turn in turns] == [
            ("t1", "cancelled"),
            ("t3", "complete"),
            ("q1", "complete"),
        ]


async def test_a_question_of_the_model_is_answered_by_an_action(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create()
        await client.prompt("t1", "ask me")
        request = (await client.action("chat/inputRequested"))["request"]
        (question,) = request["questions"]
        value = {"kind": "selected", "value": question["options"][1]["id"]}
        answers = {question["id"]: {"state": "submitted", "value": value}}
        await client.echo(
            await client.dispatch(
                "chat/inputCompleted", requestId=request["id"], response="accept", answers=answers
            )
        )
        await client.action("chat/turnComplete")
        call = next(part["toolCall"] for part in parts(client) if part["kind"] == "toolCall")
        assert call["content"] == [{"type": "text", "text": "User selected: Blue"}]
        await check_equal(port, client)


async def test_actions_that_would_have_no_effect_are_refused(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create()

        async def refusal(kind: str, /, **members: Any) -> str:
            sent = await client.dispatch(kind, **members)
            return (await client.echo(sent)).get("rejectionReason", "")

        assert "agent" in await refusal(
            "chat/turnStarted", **turn("t1", {**MESSAGE, "agent": {"uri": "file:///a"}})
        )
        assert "origin" in await refusal("chat/turnStarted", **turn("t1", {"text": "x"}))
        assert "mode" in await refusal("session/configChanged", config={"mode": None})
        assert not await refusal("session/configChanged", config={"one": 1})
        assert not await refusal("session/configChanged", config={"two": 2, "mode": "plan"}, replace=True)
        await client.settle()
        values: JsonObject = client.states[client.session]["config"]["values"]
        assert values.items() >= {"two": 2, "mode": "plan"}.items()
        assert "one" not in values

        await client.prompt("t1", "ask me")
        request = (await client.action("chat/inputRequested"))["request"]
        unknown: JsonObject = {"state": "draft", "value": {"kind": "unheard", "value": "x"}}
        draft: JsonObject = {"state": "draft", "value": {"kind": "selected", "value": "choice-1"}}
        for question, answer in (("answer", unknown), ("other", draft)):
            assert await refusal(
                "chat/inputAnswerChanged", requestId=request["id"], questionId=question, answer=answer
            )
        assert "missing" in await refusal("chat/inputCompleted", requestId=request["id"], response="accept")
        assert not await refusal(
            "chat/inputAnswerChanged", requestId=request["id"], questionId="answer", answer=draft
        )
        # What all see counts.
        assert not await refusal("chat/inputCompleted", requestId=request["id"], response="accept")
        await client.action("chat/turnComplete")
        call = next(part["toolCall"] for part in parts(client) if part["kind"] == "toolCall")
        assert call["content"] == [{"type": "text", "text": "User selected: Blue"}]

        assert "exists" in await refusal("chat/pendingMessageSet", kind="queued", id="t1", message=MESSAGE)
        await client.prompt("t2", "hang on")
        nowhere = {**MESSAGE, "model": {"id": "nowhere"}}
        assert "model" in await refusal("chat/pendingMessageSet", kind="queued", id="q", message=nowhere)
        assert not await refusal("chat/pendingMessageSet", kind="queued", id="q", message=MESSAGE)
        assert "kind" in await refusal("chat/pendingMessageSet", kind="steering", id="q", message=MESSAGE)
        await check_equal(port, client)


def turn(turn_id: str, message: JsonObject) -> JsonObject:
    return {"turnId": turn_id, "startedAt": "2026-11-28T00:00:00.000Z", "message": message}


TOOL: Final[JsonObject] = {
    "name": "look_up",
    "description": "Looks a word up",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}


def tools_of(client: Client, *tools: JsonObject) -> JsonObject:
    return {"clientId": client.client_id, "tools": list(tools)}


async def test_a_tool_of_the_client_that_only_this_client_answers(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as a, connected(port, "b") as b:
        uri = await a.create(activeClient=tools_of(a, TOOL))
        assert a.states[uri]["activeClients"] == [tools_of(a, TOOL)]
        await b.join(uri)
        # A second client with a tool of the same name gets none of its calls.
        assert "rejectionReason" not in await b.echo(
            await b.dispatch("session/activeClientSet", activeClient=tools_of(b, TOOL))
        )
        await a.prompt("t1", "my tool")
        while not a.states[uri].get("inputNeeded"):
            await a.action("session/inputNeededSet")
        (needed,) = a.states[uri]["inputNeeded"]
        call = needed["toolCall"]
        assert (needed["kind"], needed["clientId"], call["toolInput"], call["status"], call["confirmed"]) == (
            "toolClientExecution",
            "a",
            '{"word":"seat"}',
            "running",
            "not-needed",
        )
        await check_equal(port, a)
        names = {"turnId": "t1", "toolCallId": call["toolCallId"]}
        content = [{"type": "text", "text": "so far"}]
        await a.echo(await a.dispatch("chat/toolCallContentChanged", **names, content=content))
        await check_equal(port, a)
        result = {
            "success": True,
            "pastTenseMessage": "Looked up",
            "content": [
                {"type": "text", "text": "a place to sit"},
                {"type": "embeddedResource", "data": "aGVsbG8=", "contentType": "application/octet-stream"},
            ],
        }
        for kind, members in (("Complete", {"result": result}), ("ContentChanged", {"content": content})):
            assert "rejectionReason" in await b.echo(await b.dispatch(f"chat/toolCall{kind}", **names, **members))
        assert "rejectionReason" not in await a.echo(
            await a.dispatch("chat/toolCallComplete", **names, result=result)
        )
        await a.action("chat/turnComplete")
        assert parts(a)[-1]["content"] == "It says: a place to sit"
        assert parts(a)[-2]["toolCall"]["contributor"] == {"kind": "client", "clientId": "a"}
        assert "rejectionReason" in await a.echo(await a.dispatch("chat/toolCallComplete", **names, result=result))
        await check_equal(port, a)


async def test_calls_of_a_client_that_leaves_the_session_fail(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as a, connected(port, "b") as b:
        uri = await a.create()
        await b.join(uri)
        for wrong in ({"name": "look up"}, {**TOOL, "inputSchema": 1}, "look_up", {**TOOL, "name": "bash"}):
            sent = await b.dispatch("session/activeClientSet", activeClient={"clientId": "b", "tools": [wrong]})
            assert "rejectionReason" in await b.echo(sent), wrong
        await b.echo(await b.dispatch("session/activeClientSet", activeClient=tools_of(b, TOOL)))
        await a.prompt("t1", "my tool")
        await a.action("session/inputNeededSet")
        async with raw(port, "b") as again:
            await again.reconnect(b)
            assert again.states[uri]["inputNeeded"][0]["clientId"] == "b"
            left = {"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": uri}}
            await again.socket.send(json.dumps(left))
            await a.action("session/activeClientRemoved")
            await a.action("chat/turnComplete")
        assert "has left" in parts(a)[-1]["content"]
        assert a.states[uri]["activeClients"] == []
        await check_equal(port, a)


async def test_turns_are_taken_back(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (server, port), connected(port, "a") as client:
        await client.create()
        for name in ("t1", "t2", "t3"):
            await client.prompt(name, "hello")
            await client.action("chat/turnComplete")
        assert "rejectionReason" in await client.echo(await client.dispatch("chat/truncated", turnId="none"))
        await client.echo(await client.dispatch("chat/truncated", turnId="t1"))
        await client.action("chat/turnsLoaded")
        assert [turn["id"] for turn in client.states[client.chat]["turns"]] == ["t1"]
        await check_equal(port, client)
        await client.prompt("t2", "hello")
        await client.action("chat/turnComplete")
        async with server.connect() as sdk:
            session = client.session.removeprefix("ahp-session:/")
            await sdk.call("session.resume", {"sessionId": session})
            found = await sdk.call("session.getMessages", {"sessionId": session})
            first = next(event for event in found["events"] if event["type"] == "user.message")
            await sdk.call("session.history.truncate", {"sessionId": session, "eventId": first["id"]})
        await client.action("chat/truncated")
        assert client.states[client.chat]["turns"] == []
        await check_equal(port, client)


async def test_named_tokens_see_nothing_of_each_other(tmp_path: Path) -> None:
    tokens = ConnectionTokenFile(tmp_path / "home")
    queries = {name: f"?tkn={tokens.add(name, all_sessions=name == 'admin')}" for name in ("ada", "bob", "admin")}
    async with (
        door_server(tmp_path, SCRIPT, without_token=()) as (_, port),
        connected(port, "a", queries["ada"]) as ada,
        connected(port, "b", queries["bob"]) as bob,
        connected(port, "c", queries["admin"]) as admin,
    ):
        uri = await ada.create()
        await ada.prompt("t1", "make a file")
        await ada.action("session/inputNeededSet")
        assert (await bob.request("subscribe", uri))["error"]["code"] == -32001
        assert (await bob.request("subscribe", ada.chat))["error"]["code"] == -32001
        assert (await bob.request("disposeSession", uri))["error"]["code"] == -32001
        assert (await bob.call("listSessions"))["items"] == []
        await ada.echo(await ada.dispatch("root/configChanged", ROOT, config={"theme": "dark"}))
        assert (await bob.subscribe(ROOT))["config"]["values"] == {}
        call = ada.states[uri]["inputNeeded"][0]["toolCall"]["toolCallId"]
        await bob.dispatch("chat/toolCallConfirmed", ada.chat, turnId="t1", toolCallId=call, approved=True)
        await bob.settle()
        assert not any(message.get("method") for message in bob.received)
        await ada.settle()
        assert ada.states[uri]["inputNeeded"]
        async with raw(port, "a", queries["bob"]) as thief:
            other = await thief.call("reconnect", clientId="a", lastSeenServerSeq=0, subscriptions=[uri])
            assert other.get("missing", [uri]) == [uri]
            assert (other.get("actions", []), other.get("snapshots", [])) == ([], [])
        assert [item["resource"] for item in (await admin.call("listSessions"))["items"]] == [uri]
        await admin.join(uri)
        await admin.echo(
            await admin.dispatch("chat/toolCallConfirmed", turnId="t1", toolCallId=call, approved=True)
        )
        await ada.action("chat/turnComplete")
        await check_equal(port, ada, query=queries["ada"])


async def test_title_mode_and_the_end_of_a_session(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as a, connected(port, "b") as b:
        uri = await a.create(config={"autoApprove": True})
        await a.prompt("t1", "hello  there")
        await a.action("chat/turnComplete")

        async def check_title(title: str) -> None:
            await a.settle()
            (item,) = (await b.call("listSessions"))["items"]
            shown = [a.states[uri], *a.states[uri]["chats"], item, *item["chats"]]
            assert [one["title"] for one in shown] == [title] * 4

        await check_title("hello there")
        await a.echo(await a.dispatch("session/titleChanged", title="My work"))
        await check_title("My work")
        await a.echo(await a.dispatch("session/configChanged", config={"mode": "plan", "isolation": "folder"}))
        await a.settle()
        assert a.states[uri]["title"] == "My work"
        assert a.states[uri]["config"]["values"] == {"mode": "plan", "autoApprove": True, "isolation": "folder"}
        await check_equal(port, a)
        told = [one["params"] for one in b.received if one.get("method") == "root/sessionSummaryChanged"]
        assert {(one["session"], "resource" in one["changes"]) for one in told} == {(uri, False)}
        assert await a.call("disposeSession", uri) is None
        assert (await b.notification("root/sessionRemoved"))["session"] == uri
        assert (await b.request("subscribe", uri))["error"]["code"] == -32001


async def test_a_client_comes_back_to_what_it_has_missed(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "b") as b:
        async with connected(port, "a") as a:
            await b.join(await a.create())
        await b.prompt("t1", "make a file")
        await b.action("session/inputNeededSet")
        async with raw(port, "a") as again:
            assert await again.reconnect(a) == "replay"
            await check_equal(port, again)
            call = again.states[again.session]["inputNeeded"][0]["toolCall"]["toolCallId"]
            await again.echo(
                await again.dispatch("chat/toolCallConfirmed", turnId="t1", toolCallId=call, approved=False)
            )
            await b.action("chat/turnComplete")
            await check_equal(port, again)


@pytest.mark.timeout(300)
async def test_a_connection_that_is_cut_after_each_message(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "b") as b:
        await b.create()
        cut, was_whole = 0, False
        while not was_whole:
            async with connected(port, "a") as a:
                await a.join(b.session)
                await b.prompt(f"t{cut}", "delete nothing")
                await b.action("session/inputNeededSet")
                call = b.states[b.session]["inputNeeded"][0]["toolCall"]["toolCallId"]
                await b.echo(
                    await b.dispatch(
                        "chat/toolCallConfirmed", turnId=f"t{cut}", toolCallId=call, approved=cut % 2 == 0
                    )
                )
                await b.action("chat/turnComplete")
                await b.settle()
                was_whole = await a.read_actions(cut)
                a.abort()
            async with raw(port, "a") as again:
                assert await again.reconnect(a) == "replay"
                await check_equal(port, again)
                assert again.states == {**b.states, ROOT: again.states[ROOT]}
            cut += 1
        assert cut > 10


async def test_after_a_restart_clients_get_snapshots_of_the_same_turns(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (server, port), connected(port, "a") as a:
        await a.create()
        await a.prompt("any id", "no")
        await a.prompt("any-id", "hello")
        await a.action("chat/turnComplete")
        await a.prompt("t2", "make a file")
        await a.action("session/inputNeededSet")
        await server.kill()
    before = a.states[a.chat]["turns"][0]
    async with door_server(tmp_path, SCRIPT) as (_, port), raw(port, "a") as again:
        assert await again.reconnect(a) == "snapshot"
        first, second = again.states[again.chat]["turns"]
        assert first == {name: value for name, value in before.items() if name != "usage"}
        assert (second["id"], second["state"]) == ("t2", "cancelled")
        await again.prompt("t3", "hello")
        await again.action("chat/turnComplete")
        await check_equal(port, again)


async def test_a_session_of_the_other_protocol_is_shown_and_approved(tmp_path: Path) -> None:
    async with (
        door_server(tmp_path, SCRIPT) as (server, port),
        server.connect() as sdk,
        connected(port, "a") as client,
    ):
        created = await sdk.call("session.create", {"requestPermission": True, "model": "fake/one"})
        uri = f"ahp-session:/{created['sessionId']}"
        assert (await client.notification("root/sessionAdded"))["summary"]["resource"] == uri
        await sdk.call("session.send", {"sessionId": created["sessionId"], "prompt": "make a file"})
        await client.join(uri)
        if not client.states[uri].get("inputNeeded"):
            await client.action("session/inputNeededSet")
        (needed,) = client.states[uri]["inputNeeded"]
        turn = client.states[client.chat]["activeTurn"]["id"]
        call = needed["toolCall"]["toolCallId"]
        await client.echo(
            await client.dispatch("chat/toolCallConfirmed", turnId=turn, toolCallId=call, approved=True)
        )
        await client.action("chat/turnComplete")
        assert parts(client)[-1]["content"] == "All done."
        await check_equal(port, client)


@pytest.mark.parametrize("answers", ["sdk", "ahp"])
async def test_an_approval_at_one_door_counts_at_the_other(tmp_path: Path, answers: str) -> None:
    async with (
        door_server(tmp_path, SCRIPT) as (server, port),
        server.connect() as sdk,
        connected(port, "a") as client,
    ):
        uri = await client.create()
        session = uri.removeprefix("ahp-session:/")
        await sdk.call("session.resume", {"sessionId": session, "requestPermission": True})
        await client.prompt("t1", "make a file")
        await client.action("session/inputNeededSet")
        call = client.states[uri]["inputNeeded"][0]["toolCall"]["toolCallId"]
        pending = await sdk.call("session.permissions.pendingRequests", {"sessionId": session})
        (asked,) = pending["items"]
        answer = {"sessionId": session, "requestId": asked["requestId"], "result": {"kind": "approve-once"}}
        confirmed = {"turnId": "t1", "toolCallId": call, "approved": True}
        if answers == "sdk":
            told = await sdk.call("session.permissions.handlePendingPermissionRequest", answer)
            assert told["success"] is True
            await client.action("session/inputNeededRemoved")
            late = await client.echo(await client.dispatch("chat/toolCallConfirmed", **confirmed))
            assert "rejectionReason" in late
        else:
            assert "rejectionReason" not in await client.echo(
                await client.dispatch("chat/toolCallConfirmed", **confirmed)
            )
            told = await sdk.call("session.permissions.handlePendingPermissionRequest", answer)
            assert told["success"] is False
        while client.states[client.chat].get("activeTurn") is not None:
            await client.action("chat/turnComplete")
        left = await sdk.call("session.permissions.pendingRequests", {"sessionId": session})
        assert left["items"] == []
        assert (tmp_path / "made.txt").exists()
        await check_equal(port, client)


async def test_tokens_and_origins(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT, token="secret") as (server, port):
        for query in ("", "?tkn=", "?tkn=wrong"):
            with pytest.raises(InvalidStatus):
                async with raw(port, "a", query):
                    pass
        with pytest.raises(InvalidStatus):
            async with raw(port, "a", "?tkn=secret", origin="https://evil.example"):
                pass
        async with raw(port, "a", "?tkn=secret", origin="vscode-file://vscode-app") as client:
            await client.initialize()
        assert "secret" not in server.stderr


async def test_one_client_over_stdio(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    (home / "script.json").write_text(json.dumps(SCRIPT))
    environ = {"PATH": os.environ["PATH"], "COPILOT_HOME": str(home)}
    with anyio.fail_after(WAIT_S):
        async with await anyio.open_process([INSTALLED, "ahp"], env=environ, cwd=tmp_path, stderr=None) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            client = Client(LineSocket(process.stdin, BufferedByteReceiveStream(process.stdout)), "a")
            await client.initialize()
            await client.create()
            await client.prompt("t1", "hello")
            await client.action("chat/turnComplete")
            assert parts(client)[-1]["content"] == "The answer"
            await process.stdin.aclose()
            assert await process.wait() == 0


class LineSocket:
    """A connection over pipes, one message per line."""

    def __init__(self, stdin: ByteSendStream, stdout: BufferedByteReceiveStream) -> None:
        self._stdin = stdin
        self._stdout = stdout

    async def send(self, message: str) -> None:
        await self._stdin.send(message.encode() + b"\n")

    async def recv(self) -> bytes:
        return await self._stdout.receive_until(b"\n", 1 << 20)


@pytest.mark.parametrize("wall", ["none", "plan mode", "policy"])
async def test_what_a_session_may_not_change_it_changes_for_no_client_of_this_door(
    tmp_path: Path, wall: str
) -> None:
    options: JsonObject = {"requestPermission": True, "model": "fake/one"}
    if wall == "policy":
        options["managedSettings"] = {"permissions": {"deny": ["Edit(made.txt)"]}}
    async with (
        door_server(tmp_path, SCRIPT, args=("--yolo",)) as (server, port),
        server.connect() as sdk,
        connected(port, "a") as client,
    ):
        session = (await sdk.call("session.create", options))["sessionId"]
        await client.join(f"ahp-session:/{session}")
        config = {"autoApprove": True, "mode": "plan" if wall == "plan mode" else "interactive"}
        await client.echo(await client.dispatch("session/configChanged", config=config))
        await client.prompt("t1", "make a file")
        await client.action("chat/turnComplete")
        assert parts(client)[-1]["content"] == "All done."
        made = {name for _, _, names in os.walk(tmp_path) for name in names if name == "made.txt"}
        assert bool(made) == (wall == "none")
