"""An HTTP server on loopback that sends the replies of a test: any bytes, well-formed or not.

The server knows no provider's format; the test writes the replies, one per request, in order::

    async with ModelServer(event_stream(b"data: [DONE]\\n\\n"), json_reply({"error": "x"}, status=500)) as server:
        ...  # call server.url
        assert server.requests[0].json["model"] == "m"

A request without a reply gets status 599. A request for the list of models, which a local server gets before the
first prompt, has status 404 and is not among the requests, unless the test is about lists (``lists``). If the test
does not know the order of the requests, ``answer`` returns the reply to each. Replies can be cut off, held back
until the test sets an event, or never end; see :class:`Reply`. :meth:`ModelServer.wait_for_hang_up` waits until a
caller hangs up.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Reply:
    """One HTTP response.

    ``pieces`` are written one after the other, each as a separate packet and HTTP chunk. Every piece but the first
    waits for ``gate``, if there is one. ``ending`` is what follows the last piece: ``end`` completes the body,
    ``cut`` closes the connection in the middle of the body, ``hang`` leaves the connection open and sends nothing.
    With ``silent`` not even a status is sent before ``ending``. With ``length`` the body has a Content-Length (of
    that many bytes, true or not) in place of chunks.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    gate: asyncio.Event | None = None
    ending: str = "end"
    silent: bool = False
    length: int | None = None


def event_stream(*pieces: bytes, ending: str = "end", gate: asyncio.Event | None = None) -> Reply:
    """Return a stream of server-sent events; ``pieces`` are its bytes."""
    return Reply(pieces, headers={"Content-Type": "text/event-stream"}, ending=ending, gate=gate)


def json_reply(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a reply with ``body`` as JSON."""
    return text_reply(json.dumps(body), status=status, headers=headers, content_type="application/json")


def text_reply(
    text: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    content_type: str = "text/plain",
) -> Reply:
    """Return a reply with the unchanged ``text``."""
    return Reply([text.encode()], status=status, headers={"Content-Type": content_type, **(headers or {})})


@dataclass(frozen=True)
class SeenRequest:
    """One received request. The names of ``headers`` are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ModelServer:
    """The server: an async context manager. It needs an asyncio event loop."""

    def __init__(
        self,
        *replies: Reply,
        tls: ssl.SSLContext | None = None,
        answer: Callable[[SeenRequest], Reply] | None = None,
        lists: bool = False,
    ) -> None:
        self._reply_to = answer or self._next_reply
        self.replies = list(replies)
        """The replies still to be sent; a test may append to them at any time."""
        self.requests: list[SeenRequest] = []
        self._tls = tls
        self._lists = lists
        self._server: asyncio.Server | None = None
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._hung_up = asyncio.Event()
        self.url = ""
        """``http://127.0.0.1:PORT``, or ``https://`` with TLS."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _next_reply(self, _request: SeenRequest) -> Reply:
        return self.replies.pop(0) if self.replies else text_reply("no reply left", status=599)

    async def wait_for_hang_up(self) -> None:
        """Wait until a caller has closed its connection before the end of a response."""
        await self._hung_up.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            number = self._connections
            while (request := await _read_request(reader, number)) is not None:
                if request.method == "GET" and request.path.endswith(("/models", "/api/tags")) and not self._lists:
                    reply = text_reply("no list", status=404)
                else:
                    self.requests.append(request)
                    reply = self._reply_to(request)
                if not await self._answer(reply, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self._hung_up.set()
        except asyncio.CancelledError:
            # Tasks are cancelled only at the end of the test; asyncio.streams would log that as an error.
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Write ``reply``; returns whether the connection can be used for another request."""
        if not reply.silent:
            body = "Transfer-Encoding: chunked" if reply.length is None else f"Content-Length: {reply.length}"
            headers = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
            writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{headers}{body}\r\n\r\n".encode())
            for position, piece in enumerate(reply.pieces):
                if position and reply.gate is not None:
                    await reply.gate.wait()
                writer.write(piece if reply.length is not None else b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        if reply.ending == "hang":
            # The caller has sent its whole request, so the next read ends with the connection.
            if not await reader.read(1):
                self._hung_up.set()
            return False
        if reply.ending == "cut":
            return False
        if not reply.silent and reply.length is None:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return True


async def _read_request(reader: asyncio.StreamReader, connection: int) -> SeenRequest | None:
    """Read the next request; returns ``None`` if the connection ends before it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *rows = head.decode("utf-8").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows if row)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return SeenRequest(method, path, headers, body, connection)
