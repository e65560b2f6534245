"""Tools that are declared rather than programmed: commands as data, functions, and handlers around them.

Import ``declarations`` only: it loads the rest of this folder where there are any declared tools.
"""

from __future__ import annotations

from typing import Final

FOLDER: Final = "tools"
"""The folder of declarations in the home folder, and in ``.jumpseat`` of a project."""
