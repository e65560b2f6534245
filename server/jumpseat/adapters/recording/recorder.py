"""Writing every call to a provider down, each to a file of its own, while it happens.

A thread masks and writes; the turn only hands things over, and loses nothing when the disk is slow or full: then
the recording does. The form of the files is that of ``recordings.py``.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import anyio
import anyio.to_thread
import httpx
import orjson

from jumpseat.adapters.failures import Redactor
from jumpseat.adapters.recording.masking import ContentMask, MaskedPieces, masked_headers, masked_url
from jumpseat.adapters.recording.recordings import SUFFIX, VERSION, How, content
from jumpseat.adapters.transport.tunnel import SESSION, VEIL

log = logging.getLogger(__name__)

LAST_WRITES_S: Final = 0.2
"""How long the end of the process waits for what is still to be written."""
MOST_WAITING_BYTES: Final = 64 * 1024 * 1024
"""A disk that is this far behind gets no more of the pieces."""

_Job = Callable[[], None]


class Recorder:
    """Records to ``folder``. ``also`` is put over every text besides the secrets of the call."""

    def __init__(self, folder: Path, also: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._also = also
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._numbers = itertools.count(1)
        self.waiting_bytes = 0

    def around(self, route: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        return _Recorded(route, self)

    async def aclose(self) -> None:
        """Write what is left, as far as that takes no longer than a moment."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(thread.join, LAST_WRITES_S)

    def begin(self, request: httpx.Request, body: bytes) -> _Tape:
        """Start the file of one call."""
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%S.%f}-{os.getpid()}-{next(self._numbers):05}{SUFFIX}"
        make_veil: Callable[[], Redactor] = request.extensions.get(VEIL) or partial(_veil_of, request)
        file = _File(self._folder / name, make_veil(), self._also, tokens=request.method == "GET")
        record: dict[str, Any] = {
            "type": "request",
            "version": VERSION,
            "at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "method": request.method,
        }
        if (session_id := request.extensions.get(SESSION)) is not None:
            record["sessionId"] = session_id
        self.put(partial(file.write_request, record, str(request.url), request.headers.multi_items(), body))
        return _Tape(self, file, request)

    def put(self, job: _Job) -> None:
        """Have ``job`` done after all that were put before it."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                # Not the text: it may quote what was to be masked.
                log.exception("a part of a recording could not be written", exc_info=False)


class _Recorded(httpx.AsyncBaseTransport):
    """A route whose calls are recorded."""

    def __init__(self, route: httpx.AsyncBaseTransport, recorder: Recorder) -> None:
        self._route = route
        self._recorder = recorder

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        # What is recorded is to be read, and timed piece by piece.
        request.headers["accept-encoding"] = "identity"
        tape = self._recorder.begin(request, body)
        try:
            response = await self._route.handle_async_request(request)
        except BaseException as error:
            tape.end(error)
            raise
        headers = response.headers
        stream: Any = response.stream
        if headers.get("content-encoding", "identity") != "identity":
            stream = _Decoded(response)
            headers = httpx.Headers(
                [
                    (name, value)
                    for name, value in headers.multi_items()
                    if name not in ("content-encoding", "content-length")
                ]
            )
        tape.head(response.status_code, headers)
        return httpx.Response(
            response.status_code, headers=headers, stream=_Taped(stream, tape), extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._route.aclose()


class _Decoded(httpx.AsyncByteStream):
    """The body of a compressed answer, without the compression."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_bytes():
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class _Taped(httpx.AsyncByteStream):
    """The body of an answer, handed on and recorded."""

    def __init__(self, stream: httpx.AsyncByteStream, tape: _Tape) -> None:
        self._stream = stream
        self._tape = tape

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                self._tape.piece(piece)
                yield piece
        except Exception as error:
            self._tape.end(error)
            raise
        self._tape.end(None)

    async def aclose(self) -> None:
        self._tape.end(GeneratorExit())
        await self._stream.aclose()


