"""Paths that clients name."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.errors import InvalidRequestError


def absolute(folder: str) -> Path:
    """``folder``, which may begin with ``~``.

    Raises:
        InvalidRequestError: it is not an absolute path.
    """
    path = Path(os.path.expanduser(folder))
    if not path.is_absolute() or "\0" in folder:
        raise InvalidRequestError(f"{folder[:200]!r} is not an absolute path")
    return path
