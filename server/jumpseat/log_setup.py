"""The log of the process: its level, its form, and the removal of secrets."""

from __future__ import annotations

import logging
import sys
from typing import Final

from jumpseat.agent.secrets import Secrets

_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}


class _MaskedFormatter(logging.Formatter):
    """A formatter that removes secrets from the output of another one, tracebacks included."""

    def __init__(self, inner: logging.Formatter, secrets: Secrets) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets(self._inner.format(record))


def mask_logs(secrets: Secrets) -> None:
    """Remove secrets from the log from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_MaskedFormatter(handler.formatter or logging.Formatter(), secrets))


def log_to_stderr(level: str) -> None:
    """Log to stderr from ``level`` on, one of ``LOG_LEVELS`` of the arguments."""
    if level == "none":
        logging.disable(logging.CRITICAL)
        return
    logging.basicConfig(
        stream=sys.stderr,
        level=_LEVELS.get(level, logging.DEBUG),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # httpx and asyncio log URLs and payload sizes at INFO, which is only for debugging.
    for name in ("httpx", "httpcore", "httpx2", "httpcore2", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, _LEVELS.get(level, logging.DEBUG)))
    # The mcp package logs whole messages and tracebacks, partly with the root logger; we log what matters.
    for name in ("mcp", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.name != "root")
