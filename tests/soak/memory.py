"""The whole server in this process, and clients that speak with it through memory, without pipes and sockets."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from jumpseat.app import App
from jumpseat.options import Options
from jumpseat.rpc.transport import Wire

JsonObject = dict[str, Any]

# Retries without delays, so that a failing provider costs no time.
CONFIG: Final = "[retry]\nattempts = 3\nfirst_wait_s = 0.0001\nlongest_wait_s = 0.0001\n"


class MemoryClient(asyncio.WriteTransport):
    """A client of an :class:`App`. ``on_message`` is called with each message of the server.

    What it sends arrives in the next turn of ``loop``, all together.
    """

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop, on_message: Callable[[JsonObject], None]) -> None:
        super().__init__()
        self._loop = loop
        self._on_message = on_message
        self._unread = b""
        self._last_id = 0
        self._wire: Wire = app.doors.connect().wire
        self.connected = True
        self._wire.connection_made(self)

    def request(self, method: str, params: JsonObject) -> int:
        """Send a request; returns its id."""
        self._last_id += 1
        self.send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def send(self, message: JsonObject) -> None:
        """Send a message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._loop.call_soon(self._wire.data_received, b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def hang_up(self) -> None:
        """End the connection, as a client that dies."""
        if self.connected:
            self.connected = False
            self._loop.call_soon(self._wire.connection_lost, None)

    # --- the server calls these -----------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Read what the server writes; a client that has hung up reads nothing."""
        if not self.connected:
            return
        self._unread += bytes(data)
        while b"\r\n\r\n" in self._unread:
            head, _, rest = self._unread.partition(b"\r\n\r\n")
            length = int(head.removeprefix(b"Content-Length: "))
            if len(rest) < length:
                break
            self._unread = rest[length:]
            self._on_message(json.loads(rest[:length]))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: nothing is buffered."""

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        """End the connection from the side of the server."""
        self.connected = False

    def abort(self) -> None:
        """End the connection from the side of the server."""
        self.connected = False


@asynccontextmanager
async def running_app(environ: Mapping[str, str]) -> AsyncGenerator[App]:
    """Run a server. At the end it is killed: nothing is closed in an orderly way."""
    options = Options(environ=environ, log_level="none", auto_login=False)
    async with anyio.create_task_group() as tasks:
        app = App(options, tasks)
        try:
            yield app
        finally:
            tasks.cancel_scope.cancel()
            # The locks of a process end with it, and its pipes, so that the program which watches it ends.
            app.registry.store.ownership.close()
            getattr(app, "_descendants").close()  # noqa: B009 - the end of a process has no public name


def environ_of(folder: Path) -> dict[str, str]:
    """Return the environment of a server with its home in ``folder``."""
    home = folder / "home"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(CONFIG)
    return {"HOME": str(folder), "COPILOT_HOME": str(home), "PATH": os.environ.get("PATH", "")}
