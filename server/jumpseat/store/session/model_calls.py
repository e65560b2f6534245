"""The model calls of a session with their tokens: ``model-calls.jsonl`` in its folder, for plots.

The event log does not have them, because the usage of a call is not persisted by the protocol. The file
is no part of the conversation: a missing or damaged line is left out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, cast

import orjson

from jumpseat.store.session.state_files import StateFiles

FILE: Final = "model-calls.jsonl"
MOST_BYTES: Final = 4 * 1024 * 1024
"""The bytes of the latest calls that are read; a line has about 300."""


class ModelCallFile:
    """The file of one session, which is in ``folder``, and is changed by ``files``."""

    def __init__(self, folder: Path, files: StateFiles) -> None:
        self._files = files
        self._path = folder / FILE

    def append(self, call: dict[str, Any]) -> None:
        """Add a call. A session that is not in a folder of the disk has no file.

        Raises:
            OSError: the file cannot be written.
        """
        if not self._path.parent.is_dir():
            return
        self._files.append(FILE, orjson.dumps(call) + b"\n")

    def read(self) -> list[dict[str, Any]]:
        """Return the latest calls in their order; blocks on the file."""
        # A pipe in its place would be waited for.
        if not self._path.is_file():
            return []
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_BYTES))
                lines = file.read().splitlines()
        except OSError:
            return []
        return [call for line in lines if (call := _parse(line)) is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
