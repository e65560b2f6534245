"""The HTTP layer against a real server on loopback: streams, time limits, statuses, broken connections, secrets."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import json
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Final

import anyio
import pytest

from jumpseat.adapters.adapter import Endpoint, Timeouts
from jumpseat.adapters.models.wire_caller import WireCaller
from jumpseat.adapters.providers import load_adapter
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.adapters.transport.messages import Request
from jumpseat.agent.blocks import AssistantMessage, TextBlock, ToolUseBlock, UserMessage
from jumpseat.agent.model import Completed, ModelEvent, ModelRequest, TextDelta, ToolCallDelta
from jumpseat.errors import (
    ProviderAuthError,
    ProviderContextError,
    ProviderError,
    ProviderOverloadedError,
    ProviderProtocolError,
    ProviderQuotaError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderTransportError,
)
from tests.support.cases import all_cases
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, event_stream, json_reply, text_reply
from tests.support.ports import closed_port

pytestmark = pytest.mark.anyio

SECRET = "very-secret-value-1234567"  # not a real one
DONE = b"data: [DONE]\n\n"
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def delta(text: str) -> bytes:
    return b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()


def whole(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def done(text: str) -> Completed:
    return Completed(AssistantMessage([TextBlock(text)]), "end_turn")


@pytest.fixture
async def transport() -> AsyncGenerator[HttpTransport]:
    async with HttpTransport() as transport:
        yield transport


@pytest.fixture(autouse=True)
def no_proxy_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def openai(
    url: str, transport: HttpTransport, *, timeouts: Timeouts | None = None, headers: dict[str, str] | None = None
) -> HttpModel:
    endpoint = Endpoint(url, api_key=SECRET, headers=headers or {})
    return HttpModel(WireCaller(load_adapter("openai"), endpoint), transport, timeouts=timeouts)


def a_request(*, stream: bool = True, headers: dict[str, str] | None = None) -> ModelRequest:
    return ModelRequest("m", "s", [UserMessage([TextBlock("hi")])], stream=stream, headers=headers or {})


async def events_of(
    model: HttpModel, *, stream: bool = True, headers: dict[str, str] | None = None
) -> list[ModelEvent]:
    with anyio.fail_after(WAIT_S):
        async with model.stream(a_request(stream=stream, headers=headers)) as events:
            return [event async for event in events]


def loggable_text(error: ProviderError) -> str:
    """Return everything that a log could show of ``error``, without source lines, which are part of the test."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) or (cause := chain[-1].__context__):
        if chain[-1].__suppress_context__ and chain[-1].__cause__ is None:
            break
        chain.append(cause)
    return f"{chain!r} {[str(link) for link in chain]} {error.code}"


async def error_of(*replies: Reply, transport: HttpTransport, timeouts: Timeouts | None = None) -> ProviderError:
    async with ModelServer(*replies) as server:
        with pytest.raises(ProviderError) as caught:
            await events_of(openai(server.url, transport, timeouts=timeouts))
        return caught.value


async def test_a_stream_is_delivered_as_deltas_and_one_completed_event(transport: HttpTransport) -> None:
    async with ModelServer(event_stream(delta("Hel"), delta("lo") + STOP, DONE)) as server:
        events = await events_of(openai(f"{server.url}/v1", transport))

    assert events == [TextDelta("Hel"), TextDelta("lo"), done("Hello")]
    (request,) = server.requests
    assert (request.method, request.path, request.json["stream"]) == ("POST", "/v1/chat/completions", True)
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["user-agent"] == "jumpseat"
    assert request.headers["content-type"] == "application/json"


async def test_a_key_that_the_provider_repeats_is_masked_in_deltas_and_the_answer(transport: HttpTransport) -> None:
    coded = base64.b64encode(f"Bearer {SECRET}".encode()).decode()
    texts = {
        "split": ("Your key: ", SECRET[:9], SECRET[9:], ", very nice"),
        "one letter each": tuple(f"Your key: {SECRET}, very nice"),
        "in base64": ("Your key: ", coded[:20], coded[20:], ", very nice"),
    }
    with all_cases() as case:
        for name, pieces in texts.items():
            with case(name):
                async with ModelServer(event_stream(*map(delta, pieces), STOP + DONE)) as server:
                    *deltas, last = await events_of(openai(server.url, transport))
                text = "".join(event.text for event in deltas if isinstance(event, TextDelta))
                assert last == done(text)
                assert re.fullmatch(r"Your key: \S{0,10}\[redacted\]\S{0,2}, very nice", text), text


