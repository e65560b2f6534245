"""The connection: matching responses to requests, cancellation, and how it ends."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from jumpseat_client import HandshakeError, RpcError, ServerGoneError, connect_stdio, connect_tcp
from tests.client.peer import connected
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio


async def test_responses_reach_their_requests_in_any_order() -> None:
    answers: dict[str, Any] = {}
    async with connected() as (client, peer):

        async def ask(name: str) -> None:
            answers[name] = await client.request(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "first")
            tasks.start_soon(ask, "second")
            requests = [await peer.receive(), await peer.receive()]
            for request in reversed(requests):
                peer.send(id=request["id"], result=f"result of {request['method']}")
    assert answers == {"first": "result of first", "second": "result of second"}


async def test_error_responses_are_raised_with_code_and_data() -> None:
    async with connected() as (client, peer), anyio.create_task_group() as tasks:

        async def refuse() -> None:
            request = await peer.receive()
            peer.send(id=request["id"], error={"code": -32602, "message": "no", "data": {"field": "x"}})

        tasks.start_soon(refuse)
        with anyio.fail_after(WAIT_S), pytest.raises(RpcError) as caught:
            await client.request("session.create", {"tools": 1})
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32602, "no", {"field": "x"})


async def test_request_without_a_handler_is_answered_method_not_found() -> None:
    async with connected() as (_, peer):
        peer.send(id=7, method="hooks.invoke", params={})
        assert await peer.receive() == {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {"code": -32601, "message": "Method not found: hooks.invoke"},
        }


async def test_request_from_the_server_is_answered_by_its_handler() -> None:
    async def answer(params: Any) -> Any:
        if params["question"] == "":
            raise ValueError("secret path")
        return {"answer": params["question"] + "!"}

    async with connected() as (client, peer):
        client.on_request("userInput.request", answer)
        peer.send(id=1, method="userInput.request", params={"question": "why"})
        assert await peer.receive() == {"jsonrpc": "2.0", "id": 1, "result": {"answer": "why!"}}
        peer.send(id=2, method="userInput.request", params={"question": ""})
        error = {"code": -32603, "message": "The handler of userInput.request failed"}
        assert await peer.receive() == {"jsonrpc": "2.0", "id": 2, "error": error}


async def test_cancelled_request_is_cancelled_at_the_server() -> None:
    async with connected() as (client, peer):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.request, "slow")
            assert await peer.receive() == {"jsonrpc": "2.0", "id": 2, "method": "slow", "params": {}}
            tasks.cancel_scope.cancel()
        assert await peer.receive() == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}}


async def test_end_of_the_connection_raises_in_all_waiting_callers() -> None:
    async with connected() as (client, peer):
        async with client.notifications() as notifications:
            async with anyio.create_task_group() as tasks:

                async def disconnect() -> None:
                    await peer.receive()
                    peer.disconnect()

                tasks.start_soon(disconnect)
                with anyio.fail_after(WAIT_S), pytest.raises(ServerGoneError, match="closed the connection"):
                    await client.request("slow")
            with pytest.raises(ServerGoneError):
                await anext(notifications)
        with pytest.raises(ServerGoneError):
            await client.request("later")


async def test_invalid_json_ends_the_connection_and_unframed_output_is_skipped() -> None:
    async with connected() as (client, peer), client.notifications() as notifications:
        peer.send_bytes(b"hello from a wrapper script\r\n\r\n")
        peer.send(method="session.lifecycle", params={})
        with anyio.fail_after(WAIT_S):
            assert (await anext(notifications)).method == "session.lifecycle"
            peer.send_bytes(b"Content-Length: 3\r\n\r\n{x}")
            with pytest.raises(ServerGoneError, match="invalid JSON"):
                await anext(notifications)


async def test_exception_in_the_body_is_raised_unwrapped() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with connected():
            raise KeyError("mine")


async def test_message_tap_sees_both_directions_in_order() -> None:
    messages: list[tuple[str, Any]] = []
    async with connected(lambda direction, message: messages.append((direction, message.get("method")))) as (
        _,
        peer,
    ):
        peer.send(id=1, method="x", params={})
        await peer.receive()
    assert messages == [("sent", "connect"), ("received", None), ("received", "x"), ("sent", None)]


async def test_missing_executable_is_named_in_the_error() -> None:
    with pytest.raises(HandshakeError, match="could not run 'no-such-server'"):
        async with connect_stdio(["no-such-server"]):
            pass


async def test_exit_code_and_stderr_of_a_server_that_exits_at_once_are_in_the_error() -> None:
    with anyio.fail_after(WAIT_S), pytest.raises(HandshakeError) as caught:
        async with connect_stdio(["sh", "-c", "echo 'bad flag' >&2; exit 3"]):
            pass
    assert "exited with code 3" in str(caught.value)
    assert "bad flag" in str(caught.value)


async def test_a_server_that_refuses_to_start_is_quoted_without_its_exit_code() -> None:
    with anyio.fail_after(WAIT_S), pytest.raises(HandshakeError) as caught:
        async with connect_stdio(["sh", "-c", "echo starting >&2; echo 'error: config.toml:3: no' >&2; exit 1"]):
            pass
    assert str(caught.value) == "the server could not start: config.toml:3: no"


async def test_port_without_a_listener_is_named_in_the_error() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port: int = listener.extra(anyio.abc.SocketAttribute.local_port)
    with anyio.fail_after(WAIT_S), pytest.raises(HandshakeError, match=f"could not connect to 127.0.0.1:{port}"):
        async with connect_tcp("127.0.0.1", port):
            pass
