"""JSON-RPC over one connection, carried by pygls.

pygls keeps the table of methods, runs handlers, matches responses with requests and cancels requests.
:class:`JsonRpcPeer` checks each message before pygls sees it and overrides only what would break this wire; each
override gives its reason. ``docs/pygls.md`` lists the reasons as proposals to pygls.
This module and :mod:`jumpseat.rpc.slim_import` are the only importers of pygls.
"""

# pygls is loaded as one module (see slim_import), so the names that it imports are taken from there.
# pyright: reportPrivateImportUsage=false
from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import anyio
import orjson
from anyio.abc import TaskGroup
from msgspec import UNSET, Struct

from jumpseat.errors import ClientCallError, ClientRefusedError, ProviderError, ResponseFormatError, TurnFailedError
from jumpseat.parsing.json_text import TooManyContainersError, read_json
from jumpseat.rpc.slim_import import import_json_rpc
from jumpseat.rpc.transport import log as wire_log
from jumpseat.rpc.transport import log_message
from jumpseat.rpc.wire_errors import error_of
from jumpseat.system.log_fields import fields
from jumpseat_protocol.envelope import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorObject,
    RequestId,
    outline_of,
)
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.wire import Encoded

if TYPE_CHECKING:
    from pygls.protocol import json_rpc
else:
    json_rpc = import_json_rpc()

log = logging.getLogger(__name__)

MAX_OPEN_REQUESTS: Final = 4096
"""Limit on the requests of one peer that run at the same time."""

# pygls logs every message in full, and with it prompts and keys.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)


class Dialect(Struct, frozen=True):
    """The differences between the protocols over JSON-RPC.

    ``cancel`` is the notification that cancels a request, with the request's id in its field ``cancel_id``.
    ``error_of`` converts an exception into the error of a response. ``notifications`` are the methods that are
    served as notifications, and not as requests; all other ones are ignored. ``nearest`` returns the method
    that an unknown one resembles, if any.
    """

    cancel: str = "$/cancelRequest"
    cancel_id: str = "id"
    error_of: Callable[[Exception], ErrorObject] = error_of
    notifications: Collection[str] = ()
    nearest: Callable[[str], str | None] = CLIENT_REQUESTS.nearest


COPILOT = Dialect()


