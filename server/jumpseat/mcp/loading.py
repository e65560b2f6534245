"""Loading the ``mcp`` package, which is large and which most processes never need."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

import anyio.to_thread

_PACKAGE: Final = "mcp"
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

    spare_server_side()
    await anyio.to_thread.run_sync(all_of_it, abandon_on_cancel=True)


def spare_server_side() -> None:
    """Let what is imported of the package not bring its ``__init__`` along, unless somebody asks for what is there.

    That loads what it takes to be a server, uvicorn and starlette among it: half of the time and of the memory. Not
    for use in threads, of which another may be at it.
    """
    if _PACKAGE in sys.modules or (spec := find_spec(_PACKAGE)) is None:
        return
    package, loader = module_from_spec(spec), spec.loader

    def whole(name: str) -> Any:
        if name.startswith("__") or loader is None:
            raise AttributeError(name)
        del vars(package)["__getattr__"]
        loader.exec_module(package)
        return getattr(package, name)

    vars(package)["__getattr__"] = whole
    sys.modules[_PACKAGE] = package
