"""Model providers that refuse, fail, break off or never end: each failure is a typed error of one session."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, event_stream, json_reply, text_reply
from tests.support.ports import closed_port
from tests.support.server import JsonObject, RunningServer, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

KEY = "very-secret-provider-key-0123456789"  # not a real one
ATTEMPTS = 3
RETRY = f"[retry]\nattempts = {ATTEMPTS}\nfirst_wait_s = 0.01\n"
DONE = b"data: [DONE]\n\n"
STOP = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'


def delta(text: str) -> bytes:
    return b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()


def failure(status: int, message: str = "no", **headers: str) -> Reply:
    return json_reply({"error": {"message": message}}, status=status, headers=headers)


FINE = event_stream(delta("all "), delta("is well"), STOP, DONE)


@dataclass
class Failing:
    """A session with the provider of a test."""

    wire: Wire
    session: str

    async def prompt(self) -> list[JsonObject]:
        return await self.wire.prompt(self.session, "hello")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Return the event loop, as for all tests, but with module scope."""
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningServer]:
    """Run one server for all tests of this file: no failure may affect the next test."""
    async with running_server(
        tmp_path_factory.mktemp("providers"),
        tcp=True,
        config=RETRY,
        args=("--log-level", "debug"),
        limit_s=120,
    ) as server:
        yield server


@asynccontextmanager
async def failing(server: RunningServer, base_url: str, *, streaming: bool = True) -> AsyncGenerator[Failing]:
    """Open a session with the provider at ``base_url``, while another session of the server runs a turn."""
    async with server.connect() as wire:
        busy = await wire.create(
            scripted(calls("lookup"), {"text": "{{last_tool_result}}"}),
            tools=[{"name": "lookup", "skipPermission": True}],
        )
        await wire.call("session.send", {"sessionId": busy, "prompt": "look it up"})
        request = await wire.event("external_tool.requested", session=busy)
        provider = {"type": "openai", "baseUrl": base_url, "apiKey": KEY, "headers": {"X-Secret": KEY[::-1]}}
        session = await wire.create(provider, model="m", streaming=streaming)
        yield Failing(wire, session)
        # The turn of the other session continues afterwards.
        answer = {"sessionId": busy, "requestId": request["data"]["requestId"], "result": "found"}
        await wire.call("session.tools.handlePendingToolCall", answer)
        await wire.event("assistant.message", session=busy, content="found")
        await wire.event("session.idle", session=busy)
        await wire.check_alive()
        for secret in (KEY, KEY[::-1]):
            assert secret not in json.dumps(wire.messages)
            for path in server.home.rglob("*"):
                assert not path.is_file() or secret.encode() not in path.read_bytes(), path
            assert secret not in server.stderr


def error_of(events: list[JsonObject], *, attempts: int) -> JsonObject:
    """Return the single ``session.error`` of a failed run, after ``calls`` failed calls."""
    kinds = [event["type"] for event in events]
    assert [kind for kind in kinds if kind.startswith(("session.error", "assistant.turn_end", "session.idle"))] == [
        "assistant.turn_end",
        "session.error",
        "session.idle",
    ]
    assert kinds[-1] == "session.idle"
    assert "aborted" not in events[-1]["data"]
    assert kinds.count("model.call_failure") == attempts
    (error,) = data_of(events, "session.error")
    return error


HALF_A_FRAME = b'data: {"choices": [{"index": 0, "del'
ERROR_EVENT = b'data: {"error": {"message": "the model fell over", "type": "server_error", "code": 503}}\n\n'


