"""The log of the process: its level, its forms, its files, and the removal of secrets.

The package ``logging`` of the standard library does the work, because the libraries in use log with it, and because
it is loaded anyway: docs/libraries.md has the comparison. Entries are a message and fields
(``system/log_fields.py``).
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import orjson

from jumpseat.agent.secrets import Secrets
from jumpseat.options import LogFormat

_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}

# A value that needs no quotes: no space, no quotation mark, nothing that a terminal or a parser could misread.
_PLAIN: Final = re.compile(r"[\w.,:;/@%+~\-()\[\]{}<>#*!?&|^$]+", re.ASCII)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def log_to_stderr(level: str, form: LogFormat = "text", folder: Path | None = None) -> None:
    """Log to stderr from ``level`` on, one of ``LOG_LEVELS`` of the arguments, and to a file in ``folder``, if any.

    Raises:
        ConfigError: there cannot be a file in ``folder``.
    """
    if level == "none":
        logging.disable(logging.CRITICAL)
        return
    threshold = _LEVELS.get(level, logging.DEBUG)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if folder is not None:
        # They import pickle and sockets.
        from jumpseat.observability.log_files import file_handler

        handlers.append(file_handler(folder))
    for handler in handlers:
        handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=handlers, level=threshold)
    # httpx2 and asyncio log URLs and payload sizes at INFO, which is only for debugging.
    for name in ("httpx2", "httpcore2", "asyncio", "opentelemetry"):
        logging.getLogger(name).setLevel(max(logging.WARNING, threshold))
    # The mcp package logs whole messages and tracebacks, partly with the root logger; we log what matters.
    for name in ("mcp", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.name != "root")


def mask_logs(secrets: Secrets) -> None:
    """Remove secrets from the log from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_MaskedFormatter(handler.formatter or logging.Formatter(), secrets))


class TextFormatter(logging.Formatter):
    """Entries for people: time, level, message and fields on one line; the lines of a traceback are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry."""
        line = f"{_time_of(record)} {record.levelname:<7} {record.getMessage()}"
        for name, value in fields_of(record).items():
            line += f" {name}={_text_of(value)}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        # Foreign text must not look like a separate entry.
        return _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", line).replace("\n", "\n    ")


class JsonFormatter(logging.Formatter):
    """Entries for machines: one JSON object per line, with the fields as members."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry."""
        entry: dict[str, Any] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the fields of an entry."""
    return cast("Mapping[str, Any]", getattr(record, "fields", {}))


class _MaskedFormatter(logging.Formatter):
    """A formatter that removes secrets from the output of another one, tracebacks included.

    Secrets are searched in the parts of an entry, too: the output has their quotes and line ends in other forms.
    """

    def __init__(self, inner: logging.Formatter, secrets: Secrets) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        if self._secrets:
            record = copy(record)
            record.msg, record.args = self._secrets(record.getMessage()), None
            record.__dict__["fields"] = self._secrets.mask({**fields_of(record)})
        return self._secrets(self._inner.format(record))


def _time_of(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else orjson.dumps(text).decode()
