"""Repair and truncation of session logs.

:func:`repair_log` mends the last line of a log that a crash has torn, :func:`truncate_log` removes the end of one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.event_log import Replay, parse_record, read_log


def truncate_log(path: Path, event_id: str) -> tuple[Replay, int] | None:
    """Remove an event and all later ones; return the rest of the log and the number of removed events.

    The result is ``None`` if the log has no such event.

    Raises:
        InvalidRequestError: the event is the first one, which a log must have.
        StoreError: the log cannot be read or truncated.
    """
    remaining: list[dict[str, Any]] = []
    removed = 0
    cut_at: int | None = None
    offset = 0
    try:
        with path.open("r+b") as file:
            for line in file:
                record = parse_record(line)
                if cut_at is None and record is not None and record.get("id") == event_id:
                    cut_at = offset
                offset += len(line)
                if record is None:
                    continue
                if cut_at is None:
                    remaining.append(record)
                else:
                    removed += 1
            if cut_at is None:
                return None
            if not remaining:
                raise InvalidRequestError("the first event cannot be removed: delete the session instead")
            file.truncate(cut_at)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot truncate the session log: {error.strerror or error}") from error
    return Replay(remaining, 0), removed


def repair_log(path: Path) -> Replay:
    """Read a log and repair a last line that a crash has torn: remove it, or add its line end if it is complete.

    Raises:
        StoreError: the log cannot be read or repaired.
    """
    replay = read_log(path)
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if replay.torn_bytes:
                file.truncate(size - replay.torn_bytes)
            elif size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"cannot repair the session log: {error.strerror or error}") from error
    return replay