@pytest.mark.parametrize(
    ("reply", "attempts", "error_type", "status", "words"),
    [
        pytest.param(failure(429, "slow down"), ATTEMPTS, "rate_limit", 429, "slow down", id="429 for ever"),
        pytest.param(failure(500, "oops"), ATTEMPTS, "query", 500, "oops", id="500 for ever"),
        pytest.param(failure(503, "busy"), ATTEMPTS, "query", 503, "busy", id="503 for ever"),
        pytest.param(
            failure(401, f"bad key {KEY}"), 1, "authentication", 401, "bad key", id="401 that quotes the key"
        ),
        pytest.param(failure(403, "no"), 1, "authentication", 403, "no", id="403"),
        pytest.param(failure(404, "no such model"), 1, "query", 404, "no such model", id="404"),
        pytest.param(failure(402, "pay first"), 1, "quota", 402, "pay first", id="402"),
        pytest.param(
            failure(429, "later", **{"Retry-After": "3600"}), 1, "rate_limit", 429, "later", id="429 in 1 h"
        ),
        pytest.param(text_reply("<html>hi</html>"), ATTEMPTS, "query", None, "expected JSON", id="no JSON"),
        pytest.param(json_reply({"hello": 1}), ATTEMPTS, "query", None, "", id="JSON of another shape"),
        pytest.param(json_reply([1, 2]), ATTEMPTS, "query", None, "expected a JSON object", id="a JSON list"),
        pytest.param(json_reply({"choices": 5}), ATTEMPTS, "query", None, "", id="choices that are none"),
        pytest.param(event_stream(HALF_A_FRAME), ATTEMPTS, "query", None, "", id="half a frame, then the end"),
        pytest.param(
            event_stream(HALF_A_FRAME, ending="cut"),
            ATTEMPTS,
            "query",
            None,
            "in the middle of its response",
            id="half a frame, cut",
        ),
        pytest.param(event_stream(b"data: {]\n\n"), ATTEMPTS, "query", None, "", id="an event that is no JSON"),
        pytest.param(event_stream(), ATTEMPTS, "query", None, "", id="an empty stream"),
        pytest.param(
            Reply(silent=True, ending="cut"), ATTEMPTS, "query", None, "before it responded", id="no answer at all"
        ),
        pytest.param(
            event_stream(delta("par"), ending="cut"),
            ATTEMPTS,
            "query",
            None,
            "in the middle of its response",
            id="cut after a delta",
        ),
        pytest.param(event_stream(delta("par")), ATTEMPTS, "query", None, "", id="the end after a delta"),
        pytest.param(event_stream(ERROR_EVENT), ATTEMPTS, "query", 503, "fell over", id="an error in the stream"),
        pytest.param(
            event_stream(delta("par"), ERROR_EVENT),
            ATTEMPTS,
            "query",
            503,
            "fell over",
            id="an error after a delta",
        ),
    ],
)
async def test_a_failed_call_is_a_typed_error_and_affects_nothing_else(
    server: RunningServer, reply: Reply, attempts: int, error_type: str, status: int | None, words: str
) -> None:
    async with ModelServer(*[reply] * attempts) as provider, failing(server, provider.url) as at:
        failed = await at.prompt()
        error = error_of(failed, attempts=attempts)
        shown = [data["deltaContent"] for data in data_of(failed, "assistant.message_delta")]
        assert error["errorType"] == error_type
        assert error.get("statusCode") == status
        assert error["message"].startswith("Execution failed: ")
        assert words in error["message"]
        assert len(provider.requests) == attempts
        assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
        # The part of the answer that was shown is kept, and the session continues from it.
        assert [data["content"] for data in data_of(failed, "assistant.message")] == shown
        provider.replies.append(FINE)
        events = await at.prompt()
        assert data_of(events, "assistant.message")[0]["content"] == "all is well"
        sent = [(message["role"], message["content"]) for message in provider.requests[-1].json["messages"]]
        assert [role for role, _ in sent] == ["system", "user", *["assistant" for _ in shown], "user"]
        assert [content for role, content in sent if role == "assistant"] == shown


