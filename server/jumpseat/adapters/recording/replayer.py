"""Answering calls from recordings, offline: nothing here ever reaches the network.

A request is answered by the first unused recording of the same method, path and body. What differs from run to run
(ids, times, the working folder) does not count; secrets were masked and match anything. Where all that fit are
used, the last answers again. With ``in_order`` the body does not count at all.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx
import orjson

from jumpseat.adapters.recording.recordings import Ending, Recording, read_folder
from jumpseat.agent.secrets import MASK
from jumpseat.errors import ConfigError, ProviderTransportError, ReplayError

SHOWN_CHARS: Final = 60
"""How much of each side of a difference is shown."""

_FAILURES: Final = {
    error.__name__: error
    for error in (
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.ReadError,
        httpx.ReadTimeout,
        httpx.WriteError,
        httpx.WriteTimeout,
        httpx.RemoteProtocolError,
        httpx.ProxyError,
    )
}
_OF_A_TRANSFER: Final = frozenset({"content-length", "transfer-encoding", "content-encoding", "connection"})
_ID_NAME: Final = re.compile(r"(?:\w+_)?id|\w+Id|prompt_cache_key|user|safety_identifier")
_NOT_IDS: Final = frozenset({"model_id", "modelId"})
_VOLATILE: Final = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<=Current working directory: )[^\n]*"), "<folder>"),
    (re.compile(r"(?<=Operating System: )[^\n]*"), "<system>"),
)


class Replayer(httpx.AsyncBaseTransport):
    """Answers from the recordings in ``folder``, which are read at the first request."""

    def __init__(self, folder: Path, *, in_order: bool = False, delays: bool = False) -> None:
        """``in_order`` leaves bodies out of account; ``delays`` lets time pass as it did."""
        self._folder = folder
        self._in_order = in_order
        self._delays = delays
        self._recordings: list[_Prepared] | None = None

    def around(self, route: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        return self

    async def aclose(self) -> None:
        pass

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._recordings is None:
            try:
                found = await anyio.to_thread.run_sync(read_folder, self._folder)
            except ConfigError as error:
                raise ReplayError(str(error)) from None
            # Another request may have been quicker, and have used some.
            self._recordings = self._recordings or [_Prepared(one) for one in found]
        recording = self._find(self._recordings, request.method, request.url.path, await request.aread())
        if self._delays:
            await anyio.sleep(recording.first_after_s)
        if recording.status is None:
            raise _failure(recording)
        return httpx.Response(
            recording.status,
            headers=[one for one in recording.headers if one[0].lower() not in _OF_A_TRANSFER],
            stream=_Replayed(recording, delays=self._delays),
        )

    def _find(self, recordings: list[_Prepared], method: str, path: str, body: bytes) -> Recording:
        wanted = _leaves_of(_parsed(body))
        there = [one for one in recordings if (one.recording.method, one.path) == (method, path)]
        fitting = there if self._in_order else [one for one in there if not any(_differences(one.leaves, wanted))]
        if fitting:
            found = next((one for one in fitting if not one.used), fitting[-1])
            found.used = True
            return found.recording
        raise ReplayError(f"offline, and {self._complaint(recordings, there, wanted, f'{method} {path}')}")

    def _complaint(
        self, recordings: list[_Prepared], there: list[_Prepared], wanted: dict[str, Any], what: str
    ) -> str:
        where = self._folder.name
        if not there:
            known = ", ".join(sorted({f"{one.recording.method} {one.path}" for one in recordings})) or "nothing"
            return f"no recording in {where!r} is of {what}, only of {known}"
        found = {id(one): list(_differences(one.leaves, wanted)) for one in there}
        nearest = min(there, key=lambda one: sum(weight for weight, _ in found[id(one)]))
        (_, first), *more = found[id(nearest)]
        others = f" (and {len(more)} more)" if more else ""
        return f"no recording in {where!r} is of this {what}; {nearest.recording.name!r} differs at {first}{others}"


class _Prepared:
    """A recording, ready to be compared."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.path = httpx.URL(recording.url).path
        self.leaves = _leaves_of(recording.body)
        self.used = False


class _Replayed(httpx.AsyncByteStream):
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
        if ending is None or ending.how != "end":
            raise _failure(self._recording)


def _failure(recording: Recording) -> Exception:
    """What went wrong where a recording ends without its transfer being complete."""
    ending = recording.ending or Ending("closed")
    kind = _FAILURES.get(ending.error or "")
    if kind is not None:
        return kind(ending.message)
    if ending.how in ("cut", "timeout"):
        return (httpx.ReadTimeout if ending.how == "timeout" else httpx.RemoteProtocolError)(ending.message)
    reason = ending.message or "the call was given up" if recording.ending else "the file is torn"
    error = ProviderTransportError(f"the recording {recording.name!r} goes no further: {reason}")
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
    """What stands where in a JSON value, without what is volatile."""
    return dict(_leaves(value, "", ""))


def _leaves(value: Any, place: str, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, one in cast("dict[str, Any]", value).items():
            yield from _leaves(one, f"{place}.{key}" if place else key, key)
    elif isinstance(value, list) and value:
        for index, one in enumerate(cast("list[Any]", value)):
            yield from _leaves(one, f"{place}[{index}]", name)
    elif isinstance(value, str):
        yield place, "<id>" if _is_id(name) else _settled(value)
    else:
        yield place, value


def _is_id(name: str) -> bool:
    return name not in _NOT_IDS and _ID_NAME.fullmatch(name) is not None


def _settled(text: str) -> str:
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return text


def _differences(recorded: dict[str, Any], sent: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Where two bodies differ: how much, from 0 to 2, and each place in a few words."""
    for place, value in sent.items():
        if place not in recorded:
            yield 2.0, f"{place or 'the body'}: not recorded, sent {_short(value)}"
        elif not _same(recorded[place], value):
            yield _distance(recorded[place], value), f"{place or 'the body'}: {_contrast(recorded[place], value)}"
    for place, value in recorded.items():
        if place not in sent:
            yield 2.0, f"{place or 'the body'}: recorded {_short(value)}, not sent"


def _distance(recorded: Any, sent: Any) -> float:
    """Texts that begin or end alike are closer to each other."""
    if not (isinstance(recorded, str) and isinstance(sent, str)):
        return 2.0
    alike = _common(recorded, sent) + _common(recorded[::-1], sent[::-1])
    return 2.0 - min(1.0, alike / max(len(recorded), len(sent)))


def _common(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
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
