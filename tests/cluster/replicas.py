"""Replicas on one machine, each a process with a home of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.support.nats import Nats, running_nats
from tests.support.server import JsonObject, RunningServer, Wire, running_server


class Replicas:
    """Running replicas, and connections to them."""

    def __init__(self, folder: Path, nats: Nats, servers: list[RunningServer], stack: AsyncExitStack) -> None:
        self.folder = folder
        self.nats = nats
        self.servers = servers
        self._stack = stack

    async def connect(self, number: int) -> Wire:
        """Connect to a replica, until the end of the test."""
        wire = await self._stack.enter_async_context(self.servers[number].connect())
        wire.wait_s = 30
        return wire


@asynccontextmanager
async def running_replicas(
    folder: Path,
    count: int = 3,
    nodes: int = 1,
    limit_s: float = 55,
    hosts: Sequence[str] = (),
    urls: Sequence[str] = (),
    given: Nats | None = None,
    args: Sequence[str] = (),
    more: str = "",
    without_token: Sequence[str] = ("--no-token",),
    **config: str | float | list[str],
) -> AsyncGenerator[Replicas]:
    """Start replicas, and servers of NATS unless ``given`` ones.

    Each replica is on a host of ``hosts``, and reaches NATS at an address of ``urls``, if there are any. ``more``
    is the rest of their configuration. They are started with the arguments ``without_token``.
    """
    async with AsyncExitStack() as stack:
        nats = given if given is not None else await stack.enter_async_context(running_nats(folder, nodes))
        servers: list[RunningServer] = []
        for number in range(count):
            own = {name: each[number] for name, each in {"host": hosts, "url": urls}.items() if each}
            settings = nats.config(**config, **own)
            server = running_server(
                folder / f"replica{number}",
                tcp=True,
                config=settings + more,
                limit_s=limit_s,
                args=args,
                without_token=without_token,
            )
            servers.append(await stack.enter_async_context(server))
        async with AsyncExitStack() as connections:
            yield Replicas(folder, nats, servers, connections)


def answers(events: list[JsonObject]) -> list[str]:
    """Return the texts of the model's answers."""
    return [event["data"]["content"] for event in events if event["type"] == "assistant.message"]
