"""Loading the ``mcp`` package, which is large and which most processes never need."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import anyio.to_thread

_FIRST: Final = "jumpseat.mcp.connection"


async def load(*modules: str) -> None:
    """Load the package, and then ``modules`` of ours that use it; at once where all is loaded.

    In a thread, as it takes longer than other sessions should wait. Whoever is cancelled does not wait for it.

    Always from the same module on: those of the package import one another in circles, so that two threads which
    go round from two sides wait for each other, and Python makes one of them fail. Nothing else may import of the
    package what this has not loaded before.
    """

    def all_of_it() -> None:
        for module in (_FIRST, *modules):
            import_module(module)

    await anyio.to_thread.run_sync(all_of_it, abandon_on_cancel=True)