class JsonRpcPeer(json_rpc.JsonRPCProtocol):
    """The JSON-RPC of a connection: messages come in through :meth:`receive` and go out through ``send``,
    which takes the parts of a message.

    ``find`` returns the handler of a method, or ``None``. A handler takes the raw params. A plain function runs at
    once, in the order of arrival; the awaitable of a coroutine function runs as a task of ``tasks``. Each request
    gets exactly one response. ``mask`` removes secrets from error messages and from what is logged; ``label`` names
    the peer in the log.
    """

    def __init__(
        self,
        send: Callable[..., None],
        tasks: TaskGroup,
        mask: Callable[[str], str] = str,
        dialect: Dialect = COPILOT,
        label: Callable[[], str] = lambda: "",
    ) -> None:
        super().__init__(cast("Any", _Server()), cast("Any", _Converter()))
        self.find: Callable[[str], Callable[[Any], Any] | None] = lambda _method: None
        self.set_writer(cast("Any", _Writer(send)), include_headers=False)
        self._send = send
        self._tasks = tasks
        self._mask = mask
        self._dialect = dialect
        self._label = label
        self._logs_messages = wire_log.isEnabledFor(logging.DEBUG)
        self._ids = itertools.count(1)
        self._closed = False
        self._running = 0
        self._answered = anyio.Event()

    @property
    def closed(self) -> bool:
        """Return whether the connection has ended."""
        return self._closed

    # --- messages in, messages out ------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Handle one message. An invalid message gets an error response; nothing is raised."""
        if self._logs_messages:
            log_message(self._label, "received", body, self._mask)
        try:
            data = read_json(body)
        except TooManyContainersError as error:
            self._refuse_whole(body, error.msg)
            return
        except orjson.JSONDecodeError:
            self.refuse(PARSE_ERROR, "invalid JSON")
            return
        message = self._check(data)
        if message is not None:
            self.handle_message(cast("Any", self.structure_message(message)))

    def _refuse_whole(self, body: bytes, problem: str) -> None:
        """Refuse a message of which only the envelope is read; a response to a request of ours becomes an error."""
        outline = outline_of(body)
        if (
            outline.method is UNSET
            and isinstance(outline.id, int)
            and OutgoingId(outline.id) in self._request_futures
        ):
            error = json_rpc.ResponseError(code=INVALID_REQUEST, message=f"the answer of the client has {problem}")
            self._handle_response(OutgoingId(outline.id), error=error)
        else:
            self.refuse(INVALID_REQUEST, f"the message has {problem}", None if outline.id is UNSET else outline.id)

    def refuse(self, code: int, message: str, msg_id: RequestId | None = None) -> None:
        """Send an error response to a message that is not a valid request."""
        self._log_refusal(code, message)
        # The type allows no ``None``; a response to an unreadable message must have it.
        self._send_response(cast("Any", msg_id), error=json_rpc.ResponseError(code=code, message=message))

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request and return the result of its response.

        Raises:
            ClientRefusedError: the response is an error.
            ClientCallError: the connection has ended.
        """
        if self._closed:
            raise ClientCallError(f"cannot send {method!r}: the client has disconnected")
        msg_id = OutgoingId(next(self._ids))
        try:
            return await self.send_request_async(method, params, msg_id)
        except json_rpc.JsonRpcException as error:
            raise ClientRefusedError(error.message) from None
        except asyncio.CancelledError:
            # pygls does not tell the peer.
            if not self._closed:
                self.notify(self._dialect.cancel, {self._dialect.cancel_id: msg_id})
            raise
        finally:
            # pygls forgets a request only when its response arrives.
            self._request_futures.pop(msg_id, None)
            self._result_types.pop(msg_id, None)

    def notify_encoded(self, method: str, *params: bytes) -> None:
        """Send a notification with the parts of its params, which are JSON already."""
        message = (b'{"jsonrpc":"2.0","method":"', method.encode(), b'","params":', *params, b"}")
        if self._logs_messages:
            log_message(self._label, "sent", b"".join(message), self._mask)
        self._send(*message)

    def invoke(self, method: str, params: Any) -> None:
        """Run a method that no message asks for. Its result is dropped; its errors are logged."""
        super()._handle_notification(method, params)

    @property
    def has_requests(self) -> bool:
        """Return whether a request of the peer has no response yet."""
        return any(not isinstance(msg_id, OutgoingId) for msg_id in self._request_futures)

    async def wait_until_answered(self) -> None:
        """Wait until all requests of the peer have their responses."""
        while self.has_requests:
            self._answered = anyio.Event()
            await self._answered.wait()

    def fail_own(self) -> None:
        """Fail our requests, because the peer sends nothing more."""
        self._closed = True
        for msg_id, future in list(self._request_futures.items()):
            if isinstance(msg_id, OutgoingId) and not future.done():
                future.set_exception(ClientCallError("the client has disconnected"))

    def cancel_all(self) -> None:
        """Cancel the peer's requests."""
        for msg_id, future in list(self._request_futures.items()):
            if not isinstance(msg_id, OutgoingId):
                future.cancel()

    def close(self) -> None:
        """Cancel the peer's requests and fail our own, because the connection has ended."""
        self.cancel_all()
        self.fail_own()

    def _check(self, data: Any) -> dict[str, Any] | None:
        """Return a message with exactly the members that pygls expects, or refuse it and return ``None``.

        pygls sends no response to what it cannot read: batches, missing params, a missing "jsonrpc".
        """
        if not isinstance(data, dict):
            problem = "batches are not supported" if isinstance(data, list) else "a message must be an object"
            self.refuse(INVALID_REQUEST, problem)
            return None
        message = cast("dict[str, Any]", data)
        msg_id: Any = message.get("id")
        method: Any = message.get("method")
        known_id = msg_id if _is_id(msg_id) else None
        if message.get("jsonrpc") != self.VERSION:
            self.refuse(INVALID_REQUEST, 'expected "jsonrpc": "2.0"', known_id)
        elif isinstance(method, str):
            params = _single(message.get("params"))
            if "id" not in message:
                return {"jsonrpc": self.VERSION, "method": method, "params": params}
            if known_id is None:
                self.refuse(INVALID_REQUEST, "id must be an integer or a string")
            elif known_id in self._request_futures:
                self.refuse(INVALID_REQUEST, f"request id {known_id!r} is in use", known_id)
            elif method in self._dialect.notifications:
                self.refuse(METHOD_NOT_FOUND, f"Unhandled method {method}", known_id)
            else:
                return {"jsonrpc": self.VERSION, "id": known_id, "method": method, "params": params}
        elif "method" in message:
            self.refuse(INVALID_REQUEST, "method must be a string", known_id)
        else:
            return self._check_response(message, known_id)
        return None

    def _check_response(self, message: dict[str, Any], msg_id: RequestId | None) -> dict[str, Any] | None:
        own_id = OutgoingId(msg_id) if isinstance(msg_id, int) else None
        is_response = own_id in self._request_futures
        # Some JSON libraries leave a null result out.
        if not (is_response or "result" in message or "error" in message):
            self.refuse(INVALID_REQUEST, "neither a request nor a response", msg_id)
        if not is_response:
            return None
        response: dict[str, Any] = {"jsonrpc": self.VERSION, "id": own_id}
        error = message.get("error")
        if error is None:
            return response | {"result": message.get("result")}
        text = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else None
        text = str(text or "the client answered with an error")
        return response | {"error": json_rpc.ResponseError(code=INTERNAL_ERROR, message=text)}

    # --- overrides of pygls: running handlers -------------------------------------------------------------------

    def handle_message(self, message: Any) -> None:
        """Dispatch by class: pygls compares with runtime protocols, which takes most of the time of a ping."""
        # Each handler has its own context, as in pygls.
        if isinstance(message, json_rpc.JsonRPCRequestMessage):
            copy_context().run(self._handle_request, message.id, message.method, message.params)
        elif isinstance(message, json_rpc.JsonRPCNotification):
            copy_context().run(self._handle_notification, message.method, message.params)
        elif isinstance(message, json_rpc.JsonRPCResponseMessage):
            self._handle_response(message.id, message.result)
        else:
            self._handle_response(message.id, error=message.error)

    def _get_handler(self, feature_name: str) -> Callable[[Any], Any]:
        """Register a method in pygls' table when it is first called: most are loaded only then."""
        table = cast("Any", self.fm)  # Its types are incomplete.
        if feature_name not in table.features:
            handler = self.find(feature_name)
            if handler is None:
                # Clients look for this text.
                meant = self._dialect.nearest(feature_name)
                # A method that exists is not served before the handshake, for example.
                hint = "" if meant in (None, feature_name) else f", did you mean {meant!r}?"
                error = json_rpc.JsonRpcMethodNotFound(f"Unhandled method {feature_name}{hint}")
                self._log_refusal(METHOD_NOT_FOUND, error.message)
                raise error
            table.feature(feature_name)(self._with_wire_errors(handler))
        return super()._get_handler(feature_name)

    def _handle_notification(self, method_name: str, params: Any) -> None:
        """Ignore notifications that are none: pygls runs the handlers of requests for them.

        The notification that cancels a request has the dialect's name and a dictionary as its params.
        """
        if method_name == self._dialect.cancel:
            members = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
            msg_id = members.get(self._dialect.cancel_id)
            if _is_id(msg_id):
                super()._handle_notification(json_rpc.CANCEL_REQUEST, SimpleNamespace(id=msg_id))
        elif method_name in self._dialect.notifications:
            super()._handle_notification(method_name, params)

    def _handle_cancel_notification(self, msg_id: RequestId) -> None:
        """Keep the id of a cancelled request in use until its response: pygls forgets it at once."""
        future = self._request_futures.get(msg_id)
        super()._handle_cancel_notification(msg_id)
        if future is not None and not future.done():
            self._request_futures[msg_id] = future

    def _send_handler_result(self, future: Future[Any], *, msg_id: RequestId) -> None:
        """Run a handler's awaitable in our task group: pygls would start a task without a parent."""
        if future.exception() is None and inspect.isawaitable(work := future.result()):
            if self._running >= MAX_OPEN_REQUESTS:
                if (close := getattr(work, "close", None)) is not None:
                    close()
                self._refuse_one_more(msg_id)
                return
            running = self._request_futures[msg_id] = _RunningRequest()
            running.add_done_callback(partial(super()._send_handler_result, msg_id=msg_id))
            self._running += 1
            self._tasks.start_soon(self._run, work, running)
        elif future.exception() is None and isinstance(later := future.result(), Later):
            if len(self._request_futures) >= MAX_OPEN_REQUESTS:
                later.cancel()
                self._refuse_one_more(msg_id)
                return
            self._request_futures[msg_id] = later
            later.add_done_callback(partial(super()._send_handler_result, msg_id=msg_id))
        else:
            super()._send_handler_result(future, msg_id=msg_id)

    def _refuse_one_more(self, msg_id: RequestId) -> None:
        message = f"more than {MAX_OPEN_REQUESTS} requests are open, expected fewer"
        self._request_futures.pop(msg_id, None)
        self._send_response(msg_id, error=json_rpc.ResponseError(code=INVALID_REQUEST, message=message))

    async def _run(self, work: Awaitable[Any], request: _RunningRequest) -> None:
        try:
            with request.scope:
                try:
                    result = await work
                except Exception as exc:
                    request.set_exception(self._rpc_exception(exc))
                else:
                    request.set_result(result)
        finally:
            self._running -= 1
        if not request.done():
            request.set_exception(json_rpc.JsonRpcRequestCancelled("request cancelled"))

    def _with_wire_errors(self, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def handle(params: Any) -> Any:
            try:
                return handler(params)
            except Exception as exc:
                raise self._rpc_exception(exc) from exc

        return handle

    def _rpc_exception(self, exc: Exception) -> json_rpc.JsonRpcException:
        if isinstance(exc, ResponseError):
            # The failure of a part of the request, which was a separate request.
            return exc
        error = self._dialect.error_of(exc)
        # A provider's explanation may quote the prompt.
        is_of_provider = isinstance(exc, ProviderError | TurnFailedError | ResponseFormatError)
        self._log_refusal(error.code, None if is_of_provider else error.message)
        return json_rpc.JsonRpcException(error.message, error.code, error.data)

    def _log_refusal(self, code: int, reason: str | None) -> None:
        log.info("request refused", extra=fields(client=self._label(), code=code, reason=reason))

    # --- overrides of pygls: writing ----------------------------------------------------------------------------

    def _send_response(
        self, msg_id: RequestId, result: Any = None, error: json_rpc.ResponseError | None = None
    ) -> None:
        """Mask error messages, and send no traceback: pygls puts one into the error where its own code fails."""
        if error is not None:
            data: Any = error.data
            if isinstance(data, dict) and "traceback" in data:
                lines = cast("dict[str, list[str]]", data)["traceback"]
                log.error("internal error: %s\n%s", error.message, "".join(lines))
                error = json_rpc.ResponseError(code=INTERNAL_ERROR, message="Internal error")
            error.message = self._mask(error.message)
        if error is None and isinstance(result, Encoded):
            self._send_parts(b'{"jsonrpc":"2.0","id":', orjson.dumps(msg_id), b',"result":', *result.parts, b"}")
        else:
            super()._send_response(msg_id, result, error)
        self._answered.set()

    def _send_data(self, data: Any) -> None:
        """Encode by orjson."""
        self._send_parts(orjson.dumps(data, default=self._serialize_message))

    def _send_parts(self, *message: bytes | memoryview) -> None:
        if self._logs_messages:
            log_message(self._label, "sent", b"".join(message), self._mask)
        self._send(*message)


class OutgoingId(int):
    """The id of a request of this server, never equal to the id of a peer's request.

    pygls keeps the requests of both sides in one table. Its own ids are UUIDs, which some SDKs cannot read: they
    expect integers, and both sides count from 1.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutgoingId) and int.__eq__(self, other)

    __hash__ = int.__hash__


ResponseError: Final = json_rpc.JsonRpcException
"""The exception of a :class:`Later` that has failed."""


class Later(Future[Any]):
    """The response of a handler that gives it in a callback, in an order with other messages of the connection.

    ``on_cancel`` is called when the peer cancels the request, or hangs up; the handler responds nevertheless.
    """

    def __init__(self, on_cancel: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.on_cancel = on_cancel

    def succeed(self, result: Any) -> None:
        """Send a result. Does nothing after the first response."""
        if not self.done():
            self.set_result(result)

    def fail(self, error: ErrorObject) -> None:
        """Send an error. Does nothing after the first response."""
        if not self.done():
            self.set_exception(json_rpc.JsonRpcException(error.message, error.code, error.data))

    @property
    def error(self) -> ErrorObject | None:
        """The error that was sent; ``None`` after a result."""
        failure = self.exception()
        if failure is None:
            return None
        if isinstance(failure, json_rpc.JsonRpcException):
            return ErrorObject(code=failure.code or INTERNAL_ERROR, message=failure.message, data=failure.data)
        return ErrorObject(code=INTERNAL_ERROR, message="Internal error")

    def fail_with(self, failure: BaseException) -> None:
        """Send the error of another response. Does nothing after the first response."""
        if not self.done():
            self.set_exception(failure)

    def cancel(self) -> bool:
        self.on_cancel()
        return True


class _RunningRequest(Future[Any]):
    """A request of the peer whose handler is a task.

    Cancelling goes through a cancel scope: a cancelled :class:`asyncio.Task`, as pygls has it, ignores anyio's
    shields, and its callbacks run one turn of the event loop late, when later messages have gone out already.
    The scope exists before the task starts, so that no early cancellation is lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scope = anyio.CancelScope()

    def cancel(self) -> bool:
        self.scope.cancel()
        return True


class _Writer(NamedTuple):
    """The ``writer`` of pygls."""

    write: Callable[[bytes], None]


class _Server:
    """The ``server`` that pygls notifies of errors. Errors of requests are logged where they are converted."""

    def _report_server_error(self, error: Exception, source: type[Exception]) -> None:
        if source is json_rpc.FeatureNotificationError:
            log.warning("a notification failed: %s", error)


class _Converter:
    """The ``converter`` of pygls, between checked JSON objects and message classes.

    That of pygls turns params into named tuples and loses keys that are no identifiers.
    """

    def structure(self, data: dict[str, Any], cls: type[Any]) -> Any:
        """Return a message of class ``cls``."""
        return cls(**data)

    def unstructure(self, message: Any) -> dict[str, Any]:
        """Return the members of a message or of an error; an error's ``data`` is optional."""
        members = {field.name: getattr(message, field.name) for field in message.__attrs_attrs__}
        if "code" in members and members["data"] is None:
            del members["data"]
        return members


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _single(params: Any) -> Any:
    """Return params by position as the one object that all methods take.

    vscode-jsonrpc and StreamJsonRpc may send a list.
    """
    if not isinstance(params, list):
        return params
    items = cast("list[Any]", params)
    if not items:
        return None
    # An array of anything else is refused as an array.
    return cast("Any", items[0]) if len(items) == 1 and isinstance(items[0], dict | None) else items
