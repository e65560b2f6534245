"""A witness of what NATS promises: the acknowledgements of a cluster's log, and the leaders of its streams.

An announced event that is not stored is either announced without an acknowledgement, which is our fault, or was
acknowledged and is gone, which :meth:`Witness.broken_promises` shows.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import orjson
from nats.aio.client import Client

from tests.support.limits import WAIT_S
from tests.support.nats import Nats

LOG_STREAM: Final = "jumpseat-log"


class Witness:
    """Notes each acknowledgement, and writes it to a file with the time, unless the connection breaks just then.

    It listens to no subject of a stream: replicas could not tell any more that a stream has no leader.
    """

    def __init__(self, client: Any, path: Path) -> None:
        self.acknowledged: dict[int, set[str]] = {}
        """The sequences of new messages, and the subjects that they were acknowledged to.

        A server that is started again may repeat an acknowledgement, to the same subject.
        """
        self._client = client
        self._file = path.open("w")

    async def take(self, message: Any) -> None:
        """Note a message."""
        data: bytes = message.data
        if message.subject.startswith("$JS.EVENT."):
            self._write(f"leader {data.decode('utf-8', 'replace')}")
        elif data.startswith(b'{"stream":"' + LOG_STREAM.encode()):
            ack = orjson.loads(data)
            self._write(f"ack {data.decode()}")
            if not ack.get("duplicate"):
                self.acknowledged.setdefault(ack["seq"], set()).add(message.subject)

    async def broken_promises(self) -> list[str]:
        """Compare what was acknowledged with what the log has now. Nothing may have been removed from it."""
        request = orjson.dumps({"deleted_details": True})
        answer = await self._client.request(f"$JS.API.STREAM.INFO.{LOG_STREAM}", request, timeout=WAIT_S)
        state = orjson.loads(answer.data)["state"]
        last, gone = state["last_seq"], {*state.get("deleted", ())}
        lost = sorted(seq for seq in self.acknowledged if seq > last or seq in gone)
        twice = sorted(seq for seq, subjects in self.acknowledged.items() if len(subjects) > 1)
        found = [f"NATS has acknowledged {seqs}, and lost them" for seqs in [lost] if seqs]
        return found + [f"NATS has given sequences to two messages: {seqs}" for seqs in [twice] if seqs]

    def _write(self, text: str) -> None:
        self._file.write(f"{time.time():.3f} {text}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@asynccontextmanager
async def witness(servers: Nats, path: Path) -> AsyncGenerator[Witness]:
    """Watch until the end of the block."""
    # Its types are incomplete.
    client: Any = Client()
    await client.connect(
        [node.url for node in servers.nodes], max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=_ignore
    )
    seen = Witness(client, path)
    try:
        for subject in ("_INBOX.>", "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.>"):
            await client.subscribe(subject, cb=seen.take, pending_bytes_limit=256 << 20)
        yield seen
    finally:
        with anyio.move_on_after(1, shield=True):
            await client.close()
        seen.close()


async def _ignore(_error: Exception) -> None:
    """Do nothing: servers of NATS are killed on purpose."""
