"""Names of folders for people."""

from __future__ import annotations

import os
from pathlib import Path


def with_tilde(path: str) -> str:
    """Return ``path`` with ``~`` for the user's home folder."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + os.sep) else path
