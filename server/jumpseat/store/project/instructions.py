"""Instruction files for agents, such as ``AGENTS.md``: of the user, of projects, and of folders that a host names.

They are read for each prompt: they are small, and the user may be editing them. docs/instructions.md lists them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import StoreError
from jumpseat.store.project.front_matter import body, files_below, front_matter, names
from jumpseat.system.regular_files import decode_text, is_there, read_regular, repository_root

LARGEST_BYTES: Final = 64 * 1024
"""Size to which a file is cut, because an instruction file must not fill the context."""
MOST_FILES: Final = 100
"""Limit on the files of one folder with instructions."""

DIRECTORIES: Final = "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"
"""The environment variable with further folders, separated by commas."""

USER_FILE: Final = "copilot-instructions.md"
"""The user's own instructions, in the home folder of the server."""

_NAMES: Final = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", os.path.join(".github", "copilot-instructions.md"))
_FOLDER: Final = os.path.join(".github", "instructions")
_EVERYWHERE: Final = frozenset({"**", "*", "**/*"})


class Instructions(Struct, frozen=True):
    """An instruction file with its text. ``of_user`` marks the user's own file."""

    path: Path
    text: str
    of_user: bool = False


class InstructionFiles:
    """The instruction files of sessions. ``home`` is the home folder of the server."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._user_file = home / USER_FILE
        listed = (folder.strip() for folder in environ.get(DIRECTORIES, "").split(","))
        self._folders = [os.path.expanduser(folder) for folder in listed if folder]

    def read(self, settings: SessionSettings) -> str:
        """Return the instructions for a session as one string; empty if there are none."""
        parts = [source.text for source in self.sources(settings)]
        if settings.options.organization_custom_instructions:
            parts.append(settings.options.organization_custom_instructions)
        return "\n\n".join(parts)

    def sources(self, settings: SessionSettings) -> list[Instructions]:
        """Read the instruction files for a session, in order and without duplicates."""
        if settings.options.skip_custom_instructions:
            return []
        found: dict[Path, Instructions] = {}
        # Many projects repeat one text under several names, or link them.
        texts: set[str] = set()
        for name, within in self._candidates(settings):
            # Few of these files exist, and paths are made for those only.
            if is_there(name) and (path := Path(name)) not in found and (text := _read(path, within)) not in texts:
                found[path] = Instructions(path, text, path == self._user_file)
                texts.add(text)
        return [source for source in found.values() if source.text]

    def project_paths(self, cwd: Path) -> list[Path]:
        """Return the paths of a project's instruction files, existing or not; a new file belongs at the first."""
        return list(dict.fromkeys(Path(path) for path, _ in _in_project(SessionSettings(cwd=cwd))))

    def _candidates(self, settings: SessionSettings) -> Iterator[tuple[str, Path]]:
        """Yield the paths of instruction files, each with the folder that its target must be in."""
        yield str(self._user_file), self._user_file.parent
        yield from _in_project(settings)
        options = settings.options
        for name in (*options.additional_directories, *options.instruction_directories, *self._folders):
            folder = settings.cwd / name
            yield from _in_folder(folder, repository_root(folder))


def _in_project(settings: SessionSettings) -> Iterator[tuple[str, Path]]:
    root = repository_root(settings.cwd)
    for folder in dict.fromkeys((root, settings.cwd)):
        yield from _in_folder(folder, root)


def _in_folder(folder: Path, within: Path) -> Iterator[tuple[str, Path]]:
    for name in _NAMES:
        yield f"{folder}{os.sep}{name}", within
    for path in files_below(folder / _FOLDER, ".instructions.md", MOST_FILES):
        yield str(path), within


def _read(path: Path, within: Path) -> str:
    try:
        text = decode_text(read_regular(path, LARGEST_BYTES, within)).strip()
    except (OSError, ValueError):
        return ""
    return _with_scope(text) if path.name.endswith(".instructions.md") else text


def _with_scope(text: str) -> str:
    """Return the text without its front matter, and with a line about the files that it applies to, if not all."""
    try:
        patterns = names(front_matter(text).get("applyTo"), r"\s*,\s*")
    except StoreError:
        # Unread front matter may limit the text: the model sees it as it is.
        return text
    rules = body(text)
    if not rules or not patterns or _EVERYWHERE.intersection(patterns):
        return rules
    return f"The following applies only to files that match {', '.join(patterns)}:\n\n{rules}"
