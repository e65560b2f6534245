"""Invalid messages get an error response, and the connection goes on; on stdio, also after invalid headers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jumpseat_protocol.envelope import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from tests.support.server import JsonObject, RunningServer, Wire, calls, frame, request, running_server, scripted

pytestmark = pytest.mark.anyio

SECRET = "value-that-must-not-come-back"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Return the backend for fixtures of a whole module."""
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningServer]:
    """Run one server for all tests, so that damage done by one test is noticed by the next."""
    async with running_server(tmp_path_factory.mktemp("frames"), tcp=True, limit_s=120) as server:
        yield server


@pytest.fixture(scope="module")
async def stdio(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningServer]:
    """Run one server on stdio for the tests of invalid headers, after which a client cannot reconnect there."""
    async with running_server(tmp_path_factory.mktemp("headers"), limit_s=120) as server:
        yield server


@asynccontextmanager
async def wired(server: RunningServer) -> AsyncGenerator[Wire]:
    """Open a connection, which must still answer at the end of the test."""
    async with server.connect() as wire:
        yield wire
        await wire.check_alive()


async def error_for(wire: Wire, data: bytes, request_id: Any = None) -> JsonObject:
    """Send ``data`` and return its error; there must be exactly one."""
    since = len(wire.messages)
    await wire.send(data)
    message = await wire.until(
        lambda message: "error" in message and message["id"] == request_id, since=since, what="error"
    )
    await wire.check_alive()
    assert len([message for message in wire.messages[since:] if "error" in message]) == 1
    assert set(message) == {"jsonrpc", "id", "error"}
    return message["error"]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        pytest.param(b"\r\n\r\n", "without Content-Length", id="no header at all"),
        pytest.param(b"Hello\r\n\r\n", "neither", id="a word"),
        pytest.param(b"Content-Length 5\r\n\r\nabcde", "neither", id="colon missing"),
        pytest.param(b"X-Content-Length: 2\r\n\r\n{}", "neither", id="another header's name"),
        pytest.param(b"Content-Length: 2\r\nX-Anything: 7\r\n\r\n{}", "neither", id="another header"),
        pytest.param(b"Content-Length: -5\r\n\r\n{}", "not a number", id="negative"),
        pytest.param(b"Content-Length: five\r\n\r\n{}", "not a number", id="a word"),
        pytest.param(b"Content-Length: \r\n\r\n{}", "not a number", id="empty"),
        pytest.param(b"Content-Length: 5.0\r\n\r\n{}", "not a number", id="a fraction"),
        pytest.param(b"Content-Length: 0\r\n\r\n", "is 0", id="zero"),
        pytest.param(b"Content-Length: 268435457\r\n\r\n{}", "larger than the limit", id="above the limit"),
        pytest.param(b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}", "not a number", id="thousands of digits"),
    ],
)
async def test_an_invalid_header_is_refused_once_and_the_next_frame_is_read(
    stdio: RunningServer, header: bytes, words: str
) -> None:
    error = await error_for(stdio.wire, header)
    assert error["code"] == INVALID_REQUEST
    assert words in error["message"]


async def test_an_endless_header_is_dropped_and_the_next_frame_is_read(stdio: RunningServer) -> None:
    since = len(stdio.wire.messages)
    await stdio.wire.send(b"Content-Length: 5" + b"x" * 100_000)
    message = await stdio.wire.until(lambda message: "error" in message, since=since)
    assert message["error"]["code"] == INVALID_REQUEST
    assert "header longer than" in message["error"]["message"]
    await stdio.wire.check_alive()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"{not json", PARSE_ERROR, id="invalid JSON"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 1', PARSE_ERROR, id="half a JSON text"),
        pytest.param(b"\xff\xfe\x00", PARSE_ERROR, id="invalid UTF-8"),
        pytest.param(b"[" * 50_000, PARSE_ERROR, id="very deep nesting"),
        pytest.param(b"[]", INVALID_REQUEST, id="an empty batch"),
        pytest.param(b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', INVALID_REQUEST, id="a batch"),
        pytest.param(b'"ping"', INVALID_REQUEST, id="a string"),
        pytest.param(b"null", INVALID_REQUEST, id="null"),
        pytest.param(b"{}", INVALID_REQUEST, id="an empty object"),
        pytest.param(b'{"jsonrpc": "2.0"}', INVALID_REQUEST, id="no method, no result"),
    ],
)
async def test_an_invalid_message_is_refused_without_an_id(server: RunningServer, body: bytes, code: int) -> None:
    async with wired(server) as wire:
        assert (await error_for(wire, frame(body)))["code"] == code


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"id": 77, "method": "ping"}, id="jsonrpc missing"),
        pytest.param({"jsonrpc": "1.0", "id": 77, "method": "ping"}, id="jsonrpc 1.0"),
        pytest.param({"jsonrpc": 2.0, "id": 77, "method": "ping"}, id="jsonrpc as a number"),
        pytest.param({"jsonrpc": "2.0", "id": 77, "method": 5}, id="method as a number"),
        pytest.param({"jsonrpc": "2.0", "id": 77, "method": None}, id="method null"),
        pytest.param({"jsonrpc": "2.0", "id": 77}, id="method missing"),
    ],
)
async def test_an_invalid_request_is_refused_with_its_id(server: RunningServer, message: JsonObject) -> None:
    async with wired(server) as wire:
        assert (await error_for(wire, frame(message), 77))["code"] == INVALID_REQUEST


