"""Sub-agents have chats of their own, which clients can only watch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from jumpseat.ahp.states.values import JsonObject
from tests.ahp.client import Client, check_equal, connected, door_server
from tests.support.server import calls

pytestmark = pytest.mark.anyio


def task(name: str, call_id: str = "call-1", **arguments: Any) -> JsonObject:
    """Return a turn that starts a sub-agent, whose prompt is its name."""
    given = {"name": name, "agent_type": "task", "description": f"Help as {name}", "prompt": name}
    return {"tool_calls": [{"id": call_id, "name": "task", "arguments": given | arguments}]}


SCRIPT: Final[JsonObject] = {
    "prompts": [
        {
            "when": "delegate",
            "turns": [
                task("helper"),
                calls("write_agent", "call-2", agent_id="helper", message="and where"),
                calls("read_agent", "call-3", agent_id="helper", wait=True, since_turn=1),
                task("later", "call-4", mode="background"),
                {"text": "All done."},
            ],
        },
        {"when": "helper", "turns": [task("inner"), {"text": "found"}]},
        {"when": "inner", "turns": [{"reasoning": "Hm.", "text": "deep"}]},
        {"when": "and where", "turns": [calls("sql", query="SELECT 1"), {"text": "there"}]},
        {"when": "later", "turns": [{"text": "late"}]},
        {"when": "look at it", "turns": [task("looker"), {"text": "seen"}]},
        {"when": "looker", "turns": [calls("look_up", what="it"), {"text": "{{last_tool_result}}"}]},
        {"when": "hang", "turns": [task("sleeper")]},
        {"when": "write it", "turns": [calls("create", path="it.txt", file_text="x"), {"text": "written"}]},
        {"when": "sleeper", "turns": [{"text": "zzz", "hang": True}]},
        {"turns": [{"text": "ok"}] * 9},
    ]
}


def calls_of(chat: JsonObject) -> list[JsonObject]:
    turns = [*chat["turns"], *([chat["activeTurn"]] if "activeTurn" in chat else [])]
    return [part["toolCall"] for turn in turns for part in turn["responseParts"] if part["kind"] == "toolCall"]


def texts_of(turn: JsonObject) -> list[str]:
    return [part["content"] for part in turn["responseParts"] if part["kind"] == "markdown"]


def titled(client: Client, title: str) -> JsonObject:
    """Return the chat of a sub-agent."""
    return next(state for state in client.states.values() if state.get("title") == title)


async def test_sub_agents_have_chats_of_their_own_also_after_a_restart(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create()
        await client.prompt("t1", "delegate")
        added = (await client.action("session/chatAdded"))["summary"]
        assert (added["title"], added["interactivity"]) == ("helper", "read-only")
        assert added["origin"]["chat"] == client.chat
        await client.subscribe(added["resource"])
        await client.action("chat/turnComplete")
        # The agent in the background has been told of, too.
        while client.states[client.chat].get("activeTurn") is not None:
            await client.any_action()
        await client.join_parts()
        helper, inner, later = (titled(client, name) for name in ("helper", "inner", "later"))
        asked, where = helper["turns"]
        assert (asked["message"]["text"], asked["message"]["origin"]["kind"]) == ("helper", "agent")
        assert (texts_of(asked), texts_of(where), texts_of(later["turns"][0])) == (["found"], ["there"], ["late"])
        assert [part["kind"] for part in inner["turns"][0]["responseParts"]] == ["reasoning", "markdown"]
        assert inner["origin"] == {
            "kind": "tool",
            "chat": helper["resource"],
            "toolCallId": calls_of(helper)[0]["toolCallId"],
        }
        references = [call["content"][0] for call in calls_of(client.states[client.chat]) if call["content"]]
        shown = [(one["resource"], one["title"]) for one in references if one["type"] == "subagent"]
        assert shown == [(helper["resource"], "helper"), (later["resource"], "later")]
        await check_equal(port, client)
        before, session = client.states, client.session
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        # A chat can be opened before its session.
        await client.subscribe(helper["resource"])
        await client.join(session)
        await client.join_parts()
        shown = {uri: without_usage(state) for uri, state in client.states.items() if "turns" in state}
        assert shown == {uri: without_usage(state) for uri, state in before.items() if "turns" in state}
        assert {one["title"] for one in client.states[session]["chats"]} >= {"helper", "inner", "later"}


def without_usage(chat: JsonObject) -> JsonObject:
    """Return a chat without what is not stored, or not told by an action."""
    chat = {name: value for name, value in chat.items() if name != "backgroundWork"}
    return {**chat, "title": "", "turns": [{**turn, "usage": None} for turn in chat["turns"]]}


async def test_clients_cannot_write_to_the_chat_of_a_sub_agent(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create()
        await client.prompt("t1", "hang")
        chat = (await client.action("session/chatAdded"))["summary"]["resource"]
        await client.subscribe(chat)
        while "zzz" not in str(client.states[chat]):
            await client.any_action()
        turn = client.states[chat]["activeTurn"]["id"]
        message = {"text": "hello", "origin": {"kind": "user"}}
        result = {"success": True, "pastTenseMessage": "x"}
        attempts: list[tuple[str, JsonObject]] = [
            ("chat/turnStarted", {"turnId": "mine", "startedAt": "2026-11-28T00:00:00.000Z", "message": message}),
            ("chat/turnCancelled", {"turnId": turn, "duration": 1}),
            ("chat/truncated", {}),
            ("chat/pendingMessageSet", {"kind": "queued", "id": "q", "message": message}),
            ("chat/draftChanged", {"draft": message}),
            ("chat/isReadChanged", {"isRead": True}),
            ("chat/toolCallComplete", {"turnId": turn, "toolCallId": "c", "result": result}),
        ]
        before = client.states[chat]
        for kind, members in attempts:
            echo = await client.echo(await client.dispatch(kind, chat, **members))
            wanted = (
                "runs no such call"
                if kind == "chat/toolCallComplete"
                else "sub-agent, which clients can only watch"
            )
            assert wanted in echo["rejectionReason"], kind
        sent = await client.dispatch("session/titleChanged", chat, title="x")
        assert "does not belong" in (await client.echo(sent))["rejectionReason"]
        for method in ("disposeSession", "createSession"):
            assert (await client.request(method, chat))["error"]["code"] in (-32001, -32602)
        # An unknown chat is no chat: nobody is told about an action on it.
        await client.dispatch("chat/turnCancelled", f"{chat}AAAA", turnId=turn, duration=1)
        await client.settle()
        assert client.states[chat] == before
        await client.dispatch("chat/turnCancelled", turnId="t1", duration=1)
        while client.states[chat].get("activeTurn") is not None:
            await client.any_action()
        assert client.states[chat]["turns"][0]["state"] == "cancelled"
        await check_equal(port, client)


async def test_a_client_runs_its_tool_for_a_sub_agent(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        tool = {"name": "look_up", "description": "Look it up", "inputSchema": {"type": "object"}}
        await client.create(activeClient={"clientId": "a", "tools": [tool]})
        await client.prompt("t1", "look at it")
        needed = (await client.action("session/inputNeededSet"))["request"]
        assert (needed["kind"], needed["clientId"]) == ("toolClientExecution", "a")
        assert needed["chat"] != client.chat
        await client.subscribe(needed["chat"])
        call = {"turnId": needed["turnId"], "toolCallId": needed["toolCall"]["toolCallId"]}
        output = [{"type": "text", "text": "so far"}]
        await client.echo(
            await client.dispatch("chat/toolCallContentChanged", needed["chat"], **call, content=output)
        )
        result = {
            "success": True,
            "pastTenseMessage": "Looked",
            "content": [{"type": "text", "text": "It is blue."}],
        }
        async with connected(port, "b") as other:
            refused = await other.dispatch("chat/toolCallComplete", needed["chat"], **call, result=result)
            assert "rejectionReason" in await other.echo(refused)
        echo = await client.echo(
            await client.dispatch("chat/toolCallComplete", needed["chat"], **call, result=result)
        )
        assert "rejectionReason" not in echo
        await client.action("chat/turnComplete")
        while client.states[client.chat].get("activeTurn") is not None:
            await client.any_action()
        assert texts_of(client.states[needed["chat"]]["turns"][0]) == ["It is blue."]
        assert not client.states[client.session].get("inputNeeded")
        await check_equal(port, client)


async def test_a_sub_agent_that_asks_while_no_turn_runs_asks_in_a_turn_of_its_own(tmp_path: Path) -> None:
    async with (
        door_server(tmp_path, SCRIPT) as (server, port),
        server.connect() as sdk,
        connected(port, "a") as client,
    ):
        await client.create()
        await client.prompt("t1", "hello")
        await client.action("chat/turnComplete")
        session = client.session.removeprefix("ahp-session:/")
        await sdk.call("session.resume", {"sessionId": session})
        agent = {"sessionId": session, "agentType": "task", "name": "writer", "prompt": "write it"}
        await sdk.call("session.tasks.startAgent", agent)
        needed = (await client.action("session/inputNeededSet"))["request"]
        (work,) = client.states[client.chat]["backgroundWork"]
        assert (work["kind"], work["label"]) == ("subagent", "writer")
        assert (needed["kind"], needed["chat"]) == ("toolConfirmation", client.chat)
        assert client.states[client.chat]["activeTurn"]["message"]["origin"]["kind"] == "systemNotification"
        await client.join_parts()
        await check_equal(port, client)
        # It can be cancelled by its answer only, and takes no prompt's place.
        turn = {"turnId": needed["turnId"]}
        assert "rejectionReason" in await client.echo(
            await client.dispatch("chat/turnCancelled", **turn, duration=1)
        )
        assert "rejectionReason" not in await client.prompt("t2", "hello")
        await client.settle()
        while not client.states[client.session].get("inputNeeded"):
            await client.any_action()
        (needed,) = client.states[client.session]["inputNeeded"]
        await check_equal(port, client)
        decision = {"turnId": needed["turnId"], "toolCallId": needed["toolCall"]["toolCallId"], "approved": True}
        assert "rejectionReason" not in await client.echo(
            await client.dispatch("chat/toolCallConfirmed", **decision)
        )
        # The model is told when the agent is done.
        while "written" not in str(client.states) or client.states[client.chat].get("backgroundWork"):
            await client.any_action()
        while client.states[client.chat].get("activeTurn") is not None:
            await client.any_action()
        assert not client.states[client.session].get("inputNeeded")
        await check_equal(port, client)
