"""Instruction files of projects and hosts for agents, such as ``AGENTS.md``.

They are read for each prompt: they are small, and the user may be editing them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.agent.settings import SessionSettings
from jumpseat.system.regular_files import is_there, read_regular, repository_root, scan_folder

LARGEST_BYTES: Final = 64 * 1024
"""Size to which a file is cut, because an instruction file must not fill the context."""
MOST_FILES: Final = 100
"""Limit on the files of one folder with instructions."""
MOST_ENTRIES: Final = 10_000
"""Limit on the entries that are looked at in one folder with instructions."""

_NAMES: Final = ("AGENTS.md", os.path.join(".github", "copilot-instructions.md"))


class Instructions(Struct, frozen=True):
    """An instruction file with its text."""

    path: Path
    text: str


def read_instructions(settings: SessionSettings) -> str:
    """Return the instructions for a session as one string; empty if there are none."""
    parts = [source.text for source in instruction_sources(settings)]
    if settings.options.organization_custom_instructions:
        parts.append(settings.options.organization_custom_instructions)
    return "\n\n".join(parts)


def instruction_sources(settings: SessionSettings) -> list[Instructions]:
    """Read the instruction files for a session, in order and without duplicates."""
    if settings.options.skip_custom_instructions:
        return []
    found: dict[Path, Instructions] = {}
    for name, within in _candidates(settings):
        # Few of these files exist, and paths are made for those only.
        if is_there(name) and (path := Path(name)) not in found and (text := _read(path, within)):
            found[path] = Instructions(path, text)
    return list(found.values())


def project_paths(cwd: Path) -> list[Path]:
    """Return the paths of a project's instruction files, existing or not; a new file belongs at the first."""
    return list(dict.fromkeys(Path(path) for path, _ in _candidates(SessionSettings(cwd=cwd))))


def _candidates(settings: SessionSettings) -> Iterator[tuple[str, Path]]:
    """Yield the paths of instruction files, each with the folder that its target must be in."""
    root = repository_root(settings.cwd)
    for folder in dict.fromkeys((root, settings.cwd)):
        for name in _NAMES:
            yield f"{folder}{os.sep}{name}", root
    for folder in settings.options.instruction_directories:
        base = settings.cwd / folder
        within = repository_root(base)
        for name in _NAMES:
            yield os.path.join(base, name), within
        for path in _instruction_files(base / ".github" / "instructions"):
            yield str(path), within


def _instruction_files(folder: Path) -> list[Path]:
    """Return the instruction files in a folder and the folders below; links to folders are not followed."""
    found: list[Path] = []
    pending, entries = [folder], 0
    while pending:
        current = pending.pop()
        for entry in scan_folder(current):
            entries += 1
            if entries > MOST_ENTRIES:
                return sorted(found)[:MOST_FILES]
            if entry.is_folder and not entry.is_link:
                pending.append(current / entry.name)
            elif entry.name.endswith(".instructions.md"):
                found.append(current / entry.name)
    return sorted(found)[:MOST_FILES]


def _read(path: Path, within: Path) -> str:
    try:
        return read_regular(path, LARGEST_BYTES, within).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
