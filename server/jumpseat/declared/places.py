"""Find the folders and files in which users and projects declare adapters and tools.

They are looked up with every prompt, so this module imports nothing heavy.
"""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.system.regular_files import is_there, upward


def project_folder(cwd: Path, kind: str, home: Path | None = None) -> Path | None:
    """Return the nearest folder ``.jumpseat/KIND`` from ``cwd`` up to the top of its repository, or ``None``.

    The folder of ``home`` belongs to the user and is not a project's.
    """
    for folder in upward(cwd):
        if is_there(f"{folder}{os.sep}.jumpseat{os.sep}{kind}"):
            found = Path(folder, ".jumpseat", kind)
            if os.path.isdir(found) and (home is None or found != home / kind):
                return found
        if is_there(f"{folder}{os.sep}.git"):
            return None
    return None


def declaration_files(folder: Path) -> list[Path]:
    """Return the TOML and Python files in ``folder``, sorted; empty if the folder cannot be read."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith((".toml", ".py")))
    except OSError:
        return []
    return [folder / name for name in names if os.path.isfile(folder / name)]
