"""Validate the working directory that a client names in a request."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.errors import InvalidRequestError


def existing_folder(member: str, path: str) -> Path:
    """Return the folder ``path`` as an absolute path; ``member`` is its name in the request.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    folder = Path(path)
    # Unlike Path.is_dir, this raises for no path: a name may be too long, or a parent folder closed.
    if not os.path.isdir(folder):
        raise InvalidRequestError(f"{member} {path!r} is not a directory")
    return folder.absolute()
