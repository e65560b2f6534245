"""Paths that clients send."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.errors import InvalidRequestError


def absolute_path(folder: str) -> Path:
    """Return ``folder`` as a path, with a leading ``~`` expanded.

    Raises:
        InvalidRequestError: it is not an absolute path.
    """
    path = Path(os.path.expanduser(folder))
    if not path.is_absolute() or "\0" in folder:
        raise InvalidRequestError(f"{folder[:200]!r} is not an absolute path")
    return path
