"""A function that replaces the network: ``opts.request`` of an adapter in Python.

It is called as ``request(client, payload, actions, opts)``, in a thread unless it is asynchronous, and may take
fewer of these parameters:

``client``   the request that would be sent: ``adapter``, ``method``, ``url``, ``headers`` and ``body``
``payload``  ``messages`` and ``tools`` in the format of handlers, and ``session_id``
``actions``  ``callback(error, data)`` and ``done()``, for functions that call back instead of returning
``opts``     ``stream``: whether a streamed response is requested

The response is the return value or the argument of ``callback``: a whole one as ``{status, headers, body}``, or the
lines of a stream, singly or as an iterable or asynchronous iterable. Items of an iterable are forwarded as they
arrive, arguments of a callback when the function returns.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

import anyio
import anyio.to_thread
import orjson
from msgspec import Struct

from jumpseat.adapters.declared.view import AdapterView
from jumpseat.adapters.transport.messages import CLOSE_S, Headers, Request, Response, Route, WholeBody
from jumpseat.adapters.wire import as_object
from jumpseat.agent.blocks import JsonObject
from jumpseat.declared.calling import Bound, Mask, bind, failure
from jumpseat.errors import AdapterError, ProviderError

_ORDERS: Final = {
    0: (),
    1: ("payload",),
    2: ("client", "payload"),
    3: ("client", "payload", "actions"),
    4: ("client", "payload", "actions", "opts"),
}
_END: Final = object()


class RequestFunction(Struct, frozen=True):
    """A function that replaces the network for one call. ``mask`` removes secrets from what is logged."""

    function: Callable[..., Any]
    view: AdapterView
    payload: JsonObject
    mask: Mask = str

    def route(self) -> Route:
        """Return a route that calls the function; limits, errors and decoding are as for any call."""
        return _Route(self)

    async def call(self, request: Request) -> Any:
        """Call the function and return its response.

        Raises:
            AdapterError: the function failed; the message has the class of its exception and its line.
        """
        body = as_object(orjson.loads(request.body or b"{}"))
        given: list[Any] = []
        failed: list[Any] = []

        def callback(error: Any, data: Any = None, *_: Any) -> None:
            (failed if error is not None else given).append(error if error is not None else data)

        def done(*_: Any) -> None: ...

        client = SimpleNamespace(
            adapter=self.view,
            method=request.method,
            url=str(request.url),
            headers=dict(request.headers),
            body=body,
        )
        actions = SimpleNamespace(callback=callback, done=done)
        opts = {"stream": bool(self.view.opts.get("stream", True))}
        values = {"client": client, "payload": dict(self.payload), "actions": actions, "opts": opts}
        bound = bind(self.function, values, _ORDERS)
        try:
            if inspect.iscoroutinefunction(self.function):
                answer = await bound.function(*bound.args, **bound.kwargs)
            else:
                # The function may block, for example while it sends the request itself.
                answer = await anyio.to_thread.run_sync(_run, bound, abandon_on_cancel=True)
                if inspect.isawaitable(answer):
                    answer = await answer
        except ProviderError:
            raise
        except Exception as error:
            raise self.failure(error) from None
        if failed:
            return {"status": 502, "body": orjson.dumps({"error": {"message": str(failed[0])}})}
        return answer if answer is not None else given

    def failure(self, error: BaseException) -> AdapterError:
        """Log an exception of the function, and return the error for it."""
        name = f"adapter {self.view.name!r}"
        failed = failure(f"{name}: opts.request", error, self.function, self.mask)
        at = f" at {failed.source}" if failed.source else ""
        return AdapterError(
            f"{name}: its opts.request failed ({failed.reason}{at})", "opts.request", failed.source, str(error)
        )


def _run(bound: Bound) -> Any:
    try:
        return bound.function(*bound.args, **bound.kwargs)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(type(error).__name__).with_traceback(error.__traceback__) from error


class _Route:
    def __init__(self, function: RequestFunction) -> None:
        self._function = function

    async def send(self, request: Request) -> Response:
        answer = await self._function.call(request)
        if (whole := _whole(answer)) is not None:
            headers: dict[str, str] = {"Content-Type": "application/json", **(whole.get("headers") or {})}
            body = WholeBody(_as_bytes(whole.get("body")))
            return Response(int(whole.get("status", 200)), Headers(headers.items()), body)
        kind = [("Content-Type", "text/event-stream")]
        return Response(200, Headers(kind), _Lines(self._function, answer))

    async def aclose(self) -> None:
        pass


def _whole(answer: Any) -> Mapping[str, Any] | None:
    """Return the response if it is a whole one, returned or passed to the callback, else ``None``."""
    only = answer[0] if _is(answer, list) and len(answer) == 1 else answer
    return only if _is(only, Mapping) and "body" in only else None


def _is(value: Any, *kinds: type) -> bool:
    return isinstance(value, kinds)


class _Lines:
    def __init__(self, function: RequestFunction, answer: Any) -> None:
        self._function = function
        self._answer: Any = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if _is(self._answer, AsyncIterable):
                async for item in self._answer:
                    yield _as_line(item)
            else:
                answer = self._answer
                items = iter([answer] if _is(answer, str, bytes, Mapping) else answer)
                step = Bound(next, (items, _END), {}, frozenset())
                while (item := await anyio.to_thread.run_sync(_run, step, abandon_on_cancel=True)) is not _END:
                    yield _as_line(item)
        except ProviderError:
            raise
        except Exception as error:
            raise self._function.failure(error) from None

    async def aclose(self) -> None:
        close = getattr(self._answer, "aclose", None)
        if close is not None:
            with anyio.move_on_after(CLOSE_S, shield=True):
                await close()


def _as_line(item: Any) -> bytes:
    """Return a line of a stream as a server-sent event; a bare object becomes its data."""
    line = item if isinstance(item, bytes) else item.encode() if isinstance(item, str) else orjson.dumps(item)
    line = line.strip()
    return (line if line.startswith((b"data:", b"event:", b":")) else b"data: " + line) + b"\n\n"


def _as_bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else orjson.dumps(body if body is not None else {})
