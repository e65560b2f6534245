"""Import httpcore2 without ``importlib.metadata``, which it needs for its own version only.

That module, with its search for the package, takes 20 of the 38 ms of the import and half of its memory.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

_METADATA: Final = "importlib.metadata"


class _Metadata(ModuleType):
    """Stands in for the module. Other threads may need the real one meanwhile."""

    def version(self, name: str) -> str:
        return "unknown" if name == "httpcore2" else _load().version(name)

    def __getattr__(self, name: str) -> Any:
        # Imports ask for `__path__`.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_load(), name)


def _load() -> Any:
    """Import the real module, and return it."""
    if isinstance(sys.modules.get(_METADATA), _Metadata):
        del sys.modules[_METADATA]
    return importlib.import_module(_METADATA)


@contextmanager
def _without_metadata() -> Generator[None]:
    if _METADATA in sys.modules:
        yield
        return
    sys.modules[_METADATA] = stand_in = _Metadata(_METADATA)
    try:
        yield
    finally:
        if sys.modules.get(_METADATA) is stand_in:
            del sys.modules[_METADATA]


with _without_metadata():
    import httpcore2

__all__ = ["httpcore2"]
