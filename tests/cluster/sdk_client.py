"""A client of a busy session with the official Python SDK, in a process of its own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.cluster.clients import BusySession
from tests.cluster.histories import Attachment
from tests.support.tcp_forwarder import Forwarder
from tests.support.toolchains import NEWEST_PYPI_SDK, Sdk, require_sdk


class SdkClient:
    """Watches and prompts a session. The events of its attachments have a type and an id only."""

    def __init__(self, session: BusySession, balancer: Forwarder, counts: Counter[str]) -> None:
        self.name = f"SDK client of {session.history.session}"
        self.rests = False
        self.at_rest = anyio.Event()
        self.attachment: Attachment | None = None
        self.prompted = 0
        self.session = session
        self._balancer = balancer
        self._counts = counts
        self._rest = anyio.Event()

    async def live(self) -> None:
        """Run the program until cancelled."""
        python = require_sdk(Sdk("pypi", NEWEST_PYPI_SDK)) / "bin" / "python"
        program = str(Path(__file__).with_name("busy_sdk_client.py"))
        provider = self.session.provider
        given = {"type": provider["type"], "base_url": provider["baseUrl"], "api_key": provider["apiKey"]}
        command = [str(python), program, f"localhost:{self._balancer.port}", self.session.history.session]
        environ = {"HOME": "/nonexistent", "PATH": "/bin:/usr/bin"}
        async with await anyio.open_process(
            [*command, json.dumps(given)], env=environ, stdin=PIPE, stderr=DEVNULL
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._tell_to_rest, process.stdin)
                    lines = BufferedByteReceiveStream(process.stdout)
                    while True:
                        self._take(json.loads(await lines.receive_until(b"\n", 1 << 20)))
            finally:
                process.kill()

    async def _tell_to_rest(self, stdin: Any) -> None:
        await self._rest.wait()
        await stdin.send(b"rest\n")

    def wake(self) -> None:
        """Tell the client to rest, once it is set that it shall."""
        if self.rests:
            self._rest.set()

    def _take(self, line: dict[str, Any]) -> None:
        match line:
            case {"attached": True}:
                self.attachment = Attachment(self.name)
                self.session.history.attachments.append(self.attachment)
            case {"attached": False}:
                self.attachment = None
            case {"rests": True}:
                self.at_rest.set()
            case {"error": error}:
                self._counts[f"SDK: {error}"] += 1
            case _:
                assert self.attachment is not None
                self.attachment.events.append({**line, "data": {}})
                self.prompted += line["type"] == "session.idle"


def complete(session: BusySession) -> None:
    """Give the events of SDK clients the content of the stored events with their ids."""
    stored = {event["id"]: event for event in session.history.log}
    for attachment in session.history.attachments:
        if attachment.client.startswith("SDK"):
            attachment.events = [stored.get(event["id"], event) for event in attachment.events]
