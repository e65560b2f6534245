"""Find the folders in which a project declares adapters and tools.

They are looked up with every prompt, so this module imports nothing heavy.
"""

from __future__ import annotations

import os
from pathlib import Path


def project_folder(cwd: Path, kind: str, home: Path | None = None) -> Path | None:
    """Return the nearest folder ``.jumpseat/KIND`` from ``cwd`` up to the top of its repository, or ``None``.

    The folder of ``home`` belongs to the user and is not a project's.
    """
    # String operations are faster than Path here, and this runs with every prompt.
    folder, own = str(cwd), None if home is None else os.path.join(home, kind)
    while True:
        found = os.path.join(folder, ".jumpseat", kind)
        if found != own and os.path.isdir(found):
            return Path(found)
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return None
        folder = parent
