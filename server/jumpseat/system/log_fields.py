"""The fields of structured log entries."""

from __future__ import annotations

from typing import Any


def fields(**values: Any) -> dict[str, Any]:
    """Return the ``extra`` of a log call with these fields; those that are ``None`` are left out.

    ``observability/log_setup.py`` writes them behind the message, or as members of a JSON object.
    """
    return {"fields": {name: value for name, value in values.items() if value is not None}}
