"""Instruction files of projects and hosts for agents, such as ``AGENTS.md``.

They are read for each prompt: they are small, and the user may be editing them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumpseat.agent.settings import SessionSettings

LARGEST_BYTES: Final = 64 * 1024
"""Size to which a file is cut, because an instruction file must not fill the context."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """An instruction file with its text."""

    path: Path
    text: str


def read_instructions(settings: SessionSettings) -> str:
    """Return the instructions for a session as one string; empty if there are none."""
    parts = [source.text for source in instruction_sources(settings)]
    if settings.organization_instructions:
        parts.append(settings.organization_instructions)
    return "\n\n".join(parts)


def instruction_sources(settings: SessionSettings) -> list[Instructions]:
    """Read the instruction files for a session, in order and without duplicates."""
    if settings.skip_custom_instructions:
        return []
    found: dict[Path, Instructions] = {}
    for path in _candidates(settings):
        if path not in found and (text := _read(path)):
            found[path] = Instructions(path, text)
    return list(found.values())


def project_paths(cwd: Path) -> list[Path]:
    """Return the paths of a project's instruction files, existing or not; a new file belongs at the first."""
    return list(dict.fromkeys(_candidates(SessionSettings(cwd=cwd))))


def _candidates(settings: SessionSettings) -> Iterator[Path]:
    root = _repository_root(settings.cwd)
    for folder in dict.fromkeys((root, settings.cwd)):
        yield folder / "AGENTS.md"
        yield folder / ".github" / "copilot-instructions.md"
    for folder in settings.instruction_directories:
        base = settings.cwd / folder
        yield base / "AGENTS.md"
        yield base / ".github" / "copilot-instructions.md"
        yield from _instruction_files(base / ".github" / "instructions")


def _instruction_files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("**/*.instructions.md"))
    except (OSError, ValueError):
        return []


def _repository_root(cwd: Path) -> Path:
    # Not Path.exists, which raises if a parent folder may not be searched.
    return next((folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git")), cwd)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            return ""  # reading a pipe would block
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