async def test_an_answer_keeps_the_words_of_a_dummy_key_and_comes_unchanged(transport: HttpTransport) -> None:
    said = ("no", "ne of the te", "sts needs ollama")
    for key in ("none", "test", "ollama"):
        async with ModelServer(event_stream(*map(delta, said), STOP + DONE)) as server:
            model = HttpModel(WireCaller(load_adapter("openai"), Endpoint(server.url, api_key=key)), transport)
            assert await events_of(model) == [*map(TextDelta, said), done("".join(said))]


async def test_a_delta_is_delivered_before_the_next_piece_arrives(transport: HttpTransport) -> None:
    gate = asyncio.Event()
    async with ModelServer(event_stream(delta("first"), STOP + DONE, gate=gate)) as server:
        with anyio.fail_after(WAIT_S):
            async with openai(server.url, transport).stream(a_request()) as events:
                assert await anext(events) == TextDelta("first")
                gate.set()
                assert [event async for event in events] == [done("first")]


async def test_the_completed_event_comes_with_the_end_mark_before_the_end_of_the_transfer(
    transport: HttpTransport,
) -> None:
    async with ModelServer(event_stream(delta("a") + STOP + DONE, ending="hang")) as server:
        assert await events_of(openai(server.url, transport)) == [TextDelta("a"), done("a")]
        with anyio.fail_after(WAIT_S):
            await server.wait_for_hang_up()


async def test_a_connection_is_reused_after_each_kind_of_complete_answer(transport: HttpTransport) -> None:
    replies = [event_stream(delta("a"), STOP, DONE), json_reply(whole("a")), text_reply("no", status=400)]
    async with ModelServer(*replies, *replies) as server:
        model = openai(server.url, transport)
        for _ in range(2):
            assert (await events_of(model))[-1] == done("a")
            assert (await events_of(model, stream=False))[-1] == done("a")
            with pytest.raises(ProviderRequestError):
                await events_of(model)

    assert [request.connection for request in server.requests] == [1] * 6


def _requests() -> list[Request | ModelRequest]:
    return [found for found in gc.get_objects() if isinstance(found, Request | ModelRequest)]


async def test_the_body_of_a_request_is_freed_with_its_call_and_not_by_the_garbage_collector(
    transport: HttpTransport,
) -> None:
    replies = [event_stream(delta("a"), STOP, DONE), json_reply(whole("a")), text_reply("no", status=400)]
    gc.collect()
    # Other tests keep requests as constants.
    earlier = _requests()
    gc.disable()
    try:
        async with ModelServer(*replies) as server:
            model = openai(server.url, transport)
            await events_of(model)
            await events_of(model, stream=False)
            with suppress(ProviderRequestError):
                await events_of(model)
            assert [found for found in _requests() if all(found is not other for other in earlier)] == []
    finally:
        gc.enable()


async def test_a_whole_answer_has_no_deltas_unless_a_stream_was_requested(transport: HttpTransport) -> None:
    body = whole("Hi")
    body["choices"][0]["message"]["tool_calls"] = [{"id": "c", "function": {"name": "t", "arguments": "{}"}}]
    expected = Completed(AssistantMessage([TextBlock("Hi"), ToolUseBlock("c", "t", "{}", {})]), "tool_use")
    async with ModelServer(json_reply(body), json_reply(body)) as server:
        model = openai(server.url, transport)
        assert await events_of(model, stream=False) == [expected]
        assert await events_of(model, stream=True) == [TextDelta("Hi"), ToolCallDelta("c", "t", "{}"), expected]


