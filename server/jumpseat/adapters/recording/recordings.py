"""Recordings of provider calls: the folder, the file format (see docs/recordings.md) and its parser.

Each call is one JSON Lines file: the request, the response's status and headers, its chunks, and how the call
ended. A file that is incomplete because the process was killed is read up to its last complete line.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import orjson
from msgspec import Struct, field

from jumpseat.errors import ConfigError

VERSION: Final = 1
SUFFIX: Final = ".jsonl"

EndReason: TypeAlias = Literal["end", "cut", "timeout", "closed", "failed"]
"""The reason for the end of a call: complete, broken connection, time-out, closed by this process, or a failure."""


class Ending(Struct, frozen=True):
    """The end of a call; ``error`` is the class name of the exception, if one was raised."""

    reason: EndReason
    error: str | None = None
    message: str = ""


class Recording(Struct):
    """A recorded call.

    ``pieces`` are the chunks of the body, each with the seconds since the previous one. ``status`` is ``None`` if
    no response arrived, ``ending`` if the file is incomplete.
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
    """Return the absolute path of ``folder``, created with mode 0700 if missing.

    Raises:
        ConfigError: the folder cannot be created or is not writable.
    """
    path = _absolute(folder)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot record to {folder!r}: {error.strerror or error}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot record to {folder!r}: the folder is not writable")
    return path


def open_for_replay(folder: str) -> Path:
    """Return the absolute path of ``folder``.

    Raises:
        ConfigError: the folder cannot be read or contains no recordings.
    """
    path = _absolute(folder)
    try:
        with os.scandir(path) as entries:
            if any(entry.name.endswith(SUFFIX) for entry in entries):
                return path
    except OSError as error:
        raise ConfigError(f"cannot replay {folder!r}: {error.strerror or error}") from None
    raise ConfigError(f"cannot replay {folder!r}: the folder contains no recordings")


def read_folder(folder: Path) -> list[Recording]:
    """Return all recordings of a folder, ordered by the start of their calls.

    Raises:
        ConfigError: a file cannot be read or is not a valid recording.
    """
    return [
        recording for path in sorted(folder.glob(f"*{SUFFIX}")) if (recording := read_recording(path)) is not None
    ]


def read_recording(path: Path) -> Recording | None:
    """Read the recording in ``path``; return ``None`` if not even its first line is complete.

    Raises:
        ConfigError: the file cannot be read or is not a valid recording.
    """
    try:
        # A last line without a line end is incomplete and dropped.
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError as error:
        raise ConfigError(f"cannot read the recording {path.name!r}: {error.strerror or error}") from None
    if not lines:
        return None
    records = _records(path, lines)
    head = next(records)
    if head.get("type") != "request" or head.get("version") != VERSION:
        raise ConfigError(
            f"{path.name!r} is not a recording of version {VERSION}: its version is {head.get('version')!r}"
        )
    try:
        recording = Recording(path.name, head["method"], head["url"], _body(head))
        for record in records:
            _take(recording, record)
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"{path.name!r} is not a valid recording: {type(error).__name__}: {error}") from None
    return recording


def content(data: bytes, name: str) -> dict[str, str]:
    """Return ``data`` as a field of a record: ``{name: text}``, or ``{nameBase64: ...}`` if it is not UTF-8."""
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
            raise ConfigError(f"{path.name!r} is not a valid recording: line {number} is not a JSON object")
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
            # A record type of a later version.
            pass


def _body(record: dict[str, Any]) -> Any:
    """Return the body of a request: parsed JSON, else text, or ``None`` if there was no body."""
    if "body" in record:
        return record["body"]
    data = _bytes(record, "bodyText")
    return data.decode("utf-8", "replace") or None


def _bytes(record: dict[str, Any], name: str) -> bytes:
    coded = record.get(f"{name}Base64")
    return base64.b64decode(coded, validate=True) if coded is not None else str(record.get(name, "")).encode()


def _absolute(folder: str) -> Path:
    return Path(os.path.expanduser(folder)).absolute()
