"""Connections of confined commands through the proxy of the environment."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from jumpseat.services.egress import connect_host
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio


async def test_data_that_a_host_sends_first_is_not_lost_behind_the_answer_of_a_proxy() -> None:
    async def answer(client: SocketStream) -> None:
        async with client:
            await client.receive()
            await client.send(b"HTTP/1.1 200 OK\r\nVia: 1.1 proxy\r\n\r\nSSH-2.0-server\r\n")

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, answer)
        proxy = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        with anyio.fail_after(WAIT_S):
            async with await connect_host("host.example", 22, private=True, proxy=proxy) as stream:
                assert await stream.receive() == b"SSH-2.0-server\r\n"
        tasks.cancel_scope.cancel()
