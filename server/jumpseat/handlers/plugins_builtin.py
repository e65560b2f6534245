"""``plugins.builtin.set``: the plugins that an application brings."""

from __future__ import annotations

import os
from pathlib import Path

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.plugins import (
    BuiltinPluginsParams,
)


def set_plugins(ctx: Context, params: BuiltinPluginsParams) -> None:
    """Replace the plugins that an application brings for all sessions of the process.

    Raises:
        InvalidRequestError: a path is not absolute, or not a directory.
    """
    for path in params.paths:
        if "\0" in path or not Path(path).is_absolute():
            raise InvalidRequestError(f"paths: {path[:200]!r} is not an absolute path")
        if not os.path.isdir(path):
            raise InvalidRequestError(f"paths: {path[:200]!r} is not a directory")
    ctx.process.plugins.bundled = tuple(Path(path) for path in params.paths)
