"""A provider's response while it is received: time limits, status, chunks, and the mapping of transport errors."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Final, cast

import anyio

from jumpseat.adapters.adapter import Outcome, Timeouts
from jumpseat.adapters.failures import Redactor, failure_of_response
from jumpseat.adapters.transport import errors
from jumpseat.adapters.transport.messages import Limits, Response
from jumpseat.adapters.transport.sse import too_large
from jumpseat.adapters.transport.url import parse_url
from jumpseat.adapters.wire import one_line
from jumpseat.errors import ProviderError, ProviderProtocolError, ProviderRequestError, ProviderTransportError
from jumpseat.parsing.decompression import DecompressionError, decompress

MAX_ERROR_BYTES: Final = 64 * 1024
"""The number of bytes read of an error response's body."""

CLOSE_GRACE_S: Final = 0.1
"""Time limit for a complete response to end its transfer, so that its connection can be reused."""

_PLACE_IN_SSL: Final = re.compile(r" ?\(_ssl\.c:\d+\)")


@asynccontextmanager
async def open_response(
    response: ProviderResponse, send: Callable[[Limits], Awaitable[Response]]
) -> AsyncGenerator[ProviderResponse]:
    """Send a request and hold its response; leaving the context releases the connection, also when cancelled."""
    try:
        await response.open(send)
        yield response
    except ProviderError as error:
        # Secrets are removed here from every error raised while the response is open, whatever raised it.
        response.redactor().redact_error(error)
        raise
    finally:
        await response.close()