class _Tape:
    """The recording of one call on the side of the event loop: takes the times, and hands everything over."""

    def __init__(self, recorder: Recorder, file: _File, request: httpx.Request) -> None:
        self._recorder = recorder
        self._file = file
        self._limit_s: float | None = request.extensions.get("timeout", {}).get("write")
        self._answered = False
        self._ended = False
        self._began = self._last = time.monotonic()

    def head(self, status: int, headers: httpx.Headers) -> None:
        self._answered = True
        self._recorder.put(partial(self._file.write_head, self._after(), status, headers.multi_items()))

    def piece(self, piece: bytes) -> None:
        recorder = self._recorder
        if recorder.waiting_bytes > MOST_WAITING_BYTES:
            self._end("failed", "Overflow", "the disk was too slow for the rest")
            return
        if not self._ended:
            recorder.waiting_bytes += len(piece)
            recorder.put(partial(self._write_piece, self._after(), piece))

    def _write_piece(self, after_s: float, piece: bytes) -> None:
        self._recorder.waiting_bytes -= len(piece)
        self._file.write_piece(after_s, piece)

    def end(self, error: BaseException | None) -> None:
        """The call is over; only the first end counts."""
        if error is None:
            self._end("end", None, "")
            return
        late = self._limit_s is not None and time.monotonic() - self._began >= self._limit_s
        if not isinstance(error, Exception):
            # A limit on the way to the first byte shows itself as a cancellation.
            timed_out = late and not self._answered
            self._end(*(("timeout", "ReadTimeout", "no answer in time") if timed_out else ("closed", None, "")))
            return
        how: How = "failed"
        if isinstance(error, httpx.TimeoutException):
            how = "timeout"
        elif isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)):
            how = "cut"
        self._end(how, type(error).__name__, str(error))

    def _end(self, how: How, error: str | None, message: str) -> None:
        if not self._ended:
            self._ended = True
            self._recorder.put(partial(self._file.write_end, self._after(), how, error, message))

    def _after(self) -> float:
        now = time.monotonic()
        after, self._last = now - self._last, now
        return after


class _File:
    """The recording of one call on the side of the thread: masks, and writes line by line."""

    def __init__(self, path: Path, veil: Redactor, also: Callable[[str], str], *, tokens: bool) -> None:
        self._path = path
        self._veil = veil
        self._also = also
        self._mask = ContentMask(veil, also, tokens=tokens)
        self._pieces = MaskedPieces(self._mask, fields=True)
        self._held_s = 0.0
        self._fd: int | None = None

    def write_request(self, record: dict[str, Any], url: str, headers: list[tuple[str, str]], body: bytes) -> None:
        try:
            self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
        except OSError as error:
            log.error("cannot record to %s: %s", self._path, error.strerror or error)
            return
        record["url"] = masked_url(url, self._mask)
        record["headers"] = self._headers(headers)
        try:
            record["body"] = self._mask.json(orjson.loads(body))
        except orjson.JSONDecodeError:
            if body:
                record.update(content(self._mask.answer(body), "bodyText"))
        self._write(record)

    def write_head(self, after_s: float, status: int, headers: list[tuple[str, str]]) -> None:
        kind = next((value for name, value in headers if name.lower() == "content-type"), "").lower()
        # A stream has pieces that end where they should; a JSON text is cut anywhere.
        streams = "event-stream" in kind or "ndjson" in kind or "jsonl" in kind
        self._pieces = MaskedPieces(self._mask, fields=not streams)
        self._write(
            {"type": "response", "afterS": _rounded(after_s), "status": status, "headers": self._headers(headers)}
        )

    def write_piece(self, after_s: float, piece: bytes) -> None:
        self._tell(after_s, self._pieces.feed(piece))

    def write_end(self, after_s: float, how: How, error: str | None, message: str) -> None:
        if rest := self._pieces.rest():
            self._tell(0.0, rest)
        record: dict[str, Any] = {"type": "end", "afterS": _rounded(after_s), "how": how}
        if error is not None:
            record.update(error=error, message=self._also(self._veil(message)))
        self._write(record)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _tell(self, after_s: float, data: bytes) -> None:
        self._held_s += after_s
        if data:
            after_s, self._held_s = self._held_s, 0.0
            self._write({"type": "piece", "afterS": _rounded(after_s), **content(data, "text")})

    def _headers(self, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return masked_headers(headers, self._veil, self._mask)

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._fd is None:
            return
        line = orjson.dumps(record) + b"\n"
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                raise OSError("the disk is full")
        except OSError as error:
            log.error("cannot record to %s: %s", self._path, error.strerror or error)
            fd, self._fd = self._fd, None
            os.close(fd)


def _veil_of(request: httpx.Request) -> Redactor:
    """For a request that brings none: its own credentials."""
    return Redactor(
        headers=[{name: value for name, value in request.headers.items() if name in ("authorization", "api-key")}]
    )


def _rounded(seconds: float) -> float:
    return round(seconds, 6)
