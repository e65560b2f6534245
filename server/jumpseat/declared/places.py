"""Where projects declare things. Asked with every prompt, so nothing heavy is imported here."""

from __future__ import annotations

import os
from pathlib import Path


def project_folder(cwd: Path, kind: str, home: Path | None = None) -> Path | None:
    """What a project declares of one kind: the nearest ``.jumpseat/KIND`` from ``cwd`` up to the top of its
    repository; ``None`` where there is none.

    That of ``home`` is the user's own and no project's.
    """
    # Texts, because every prompt asks.
    folder, own = str(cwd), None if home is None else os.path.join(home, kind)
    while True:
        found = os.path.join(folder, ".jumpseat", kind)
        if found != own and os.path.isdir(found):
            return Path(found)
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return None
        folder = parent
