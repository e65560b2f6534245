"""The seam to pygls: the only module that knows it (with :mod:`jumpseat.rpc.slim_import`, which loads it).

pygls dispatches: it finds the handler of a method, runs it, answers for it and cancels it. Everything else that
its stock protocol does is replaced here, because it would break this wire or leak: reading and classifying
messages, error answers, outgoing requests (integer ids in a table of their own), the one header, and tasks,
which belong to a task group of ours. One instance serves one connection.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio
import orjson
from anyio.abc import TaskGroup

from jumpseat.errors import ClientCallError
from jumpseat.rpc.slim_import import json_rpc_protocol
from jumpseat.rpc.wire_errors import error_of
from jumpseat_protocol.envelope import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    ErrorObject,
    RequestId,
)

if TYPE_CHECKING:
    from pygls.protocol.json_rpc import JsonRPCProtocol
else:
    JsonRPCProtocol = json_rpc_protocol()

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the protocols over JSON-RPC do differently.

    ``cancel`` is the notification that takes a request back, with the id in its field ``cancel_id``. ``error_of``
    says what the peer is told of an exception. ``notified`` takes all other notifications.
    """

    cancel: str = "$/cancelRequest"
    cancel_id: str = "id"
    error_of: Callable[[Exception], ErrorObject] = error_of
    notified: Callable[[str, Any], None] | None = None


COPILOT = Dialect()


class MethodNotFoundError(Exception):
    """The connection asked for a method that is not in the table."""

    def __init__(self, method: str) -> None:
        super().__init__(f"Unhandled method {method}")


class _NoServer:
    """What pygls wants of its server object; we have none."""

    def _report_server_error(self, *_args: Any) -> None:
        """Errors are logged where they are answered."""


