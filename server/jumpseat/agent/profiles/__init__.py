"""Profiles of families of models: their strengths, apart from the provider and the wire that serve them.

Every module of this folder but ``profile.py`` describes one family, as ``PROFILE``.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Final

from jumpseat.agent.profiles.profile import DEFAULT, Profile

__all__ = ["DEFAULT", "PROFILES", "Profile", "profile_of"]


def _find() -> tuple[Profile, ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "profile")
    return tuple(import_module(f"{__name__}.{name}").PROFILE for name in names)


PROFILES: Final[tuple[Profile, ...]] = _find()
"""The profiles of all families, by the names of their modules."""


def profile_of(*names: str) -> Profile:
    """Return the profile of the first of these names that belongs to a family; they are names of one model.

    A name may have a path, such as ``openai/gpt-5.1-codex``: its last part counts.
    """
    for name in names:
        last = name.rstrip("/").rpartition("/")[2].lower()
        for profile in PROFILES:
            if profile.matches.search(last):
                return profile
    return DEFAULT
