"""Recordings of calls to providers: the folder, the file format and reading it. docs/recordings.md describes it.

One call is one file of JSON lines: the request, the head of the answer, each of its pieces, how it ended. A file
whose end is missing, because the process was killed, is read as far as it goes.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import orjson

from jumpseat.errors import ConfigError

VERSION: Final = 1
SUFFIX: Final = ".jsonl"

How: TypeAlias = Literal["end", "cut", "timeout", "closed", "failed"]
"""The transfer was complete; the connection broke; silence beyond a limit; this side hung up; anything else."""


@dataclass(frozen=True, slots=True)
class Ending:
    """``error`` is the name of the error that it was, if it was one."""

    how: How
    error: str | None = None
    message: str = ""


@dataclass(slots=True)
class Recording:
    """One call. ``pieces`` are what came and how many seconds after what was before it.

    ``status`` is ``None`` where no answer came, ``ending`` where the file ends before the call did.
    """

    name: str
    method: str
    url: str
    body: Any
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    first_after_s: float = 0.0
    pieces: list[tuple[float, bytes]] = field(default_factory=list[tuple[float, bytes]])
    ending: Ending | None = None


def open_for_recording(folder: str) -> Path:
    """``folder``, made where there is none, for its owner alone.

    Raises:
        ConfigError: nothing can be written there.
    """
    path = _absolute(folder)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot record to {folder!r}: {error.strerror or error}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot record to {folder!r}: it may not be written to")
    return path


def open_for_replay(folder: str) -> Path:
    """``folder``, which holds recordings.

    Raises:
        ConfigError: it does not.
    """
    path = _absolute(folder)
    try:
        with os.scandir(path) as entries:
            if any(entry.name.endswith(SUFFIX) for entry in entries):
                return path
    except OSError as error:
        raise ConfigError(f"cannot replay {folder!r}: {error.strerror or error}") from None
    raise ConfigError(f"cannot replay {folder!r}: there are no recordings in it")


def read_folder(folder: Path) -> list[Recording]:
    """All recordings of a folder, in the order in which their calls began.

    Raises:
        ConfigError: a file cannot be read, or is no recording.
    """
    return [
        recording for path in sorted(folder.glob(f"*{SUFFIX}")) if (recording := read_recording(path)) is not None
    ]


def read_recording(path: Path) -> Recording | None:
    """The recording in ``path``; ``None`` where its first line already is torn.

    Raises:
        ConfigError: it cannot be read, or is no recording.
    """
    try:
        # Without its last line where that has no end.
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise ConfigError(f"cannot read the recording {path.name!r}: {error.strerror or error}") from None
    if not lines:
        return None
    records = _records(path, lines)
    head = next(records)
    if head.get("type") != "request" or head.get("version") != VERSION:
        raise ConfigError(
            f"{path.name!r} is no recording of version {VERSION}: its version is {head.get('version')!r}"
        )
    try:
        recording = Recording(path.name, head["method"], head["url"], _body(head))
        for record in records:
            _take(recording, record)
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"{path.name!r} is no recording: {type(error).__name__}: {error}") from None
    return recording


def content(data: bytes, name: str) -> dict[str, str]:
    """``data`` as a field of a record: ``name`` as text, or else ``nameBase64``."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(data).decode()}


def _records(path: Path, lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            record: Any = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        if not isinstance(record, dict):
            raise ConfigError(f"{path.name!r} is no recording: line {number} is no JSON object")
        yield cast("dict[str, Any]", record)


def _take(recording: Recording, record: dict[str, Any]) -> None:
    match record.get("type"):
        case "response":
            recording.status = int(record["status"])
            recording.headers = [(str(name), str(value)) for name, value in record["headers"]]
            recording.first_after_s = float(record["afterS"])
        case "piece":
            recording.pieces.append((float(record["afterS"]), _bytes(record, "text")))
        case "end":
            recording.ending = Ending(record["how"], record.get("error"), record.get("message", ""))
        case _:
            # Of a later program that has more to tell.
            pass


def _body(record: dict[str, Any]) -> Any:
    """The body of a request: parsed JSON, else text, ``None`` where there was none."""
    if "body" in record:
        return record["body"]
    data = _bytes(record, "bodyText")
    return data.decode("utf-8", "replace") or None


def _bytes(record: dict[str, Any], name: str) -> bytes:
    coded = record.get(f"{name}Base64")
    return base64.b64decode(coded, validate=True) if coded is not None else str(record.get(name, "")).encode()


def _absolute(folder: str) -> Path:
    return Path(os.path.expanduser(folder)).absolute()