async def test_an_unrequested_stream_is_decoded_without_deltas(transport: HttpTransport) -> None:
    async with ModelServer(event_stream(delta("a"), STOP, DONE)) as server:
        assert await events_of(openai(server.url, transport), stream=False) == [done("a")]


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/octet-stream"])
async def test_a_wrong_content_type_is_ignored(transport: HttpTransport, content_type: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    async with ModelServer(
        Reply([b"\n", b": hi\n\n" + delta("a"), STOP + DONE], headers=headers),
        Reply([b" ", json.dumps(whole("a")).encode()], headers=headers),
    ) as server:
        model = openai(server.url, transport)
        assert await events_of(model) == [TextDelta("a"), done("a")]
        assert await events_of(model) == [TextDelta("a"), done("a")]


async def test_a_stream_is_recognised_in_pieces_of_any_size_and_behind_any_content_type(
    transport: HttpTransport,
) -> None:
    stream = delta("a") + STOP + DONE
    pieces = [stream[place : place + 1] for place in range(8)] + [stream[8:]]
    for kind in ("", "application/json"):
        headers = {"Content-Type": kind} if kind else {}
        async with ModelServer(Reply(pieces, headers=headers)) as server:
            assert await events_of(openai(server.url, transport)) == [TextDelta("a"), done("a")]


async def test_json_lines_are_recognised_behind_any_content_type(transport: HttpTransport) -> None:
    lines = [{"message": {"content": "Hel"}, "done": False}, {"message": {"content": "lo"}, "done": True}]
    body = "".join(f"{json.dumps(line)}\r\n" for line in lines).encode()
    for kind in ("", "application/json", "application/x-ndjson"):
        headers = {"Content-Type": kind} if kind else {}
        async with ModelServer(Reply([body[:5], body[5:]], headers=headers)) as server:
            model = HttpModel(WireCaller(load_adapter("ollama"), Endpoint(server.url)), transport)
            assert [event for event in await events_of(model) if isinstance(event, TextDelta)] == [
                TextDelta("Hel"),
                TextDelta("lo"),
            ]


async def test_a_compressed_answer_is_decoded(transport: HttpTransport) -> None:
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}
    async with ModelServer(Reply([gzip.compress(delta("a") + STOP + DONE)], headers=headers)) as server:
        assert await events_of(openai(server.url, transport)) == [TextDelta("a"), done("a")]


async def test_events_before_an_error_in_the_same_piece_are_delivered_first(transport: HttpTransport) -> None:
    fault = b'data: {"error": {"message": "too busy", "type": "server_error"}}\n\n'
    async with ModelServer(event_stream(delta("a") + fault + delta("b"))) as server:
        with anyio.fail_after(WAIT_S):
            async with openai(server.url, transport).stream(a_request()) as events:
                assert await anext(events) == TextDelta("a")
                with pytest.raises(ProviderOverloadedError, match="too busy"):
                    await anext(events)


