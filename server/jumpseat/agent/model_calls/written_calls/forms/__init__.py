"""The forms of written calls, one module for each family of models: a module with a ``FORM`` adds it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from jumpseat.agent.model_calls.written_calls.reader import Form

__all__ = ["all_forms"]


@cache
def all_forms() -> tuple[Form, ...]:
    """Return the forms, in the order of the names of their modules."""
    return tuple(import_module(f"{__name__}.{module.name}").FORM for module in iter_modules(__path__))
