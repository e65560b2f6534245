"""Instruction files: what a project, or the host, tells every agent that works in it.

Read anew for each prompt: they are small, and the user may be editing them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumpseat.agent.settings import SessionSettings

LARGEST_BYTES: Final = 64 * 1024
"""What is longer is cut: an instruction file must not fill the context."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """One source: a file with its text."""

    path: Path
    text: str


def read_instructions(settings: SessionSettings) -> str:
    """All instructions that hold for a session, as one text; empty where there are none."""
    parts = [source.text for source in instruction_sources(settings)]
    if settings.organization_instructions:
        parts.append(settings.organization_instructions)
    return "\n\n".join(parts)


def instruction_sources(settings: SessionSettings) -> list[Instructions]:
    """The files that are read, in order; each once."""
    if settings.skip_custom_instructions:
        return []
    found: dict[Path, Instructions] = {}
    for path in _candidates(settings):
        if path not in found and (text := _read(path)):
            found[path] = Instructions(path, text)
    return list(found.values())


def project_paths(cwd: Path) -> list[Path]:
    """Where a project's instructions are looked for, there or not; what a new one should be called first."""
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
    # Not Path.exists, which raises where a parent may not be searched.
    return next((folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git")), cwd)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            return ""  # a pipe, say, must not be waited for
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
