"""Import of the ``mcp`` package, which is large and which most processes never need."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import anyio.to_thread

_FIRST: Final = "jumpseat.mcp.connection"


async def load(*modules: str) -> None:
    """Import ``jumpseat.mcp.connection``, then ``modules``, in a thread; return at once if all are loaded.

    The import takes too long to block other sessions. A cancelled caller does not wait for its end.

    Every import of the package begins with the same module: modules of the package import one another in circles,
    and Python makes one of two threads fail that enter a circle from different sides.
    """

    def import_all() -> None:
        for module in (_FIRST, *modules):
            import_module(module)

    await anyio.to_thread.run_sync(import_all, abandon_on_cancel=True)
