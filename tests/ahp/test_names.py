"""The names of sessions and chats on the wire, and who is told of sessions."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path
from uuid import uuid4

import pytest

from jumpseat.ahp.names import Names
from jumpseat.ahp.translation.uris import chat_uri
from tests.ahp.client import ROOT, check_equal, connected, door_server, raw

pytestmark = pytest.mark.anyio

SCRIPT = {"turns": [{"deltas": ["Hello ", "there"]}], "after_last": "repeat"}


def old_names(session_id: str) -> tuple[str, str]:
    """Return the names that older builds of VS Code have for a session and its chat."""
    session = f"jumpseat:/{session_id}"
    return session, f"ahp-chat://default/{urlsafe_b64encode(session.encode()).decode().rstrip('=')}"


def test_a_connection_is_answered_in_the_names_that_its_client_uses() -> None:
    names = Names()
    session, chat = old_names("one")
    message = (
        b'{"resource":"ahp-session:/one","chat":"%b","text":"see ahp-session:/one"}' % chat_uri("one").encode()
    )
    assert names.outward((message,)) == (message,)

    assert names.inward({"channel": chat, "subscriptions": [session, ROOT, 1]}) == {
        "channel": chat_uri("one"),
        "subscriptions": ["ahp-session:/one", ROOT, 1],
    }
    told = f'{{"resource":"{session}","chat":"{chat}","text":"see ahp-session:/one"}}'.encode()
    assert names.outward((message[:9], message[9:])) == (told,)

    assert names.inward({"channel": "ahp-session:/one"}) == {"channel": "ahp-session:/one"}
    assert names.outward((message,)) == (message,)


async def test_a_client_that_names_sessions_by_their_provider(tmp_path: Path) -> None:
    session_id = str(uuid4())
    session, chat = old_names(session_id)
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as a:
        async with connected(port, "b") as b:
            assert await b.call("createSession", session) is None
            state = await b.subscribe(session)
            assert (state["defaultChat"], state["chats"][0]["resource"]) == (chat, chat)
            await b.subscribe(chat)
            await a.join(f"ahp-session:/{session_id}")
            b.session, b.chat = session, chat
            await b.settle()
            if b.states[session]["lifecycle"] != "ready":
                await b.action("session/ready")
            assert (await b.prompt("t1", "hello"))["channel"] == chat
            await b.action("chat/turnComplete")
            assert [one["resource"] for one in (await b.call("listSessions"))["items"]] == [session]
            await a.prompt("t2", "hello")
            await a.action("chat/turnComplete")
            await b.settle()
            assert b.states[chat] == {**a.states[a.chat], "resource": chat}
        async with raw(port, "b") as again:
            assert await again.reconnect(b) == "replay"
            assert again.states[chat]["turns"] == a.states[a.chat]["turns"]
            await check_equal(port, a)
            assert await again.call("disposeSession", session) is None
        assert (await a.notification("root/sessionRemoved"))["session"] == f"ahp-session:/{session_id}"


async def test_a_chat_is_no_name_for_its_session(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as a:
        uri = await a.create()
        refused = await a.request("disposeSession", a.chat)
        assert refused["error"]["code"] == -32602
        assert (await a.request("createSession", chat_uri("other")))["error"]["code"] == -32602
        assert "snapshot" in await a.call("subscribe", uri)
        assert await a.call("disposeSession", uri) is None


async def test_only_who_subscribes_to_the_root_is_told_of_sessions(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (server, port), raw(port, "b") as b, connected(port, "a") as a:
        await b.call("initialize", protocolVersions=["0.10.0"], clientId="b")
        result = await b.call("subscribe", ROOT)
        await b.socket.send('{"jsonrpc":"2.0","method":"unsubscribe","params":{"channel":"ahp-root://"}}')
        await b.settle()
        uri = await a.create()
        async with server.connect() as sdk:
            await sdk.create(None, model="fake/one")
        await a.call("disposeSession", uri)
        await a.settle()
        told = [message["method"] for message in a.received if message.get("method", "").startswith("root/session")]
        assert [told.count(f"root/session{change}") for change in ("Added", "Removed")] == [2, 1]
        await b.settle()
        assert result["snapshot"]["resource"] == ROOT
        assert not [message for message in b.received if "method" in message]


async def test_the_default_directory_is_where_sessions_begin(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), raw(port, "a") as a:
        told = (await a.initialize())["defaultDirectory"]
        uri = await a.create()
        assert a.states[uri]["workingDirectories"] == [told]
        assert told.startswith("file:///")
