"""One answer of a provider while it comes in: its time limits, its status, its chunks, and what can go wrong."""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Final, TypeAlias, cast

import anyio
import httpx

from jumpseat.adapters.adapter import Outcome, Timeouts
from jumpseat.adapters.failures import Redactor, failure_of_response
from jumpseat.adapters.transport.pools import PROXY
from jumpseat.adapters.transport.sse import too_large
from jumpseat.adapters.transport.tunnel import FINISH
from jumpseat.adapters.wire import one_line
from jumpseat.errors import ProviderError, ProviderProtocolError, ProviderRequestError, ProviderTransportError

MAX_ERROR_BYTES: Final = 64 * 1024
"""How much of an error's body is read."""

CLOSE_GRACE_S: Final = 0.1
"""How long a complete answer may take to end its transfer, so that its connection can be used again."""

Limits: TypeAlias = dict[str, float | None]
"""``connect``, ``write``, ``read`` and ``pool`` of one request in seconds, as httpx takes them."""


@asynccontextmanager
async def opened(answer: Answer, send: Callable[[Limits], Awaitable[httpx.Response]]) -> AsyncGenerator[Answer]:
    """Send a request and hold its answer; leaving releases the connection, also when cancelled."""
    try:
        await answer.open(send)
        yield answer
    except ProviderError as error:
        # One place takes the secrets out of everything that is raised on the way, whoever raised it.
        answer.veil().over(error)
        raise
    finally:
        await answer.close()