@pytest.mark.parametrize(
    "request_id", [None, True, 1.5, [], {}, 2**70], ids=["null", "bool", "fraction", "list", "object", "huge"]
)
async def test_an_id_of_a_wrong_type_is_refused_without_an_id(server: RunningServer, request_id: Any) -> None:
    async with wired(server) as wire:
        error = await error_for(wire, frame(request(request_id, "ping")))
        assert error["code"] == INVALID_REQUEST
        assert "id must be" in error["message"]


async def test_a_lone_surrogate_becomes_a_replacement_character(server: RunningServer) -> None:
    # JSON.stringify writes this for text that was split within an emoji.
    body = rb'{"jsonrpc":"2.0","id":77,"method":"ping","params":{"message":"a\ud83d b\ude00 \ud83d\ude00 \\ud83d"}}'
    async with wired(server) as wire:
        await wire.send(frame(body))
        answer = await wire.response(77)
    assert answer["result"]["message"] == "pong: a\ufffd b\ufffd \U0001f600 \\ud83d"


@pytest.mark.parametrize("request_id", ["7", "", -1, 0, 2**53])
async def test_an_id_comes_back_unchanged(server: RunningServer, request_id: int | str) -> None:
    async with wired(server) as wire:
        await wire.send(frame(request(request_id, "ping", {})))
        answer = await wire.response(request_id)
        assert type(answer["id"]) is type(request_id)


@pytest.mark.parametrize("params", [SECRET, 7, True, [{}, {}], [SECRET]], ids=repr)
async def test_params_of_a_wrong_type_are_refused(server: RunningServer, params: Any) -> None:
    async with wired(server) as wire:
        for method in ("ping", "session.send"):
            error = await wire.error_of(method, params)
            assert error["code"] == INVALID_PARAMS
            assert method in error["message"]
            assert SECRET not in str(error)


@pytest.mark.parametrize("params", [None, {}, [{}], []], ids=["null", "object", "list of one object", "empty list"])
async def test_params_may_be_null_an_object_or_a_list_of_at_most_one(server: RunningServer, params: Any) -> None:
    async with wired(server) as wire:
        await wire.send(frame({"jsonrpc": "2.0", "id": "p", "method": "ping", "params": params}))
        assert "result" in await wire.response("p")


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("session.send", {"sessionId": "s", "prompt": {"secret": SECRET}}, "prompt"),
        ("session.send", {"sessionId": "s", "prompt": "x", "mode": SECRET}, "mode"),
        (
            "session.send",
            {"sessionId": "s", "prompt": "x", "requestHeaders": {"Authorization": [SECRET]}},
            "Authoriz",
        ),
        ("session.send", {"prompt": SECRET}, "sessionId"),
        ("session.create", {"provider": {"apiKey": [SECRET]}}, "provider.apiKey"),
        ("session.create", {"provider": {"type": {"x": SECRET}}}, "provider.type"),
        ("session.create", {"provider": SECRET}, "provider"),
        ("session.create", {"tools": [{"name": 5, "description": SECRET}]}, "tools[0].name"),
        ("session.create", {"sessionId": f"../{SECRET}"}, "sessionId"),
        ("session.create", {"streaming": SECRET}, "streaming"),
        ("session.create", {"gitHubToken": {"token": SECRET}}, "gitHubToken"),
        ("session.mode.set", {"sessionId": "s", "mode": SECRET}, "mode"),
        ("session.tools.handlePendingToolCall", {"sessionId": "s", "requestId": 5, "result": SECRET}, "requestId"),
        (
            "session.permissions.handlePendingPermissionRequest",
            {"sessionId": "s", "requestId": "r", "result": {"kind": SECRET}},
            "result.kind",
        ),
        ("connect", {"token": [SECRET]}, "token"),
    ],
)
async def test_an_error_names_the_invalid_field_but_not_its_value(
    server: RunningServer, method: str, params: JsonObject, field: str
) -> None:
    async with wired(server) as wire:
        error = await wire.error_of(method, params)
        assert error["code"] == INVALID_PARAMS
        assert field in error["message"]
        assert SECRET not in str(error)


@pytest.mark.parametrize(
    "method",
    ["session.send", "session.abort", "session.getMessages", "session.resume", "session.model.getCurrent"],
)
async def test_the_error_for_an_unknown_session_names_it(server: RunningServer, method: str) -> None:
    async with wired(server) as wire:
        error = await wire.error_of(method, {"sessionId": "no-such-session", "prompt": "x"})
        assert error["message"] == "Session not found: no-such-session"


@pytest.mark.parametrize("session", ["", ".", "..", "../../etc", "a/b", "a\0b", "x" * 300])
async def test_a_session_id_that_is_not_a_folder_name_reaches_no_file(server: RunningServer, session: str) -> None:
    async with wired(server) as wire:
        assert "error" in await wire.response(await wire.ask("session.resume", {"sessionId": session}))
        assert (await wire.call("session.delete", {"sessionId": session}))["success"] is False
        assert "session" not in await wire.call("session.getMetadata", {"sessionId": session})