async def test_an_unreachable_provider_is_a_typed_error(server: RunningServer) -> None:
    with closed_port() as port:
        async with failing(server, f"http://127.0.0.1:{port}") as at:
            error = error_of(await at.prompt(), attempts=ATTEMPTS)
    assert error["errorType"] == "query"
    assert "connection refused" in error["message"]
    assert f"tried {ATTEMPTS} times" in error["message"]


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1/x", "http://"])
async def test_an_invalid_address_is_refused_when_it_is_set(server: RunningServer, url: str) -> None:
    async with failing(server, "http://127.0.0.1:9") as at:
        params = {"sessionId": at.session, "provider": {"type": "openai", "baseUrl": url, "apiKey": KEY}}
        error = await at.wire.error_of("session.options.update", params)
        assert error["message"] == "provider.baseUrl is not a valid URL, expected http://... or https://..."


async def test_an_unreachable_address_is_a_typed_error(server: RunningServer) -> None:
    async with failing(server, "http://127.0.0.1:99999") as at:
        events = await at.prompt()
        assert data_of(events, "session.error")[0]["errorType"] == "query"


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
async def test_a_call_that_fails_once_is_retried(server: RunningServer, streaming: bool) -> None:
    async with (
        ModelServer(failure(500), FINE) as provider,
        failing(server, provider.url, streaming=streaming) as at,
    ):
        events = await at.prompt()
        assert data_of(events, "assistant.message")[0]["content"] == "all is well"
        assert [data["statusCode"] for data in data_of(events, "model.call_failure")] == [500]
        assert data_of(events, "session.error") == []
        assert len(provider.requests) == 2


@pytest.mark.parametrize("header", [{"Retry-After-Ms": "400"}, {"Retry-After": "1"}], ids=repr)
async def test_the_retry_delay_of_the_provider_is_respected(server: RunningServer, header: dict[str, str]) -> None:
    async with ModelServer(failure(429, **header), FINE) as provider, failing(server, provider.url) as at:
        events = await at.prompt()
        assert data_of(events, "assistant.message")[0]["content"] == "all is well"
        times = {event["type"]: datetime.fromisoformat(event["timestamp"]) for event in events}
        waited = times["assistant.message_start"] - times["model.call_failure"]
        assert waited.total_seconds() >= 0.39


async def test_the_delay_between_attempts_can_be_aborted(server: RunningServer) -> None:
    async with ModelServer(failure(429, **{"Retry-After": "50"})) as provider, failing(server, provider.url) as at:
        await at.wire.call("session.send", {"sessionId": at.session, "prompt": "hello"})
        await at.wire.event("model.call_failure", session=at.session)
        await at.wire.call("session.abort", {"sessionId": at.session})
        await at.wire.event("session.idle", session=at.session, aborted=True)
        assert data_of(at.wire.events(at.session), "session.error") == []


ENDLESS: dict[str, Any] = {
    "silence from the start": Reply(silent=True, ending="hang"),
    "headers alone": event_stream(ending="hang"),
    "half a frame": event_stream(HALF_A_FRAME, ending="hang"),
    "deltas without end": event_stream(*[delta("la ")] * 1000, ending="hang"),
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_an_endless_answer_can_be_aborted(server: RunningServer, name: str) -> None:
    async with ModelServer(ENDLESS[name]) as provider, failing(server, provider.url) as at:
        await at.wire.call("session.send", {"sessionId": at.session, "prompt": "hello"})
        await at.wire.event("assistant.turn_start", session=at.session)
        if name == "deltas without end":
            await at.wire.event("assistant.message_delta", session=at.session)
        await at.wire.call("session.abort", {"sessionId": at.session})
        await at.wire.event("session.idle", session=at.session, aborted=True)
        provider.replies[:] = [FINE]
        events = await at.prompt()
        assert data_of(events, "assistant.message")[0]["content"] == "all is well"


async def test_an_abort_closes_the_connection_to_the_provider(server: RunningServer) -> None:
    async with (
        ModelServer(event_stream(delta("la "), ending="hang")) as provider,
        failing(server, provider.url) as at,
    ):
        await at.wire.call("session.send", {"sessionId": at.session, "prompt": "hello"})
        await at.wire.event("assistant.message_delta", session=at.session)
        await at.wire.call("session.abort", {"sessionId": at.session})
        await provider.wait_for_hang_up()
