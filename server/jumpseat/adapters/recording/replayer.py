"""Replay recorded calls offline, without any network access.

A request is answered by the first unused recording with the same method, path and body. Values that differ from run
to run (ids, times, the working folder) are ignored, and masked secrets match anything. Once all matching recordings
are used, the last one is repeated. With ``in_order``, bodies are not compared.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpcore2
import orjson

from jumpseat.adapters.recording.recordings import Ending, Recording, read_folder
from jumpseat.adapters.transport.messages import Headers, Request, Response, Route
from jumpseat.adapters.transport.url import parse_url
from jumpseat.agent.secrets import MASK
from jumpseat.errors import ConfigError, ProviderTransportError, ReplayError

SHOWN_CHARS: Final = 60
"""The maximum length of each value in the description of a difference."""

_FAILURES: Final = {
    error.__name__: error
    for error in (
        httpcore2.ConnectError,
        httpcore2.ConnectTimeout,
        httpcore2.ReadError,
        httpcore2.ReadTimeout,
        httpcore2.WriteError,
        httpcore2.WriteTimeout,
        httpcore2.RemoteProtocolError,
        httpcore2.ProxyError,
    )
}
_TRANSFER_HEADERS: Final = frozenset({"content-length", "transfer-encoding", "content-encoding", "connection"})
_ID_NAME: Final = re.compile(r"(?:\w+_)?id|\w+Id|prompt_cache_key|user|safety_identifier")
_NON_ID_NAMES: Final = frozenset({"model_id", "modelId"})
_VOLATILE: Final = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<=Current working directory: )[^\n]*"), "<folder>"),
    (re.compile(r"(?<=Operating System: )[^\n]*"), "<system>"),
)


class Replayer:
    """A route that answers from the recordings in ``folder``, which are read at the first request."""

    def __init__(self, folder: Path, *, in_order: bool = False, delays: bool = False) -> None:
        """``in_order`` ignores request bodies; ``delays`` reproduces the recorded delays."""
        self._folder = folder
        self._in_order = in_order
        self._delays = delays
        self._recordings: list[_Candidate] | None = None

    def wrap(self, route: Route) -> Route:
        return self

    async def aclose(self) -> None:
        pass

    async def send(self, request: Request) -> Response:
        if self._recordings is None:
            try:
                found = await anyio.to_thread.run_sync(read_folder, self._folder)
            except ConfigError as error:
                raise ReplayError(str(error)) from None
            # A concurrent request may have loaded the recordings meanwhile, and used some.
            self._recordings = self._recordings or [_Candidate(recording) for recording in found]
        recording = self._find(self._recordings, request.method, request.url.path, request.body)
        if self._delays:
            await anyio.sleep(recording.first_after_s)
        if recording.status is None:
            raise _failure(recording)
        return Response(
            recording.status,
            Headers(header for header in recording.headers if header[0].lower() not in _TRANSFER_HEADERS),
            _Replayed(recording, delays=self._delays),
        )

    def _find(self, recordings: list[_Candidate], method: str, path: str, body: bytes) -> Recording:
        sent = _leaves_of(_parsed(body))
        same_path = [
            recording for recording in recordings if (recording.recording.method, recording.path) == (method, path)
        ]
        matching = (
            same_path
            if self._in_order
            else [candidate for candidate in same_path if not any(_differences(candidate.leaves, sent))]
        )
        if matching:
            found = next((candidate for candidate in matching if not candidate.used), matching[-1])
            found.used = True
            return found.recording
        raise ReplayError(
            f"offline, and {self._describe_mismatch(recordings, same_path, sent, f'{method} {path}')}"
        )

    def _describe_mismatch(
        self, recordings: list[_Candidate], same_path: list[_Candidate], sent: dict[str, Any], what: str
    ) -> str:
        where = self._folder.name
        if not same_path:
            known = (
                ", ".join(sorted({f"{recording.recording.method} {recording.path}" for recording in recordings}))
                or "nothing"
            )
            return f"no recording in {where!r} is of {what}, only of {known}"
        found = {id(candidate): list(_differences(candidate.leaves, sent)) for candidate in same_path}
        nearest = min(same_path, key=lambda candidate: sum(weight for weight, _ in found[id(candidate)]))
        (_, first), *more = found[id(nearest)]
        others = f" (and {len(more)} more)" if more else ""
        return f"no recording in {where!r} is of this {what}; {nearest.recording.name!r} differs at {first}{others}"


class _Candidate:
    """A recording prepared for comparison with requests."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.path = parse_url(recording.url).path
        self.leaves = _leaves_of(recording.body)
        self.used = False


