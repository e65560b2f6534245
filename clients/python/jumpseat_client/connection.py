"""A JSON-RPC 2.0 peer over a byte stream: requests in both directions, notifications, and how it all ends.

Owns framing, ids and the order of what is written. Knows nothing of sessions, processes or sockets.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

import anyio
import orjson
from anyio.abc import AnyByteStream, TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from pydantic_core import to_jsonable_python

from jumpseat_client.errors import JumpseatClientError, RpcError, ServerGoneError
from jumpseat_protocol.envelope import INTERNAL_ERROR, RequestId
from jumpseat_protocol.framing import FrameDecoder, FramingError, encode_frame

T = TypeVar("T")
Message: TypeAlias = dict[str, Any]
MessageTap: TypeAlias = Callable[[Literal["sent", "received"], Message], None]
"""Sees every JSON-RPC message, whole, in the order of the wire. Called in place: keep it short."""

_log = logging.getLogger("jumpseat_client")


class Receiver(Protocol):
    """Who is told what comes in. All but ``requested`` are called in place, in the order of the wire."""

    def notified(self, method: str, params: Any) -> None: ...
    async def requested(self, method: str, params: Any) -> Any: ...
    def ended(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Pending:
    """A request on its way. ``answer`` stays ``None`` if the connection ends first."""

    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Message | None = None


class Connection:
    """One end of the wire. ``read`` and ``write`` are its two tasks; requests of the peer run in ``tasks``.

    Writing never blocks: messages go through an unbounded queue, so that a cancelled caller cannot leave half a
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
        """Send a request and wait for its result. A caller that is cancelled cancels it at the server too.

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
        """Write what is queued, then close our direction. Waits a second at most for the peer to take it."""
        self._outgoing.close()
        with anyio.move_on_after(1):
            await self._written.wait()

    async def write(self) -> None:
        """Carry the queue to the stream until :meth:`finish`."""
        async with self._queue:
            try:
                async for frame in self._queue:
                    await self._stream.send(frame)
                await self._stream.send_eof()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                # The reading side sees the same end and has more to say about it.
                pass
        self._written.set()

    async def read(self, receiver: Receiver, explain_end: Callable[[], Awaitable[str]]) -> None:
        """Hand everything that comes in to ``receiver``, until the stream ends.

        ``explain_end`` is asked then for a sentence that says why; it ends up in the errors of all who wait.
        """
        reason: str | None = None
        decoder = FrameDecoder()
        try:
            async for chunk in self._stream:
                for body in decoder.feed(chunk):
                    if isinstance(body, FramingError):
                        _log.warning("skipped output of the server that is no message: %s", body.message)
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
        receiver.ended(reason)

    def _receive(self, message: Any, receiver: Receiver) -> None:
        if not isinstance(message, dict):
            _log.warning("skipped output of the server that is no message: %r", message)
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
            receiver.notified(method, message.get("params"))

    async def _answer(self, message: Message, receiver: Receiver) -> None:
        method = message["method"]
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = to_jsonable_python(await receiver.requested(method, message.get("params")))
        except RpcError as error:
            answer["error"] = {"code": error.code, "message": error.message}
            if error.data is not None:
                answer["error"]["data"] = error.data
        except Exception:
            # What went wrong stays on this side; the server is told that something did.
            _log.exception("the handler of %s failed", method)
            answer["error"] = {"code": INTERNAL_ERROR, "message": f"The handler of {method} failed"}
        try:
            self._send(answer)
        except ServerGoneError:
            _log.debug("no one is left to answer %s to", method)

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
    """Hands each item to everybody who listens at that moment.

    Queues are unbounded: the wire is read by one task, which must never wait for a slow listener.
    """

    def __init__(self) -> None:
        self._listeners: set[MemoryObjectSendStream[T]] = set()
        self._failure: str | None = None
        self._closed = False

    def publish(self, item: T) -> None:
        for listener in self._listeners:
            listener.send_nowait(item)

    def close(self, failure: str | None = None) -> None:
        """End all iterations, quietly or with a :class:`ServerGoneError` that says ``failure``."""
        if self._closed:
            return
        self._closed, self._failure = True, failure
        for listener in self._listeners:
            listener.close()

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[AsyncIterator[T]]:
        """What is published from now on, until the context is left or the broadcast is closed."""
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


def expect(success: Any, action: str) -> None:
    """Check a ``{success, error?}`` answer.

    Raises:
        JumpseatClientError: it says that the action failed.
    """
    answer: dict[str, Any] = cast("dict[str, Any]", success) if isinstance(success, dict) else {}
    if answer.get("success") is False:
        raise JumpseatClientError(f"could not {action}: {answer.get('error') or 'the server gave no reason'}")
