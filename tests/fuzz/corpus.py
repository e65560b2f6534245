"""The kept seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.fuzz.target import Target

SEEDS: Final = Path(__file__).parent / "seeds"


def kept_seeds(name: str) -> list[bytes]:
    """Return the inputs in the folder of a target."""
    folder = SEEDS / name
    return [path.read_bytes() for path in sorted(folder.iterdir())] if folder.is_dir() else []


def seeds(name: str, target: Target) -> list[bytes]:
    """Return the inputs that a search begins with: those in the folder of a target, and those of other tests."""
    return [*kept_seeds(name), *target.seeds()]
