"""A replica that gets SIGTERM while NATS cannot store anything ends within its time, and leaves no request open."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cluster.test_failures import TOOL, WAITING
from tests.support.nats import Nats, running_nats
from tests.support.server import running_server

pytestmark = pytest.mark.anyio

DRAIN_S = 0.5
PROMISED_S = 10.0
"""The time after ``drain_s`` in which a replica has ended, by docs/cluster.md."""


async def test_a_replica_ends_within_its_time_while_nats_has_no_leader(tmp_path: Path) -> None:
    async with running_nats(tmp_path, 3) as nats:
        # Each replica knows one server of NATS; that of the replica that ends hangs.
        known, hanging = nats.nodes[:1], nats.nodes[1:]
        configs = [Nats(nodes).config(copies=3, drain_s=DRAIN_S) for nodes in (hanging[:1], known)]
        async with (
            running_server(tmp_path / "owner", tcp=True, config=configs[0], limit_s=55) as server,
            running_server(tmp_path / "other", tcp=True, config=configs[1], limit_s=55) as other_server,
            server.connect() as owner,
            other_server.connect() as other,
        ):
            owner.wait_s = other.wait_s = 30
            session = await owner.create(WAITING, tools=[TOOL])
            await other.call("session.resume", {"sessionId": session, "provider": WAITING})
            # The replica that ends has a client of the other one, and is one for a client of its own.
            elsewhere = await other.create(WAITING)
            await owner.call("session.resume", {"sessionId": elsewhere, "provider": WAITING})
            await other.call("session.send", {"sessionId": session, "prompt": "the weather?"})
            question = await owner.event("external_tool.requested", session=session)
            for node in hanging:
                node.pause()
            since = len(owner.messages)
            answer = {"sessionId": session, "requestId": question["data"]["requestId"], "result": "sunny"}
            answered = await owner.ask("session.tools.handlePendingToolCall", answer)
            asked = await owner.ask("session.send", {"sessionId": elsewhere, "prompt": "the weather?"})
            server.signal(signal.SIGTERM)
            await server.exit_code(DRAIN_S + PROMISED_S)
            error = (await owner.response(answered))["error"]
            assert error["data"]["code"] in ("store_unavailable", "outcome_unknown"), error
            # A prompt may be accepted: it waits in memory.
            await owner.response(asked)
            announced = [event for event in owner.events(session, since=since) if not event.get("ephemeral")]
            assert announced == []
            # Its end may take as long, and is not the matter of this test.
            await other_server.kill()
