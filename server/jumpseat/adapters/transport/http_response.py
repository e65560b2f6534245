"""A provider's response while it is received: time limits, status and chunks."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

import anyio
from msgspec.structs import replace

from jumpseat.adapters.adapter import Outcome, Timeouts
from jumpseat.adapters.failures import Redactor, failure_of_response
from jumpseat.adapters.transport.messages import Limits, Response
from jumpseat.adapters.transport.sse import too_large
from jumpseat.adapters.transport.url import place_of
from jumpseat.errors import ProviderError, ProviderRequestError, ProviderTransportError
from jumpseat.parsing.decompression import decompress

MAX_ERROR_BYTES: Final = 64 * 1024
"""The number of bytes read of an error response's body."""

CLOSE_GRACE_S: Final = 0.1
"""Time limit for a complete response to end its transfer, so that its connection can be reused."""


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
        return place_of(self._url)

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

    def _failure(self, error: Exception) -> ProviderError:
        """Return the ProviderError for an exception raised while sending or receiving."""
        if isinstance(error, ProviderError):
            return error
        from jumpseat.adapters.transport.failures import FailedCall, failure_of

        self.outcome = replace(self.outcome, broken=True)
        limits = self._timeouts
        call = FailedCall(
            self.place,
            self.redactor()(str(error)),
            connect_s=limits.connect,
            idle_s=_min_limit(limits.idle, limits.total),
            answered=self._response is not None,
        )
        return failure_of(error, call)


def _min_limit(first: float | None, second: float | None) -> float | None:
    """Return the smaller of two limits; ``None`` means no limit."""
    return min((limit for limit in (first, second) if limit is not None), default=None)