class ProviderResponse:
    """A response while it is received, in chunks and under time limits; its errors become ProviderErrors."""

    def __init__(self, redactor: Callable[[], Redactor], url: str, timeouts: Timeouts) -> None:
        """``redactor`` creates the redactor of the call's secrets; it is called only when an error is raised."""
        self._url = url
        self.redactor = redactor
        self.outcome = Outcome(None)
        self._timeouts = timeouts
        self._deadline = math.inf if timeouts.total is None else monotonic() + timeouts.total
        self._response: Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._complete = False

    @property
    def place(self) -> str:
        """The URL for use in messages, without user, password and query."""
        return _place(self._url)

    @property
    def response(self) -> Response:
        assert self._response is not None
        return self._response

    @property
    def content_type(self) -> str:
        return self.response.headers.get("content-type", "").lower()

    async def open(self, send: Callable[[Limits], Awaitable[Response]]) -> None:
        """Send the request and wait for the response headers, at most ``first_byte`` seconds.

        Raises:
            ProviderError: the request failed or timed out.
        """
        timeouts = self._timeouts
        limits: Limits = {"connect": timeouts.connect, "write": timeouts.first_byte, "read": None, "pool": None}
        first_byte = _min_limit(timeouts.first_byte, timeouts.total)
        try:
            with anyio.fail_after(first_byte):
                self._response = await send(limits)
        except ProviderError:
            raise
        except TimeoutError:
            self.outcome = replace(self.outcome, broken=True)
            raise ProviderTransportError(f"no response from {self.place} within {first_byte:g} s") from None
        except Exception as error:
            # The cause is dropped: h11 quotes header values, and a traceback would show them.
            raise self._failure(error) from None
        # From here on the connection enforces the read timeout. A cancel scope around every chunk would work, too,
        # but would cost more than decoding the chunk.
        limits["read"] = _min_limit(timeouts.idle, timeouts.total)
        response = self._response
        self.outcome = Outcome(response.status, response.headers)
        # The raw stream saves one layer per chunk; only a compressed response needs the decoding layer.
        encoding = response.headers.get("content-encoding", "identity")
        self._chunks = aiter(response.body if encoding == "identity" else decompress(response.body, encoding))

    async def check_status(self) -> None:
        """Raise the error that corresponds to the status, unless that is 2xx.

        Raises:
            ProviderError: the status is not 2xx. A redirect is not followed.
        """
        response = self.response
        if response.status // 100 == 2:
            return
        try:
            body = await self.body(MAX_ERROR_BYTES, cut=True)
        except ProviderError:
            # The status alone is enough when the body cannot be read.
            body = b""
        if response.status // 100 == 3:
            raise ProviderRequestError(
                f"HTTP {response.status}: {self.place} redirects elsewhere, and redirects are not followed; "
                "check the base URL",
                status=response.status,
            )
        raise failure_of_response(response.status, response.headers, body)

    async def body(self, limit: int, *, cut: bool = False) -> bytes:
        """Read the whole body; with ``cut``, at most ``limit`` bytes of it.

        Raises:
            ProviderError: the body is larger than ``limit`` bytes and ``cut`` is false, or reading failed.
        """
        pieces: list[bytes] = []
        size = 0
        while (piece := await self.chunk()) is not None:
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                if cut:
                    break
                raise too_large(limit)
        content = b"".join(pieces)[:limit]
        self.keep_content(content)
        return content

    def keep_content(self, content: bytes) -> None:
        """Keep the content of a whole body for the outcome of the call."""
        self.outcome = replace(self.outcome, content=content)

    async def chunk(self) -> bytes | None:
        """Return the next chunk as received, or ``None`` at the end of the body.

        Raises:
            ProviderTransportError: a time limit was exceeded, or the connection broke.
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
            self.outcome = replace(self.outcome, broken=True)
            raise ProviderTransportError(
                f"no complete response from {self.place} within {self._timeouts.total:g} s"
            )
        return piece

    async def drain(self) -> None:
        """Read the end of the transfer after a complete response, so that the connection can be reused."""
        if (finish := self.response.finish) is not None:
            await finish()
            return
        try:
            with anyio.move_on_after(CLOSE_GRACE_S):
                while not self._complete and await self.chunk() is not None:
                    pass
        except ProviderError:
            pass

    async def close(self) -> None:
        """Release the connection without delay, even while being cancelled."""
        response, self._response = self._response, None
        if response is not None:
            await response.body.aclose()
        self._chunks = None

    def _peer(self, error: errors.TransportError) -> str:
        """Name the peer of the connection attempt: the proxy if there is one, else the provider."""
        return f"the proxy {_place(error.proxy)} for {self.place}" if error.proxy else self.place

    def _failure(self, error: Exception) -> ProviderError:
        """Return the ProviderError for an exception raised while sending or receiving."""
        if isinstance(error, ProviderError):
            return error
        self.outcome = replace(self.outcome, broken=True)
        text = one_line(_PLACE_IN_SSL.sub("", self.redactor()(str(error))), 300) or type(error).__name__
        causes = list(_causes(error))
        if isinstance(error, errors.ConnectTimeout):
            return ProviderTransportError(
                f"cannot connect to {self._peer(error)} {_format_limit(self._timeouts.connect)}"
            )
        if isinstance(error, errors.ReadTimeout):
            limit = _min_limit(self._timeouts.idle, self._timeouts.total)
            return ProviderTransportError(f"{self.place} stopped sending: no data {_format_limit(limit)}")
        if isinstance(error, errors.TimeoutException):
            return ProviderTransportError(f"timed out while sending the request to {self.place}")
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            return _final(ProviderTransportError(f"cannot verify the certificate of {self.place}: {text}"))
        if isinstance(error, errors.ConnectError):
            refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
            reason = "connection refused" if refused else text
            handshake = any(isinstance(cause, ssl.SSLError) for cause in causes)
            peer = self.place if handshake else self._peer(error)
            return ProviderTransportError(f"cannot connect to {peer}: {reason}", refused=refused)
        if isinstance(error, (errors.RemoteProtocolError, errors.NetworkError)):
            when = "in the middle of its response" if self._response is not None else "before it responded"
            return ProviderTransportError(f"{self.place} closed the connection {when}: {text}")
        if isinstance(error, DecompressionError):
            return ProviderProtocolError(f"cannot decompress the response from {self.place}: {text}")
        if isinstance(error, errors.ProxyError):
            return ProviderTransportError(f"the proxy refused the connection to {self.place}: {text}")
        if isinstance(error, errors.UnsupportedProtocol):
            return ProviderRequestError(f"the address of {self.place} must begin with http:// or https://")
        if isinstance(error, (errors.InvalidURL, errors.LocalProtocolError, ValueError)):
            # The message is left out, because h11 quotes header values in it.
            return ProviderRequestError(f"invalid URL or header for {self.place} ({type(error).__name__})")
        return _final(ProviderTransportError(f"cannot reach {self.place}: {text}"))


def _place(url: str) -> str:
    """Return scheme, host, port and path of ``url``, without user, password and query, which may be secret."""
    try:
        parsed = parse_url(url)
    except (errors.InvalidURL, TypeError):
        return "the provider"
    return str(parsed).partition("?")[0].removesuffix("/") if parsed.host else "the provider"


def _min_limit(first: float | None, second: float | None) -> float | None:
    """Return the smaller of two limits; ``None`` means no limit."""
    return min((limit for limit in (first, second) if limit is not None), default=None)


def _format_limit(limit: float | None) -> str:
    """Format a limit for an error message; without a limit here, the operating system's own applied."""
    return "in time" if limit is None else f"within {limit:g} s"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over ``error``, its causes and contexts, and the members of exception groups."""
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
    """Mark a failure as permanent, so that it is not retried."""
    error.retryable = False
    return error
