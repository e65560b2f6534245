"""Validate the working directory that a client names in a request."""

from __future__ import annotations

from pathlib import Path

from jumpseat.errors import InvalidRequestError


def existing_folder(member: str, path: str) -> Path:
    """Return the folder ``path`` as an absolute path; ``member`` is its name in the request.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    folder = Path(path)
    try:
        is_folder = folder.is_dir()
    except ValueError:
        # The path contains a NUL character.
        is_folder = False
    if not is_folder:
        raise InvalidRequestError(f"{member} {path!r} is not a directory")
    return folder.absolute()
