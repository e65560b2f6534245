"""The summaries of a session: ``checkpoints/NNN-title.md``, one per compaction, and ``checkpoints/index.md``."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jumpseat.errors import StoreError
from jumpseat.owner_only import create_private_folder, owner_only

INDEX: Final = "index.md"
LONGEST_TITLE: Final = 80
LONGEST_SLUG: Final = 50

_NAME: Final = re.compile(r"(\d{3,9})-.*\.md")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint file."""

    number: int
    title: str
    path: Path


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints in the folder ``root``, which need not exist."""

    root: Path

    def list(self) -> list[Checkpoint]:
        """Return all checkpoints, sorted by number; other files are ignored."""
        try:
            names = sorted(path.name for path in self.root.iterdir())
        except OSError:
            return []
        found = [(int(match[1]), self.root / name) for name in names if (match := _NAME.fullmatch(name))]
        return [Checkpoint(number, _title(path), path) for number, path in sorted(found)]

    def read(self, number: int) -> str | None:
        """Return the text of a checkpoint; ``None`` if it does not exist or cannot be read."""
        path = next((checkpoint.path for checkpoint in self.list() if checkpoint.number == number), None)
        try:
            return path.read_bytes().decode("utf-8", "replace") if path is not None else None
        except OSError:
            return None

    def add(self, title: str, text: str, after: int) -> Checkpoint:
        """Write a summary under the next free number above ``after``.

        Raises:
            StoreError: the file cannot be written.
        """
        title = " ".join(title.split())[:LONGEST_TITLE] or "Checkpoint"
        number = max([after, *(checkpoint.number for checkpoint in self.list())]) + 1
        path = self.root / f"{number:03}-{_slug(title)}.md"
        try:
            create_private_folder(self.root)
            _write(path, f"# {title}\n\n{text}\n")
            self.write_index()
        except OSError as error:
            raise StoreError(f"cannot write {path.name!r}: {error.strerror or error}") from error
        return Checkpoint(number, title, path)

    def write_index(self) -> None:
        """Write ``index.md``, a list of all checkpoints for people.

        Raises:
            OSError: the file cannot be written.
        """
        create_private_folder(self.root)
        lines = [
            f"- {checkpoint.number}: [{checkpoint.title}]({checkpoint.path.name})\n" for checkpoint in self.list()
        ]
        text = "# Checkpoints\n" + ("\n" if lines else "") + "".join(lines)
        _write(self.root / INDEX, text)

    def drop_after(self, number: int) -> None:
        """Remove the checkpoints above ``number``.

        Raises:
            StoreError: a checkpoint cannot be removed.
        """
        dropped = [checkpoint for checkpoint in self.list() if checkpoint.number > number]
        try:
            for checkpoint in dropped:
                checkpoint.path.unlink(missing_ok=True)
            if dropped:
                self.write_index()
        except OSError as error:
            raise StoreError(f"cannot remove checkpoints: {error.strerror or error}") from error

    def copy_to(self, other: Checkpoints, up_to: int) -> None:
        """Copy the checkpoints with numbers up to ``up_to`` to another session.

        Raises:
            OSError: a file cannot be copied.
        """
        copied = [checkpoint for checkpoint in self.list() if checkpoint.number <= up_to]
        if copied:
            create_private_folder(other.root)
            for checkpoint in copied:
                shutil.copyfile(checkpoint.path, other.root / checkpoint.path.name)
            other.write_index()


def _write(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="replace", opener=owner_only) as file:
        file.write(text)


def _title(path: Path) -> str:
    try:
        with path.open("rb") as file:
            line = file.readline(1024).decode("utf-8", "replace")
    except OSError:
        line = ""
    return line.removeprefix("#").strip() or path.stem


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:LONGEST_SLUG].strip("-") or "checkpoint"
