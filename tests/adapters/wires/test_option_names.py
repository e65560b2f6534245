"""The options of the wires."""

from __future__ import annotations

import inspect
import re

import pytest

from jumpseat.adapters.adapter import ANY_OPTION, Adapter
from jumpseat.adapters.providers import PROVIDERS, load_adapter


def documented(adapter: Adapter) -> set[str]:
    """Return the options in the docstrings of the modules of an adapter's class and its base classes."""
    found: set[str] = set()
    for cls in type(adapter).__mro__:
        module = inspect.getmodule(cls) if "option_names" in vars(cls) and cls is not Adapter else None
        text = inspect.getdoc(module) or "" if module is not None else ""
        found |= {name for line in re.findall(r"^``.*", text, re.M) for name in re.findall(r"^``(\w+)``", line)}
        found |= set(re.findall(r"[Oo]ption ``(\w+)``", text))
    return found


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_a_wire_accepts_the_options_that_it_documents(provider: str) -> None:
    adapter = load_adapter(provider)
    if adapter.option_names is not ANY_OPTION and not provider.startswith("copilot"):
        assert adapter.option_names == documented(adapter)
    assert adapter.unknown_option(adapter.default_options) is None
