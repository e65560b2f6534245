"""The parts that the tests of clusters stand on: servers of NATS, and the balancer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import nats.errors
import pytest
from anyio.abc import SocketStream
from nats.aio.client import Client

from tests.support.limits import WAIT_S
from tests.support.nats import Nats, running_nats
from tests.support.tcp_forwarder import forwarder, listen

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def _connected(servers: Nats) -> AsyncGenerator[Any]:
    # Its options are untyped.
    client: Any = Client()
    await client.connect(servers.url.split(","), connect_timeout=1)
    try:
        yield client.jetstream(timeout=WAIT_S)
    finally:
        await client.close()


async def _make_stream(servers: Nats, copies: int) -> None:
    async with _connected(servers) as stream:
        await stream.add_stream(name="kept", subjects=["kept.*"], num_replicas=copies)


async def _append(servers: Nats, text: str) -> int:
    """Append a message as soon as the stream has a leader; returns its number."""
    async with _connected(servers) as stream:
        while True:
            try:
                return (await stream.publish("kept.one", text.encode(), headers={"Nats-Msg-Id": text})).seq
            except (nats.errors.Error, TimeoutError):
                await anyio.sleep(0.1)


async def test_what_nats_has_acknowledged_survives_its_kill(tmp_path: Path) -> None:
    async with running_nats(tmp_path) as servers:
        await _make_stream(servers, 1)
        assert await _append(servers, "one") == 1
        servers.nodes[0].kill()
        servers.nodes[0].start()
        await servers.wait_until_ready()
        assert await _append(servers, "two") == 2


async def test_a_cluster_of_nats_goes_on_without_the_leader_of_a_stream(tmp_path: Path) -> None:
    async with running_nats(tmp_path, 3) as servers:
        await _make_stream(servers, 3)
        assert await _append(servers, "one") == 1
        leader = await servers.leader("kept")
        assert leader is not None
        leader.kill()
        assert await _append(servers, "two") == 2
        leader.start()
        await servers.wait_until_ready()
        assert await _append(servers, "three") == 3


async def test_the_balancer_takes_turns_and_leaves_out_servers_that_are_gone() -> None:
    async with anyio.create_task_group() as tasks:
        ports: list[int] = []
        for number in range(2):

            async def greet(stream: SocketStream, number: int = number) -> None:
                async with stream:
                    await stream.send(json.dumps(number).encode())
                    await anyio.sleep_forever()

            ports.append(await tasks.start(listen, greet))
        async with forwarder(*ports) as balancer:
            streams = [await anyio.connect_tcp("127.0.0.1", balancer.port) for _ in range(4)]
            assert [await stream.receive() for stream in streams] == [b"0", b"1", b"0", b"1"]
            balancer.connections[0].pause()
            assert balancer.cut(ports[1]) == 2
            with pytest.raises(anyio.BrokenResourceError):
                await streams[1].receive()
            balancer.targets[1] = 1
            last = await anyio.connect_tcp("127.0.0.1", balancer.port)
            assert await last.receive() == b"0"
            for stream in (*streams, last):
                await anyio.aclose_forcefully(stream)
        tasks.cancel_scope.cancel()