async def test_the_error_for_an_unknown_method_names_it(server: RunningServer) -> None:
    async with wired(server) as wire:
        error = await wire.error_of("no.such.method", {"anything": SECRET})
        assert error == {"code": METHOD_NOT_FOUND, "message": "Unhandled method no.such.method"}


@pytest.mark.parametrize("method", ["account.login", "session.factory.run"])
async def test_an_unsupported_method_is_not_reported_as_unknown(server: RunningServer, method: str) -> None:
    async with wired(server) as wire:
        error = await wire.error_of(method, {"sessionId": "s"})
        assert error["code"] != METHOD_NOT_FOUND
        assert "unhandled method" not in error["message"].lower()
        assert method in error["message"]


async def test_notifications_are_never_answered(server: RunningServer) -> None:
    async with wired(server) as wire:
        since = len(wire.messages)
        for method in ("no.such.method", "ping", "session.send", "$/cancelRequest"):
            await wire.send(frame({"jsonrpc": "2.0", "method": method, "params": {"id": "none"}}))
        await wire.check_alive()
        assert len(wire.messages) == since + 1


@pytest.mark.parametrize("request_id", [99, "x", None, [], 1.5], ids=repr)
async def test_a_response_without_a_request_is_ignored(server: RunningServer, request_id: Any) -> None:
    async with wired(server) as wire:
        since = len(wire.messages)
        await wire.send(frame({"jsonrpc": "2.0", "id": request_id, "result": {}}))
        await wire.send(frame({"jsonrpc": "2.0", "id": request_id, "error": "not even an object"}))
        await wire.check_alive()
        assert len(wire.messages) == since + 1


async def test_the_id_of_a_running_request_cannot_be_used_again(server: RunningServer) -> None:
    async with wired(server) as wire:
        session = await wire.create(scripted({"hang": True}))
        first = await wire.ask("session.sendAndWait", {"sessionId": session, "prompt": "wait"})
        await wire.event("assistant.turn_start")
        await wire.send(frame(request(first, "ping", {})))
        refusal = await wire.response(first)
        assert refusal["error"]["code"] == INVALID_REQUEST
        assert "in use" in refusal["error"]["message"]
        since = len(wire.messages)
        await wire.call("session.abort", {"sessionId": session})
        # The first request still gets its one response.
        answer = await wire.until(lambda message: message.get("id") == first, since=since)
        assert answer["result"]["aborted"] is True


async def test_a_cancelled_request_gets_one_response_and_the_prompt_goes_on(server: RunningServer) -> None:
    async with wired(server) as wire:
        session = await wire.create(
            scripted(calls("ask_me"), {"text": "done"}), tools=[{"name": "ask_me", "skipPermission": True}]
        )
        waiting = await wire.ask("session.sendAndWait", {"sessionId": session, "prompt": "go"})
        request = await wire.event("external_tool.requested")
        await wire.send(frame({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": waiting}}))
        assert (await wire.response(waiting))["error"]["message"] == "request cancelled"
        answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "ok"}
        await wire.call("session.tools.handlePendingToolCall", answer)
        await wire.event("assistant.message", content="done")
        await wire.event("session.idle")
        assert [message.get("id") for message in wire.messages].count(waiting) == 1


@pytest.mark.parametrize(
    "template",
    [
        b"content-length: %d\r\n\r\n%s",
        b"CONTENT-LENGTH:%d\r\n\r\n%s",
        b"Content-Length : %d\r\n\r\n%s",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s",
        b"Content-Length: %d\r\nCONTENT-TYPE: text/plain\r\n\r\n%s",
    ],
)
async def test_a_header_in_any_case_and_beside_the_type_is_read(server: RunningServer, template: bytes) -> None:
    async with wired(server) as wire:
        body = b'{"jsonrpc": "2.0", "id": "other", "method": "ping"}'
        await wire.send(template % (len(body), body))
        assert "result" in await wire.response("other")


async def test_a_frame_sent_byte_by_byte_is_read(server: RunningServer) -> None:
    async with wired(server) as wire:
        for byte in frame(request("slow", "ping", {"message": "grüße"})):
            await wire.send(bytes([byte]))
        assert (await wire.response("slow"))["result"]["message"] == "pong: grüße"


async def test_two_frames_in_one_write_are_answered_in_order(server: RunningServer) -> None:
    async with wired(server) as wire:
        since = len(wire.messages)
        await wire.send(frame(request("a", "ping", {})) + frame(request("b", "status.get", {})))
        await wire.response("b")
        assert [message["id"] for message in wire.messages[since:]] == ["a", "b"]


async def test_a_valid_frame_directly_after_an_invalid_one_is_answered(stdio: RunningServer) -> None:
    await stdio.wire.send(b"Content-Length: x\r\n\r\n{}" + frame(b"{") + frame(request("good", "ping", {})))
    assert "result" in await stdio.wire.response("good")
