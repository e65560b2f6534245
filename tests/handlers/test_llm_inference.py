"""A client that makes the model requests itself, and provides tokens on request."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, frame, running_server

pytestmark = pytest.mark.anyio

PROVIDER = {"type": "openai", "baseUrl": "https://model.invalid/v1", "apiKey": "sk-x"}
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "héllo"}, "finish_reason": "stop"}]}


async def acknowledge(wire: Wire, method: str, since: int) -> dict[str, Any]:
    """Wait for the next request of the server, answer it with an empty object and return its params."""
    request = await wire.until(lambda message: message.get("method") == method, since=since, what=method)
    await wire.send(frame({"jsonrpc": "2.0", "id": request["id"], "result": {}}))
    return request["params"]


async def model_request(wire: Wire, since: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    start = await acknowledge(wire, "llmInference.httpRequestStart", since)
    return start, await acknowledge(wire, "llmInference.httpRequestChunk", since)


async def test_model_requests_go_through_the_client_that_registered(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        assert await wire.call("llmInference.setProvider", {}) == {"success": True}
        session = await wire.create(PROVIDER, model="m")
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        start, chunk = await model_request(wire)
        assert (start["method"], start["url"]) == ("POST", "https://model.invalid/v1/chat/completions")
        assert start["sessionId"] == session
        assert start["headers"]["authorization"] == ["Bearer sk-x"]
        assert chunk["end"] is True
        assert json.loads(chunk["data"])["model"] == "m"
        head = {"requestId": start["requestId"], "status": 200, "headers": {"content-type": ["application/json"]}}
        assert await wire.call("llmInference.httpResponseStart", head) == {"accepted": True}
        body = json.dumps(ANSWER).encode()
        parts = [
            {"data": body[:20].decode()},
            {"data": base64.b64encode(body[20:]).decode(), "binary": True, "end": True},
        ]
        for part in parts:
            params = {"requestId": start["requestId"], **part}
            assert await wire.call("llmInference.httpResponseChunk", params) == {"accepted": True}
        answer = await wire.event("assistant.message", session=session)
        await wire.event("session.idle", session=session)
        late = await wire.call("llmInference.httpResponseChunk", {"requestId": start["requestId"], "data": "x"})
    assert answer["data"]["content"] == "héllo"
    assert late == {"accepted": False}


async def test_a_failure_of_the_client_ends_the_turn_in_an_error(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        session = await wire.create(PROVIDER, model="m")
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        start, _ = await model_request(wire)
        params = {"requestId": start["requestId"], "data": "", "error": {"message": "no route"}}
        await wire.call("llmInference.httpResponseChunk", params)
        error = await wire.event("session.error", session=session)
        await wire.event("session.idle", session=session)
    assert "no route" in error["data"]["message"]


async def test_an_abort_cancels_the_request_at_the_client(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        session = await wire.create(PROVIDER, model="m")
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        start, _ = await model_request(wire)
        position = len(wire.messages)
        aborting = await wire.ask("session.abort", {"sessionId": session})
        cancelled = await acknowledge(wire, "llmInference.httpRequestChunk", position)
        await wire.response(aborting)
    assert cancelled["requestId"] == start["requestId"]
    assert cancelled["cancel"] is True


async def test_one_client_owns_the_model_requests_until_it_leaves(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        async with server.connect() as owner:
            await owner.call("llmInference.setProvider", {})
            assert await owner.call("llmInference.setProvider", {}) == {"success": True}
            error = await other.error_of("llmInference.setProvider", {})
            assert error["message"] == "Another client is already the LLM inference provider."
            session = await other.create(PROVIDER, model="m")
            await other.call("session.send", {"sessionId": session, "prompt": "hi"})
            await owner.until(lambda message: message.get("method") == "llmInference.httpRequestStart")
        failed = await other.event("session.error", session=session)
        assert "client" in failed["data"]["message"]
        assert await other.call("llmInference.setProvider", {}) == {"success": True}


async def test_a_token_is_requested_before_every_model_request_and_never_stored(tmp_path: Path) -> None:
    provider = {"type": "openai", "baseUrl": "https://model.invalid/v1", "hasBearerTokenProvider": True}
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        session = await wire.create(provider, model="m")
        tokens: list[str] = []
        for token in ("first-token", "second-token"):
            position = len(wire.messages)
            await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
            request = await wire.until(
                lambda message: message.get("method") == "providerToken.getToken", since=position
            )
            assert request["params"] == {"sessionId": session, "providerName": "default"}
            await wire.send(frame({"jsonrpc": "2.0", "id": request["id"], "result": {"token": token}}))
            start, _ = await model_request(wire, position)
            tokens += start["headers"]["authorization"]
            head: dict[str, Any] = {"requestId": start["requestId"], "status": 200, "headers": {}}
            await wire.call("llmInference.httpResponseStart", head)
            body = {"requestId": start["requestId"], "data": json.dumps(ANSWER), "end": True}
            await wire.call("llmInference.httpResponseChunk", body)
            await wire.event("session.idle", session=session, since=position)
    assert tokens == ["Bearer first-token", "Bearer second-token"]
    files = "".join(path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert "-token" not in files


async def test_the_endpoint_of_a_session_is_returned_only_if_the_operator_allows_it(tmp_path: Path) -> None:
    provider = {**PROVIDER, "headers": {"X-Mine": "yes"}}
    async with running_server(tmp_path) as server:
        session = await server.wire.create(provider, model="m")
        error = await server.wire.error_of("session.provider.getEndpoint", {"sessionId": session})
        assert "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT" in error["message"]
        assert "sk-x" not in str(error)
    env = {"COPILOT_ALLOW_GET_PROVIDER_ENDPOINT": "true"}
    async with running_server(tmp_path, env=env) as server:
        session = await server.wire.create(provider, model="m")
        answer = await server.wire.call("session.provider.getEndpoint", {"sessionId": session})
    assert answer == {
        "type": "openai",
        "wireApi": "completions",
        "baseUrl": "https://model.invalid/v1",
        "apiKey": "sk-x",
        "headers": {"X-Mine": "yes"},
    }


@pytest.mark.parametrize(("status", "opens"), [(404, True), (401, False)])
async def test_a_client_that_makes_the_requests_need_not_describe_users(
    tmp_path: Path, *, status: int, opens: bool
) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        created = await wire.ask("session.create", {"gitHubToken": "gh-own", "model": "m"})
        start, _ = await model_request(wire)
        assert start["url"] == "https://api.github.com/copilot_internal/user"
        await respond(wire, start, status, {"data": "no such page", "end": True})
        answer = await wire.response(created)
        assert ("result" in answer) == opens
        if opens:
            position = len(wire.messages)
            await wire.call("session.send", {"sessionId": answer["result"]["sessionId"], "prompt": "hi"})
            listing, _ = await model_request(wire, position)
            assert listing["url"] == "https://api.githubcopilot.com/models"
            assert listing["headers"]["authorization"] == ["Bearer gh-own"]


# --- WebSockets ---------------------------------------------------------------------------------------------------

COPILOT = {
    "COPILOT_API_URL": "https://copilot.invalid",
    "GH_TOKEN": "gh-token",
}
LISTED = {"data": [{"id": "m", "supported_endpoints": ["/responses", "ws:/responses"]}]}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "over a socket"}]}


async def respond(wire: Wire, start: dict[str, Any], status: int, *chunks: dict[str, Any]) -> None:
    """Send the client's response to a model request."""
    request_id = start["requestId"]
    head: dict[str, Any] = {"requestId": request_id, "status": status, "headers": {}}
    await wire.call("llmInference.httpResponseStart", head)
    for chunk in chunks:
        await wire.call("llmInference.httpResponseChunk", {"requestId": request_id, "data": "", **chunk})