FAILURES: Final[list[tuple[Reply, type[ProviderError], str]]] = [
    (json_reply({"error": {"message": "no"}}, status=400), ProviderRequestError, "HTTP 400 Bad Request: no"),
    (json_reply({"message": "Bad credentials"}, status=401), ProviderAuthError, "401 Unauthorized: Bad creden"),
    (json_reply({"error": {"code": "insufficient_quota"}}, status=429), ProviderQuotaError, "HTTP 429"),
    (json_reply({"error": {"code": "context_length_exceeded"}}, status=400), ProviderContextError, "HTTP 400"),
    (text_reply("oh no", status=500), ProviderOverloadedError, "HTTP 500 Internal Server Error: oh no"),
    (text_reply("", status=503), ProviderOverloadedError, "HTTP 503 Service Unavailable"),
    (Reply([b"part"], status=502, ending="cut"), ProviderOverloadedError, "HTTP 502 Bad Gateway"),
    (Reply([b"x" * 500_000], status=500), ProviderOverloadedError, "HTTP 500 Internal Server Error: xxx"),
    (Reply(status=302, headers={"Location": "http://elsewhere/"}), ProviderRequestError, "check the base URL"),
    (text_reply("<html>hello</html>"), ProviderProtocolError, "got text/plain: '<html>hello</html>'"),
    (Reply(), ProviderProtocolError, "got no content type: ''"),
    (text_reply("{nope", content_type="application/json"), ProviderProtocolError, "expected JSON .* '{nope'"),
    (json_reply([1]), ProviderProtocolError, "expected a JSON object"),
    (json_reply({"choices": []}), ProviderProtocolError, "at least one choice"),
    (event_stream(b'data: {"choices": 5}\n\n'), ProviderProtocolError, "unexpected response format"),
    (event_stream(b"data: {oops\n\n"), ProviderProtocolError, "expected JSON"),
    (event_stream(), ProviderProtocolError, "before it sent anything"),
    (event_stream(delta("a")), ProviderProtocolError, "in the middle of its answer"),
    (event_stream(delta("a"), b'data: {"choi'), ProviderProtocolError, "expected JSON"),
    (
        event_stream(delta("a"), b'data: {"choi', ending="cut"),
        ProviderTransportError,
        "closed the connection in",
    ),
    (Reply(silent=True, ending="cut"), ProviderTransportError, "closed the connection before it responded"),
    (Reply([b"{}"], length=100, ending="cut"), ProviderTransportError, "closed the connection in the middle"),
    (
        Reply([b"not gzip"], headers={"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}),
        ProviderProtocolError,
        "cannot decompress",
    ),
]


async def test_every_kind_of_failure_has_its_error(transport: HttpTransport) -> None:
    with all_cases() as case:
        for reply, kind, message in FAILURES:
            with case(message):
                error = await error_of(reply, transport=transport)

                assert type(error) is kind
                assert re.search(message, str(error)), str(error)


async def test_a_rate_limit_has_the_retry_delay(transport: HttpTransport) -> None:
    body = {"error": {"message": "Slow down", "code": "rate_limited"}}
    error = await error_of(json_reply(body, status=429, headers={"Retry-After": "3"}), transport=transport)

    assert (type(error), error.retry_after_s, error.code, error.status) == (
        ProviderRateLimitError,
        3.0,
        "rate_limited",
        429,
    )
    assert error.retryable


async def test_a_port_without_a_listener_is_a_refused_connection(transport: HttpTransport) -> None:
    with closed_port() as port:
        url = f"http://127.0.0.1:{port}"
        for host in (url, url.replace("127.0.0.1", "localhost")):
            with pytest.raises(ProviderTransportError, match="connection refused") as caught:
                await events_of(openai(host, transport))
            assert caught.value.refused
            assert caught.value.retryable


async def test_a_host_that_does_not_exist_is_a_transport_error_but_not_refused(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_such_host(*_args: object, **_more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # A real name server would be outside this machine.
    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    with pytest.raises(ProviderTransportError, match=r"cannot connect to http://nowhere\.invalid/") as caught:
        await events_of(openai("http://nowhere.invalid", transport))

    assert not caught.value.refused


@pytest.mark.parametrize(
    ("reply", "timeouts", "message"),
    [
        (Reply(silent=True, ending="hang"), Timeouts(first_byte=0.25), "within 0.25 s"),
        (event_stream(ending="hang"), Timeouts(idle=0.25), "no data within 0.25 s"),
        (event_stream(delta("a"), ending="hang"), Timeouts(idle=0.25), "no data within 0.25 s"),
        (Reply([b"{"], length=9, ending="hang"), Timeouts(idle=0.25), "no data within 0.25 s"),
        # By then the answer has begun, even on a busy machine.
        pytest.param(
            event_stream(delta("a"), ending="hang"),
            Timeouts(total=1),
            "no data within 1 s",
            marks=pytest.mark.thorough,
        ),
    ],
)
async def test_an_idle_time_out_is_a_transport_error(
    transport: HttpTransport, reply: Reply, timeouts: Timeouts, message: str
) -> None:
    error = await error_of(reply, transport=transport, timeouts=timeouts)

    assert isinstance(error, ProviderTransportError)
    assert message in str(error)
    assert not error.refused


async def test_waiting_for_the_first_byte_does_not_count_as_idle(transport: HttpTransport) -> None:
    async with ModelServer(event_stream(delta("a") + STOP + DONE)) as server:
        timeouts = Timeouts(first_byte=WAIT_S, idle=None, total=None)
        assert (await events_of(openai(server.url, transport, timeouts=timeouts)))[-1] == done("a")


async def test_the_whole_call_has_a_time_limit_even_if_data_keeps_arriving(transport: HttpTransport) -> None:
    gate = asyncio.Event()
    async with ModelServer(event_stream(*[delta("a")] * 1000, gate=gate)) as server:
        gate.set()
        timeouts = Timeouts(total=1e-9, first_byte=None)
        with pytest.raises(ProviderTransportError, match=r"no .*response from .* within 1e-09 s"):
            await events_of(openai(server.url, transport, timeouts=timeouts))


async def test_leaving_a_stream_early_closes_its_connection(transport: HttpTransport) -> None:
    async with ModelServer(event_stream(delta("a"), ending="hang")) as server:
        with anyio.fail_after(WAIT_S):
            async with openai(server.url, transport).stream(a_request()) as events:
                assert await anext(events) == TextDelta("a")
            await server.wait_for_hang_up()


@pytest.mark.parametrize(
    "reply",
    [Reply(silent=True, ending="hang"), event_stream(ending="hang"), event_stream(delta("a"), ending="hang")],
)
async def test_cancelling_a_call_closes_its_connection_at_once(transport: HttpTransport, reply: Reply) -> None:
    async with ModelServer(reply) as server:
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(events_of, openai(server.url, transport))
                while not server.requests:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            await server.wait_for_hang_up()


async def test_errors_of_the_caller_pass_through_a_stream_untouched(transport: HttpTransport) -> None:
    async def fail(model: HttpModel) -> None:
        async with model.stream(a_request()) as events:
            await anext(events)
            raise ValueError("mine")

    async with ModelServer(event_stream(delta("a"), ending="hang")) as server:
        with anyio.fail_after(WAIT_S), pytest.raises(ValueError, match="mine"):
            await fail(openai(server.url, transport))


async def test_a_hundred_streams_run_at_once(transport: HttpTransport) -> None:
    gate = asyncio.Event()
    results: list[list[ModelEvent]] = []
    async with ModelServer(*[event_stream(delta("a"), delta("b") + STOP + DONE, gate=gate)] * 100) as server:
        model = openai(server.url, transport)

        async def call() -> None:
            results.append(await events_of(model))

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(call)
                # No stream can end before all have begun.
                while len(server.requests) < 100:
                    await anyio.lowlevel.checkpoint()
                gate.set()

    assert results == [[TextDelta("a"), TextDelta("b"), done("ab")]] * 100


async def test_an_answer_beyond_the_size_limit_is_refused() -> None:
    async with HttpTransport(max_answer_bytes=1000, max_body_bytes=1000) as transport:
        pieces = [delta("x" * 100)] * 20
        error = await error_of(event_stream(*pieces, STOP), transport=transport)
        assert (type(error), "the limit of 1000 bytes" in str(error)) == (ProviderProtocolError, True)
        error = await error_of(json_reply(whole("x" * 2000)), transport=transport)
        assert (type(error), "the limit of 1000 bytes" in str(error)) == (ProviderProtocolError, True)


async def test_no_error_ever_shows_a_key_or_a_header(transport: HttpTransport) -> None:
    with all_cases() as case:
        for text in (f"no access for {SECRET}", f"Bearer {SECRET}", "header team-purple-42", "h-1234567"):
            replies = {
                "error": json_reply({"error": {"message": text, "code": "x"}}, status=401),
                "code": json_reply({"error": {"message": "m", "code": text}}, status=400),
                "plain": text_reply(f"{'x' * 960}{text}{text}", status=500),
                "whole": json_reply({"error": {"message": text}}),
                "stream": event_stream(b"data: %s\n\n" % json.dumps({"error": {"message": text}}).encode()),
                "page": text_reply(text),
                "stream that breaks": event_stream(f"data: {text}\n\n".encode()),
            }
            for how, reply in replies.items():
                with case(f"{how}: {text}"):
                    async with ModelServer(reply) as server:
                        model = openai(server.url, transport, headers={"X-Team": "team-purple-42"})
                        with pytest.raises(ProviderError) as caught:
                            await events_of(model, headers={"X-Prompt": "h-1234567"})

                    for secret in (SECRET, SECRET[:12], "purple", "h-1234567"):
                        assert secret not in loggable_text(caught.value)


@pytest.mark.parametrize("value", ["line\nbreak-secret", "nul\x00-secret"])
async def test_a_header_that_cannot_be_sent_is_refused_without_showing_it(
    transport: HttpTransport, value: str
) -> None:
    async with ModelServer() as server:
        with pytest.raises(ProviderError) as caught:
            await events_of(openai(server.url, transport, headers={"X-Odd": value}))

    assert type(caught.value) is ProviderRequestError
    assert "secret" not in loggable_text(caught.value)


async def test_header_values_can_be_any_text(transport: HttpTransport) -> None:
    async with ModelServer(json_reply(whole("a"))) as server:
        await events_of(openai(server.url, transport, headers={"X-Name": "Zoë 🌍"}))

    assert server.requests[0].headers["x-name"] == "Zoë 🌍"


@pytest.mark.parametrize("url", ["ftp://host", "not a url", "http://", "http://[::1", ""])
async def test_an_invalid_base_url_is_a_request_error(transport: HttpTransport, url: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await events_of(openai(url, transport))

    assert type(caught.value) is ProviderRequestError


async def test_a_user_and_a_query_in_the_base_url_are_not_shown(transport: HttpTransport) -> None:
    with closed_port() as port:
        with pytest.raises(ProviderTransportError) as caught:
            await events_of(openai(f"http://me:hidden@127.0.0.1:{port}/v1", transport))
        with pytest.raises(ProviderTransportError) as caught_too:
            await transport.get_json(f"http://127.0.0.1:{port}/x?key=hidden", {})

    assert str(caught.value) == f"cannot connect to http://127.0.0.1:{port}/v1/chat/completions: connection refused"
    assert str(caught_too.value) == f"cannot connect to http://127.0.0.1:{port}/x: connection refused"


async def test_get_json_returns_the_answer_and_maps_failures_like_a_model_call(transport: HttpTransport) -> None:
    async with ModelServer(
        json_reply({"a": [1]}), json_reply({"message": f"no {SECRET}"}, status=401), text_reply("hm"), json_reply(5)
    ) as server:
        with anyio.fail_after(WAIT_S):
            assert await transport.get_json(f"{server.url}/x", {"Authorization": f"Bearer {SECRET}"}) == {"a": [1]}
            with pytest.raises(ProviderAuthError) as caught:
                await transport.get_json(f"{server.url}/x", {"Authorization": f"Bearer {SECRET}"})
            assert str(caught.value) == "HTTP 401 Unauthorized: no [redacted]"
            for _ in range(2):
                with pytest.raises(ProviderProtocolError):
                    await transport.get_json(f"{server.url}/x", {})

    assert (server.requests[0].method, server.requests[0].body) == ("GET", b"")


async def test_a_closed_transport_opens_again() -> None:
    transport = HttpTransport()
    await transport.aclose()
    async with ModelServer(json_reply({}), json_reply({})) as server:
        for _ in range(2):
            assert await transport.get_json(server.url, {}) == {}
            await transport.aclose()

    assert [request.connection for request in server.requests] == [1, 2]


async def test_a_proxy_of_the_environment_is_used_but_never_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        ModelServer(json_reply({"via": "proxy"})) as proxy,
        ModelServer(json_reply({"via": "none"})) as server,
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with HttpTransport() as transport:
            with anyio.fail_after(WAIT_S):
                assert await transport.get_json("http://model.invalid/x", {}) == {"via": "proxy"}
                assert await transport.get_json(server.url, {}) == {"via": "none"}

    assert [request.path for request in proxy.requests] == ["http://model.invalid/x"]


async def test_every_adapter_can_be_called_over_http(transport: HttpTransport) -> None:
    message = {"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}
    answers = {"openai": whole("a"), "copilot": whole("a"), "anthropic": message}
    for name, body in answers.items():
        async with ModelServer(json_reply(body)) as server:
            model = HttpModel(WireCaller(load_adapter(name), Endpoint(server.url)), transport)
            assert model.adapter_name == name
            assert await events_of(model, stream=False) == [done("a")]


async def test_lone_surrogates_and_huge_numbers_are_sent(
    transport: HttpTransport,
) -> None:
    async with ModelServer(json_reply(whole("a"))) as server:
        endpoint = Endpoint(server.url, options={"body": {"seed": 10**30}})
        request = ModelRequest("m", "", [UserMessage([TextBlock("a\udc80ü")])], stream=False)
        with anyio.fail_after(WAIT_S):
            async with HttpModel(WireCaller(load_adapter("openai"), endpoint), transport).stream(request) as events:
                assert [event async for event in events] == [done("a")]

    assert server.requests[0].json["messages"][0]["content"] == "a?ü"
    assert server.requests[0].json["seed"] == 10**30


async def test_a_request_that_is_not_json_is_a_request_error(transport: HttpTransport) -> None:
    endpoint = Endpoint("http://127.0.0.1:1", api_key=SECRET, options={"body": {"x": object()}})
    with pytest.raises(ProviderRequestError, match=r"cannot be written as JSON: body\.x: expected .*, got object"):
        await events_of(HttpModel(WireCaller(load_adapter("openai"), endpoint), transport))
