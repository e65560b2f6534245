"""Record every provider call to its own file, while it happens.

A thread masks and writes; the turn only queues data. If the disk is slow or full, the recording is incomplete, but
the turn is not affected. ``recordings.py`` defines the file format.
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
import httpcore2
import orjson
from msgspec.structs import replace

from jumpseat.adapters.failures import Redactor
from jumpseat.adapters.recording.masking import ContentMask, MaskedPieces, mask_headers, mask_url
from jumpseat.adapters.recording.recordings import SUFFIX, VERSION, EndReason, content
from jumpseat.adapters.transport.messages import Body, Headers, Request, Response, Route
from jumpseat.parsing.decompression import decompress

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S: Final = 0.2
"""Time limit for writing the queued data when the process ends."""
MAX_QUEUED_BYTES: Final = 64 * 1024 * 1024
"""The maximum size of response chunks waiting to be written; beyond it, recordings are cut short."""

_Job = Callable[[], None]


class Recorder:
    """Records calls to ``folder``. ``mask_more`` is applied to every string, in addition to the call's secrets."""

    def __init__(self, folder: Path, mask_more: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._mask_more = mask_more
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._numbers = itertools.count(1)
        self.queued_bytes = 0

    def wrap(self, route: Route) -> Route:
        return _RecordingRoute(route, self)

    async def aclose(self) -> None:
        """Write the queued data, for at most :data:`CLOSE_TIMEOUT_S`."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(thread.join, CLOSE_TIMEOUT_S)

    def begin(self, request: Request) -> _CallRecording:
        """Start recording one call to a new file."""
        now = datetime.now(UTC)
        name = f"{now:%Y%m%dT%H%M%S.%f}-{os.getpid()}-{next(self._numbers):05}{SUFFIX}"
        make_redactor = request.redactor or partial(_request_redactor, request)
        file = _RecordingFile(self._folder / name, make_redactor(), self._mask_more, tokens=request.method == "GET")
        record: dict[str, Any] = {
            "type": "request",
            "version": VERSION,
            "at": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "method": request.method,
        }
        if request.session_id is not None:
            record["sessionId"] = request.session_id
        self.put(partial(file.write_request, record, str(request.url), request.headers.pairs, request.body))
        return _CallRecording(self, file, request)

    def put(self, job: _Job) -> None:
        """Queue ``job`` for the writer thread; jobs run in order."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_jobs, name="recorder", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _run_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                # The message is not logged, because it may quote unmasked data.
                log.exception("cannot write part of a recording", exc_info=False)


class _RecordingRoute:
    """Records the calls made over ``route``."""

    def __init__(self, route: Route, recorder: Recorder) -> None:
        self._route = route
        self._recorder = recorder

    async def send(self, request: Request) -> Response:
        # Recordings hold readable text, with the time of each chunk, so the response must not be compressed.
        fields = [field for field in request.fields if field[0].lower() != b"accept-encoding"]
        request = replace(request, fields=[*fields, (b"Accept-Encoding", b"identity")])
        recording = self._recorder.begin(request)
        try:
            response = await self._route.send(request)
        except BaseException as error:
            recording.end(error)
            raise
        headers, body = response.headers, response.body
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":
            body = _DecompressedBody(body, encoding)
            dropped = ("content-encoding", "content-length")
            headers = Headers(pair for pair in headers.pairs if pair[0] not in dropped)
        recording.head(response.status, headers)
        return replace(response, headers=headers, body=_RecordedBody(body, recording))

    async def aclose(self) -> None:
        await self._route.aclose()


class _DecompressedBody:
    """The decompressed body of a compressed response."""

    def __init__(self, body: Body, encoding: str) -> None:
        self._body = body
        self._encoding = encoding

    def __aiter__(self) -> AsyncIterator[bytes]:
        return decompress(self._body, self._encoding)

    async def aclose(self) -> None:
        await self._body.aclose()


class _RecordedBody:
    """A response body that is recorded while it is read."""

    def __init__(self, body: Body, recording: _CallRecording) -> None:
        self._body = body
        self._tape = recording

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._body:
                self._tape.piece(piece)
                yield piece
        except Exception as error:
            self._tape.end(error)
            raise
        self._tape.end(None)

    async def aclose(self) -> None:
        self._tape.end(GeneratorExit())
        await self._body.aclose()


class _CallRecording:
    """The recording of one call in the event loop: takes times and queues data for the writer thread."""

    def __init__(self, recorder: Recorder, file: _RecordingFile, request: Request) -> None:
        self._recorder = recorder
        self._file = file
        self._limit_s = request.limits["write"]
        self._answered = False
        self._ended = False
        self._began = self._last = time.monotonic()

    def head(self, status: int, headers: Headers) -> None:
        self._answered = True
        self._recorder.put(partial(self._file.write_head, self._after(), status, headers.pairs))

    def piece(self, piece: bytes) -> None:
        recorder = self._recorder
        if recorder.queued_bytes > MAX_QUEUED_BYTES:
            self._end("failed", "Overflow", "the disk was too slow for the rest")
            return
        if not self._ended:
            recorder.queued_bytes += len(piece)
            recorder.put(partial(self._write_piece, self._after(), piece))

    def _write_piece(self, after_s: float, piece: bytes) -> None:
        self._recorder.queued_bytes -= len(piece)
        self._file.write_piece(after_s, piece)

    def end(self, error: BaseException | None) -> None:
        """Record the end of the call; later calls of this method have no effect."""
        if error is None:
            self._end("end", None, "")
            return
        late = self._limit_s is not None and time.monotonic() - self._began >= self._limit_s
        if not isinstance(error, Exception):
            # The first-byte limit is enforced by cancellation.
            timed_out = late and not self._answered
            self._end(*(("timeout", "ReadTimeout", "no answer in time") if timed_out else ("closed", None, "")))
            return
        reason: EndReason = "failed"
        if isinstance(error, httpcore2.TimeoutException):
            reason = "timeout"
        elif isinstance(error, (httpcore2.RemoteProtocolError, httpcore2.ReadError, httpcore2.WriteError)):
            reason = "cut"
        self._end(reason, type(error).__name__, str(error))

    def _end(self, reason: EndReason, error: str | None, message: str) -> None:
        if not self._ended:
            self._ended = True
            self._recorder.put(partial(self._file.write_end, self._after(), reason, error, message))

    def _after(self) -> float:
        now = time.monotonic()
        after, self._last = now - self._last, now
        return after


class _RecordingFile:
    """The recording of one call in the writer thread: masks data and writes lines."""

    def __init__(self, path: Path, redactor: Redactor, mask_more: Callable[[str], str], *, tokens: bool) -> None:
        self._path = path
        self._redactor = redactor
        self._mask_more = mask_more
        self._mask = ContentMask(redactor, mask_more, tokens=tokens)
        self._pieces = MaskedPieces(self._mask, fields=True)
        self._held_s = 0.0
        self._fd: int | None = None

    def write_request(self, record: dict[str, Any], url: str, headers: list[tuple[str, str]], body: bytes) -> None:
        try:
            self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
        except OSError as error:
            log.error("cannot record to %s: %s", self._path, error.strerror or error)
            return
        record["url"] = mask_url(url, self._mask)
        record["headers"] = self._headers(headers)
        try:
            record["body"] = self._mask.json(orjson.loads(body))
        except orjson.JSONDecodeError:
            if body:
                record.update(content(self._mask.raw(body), "bodyText"))
        self._write(record)

    def write_head(self, after_s: float, status: int, headers: list[tuple[str, str]]) -> None:
        kind = next((value for name, value in headers if name.lower() == "content-type"), "").lower()
        # Chunks of a stream end at event boundaries; a JSON document may be cut anywhere.
        streams = "event-stream" in kind or "ndjson" in kind or "jsonl" in kind
        self._pieces = MaskedPieces(self._mask, fields=not streams)
        self._write(
            {"type": "response", "afterS": _rounded(after_s), "status": status, "headers": self._headers(headers)}
        )

    def write_piece(self, after_s: float, piece: bytes) -> None:
        self._write_data(after_s, self._pieces.feed(piece))

    def write_end(self, after_s: float, reason: EndReason, error: str | None, message: str) -> None:
        if rest := self._pieces.finish():
            self._write_data(0.0, rest)
        record: dict[str, Any] = {"type": "end", "afterS": _rounded(after_s), "how": reason}
        if error is not None:
            record.update(error=error, message=self._mask_more(self._redactor(message)))
        self._write(record)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write_data(self, after_s: float, data: bytes) -> None:
        self._held_s += after_s
        if data:
            after_s, self._held_s = self._held_s, 0.0
            self._write({"type": "piece", "afterS": _rounded(after_s), **content(data, "text")})

    def _headers(self, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return mask_headers(headers, self._redactor, self._mask)

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


def _request_redactor(request: Request) -> Redactor:
    """Return a redactor of the request's own credentials, for a request without a redactor."""
    return Redactor(
        headers=[{name: value for name, value in request.headers.items() if name in ("authorization", "api-key")}]
    )


def _rounded(seconds: float) -> float:
    return round(seconds, 6)