async def prompt_copilot(wire: Wire, **options: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Prompt a new session of the Copilot API; returns its id, and the head and body of the model request."""
    session = (await wire.call("session.create", {"model": "m", **options}))["sessionId"]
    position = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
    listing, _ = await model_request(wire, position)
    position = len(wire.messages)
    await respond(wire, listing, 200, {"data": json.dumps(LISTED), "end": True})
    return session, *await model_request(wire, position)


@pytest.mark.parametrize("streaming", [True, False])
async def test_responses_use_a_websocket_of_the_client_if_the_model_takes_one(
    tmp_path: Path, *, streaming: bool
) -> None:
    events: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "over a "},
        {"type": "response.completed", "response": {"status": "completed", "output": [SAID]}},
    ]
    async with running_server(tmp_path, env=COPILOT) as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        session, start, chunk = await prompt_copilot(wire, streaming=streaming)
        position = len(wire.messages)
        # A message may have line breaks, and may come as bytes.
        packed = base64.b64encode(json.dumps(events[1], indent=1).encode()).decode()
        await respond(wire, start, 101, {"data": json.dumps(events[0])}, {"data": packed, "binary": True})
        hung_up = await acknowledge(wire, "llmInference.httpRequestChunk", position)
        answer = await wire.event("assistant.message", session=session)
        await wire.event("session.idle", session=session)

    assert (start["transport"], start["url"]) == ("websocket", "wss://copilot.invalid/responses")
    assert start["headers"]["authorization"] == ["Bearer gh-token"]
    assert not {"content-length", "content-type"} & start["headers"].keys()
    message = json.loads(chunk["data"])
    assert (message["type"], message["model"], "stream" in message) == ("response.create", "m", False)
    assert "end" not in chunk
    # One socket per request, closed when its answer is complete.
    assert (hung_up["requestId"], hung_up["end"], hung_up.get("cancel")) == (start["requestId"], True, None)
    assert answer["data"]["content"] == "over a socket"


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ({"COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES": "true"}, {"capi": {"enableWebSocketResponses": True}}),
        ({}, {"capi": {"enableWebSocketResponses": False}}),
    ],
)
async def test_responses_use_http_if_the_environment_or_the_session_disables_websockets(
    tmp_path: Path, env: dict[str, str], options: dict[str, Any]
) -> None:
    async with running_server(tmp_path, env=COPILOT | env) as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        session, start, _ = await prompt_copilot(wire, **options)
        whole = {"status": "completed", "output": [SAID]}
        await respond(wire, start, 200, {"data": json.dumps(whole), "end": True})
        answer = await wire.event("assistant.message", session=session)

    assert (start["transport"], start["method"]) == ("http", "POST")
    assert answer["data"]["content"] == "over a socket"


@pytest.mark.parametrize(
    ("status", "chunk", "text"),
    [
        (401, {"data": '{"error": {"message": "bad token"}}', "end": True}, "bad token"),
        (101, {"end": True}, "before it sent anything"),
        (101, {"data": '{"type": "response.created", "response": {}}', "end": True}, "in the middle of its answer"),
        (101, {"data": '{"type": "error", "message": "too many"}'}, "too many"),
        (101, {"error": {"message": "reset"}}, "reset"),
    ],
)
async def test_a_websocket_that_fails_ends_the_turn_in_an_error(
    tmp_path: Path, status: int, chunk: dict[str, Any], text: str
) -> None:
    async with running_server(tmp_path, env=COPILOT, config="[retry]\nattempts = 1\n") as server:
        wire = server.wire
        await wire.call("llmInference.setProvider", {})
        session, start, _ = await prompt_copilot(wire)
        position = len(wire.messages)
        await respond(wire, start, status, chunk)
        if not chunk.get("end") and "error" not in chunk:
            # The client is told to close a connection that is still open.
            assert (await acknowledge(wire, "llmInference.httpRequestChunk", position))["cancel"] is True
        error = await wire.event("session.error", session=session)
        await wire.event("session.idle", session=session)

    assert text in error["data"]["message"]