class JsonRpcPeer(JsonRPCProtocol):
    """One connection's JSON-RPC: bodies in through :meth:`receive`, bodies out through ``send``.

    ``find`` gives the function of a method's raw params, or ``None``. A plain function is run at once, in the order
    of arrival; a coroutine function becomes a task of ``tasks``. Each request is answered exactly once.
    """

    def __init__(
        self,
        send: Callable[[bytes], None],
        tasks: TaskGroup,
        mask: Callable[[str], str] = str,
        dialect: Dialect = COPILOT,
    ) -> None:
        super().__init__(cast("Any", _NoServer()), cast("Any", None))
        self.find: Callable[[str], Callable[[Any], Any] | None] = lambda _method: None
        self._send = send
        self._mask = mask
        self._dialect = dialect
        self._tasks = tasks
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._ids = itertools.count(1)
        self._closed = False

    # --- in -----------------------------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Take one message. Whatever is wrong with it is answered, never raised."""
        try:
            message = _decoded(body)
        except orjson.JSONDecodeError:
            self.refuse(PARSE_ERROR, "invalid JSON")
            return
        if not isinstance(message, dict):
            what = "batches are not supported" if isinstance(message, list) else "a message must be an object"
            self.refuse(INVALID_REQUEST, what)
            return
        self._classify(cast("dict[str, Any]", message))

    def _classify(self, message: dict[str, Any]) -> None:
        msg_id = message.get("id")
        method = message.get("method")
        valid_id = isinstance(msg_id, int | str) and not isinstance(msg_id, bool)
        if message.get("jsonrpc") != self.VERSION:
            self.refuse(INVALID_REQUEST, 'expected "jsonrpc": "2.0"', msg_id if valid_id else None)
        elif isinstance(method, str):
            params = message.get("params")
            if isinstance(params, list) and len(cast("list[Any]", params)) <= 1:
                # vscode-jsonrpc and StreamJsonRpc may send params by position; all our methods take one object.
                params = next(iter(cast("list[Any]", params)), None)
            if "id" not in message:
                self._handle_notification(method, params)
            elif not valid_id or msg_id is None:
                self.refuse(INVALID_REQUEST, "id must be an integer or a string")
            elif msg_id in self._running:
                self.refuse(INVALID_REQUEST, f"request id {msg_id!r} is in use", msg_id)
            else:
                self._handle_request(msg_id, method, params)
        elif "method" in message:
            self.refuse(INVALID_REQUEST, "method must be a string", msg_id if valid_id else None)
        elif "result" in message or "error" in message or (valid_id and msg_id in self._asked):
            # Where an answer is null, some JSON libraries leave it out.
            self._settle(msg_id, message)
        else:
            self.refuse(INVALID_REQUEST, "neither a request nor a response", msg_id if valid_id else None)

    def refuse(self, code: int, message: str, msg_id: RequestId | None = None) -> None:
        """Answer something that is not a request we could carry out."""
        self._answer(msg_id, error=ErrorObject(code=code, message=message))

    # --- what pygls calls while it dispatches -------------------------------------------------------------------

    def _get_handler(self, feature_name: str) -> Callable[[Any], Any]:
        route = self.find(feature_name)
        if route is None:
            raise MethodNotFoundError(feature_name)
        return route

    def _handle_request(self, msg_id: RequestId, method_name: str, params: Any) -> None:
        try:
            handler = self._get_handler(method_name)
        except MethodNotFoundError as error:
            self.refuse(METHOD_NOT_FOUND, str(error), msg_id)
            return
        self._execute_handler(msg_id, handler, _no_callback, (params,))

    def _handle_notification(self, method_name: str, params: Any) -> None:
        # Unknown notifications are to be ignored.
        if method_name == self._dialect.cancel:
            if isinstance(params, dict):
                self._handle_cancel_notification(cast("dict[str, Any]", params).get(self._dialect.cancel_id))
        elif self._dialect.notified is not None:
            self._dialect.notified(method_name, params)

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        scope = self._running.get(msg_id) if isinstance(msg_id, int | str) else None
        if scope is not None:
            scope.cancel()

    def _execute_handler(
        self,
        msg_id: RequestId,
        handler: Callable[..., Any],
        callback: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        (params,) = args or (None,)
        try:
            result = handler(params)
        except Exception as exc:
            self._answer(msg_id, error=self._dialect.error_of(exc))
            return
        if inspect.isawaitable(result):
            # Entered here and not in the task, so that a cancellation that arrives first is not lost.
            scope = self._running[msg_id] = anyio.CancelScope()
            self._tasks.start_soon(self._run, msg_id, result, scope)
        else:
            self._answer(msg_id, result=result)

    async def _run(self, msg_id: RequestId, work: Awaitable[Any], scope: anyio.CancelScope) -> None:
        with scope:
            try:
                result = await work
            except Exception as exc:
                self._running.pop(msg_id, None)
                self._answer(msg_id, error=self._dialect.error_of(exc))
            else:
                self._running.pop(msg_id, None)
                self._answer(msg_id, result=result)
        if self._running.pop(msg_id, None) is not None:
            self.refuse(REQUEST_CANCELLED, "request cancelled", msg_id)

    # --- out ----------------------------------------------------------------------------------------------------

    def _answer(self, msg_id: RequestId | None, *, result: Any = None, error: ErrorObject | None = None) -> None:
        response: dict[str, Any] = {"jsonrpc": self.VERSION, "id": msg_id}
        if error is None:
            response["result"] = result
        else:
            error.message = self._mask(error.message)
            response["error"] = error.model_dump(exclude_none=True)
        self._send(orjson.dumps(response))

    def tell(self, method: str, params: Any) -> None:
        """Send a notification. ``params`` is JSON, parts of it perhaps encoded already (``orjson.Fragment``)."""
        self._send(orjson.dumps({"jsonrpc": self.VERSION, "method": method, "params": params}))

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request to the client and wait for its answer.

        Raises:
            ClientCallError: the client answered with an error, or went away.
        """
        if self._closed:
            raise ClientCallError(f"the client is gone, {method!r} cannot be asked")
        msg_id = next(self._ids)
        answer = self._asked[msg_id] = asyncio.get_running_loop().create_future()
        self._send(orjson.dumps({"jsonrpc": self.VERSION, "id": msg_id, "method": method, "params": params}))
        try:
            return await answer
        except asyncio.CancelledError:
            if not self._closed:
                self.tell(self._dialect.cancel, {self._dialect.cancel_id: msg_id})
            raise
        finally:
            self._asked.pop(msg_id, None)

    def _settle(self, msg_id: Any, message: dict[str, Any]) -> None:
        answer = self._asked.get(msg_id) if isinstance(msg_id, int) else None
        if answer is None or answer.done():
            return  # late or unknown answers are nobody's business
        error: Any = message.get("error")
        if error is not None:
            text = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else None
            answer.set_exception(ClientCallError(str(text or "the client answered with an error")))
        else:
            answer.set_result(message.get("result"))

    @property
    def closed(self) -> bool:
        return self._closed

    def pass_on(self, method: str, params: Any) -> None:
        """Carry out a request that no message asked for; what it would have been answered with is dropped.

        Errors are logged, because nobody else hears of them.
        """
        try:
            self._get_handler(method)(params)
        except Exception as exc:
            log.warning("%s: %s", method, error_of(exc).message)

    def close(self) -> None:
        """The connection is gone: cancel its requests and fail what we asked it."""
        self._closed = True
        for scope in list(self._running.values()):
            scope.cancel()
        for answer in list(self._asked.values()):
            if not answer.done():
                answer.set_exception(ClientCallError("the client is gone"))


# What is escaped in JSON: a backslash, a pair of surrogates, or one alone.
_ESCAPES = re.compile(
    rb"\\\\|(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def _decoded(body: bytes) -> Any:
    """A message. JavaScript sends half an emoji where a text was cut in its middle; such a half becomes U+FFFD.

    Raises:
        orjson.JSONDecodeError: it is no JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        whole = _ESCAPES.sub(lambda found: b"\\ufffd" if found.group(1) else found.group(), body)
        if whole == body:
            raise
        return orjson.loads(whole)


def _no_callback(*_args: Any) -> None:
    """Results go straight to the wire; pygls' callbacks are not used."""