class _Replayed:
    def __init__(self, recording: Recording, *, delays: bool) -> None:
        self._recording = recording
        self._delays = delays

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for after_s, piece in self._recording.pieces:
            if self._delays:
                await anyio.sleep(after_s)
            else:
                await anyio.lowlevel.checkpoint()
            yield piece
        ending = self._recording.ending
        if ending is None or ending.reason != "end":
            raise _failure(self._recording)

    async def aclose(self) -> None:
        pass


def _failure(recording: Recording) -> Exception:
    """Return the exception for a recording whose transfer is incomplete."""
    ending = recording.ending or Ending("closed")
    kind = _FAILURES.get(ending.error or "")
    if kind is not None:
        return kind(ending.message)
    if ending.reason in ("cut", "timeout"):
        return (httpcore2.ReadTimeout if ending.reason == "timeout" else httpcore2.RemoteProtocolError)(
            ending.message
        )
    reason = ending.message or "the call was cancelled" if recording.ending else "the file is incomplete"
    error = ProviderTransportError(f"the recording {recording.name!r} ends early: {reason}")
    error.retryable = False
    return error


def _parsed(body: bytes) -> Any:
    if not body:
        return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")


def _leaves_of(value: Any) -> dict[str, Any]:
    """Return the leaves of a JSON value by their path, with volatile values replaced."""
    return dict(_leaves(value, "", ""))


def _leaves(value: Any, place: str, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in cast("dict[str, Any]", value).items():
            yield from _leaves(item, f"{place}.{key}" if place else key, key)
    elif isinstance(value, list) and value:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _leaves(item, f"{place}[{index}]", name)
    elif isinstance(value, str):
        yield place, "<id>" if _is_id(name) else _without_volatile(value)
    else:
        yield place, value


def _is_id(name: str) -> bool:
    return name not in _NON_ID_NAMES and _ID_NAME.fullmatch(name) is not None


def _without_volatile(text: str) -> str:
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return text


def _differences(recorded: dict[str, Any], sent: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Iterate over the differences between two bodies, each as a weight from 0 to 2 and a short description."""
    for place, value in sent.items():
        if place not in recorded:
            yield 2.0, f"{place or 'the body'}: not recorded, sent {_short(value)}"
        elif not _same(recorded[place], value):
            yield _distance(recorded[place], value), f"{place or 'the body'}: {_contrast(recorded[place], value)}"
    for place, value in recorded.items():
        if place not in sent:
            yield 2.0, f"{place or 'the body'}: recorded {_short(value)}, not sent"


def _distance(recorded: Any, sent: Any) -> float:
    """Return the weight of a difference; strings with a common start or end weigh less."""
    if not (isinstance(recorded, str) and isinstance(sent, str)):
        return 2.0
    alike = _common(recorded, sent) + _common(recorded[::-1], sent[::-1])
    return 2.0 - min(1.0, alike / max(len(recorded), len(sent)))


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two strings."""
    both = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(both) if a != b), min(len(one), len(other)))


def _same(recorded: Any, sent: Any) -> bool:
    if recorded == sent:
        return True
    if not (isinstance(recorded, str) and isinstance(sent, str) and MASK in recorded):
        return False
    return re.fullmatch(".*".join(map(re.escape, recorded.split(MASK))), sent, re.DOTALL) is not None


def _contrast(recorded: Any, sent: Any) -> str:
    if isinstance(recorded, str) and isinstance(sent, str):
        start = max(0, _common(recorded, sent) - SHOWN_CHARS // 3)
        recorded, sent = f"{'…' if start else ''}{recorded[start:]}", f"{'…' if start else ''}{sent[start:]}"
    return f"recorded {_short(recorded)}, sent {_short(sent)}"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
