"""Folders that the user trusts: files in them may configure the server, as the user's own files do.

Trusted are the folders under ``trusted_folders`` in ``config.toml``, those in ``trusted-folders.json`` in the home
folder, to which clients add, and everything in them. Links are resolved before paths are compared: a link in a
trusted folder does not make its target trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from jumpseat.errors import InvalidRequestError
from jumpseat.store.user.private_file import PrivateFile

FILE: Final = "trusted-folders.json"


class TrustedFolders:
    """The trusted folders; ``configured`` are those of ``config.toml``, absolute or beginning with ``~``."""

    def __init__(self, home: Path, configured: Iterable[str] = ()) -> None:
        self._file = PrivateFile(home / FILE)
        self._configured = tuple(configured)

    def is_trusted(self, folder: Path) -> bool:
        """Return whether ``folder`` is or lies in a trusted folder; the file is read at each call."""
        resolved = _resolve(folder)
        if resolved is None:
            return False
        # Added folders were resolved when they were added: one that is a link now is not the one that was trusted.
        roots = [*(_resolve(Path(os.path.expanduser(folder))) for folder in self._configured)]
        roots += [Path(folder) for folder in _folders(self._file.read())]
        return any(root is not None and resolved.is_relative_to(root) for root in roots)

    def add(self, folder: Path) -> None:
        """Trust ``folder`` and everything in it.

        Raises:
            InvalidRequestError: ``folder`` is not the absolute path of a folder.
            StoreError: the file cannot be written.
        """
        resolved = _resolve(folder)
        # Not Path.is_dir, which raises an error for names that are too long.
        if resolved is None or not os.path.isdir(resolved):
            raise InvalidRequestError(f"cannot trust {str(folder)!r}: expected the absolute path of a folder")

        def change(values: dict[str, Any]) -> None:
            known = _folders(values)
            values["folders"] = known if str(resolved) in known else [*known, str(resolved)]

        self._file.change(change)


def _resolve(folder: Path) -> Path | None:
    """Resolve an absolute path; return ``None`` for relative paths and those that cannot be resolved or stored."""
    if not folder.is_absolute():
        return None
    try:
        resolved = folder.resolve()
        # A path that is not UTF-8 cannot be stored in JSON without matching other paths, too.
        str(resolved).encode()
    except (OSError, RuntimeError, ValueError):
        return None
    return resolved


def _folders(values: dict[str, Any]) -> list[str]:
    folders = values.get("folders")
    if not isinstance(folders, list):
        return []
    return [folder for folder in cast("list[object]", folders) if isinstance(folder, str) and os.path.isabs(folder)]
