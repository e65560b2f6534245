"""The providers' own SDKs. Importing one takes up to a second, so only the tests that use them do."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_sdk(module: str) -> Any:
    """Import a module of a provider's SDK, whose types the type checker does not know."""
    return import_module(module)
