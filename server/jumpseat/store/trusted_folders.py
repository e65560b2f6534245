"""Which folders the user trusts: what lies in them may set up the server, as the user's own files do.

Trusted are the folders under ``trusted_folders`` in ``config.toml``, those in ``trusted-folders.json`` in the home
folder, where clients add theirs, and all that lies in them. Links are followed before anything is compared: a link
in a trusted folder does not make its target trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

from jumpseat.errors import InvalidRequestError
from jumpseat.store.private_file import PrivateFile

FILE: Final = "trusted-folders.json"


class TrustedFolders:
    """``configured`` are the folders of ``config.toml``: absolute, or with a ``~`` in front."""

    def __init__(self, home: Path, configured: Iterable[str] = ()) -> None:
        self._file = PrivateFile(home / FILE)
        self._configured = tuple(configured)

    def is_trusted(self, folder: Path) -> bool:
        """Whether ``folder`` is, or lies in, a trusted folder. Read anew each time: other processes add theirs."""
        place = _real(folder)
        if place is None:
            return False
        # Added folders were resolved then: one that has become a link since is not what was trusted.
        roots = [*(_real(Path(os.path.expanduser(one))) for one in self._configured)]
        roots += [Path(one) for one in _folders(self._file.read())]
        return any(root is not None and place.is_relative_to(root) for root in roots)

    def add(self, folder: Path) -> None:
        """Trust ``folder`` and all in it from now on.

        Raises:
            InvalidRequestError: it is no absolute path, or no folder.
            StoreError: that cannot be written down.
        """
        place = _real(folder)
        if place is None or not place.is_dir():
            raise InvalidRequestError(f"{str(folder)!r} cannot be trusted: expected the absolute path of a folder")

        def change(values: dict[str, Any]) -> None:
            known = _folders(values)
            values["folders"] = known if str(place) in known else [*known, str(place)]

        self._file.change(change)


def _real(folder: Path) -> Path | None:
    """Where ``folder`` leads; ``None`` where that is not certain."""
    if not folder.is_absolute():
        return None
    try:
        place = folder.resolve()
        # What is no text cannot be written down, and another folder could then pass for it.
        str(place).encode()
    except (OSError, RuntimeError, ValueError):
        return None
    return place


def _folders(values: dict[str, Any]) -> list[str]:
    folders = values.get("folders")
    if not isinstance(folders, list):
        return []
    return [one for one in cast("list[object]", folders) if isinstance(one, str) and os.path.isabs(one)]
