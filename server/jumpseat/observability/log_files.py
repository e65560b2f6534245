"""The log files of ``--log-dir``: rotated, and few."""

from __future__ import annotations

import logging.handlers
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jumpseat.errors import ConfigError

FILE_BYTES: Final = 10 << 20
"""The size at which a log file is renamed and a new one begun."""

FILES_PER_PROCESS: Final = 5
"""The number of files that one process keeps."""

FILES_PER_FOLDER: Final = 50
"""The number of files that processes leave in a folder; the oldest are deleted when a process begins."""

_FILE_NAME: Final = re.compile(r"jumpseat-\d{8}T\d{6}-\d+\.log(\.\d+)?")


class _LogFile(logging.handlers.RotatingFileHandler):
    """A log file that only its owner can read. A full disk is reported once, on stderr."""

    _failed = False

    def _open(self) -> Any:
        return open(self.baseFilename, "a", encoding="utf-8", errors="backslashreplace", opener=_open_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is that of the base class
        """Report the first failure."""
        if not self._failed:
            self._failed = True
            error = sys.exc_info()[1]
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            print(f"cannot write the log file {self.baseFilename!r}: {reason}", file=sys.stderr)  # noqa: T201


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def file_handler(folder: Path) -> logging.Handler:
    """Open a new log file in ``folder``.

    Raises:
        ConfigError: the file cannot be written.
    """
    name = f"jumpseat-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.log"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _delete_oldest(folder)
        return _LogFile(folder / name, maxBytes=FILE_BYTES, backupCount=FILES_PER_PROCESS - 1)
    except OSError as error:
        raise ConfigError(f"--log-dir {str(folder)!r}: {error.strerror or error}") from None


def _delete_oldest(folder: Path) -> None:
    """Delete the oldest log files of processes that have used the folder before."""
    names = sorted(name for name in os.listdir(folder) if _FILE_NAME.fullmatch(name))
    for name in names[: max(0, len(names) - FILES_PER_FOLDER + 1)]:
        # Another process may delete it, too.
        (folder / name).unlink(missing_ok=True)
