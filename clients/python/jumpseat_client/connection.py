"""A JSON-RPC 2.0 peer over a byte stream: requests in both directions, notifications and the end of the stream.

Owns framing, ids and the order of writes. Independent of sessions, processes and sockets.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

import anyio
import orjson
from anyio.abc import AnyByteStream, TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from pydantic_core import to_jsonable_python

from jumpseat_client.errors import JumpseatClientError, RpcError, ServerGoneError
from jumpseat_protocol.envelope import INTERNAL_ERROR, FrameDecoder, FramingError, RequestId, encode_frame

T = TypeVar("T")
Message: TypeAlias = dict[str, Any]
MessageTap: TypeAlias = Callable[[Literal["sent", "received"], Message], None]
"""Called synchronously with every JSON-RPC message, in the order of the wire; must return quickly."""

_log = logging.getLogger("jumpseat_client")


class Receiver(Protocol):
    """Receives messages. All methods but ``handle_request`` are called synchronously, in the order of the wire."""

    def on_notification(self, method: str, params: Any) -> None: ...
    async def handle_request(self, method: str, params: Any) -> Any: ...
    def on_end(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Pending:
    """A request in progress. ``answer`` stays ``None`` if the connection ends first."""

    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Message | None = None


class Connection:
    """An end of the wire. ``read`` and ``write`` are its two tasks; request handlers run in ``tasks``.

    Sending never blocks: messages go through an unbounded queue, so a cancelled caller cannot leave a partial
    message on the wire.
    """

    def __init__(self, stream: AnyByteStream, tasks: TaskGroup, on_message: MessageTap | None = None) -> None:
        self._stream = stream
        self._tasks = tasks
        self._tap = on_message
        self._ids = count(1)
        self._pending: dict[RequestId, _Pending] = {}
        self._gone: str | None = None
        self._written = anyio.Event()
        self._outgoing, self._queue = anyio.create_memory_object_stream[bytes](math.inf)

    async def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for its result. Cancelling the caller cancels the request at the server too.

        Raises:
            RpcError: the server answered with an error.
            ServerGoneError: the connection is down or went down meanwhile.
        """
        request_id = next(self._ids)
        pending = self._pending[request_id] = _Pending()
        try:
            self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
            await pending.done.wait()
        except anyio.get_cancelled_exc_class():
            if self._gone is None:
                self.notify("$/cancelRequest", {"id": request_id})
            raise
        finally:
            del self._pending[request_id]
        if pending.answer is None:
            raise ServerGoneError(self._gone or "the connection is closed")
        if "error" not in pending.answer:
            return pending.answer.get("result")
        error: Message = pending.answer["error"] or {}
        raise RpcError(error.get("code", INTERNAL_ERROR), str(error.get("message", "")), error.get("data"))

    def notify(self, method: str, params: Any) -> None:
        """Send a notification.

        Raises:
            ServerGoneError: the connection is down.
        """
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def finish(self) -> None:
        """Write the queued messages, then close our direction. Waits at most a second for the peer to read them."""
        self._outgoing.close()
        with anyio.move_on_after(1):
            await self._written.wait()

    async def write(self) -> None:
        """Write queued messages to the stream until :meth:`finish` is called."""
        async with self._queue:
            try:
                async for frame in self._queue:
                    await self._stream.send(frame)
                # TLS has no end of one direction.
                with suppress(NotImplementedError):
                    await self._stream.send_eof()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                # The reader sees the same end, and can explain it.
                pass
        self._written.set()

    async def read(self, receiver: Receiver, explain_end: Callable[[], Awaitable[str]]) -> None:
        """Pass everything that arrives to ``receiver``, until the stream ends.

        ``explain_end`` then returns the reason, which becomes the message of all waiting callers' errors.
        """
        reason: str | None = None
        decoder = FrameDecoder()
        try:
            async for chunk in self._stream:
                for body in decoder.feed(chunk):
                    if isinstance(body, FramingError):
                        _log.warning("skipped server output that is not a message: %s", body.message)
                    else:
                        self._receive(orjson.loads(body), receiver)
        except orjson.JSONDecodeError as error:
            reason = f"the server sent invalid JSON: {error}"
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass
        reason = reason or await explain_end()
        self._gone = reason
        for pending in self._pending.values():
            pending.done.set()
        receiver.on_end(reason)

    def _receive(self, message: Any, receiver: Receiver) -> None:
        if not isinstance(message, dict):
            _log.warning("skipped server output that is not a message: %r", message)
            return
        message = cast("Message", message)
        if self._tap is not None:
            self._tap("received", message)
        method = message.get("method")
        if method is None:
            pending = self._pending.get(cast("RequestId", message.get("id")))
            if pending is not None:
                pending.answer = message
                pending.done.set()
        elif "id" in message:
            self._tasks.start_soon(self._answer, message, receiver)
        else:
            receiver.on_notification(method, message.get("params"))

    async def _answer(self, message: Message, receiver: Receiver) -> None:
        method = message["method"]
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = to_jsonable_python(await receiver.handle_request(method, message.get("params")))
        except RpcError as error:
            answer["error"] = {"code": error.code, "message": error.message}
            if error.data is not None:
                answer["error"]["data"] = error.data
        except Exception:
            # Keep the details on this side: they may hold secrets.
            _log.exception("the handler of %s failed", method)
            answer["error"] = {"code": INTERNAL_ERROR, "message": f"The handler of {method} failed"}
        try:
            self._send(answer)
        except ServerGoneError:
            _log.debug("connection closed before the response to %s was sent", method)

    def _send(self, message: Message) -> None:
        if self._gone is not None:
            raise ServerGoneError(self._gone)
        frame = encode_frame(orjson.dumps(message))
        try:
            self._outgoing.send_nowait(frame)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ServerGoneError(self._gone or "the connection is closed") from None
        if self._tap is not None:
            self._tap("sent", message)


class Broadcast(Generic[T]):
    """Passes each item to all current listeners.

    Queues are unbounded, because the task that reads the wire must never wait for a slow listener.
    """

    def __init__(self) -> None:
        self._listeners: set[MemoryObjectSendStream[T]] = set()
        self._failure: str | None = None
        self._closed = False

    def publish(self, item: T) -> None:
        for listener in self._listeners:
            listener.send_nowait(item)

    def close(self, failure: str | None = None) -> None:
        """End all iterations; with a :class:`ServerGoneError` if ``failure``, its message, is given."""
        if self._closed:
            return
        self._closed, self._failure = True, failure
        for listener in self._listeners:
            listener.close()

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[AsyncIterator[T]]:
        """Iterate over the items published from now on, until the context is left or the broadcast is closed."""
        send, receive = anyio.create_memory_object_stream[T](math.inf)
        with send, receive:
            if self._closed:
                send.close()
            self._listeners.add(send)
            try:
                yield self._iterate(receive)
            finally:
                self._listeners.discard(send)

    async def _iterate(self, receive: MemoryObjectReceiveStream[T]) -> AsyncIterator[T]:
        async for item in receive:
            yield item
        if self._failure is not None:
            raise ServerGoneError(self._failure)


def require_success(success: Any, action: str) -> None:
    """Check a ``{success, error?}`` response.

    Raises:
        JumpseatClientError: ``success`` is false; the message names ``action`` and the server's reason.
    """
    answer: dict[str, Any] = cast("dict[str, Any]", success) if isinstance(success, dict) else {}
    if answer.get("success") is False:
        raise JumpseatClientError(f"could not {action}: {answer.get('error') or 'the server gave no reason'}")
