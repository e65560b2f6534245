"""``jumpseat.session.nextRequest`` returns the next model request of a session without sending it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.provided import at, send_prompt, serving
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio

KEY = "sk-key-of-the-session-1234"
METHOD = "jumpseat.session.nextRequest"


async def test_the_shown_request_equals_the_one_that_is_sent_next(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        session = await server.wire.create(at(provider, apiKey=KEY, headers={"X-Mine": "yes"}), model="m")
        await send_prompt(server.wire, provider, session, "first")
        shown = await server.wire.call(METHOD, {"sessionId": session, "prompt": "second"})
        assert len(provider.requests) == 1
        sent = await send_prompt(server.wire, provider, session, "second")

    assert (shown["method"], shown["url"]) == ("POST", f"{provider.url}/v1{sent.path.removeprefix('/v1')}")
    expected, written = sent.json, shown["body"]
    # The prompt contains the current time, which differs.
    for body in (expected, written):
        prompt_message = body["messages"].pop()
        assert "second" in prompt_message["content"]
    assert written == expected
    headers = {name.lower(): value for name, value in shown["headers"].items()}
    assert headers["authorization"] == "[redacted]"
    assert set(headers) <= set(sent.headers)
    assert KEY not in json.dumps(shown)


async def test_without_a_prompt_the_conversation_so_far_is_shown(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        session = await server.wire.create(at(provider), model="m")
        await send_prompt(server.wire, provider, session, "first")
        shown = await server.wire.call(METHOD, {"sessionId": session})
        events = server.wire.events(session)
        shown_again = await server.wire.call(METHOD, {"sessionId": session})
        assert server.wire.events(session) == events

    assert [message["role"] for message in shown["body"]["messages"]] == ["system", "user", "assistant"]
    assert shown_again == shown


async def test_secrets_in_the_url_and_the_conversation_are_masked(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        provider = {"type": "openai", "baseUrl": "http://u:pass-word@nowhere.invalid/v1", "apiKey": KEY}
        session = await server.wire.create(provider, model="m")
        shown = await server.wire.call(METHOD, {"sessionId": session, "prompt": f"my key is {KEY}"})

    assert shown["url"] == "http://nowhere.invalid/v1/chat/completions"
    assert KEY not in json.dumps(shown)
    assert "my key is [redacted]" in shown["body"]["messages"][-1]["content"]


async def test_the_next_request_requires_a_model_called_over_http(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "hi"}))
        error = await server.wire.error_of(METHOD, {"sessionId": session})
        unknown = await server.wire.error_of(METHOD, {"sessionId": "nobody"})

    assert "not called over HTTP" in error["message"]
    assert "nobody" in unknown["message"]