class Answer:
    """One answer while it comes in: its chunks, under the time limits, with httpx's errors made ours."""

    def __init__(self, veil: Callable[[], Redactor], url: str, timeouts: Timeouts) -> None:
        """``veil`` makes what hides the secrets of this call; it is called when something fails."""
        self._url = url
        self.veil = veil
        self.outcome = Outcome(None)
        self._timeouts = timeouts
        self._deadline = math.inf if timeouts.total is None else monotonic() + timeouts.total
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._complete = False

    @property
    def place(self) -> str:
        return _place(self._url)

    @property
    def response(self) -> httpx.Response:
        assert self._response is not None
        return self._response

    @property
    def content_type(self) -> str:
        return self.response.headers.get("content-type", "").lower()

    async def open(self, send: Callable[[Limits], Awaitable[httpx.Response]]) -> None:
        timeouts = self._timeouts
        limits: Limits = {"connect": timeouts.connect, "write": timeouts.first_byte, "read": None, "pool": None}
        first_byte = _shorter(timeouts.first_byte, timeouts.total)
        try:
            with anyio.fail_after(first_byte):
                self._response = await send(limits)
        except ProviderError:
            raise
        except TimeoutError:
            raise ProviderTransportError(f"{self.place} sent no answer within {first_byte:g} s") from None
        except Exception as error:
            # The cause is cut off: httpx quotes header values, and a traceback would show them.
            raise self._failure(error) from None
        # From here on httpcore times the silences. A scope of ours around every chunk would do too, but costs
        # more than all the decoding of the chunk.
        limits["read"] = _shorter(timeouts.idle, timeouts.total)
        response = self._response
        self.outcome = Outcome(response.status_code, response.headers)
        # The raw stream spares one layer per chunk; only a compressed answer needs the layer that undoes it.
        encoded = response.headers.get("content-encoding", "identity") != "identity"
        stream = response.aiter_bytes() if encoded else cast("httpx.AsyncByteStream", response.stream)
        self._chunks = aiter(stream)

    async def check_status(self) -> None:
        """Raise the error that a status other than 2xx stands for."""
        response = self.response
        if response.is_success:
            return
        try:
            body = await self.body(MAX_ERROR_BYTES, cut=True)
        except ProviderError:
            # The status says enough when its body cannot be had.
            body = b""
        self.outcome = replace(self.outcome, body=body.decode("utf-8", "replace"))
        if response.is_redirect:
            raise ProviderRequestError(
                f"HTTP {response.status_code}: {self.place} sends elsewhere, which is not followed; "
                "check the base URL",
                status=response.status_code,
            )
        raise failure_of_response(response.status_code, response.headers, body)

    async def body(self, limit: int, *, cut: bool = False) -> bytes:
        """The whole body. One larger than ``limit`` bytes is cut there, or refused."""
        pieces: list[bytes] = []
        size = 0
        while (piece := await self.chunk()) is not None:
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                if cut:
                    break
                raise too_large(limit)
        return b"".join(pieces)[:limit]

    async def chunk(self) -> bytes | None:
        """The next piece as it comes from the network, ``None`` at the end.

        Raises:
            ProviderTransportError: silence beyond a limit, or the connection broke.
        """
        assert self._chunks is not None
        try:
            piece = await anext(self._chunks)
        except StopAsyncIteration:
            self._complete = True
            return None
        except Exception as error:
            raise self._failure(error) from None
        if monotonic() > self._deadline:
            raise ProviderTransportError(f"{self.place} sent no complete answer within {self._timeouts.total:g} s")
        return piece

    async def drain(self) -> None:
        """After a complete answer, take the end of the transfer if it is there, so the connection can be kept."""
        if (finish := self.response.extensions.get(FINISH)) is not None:
            await finish()
            return
        try:
            with anyio.move_on_after(CLOSE_GRACE_S):
                while not self._complete and await self.chunk() is not None:
                    pass
        except ProviderError:
            pass

    async def close(self) -> None:
        """Release the connection, at once even while being cancelled."""
        response, self._response = self._response, None
        if response is not None:
            with anyio.move_on_after(1, shield=True):
                await response.aclose()
        self._chunks = None

    def _peer(self, error: httpx.RequestError) -> str:
        """What was being connected to: of a call by way of a proxy, that."""
        proxy = error.request.extensions.get(PROXY)
        return f"the proxy {_place(proxy)} on the way to {self.place}" if proxy else self.place

    def _failure(self, error: Exception) -> ProviderError:
        """What an exception on the way of a request means."""
        if isinstance(error, ProviderError):
            return error
        text = one_line(self.veil()(str(error)), 300) or type(error).__name__
        causes = list(_causes(error))
        if isinstance(error, httpx.ConnectTimeout):
            return ProviderTransportError(
                f"cannot connect to {self._peer(error)} {_within(self._timeouts.connect)}"
            )
        if isinstance(error, httpx.ReadTimeout):
            limit = _shorter(self._timeouts.idle, self._timeouts.total)
            return ProviderTransportError(f"{self.place} sent nothing more {_within(limit)}")
        if isinstance(error, httpx.TimeoutException):
            return ProviderTransportError(f"{self.place} did not take the request in time")
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            return _final(ProviderTransportError(f"cannot trust the certificate of {self.place}: {text}"))
        if isinstance(error, httpx.ConnectError):
            refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
            reason = "connection refused" if refused else text
            handshake = any(isinstance(cause, ssl.SSLError) for cause in causes)
            peer = self.place if handshake else self._peer(error)
            return ProviderTransportError(f"cannot connect to {peer}: {reason}", refused=refused)
        if isinstance(error, (httpx.RemoteProtocolError, httpx.NetworkError)):
            when = "in the middle of its answer" if self._response is not None else "before it answered"
            return ProviderTransportError(f"{self.place} broke the connection {when}: {text}")
        if isinstance(error, httpx.DecodingError):
            return ProviderProtocolError(f"cannot decompress the answer of {self.place}: {text}")
        if isinstance(error, httpx.ProxyError):
            return ProviderTransportError(f"the proxy does not let us to {self.place}: {text}")
        if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError)):
            # Not the text: httpx quotes header values here.
            return ProviderRequestError(
                f"the URL or a header for {self.place} is not valid ({type(error).__name__})"
            )
        return _final(ProviderTransportError(f"cannot reach {self.place}: {text}"))


def _place(url: str) -> str:
    """Scheme, host, port and path of ``url``: no user, no password, no query, for those may be secret."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        return "the provider"
    return str(parsed.copy_with(userinfo=b"", query=None, fragment=None)) if parsed.host else "the provider"


def _shorter(first: float | None, second: float | None) -> float | None:
    """The smaller of two limits, of which ``None`` is no limit."""
    return min((limit for limit in (first, second) if limit is not None), default=None)


def _within(limit: float | None) -> str:
    """For errors. The system has limits too, where we have none."""
    return "in time" if limit is None else f"within {limit:g} s"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """``error`` and everything below it, groups included."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", current).exceptions
        waiting += [current.__cause__, current.__context__]


def _final(error: ProviderTransportError) -> ProviderTransportError:
    """Mark a failure that another attempt would meet again."""
    error.retryable = False
    return error
