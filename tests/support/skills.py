"""Skills in folders of a test."""

from __future__ import annotations

from pathlib import Path


def write_skill(
    folder: Path, name: str = "tea", *, front: str | None = None, body: str = "# Tea\n\nWarm the pot."
) -> Path:
    """Write a skill into ``folder``; returns its file."""
    front = f"name: {name}\ndescription: How to make {name}." if front is None else front
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{front}\n---\n\n{body}\n")
    return path
