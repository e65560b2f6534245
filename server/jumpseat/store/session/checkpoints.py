"""The plan of a session, and the summaries of its compactions: ``checkpoints/NNN-title.md`` and an ``index.md``."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from jumpseat.store.session.state_files import StateFiles, store_error

FOLDER: Final = "checkpoints"
INDEX: Final = "index.md"
LONGEST_TITLE: Final = 80
LONGEST_LINE: Final = 1024
LONGEST_SLUG: Final = 50

_NAME: Final = re.compile(r"(\d{3,9})-.*\.md")


class Checkpoint(Struct, frozen=True):
    """A checkpoint file."""

    number: int
    title: str
    filename: str
    path: str


class Checkpoints(Struct, frozen=True):
    """The checkpoints of one session."""

    state: StateFiles

    def list(self) -> list[Checkpoint]:
        """Return all checkpoints, sorted by number; other files are ignored."""
        names = self.state.names(FOLDER)
        found = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name))]
        return [self._checkpoint(number, self._title(name), name) for number, name in sorted(found)]

    def read(self, number: int) -> str | None:
        """Return the text of a checkpoint; ``None`` if it does not exist or cannot be read."""
        name = next((checkpoint.filename for checkpoint in self.list() if checkpoint.number == number), None)
        return None if name is None else self._text(name)

    def add(self, title: str, text: str, after: int) -> Checkpoint:
        """Write a summary under the next free number above ``after``.

        Raises:
            StoreError: the file cannot be written.
        """
        title = " ".join(title.split())[:LONGEST_TITLE] or "Checkpoint"
        number = max([after, *(checkpoint.number for checkpoint in self.list())]) + 1
        name = f"{number:03}-{_slug(title)}.md"
        try:
            self._write(name, f"# {title}\n\n{text}\n")
            self.write_index()
        except OSError as error:
            raise store_error("write", name, error) from error
        return self._checkpoint(number, title, name)

    def write_index(self) -> None:
        """Write ``index.md``, a list of all checkpoints for people.

        Raises:
            OSError: the file cannot be written.
        """
        lines = [
            f"- {checkpoint.number}: [{checkpoint.title}]({checkpoint.filename})\n" for checkpoint in self.list()
        ]
        text = "# Checkpoints\n" + ("\n" if lines else "") + "".join(lines)
        self._write(INDEX, text)

    def drop_after(self, number: int) -> None:
        """Remove the checkpoints above ``number``.

        Raises:
            StoreError: a checkpoint cannot be removed.
        """
        dropped = [checkpoint for checkpoint in self.list() if checkpoint.number > number]
        try:
            for checkpoint in dropped:
                self.state.remove(f"{FOLDER}/{checkpoint.filename}")
            if dropped:
                self.write_index()
        except OSError as error:
            raise store_error("remove from", FOLDER, error) from error

    def copy_to(self, other: Checkpoints, up_to: int) -> None:
        """Copy the checkpoints with numbers up to ``up_to`` to another session.

        Raises:
            OSError: a file cannot be copied.
        """
        copied = [checkpoint.filename for checkpoint in self.list() if checkpoint.number <= up_to]
        for name in copied:
            other.state.write(f"{FOLDER}/{name}", self.state.read(f"{FOLDER}/{name}") or b"")
        if copied:
            other.write_index()

    def _checkpoint(self, number: int, title: str, name: str) -> Checkpoint:
        return Checkpoint(number, title, name, self.state.path(f"{FOLDER}/{name}"))

    def _text(self, name: str) -> str | None:
        try:
            content = self.state.read(f"{FOLDER}/{name}")
        except OSError:
            return None
        return None if content is None else content.decode("utf-8", "replace")

    def _title(self, name: str) -> str:
        line = (self._text(name) or "").partition("\n")[0][:LONGEST_LINE]
        return line.removeprefix("#").strip() or name.removesuffix(".md")

    def _write(self, name: str, text: str) -> None:
        self.state.write(f"{FOLDER}/{name}", text.encode("utf-8", "replace"))


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:LONGEST_SLUG].strip("-") or "checkpoint"


FILE: Final = "plan.md"


class Plan:
    """The plan of one session, which need not exist."""

    def __init__(self, state: StateFiles) -> None:
        self._state = state

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._state.path(FILE)

    async def read(self) -> str | None:
        """Return the text, invalid bytes replaced; ``None`` if there is no plan.

        Raises:
            StoreError: the file cannot be read.
        """
        await self._state.refresh(FILE)
        try:
            content = self._state.read(FILE)
        except OSError as error:
            raise store_error("read", FILE, error) from error
        return None if content is None else content.decode("utf-8", "replace")

    async def write(self, text: str) -> bool:
        """Replace the text; returns whether the plan is new.

        Raises:
            StoreError: the file cannot be written.
        """
        await self._state.refresh(FILE)
        try:
            is_new = self._state.read(FILE) is None
            self._state.write(FILE, text.encode())
        except (OSError, UnicodeEncodeError) as error:
            raise store_error("write", FILE, error) from error
        await self._state.flush()
        return is_new

    async def remove(self) -> bool:
        """Remove the plan; returns whether there was one.

        Raises:
            StoreError: the file cannot be removed.
        """
        await self._state.refresh(FILE)
        try:
            existed = self._state.remove(FILE)
        except OSError as error:
            raise store_error("remove", FILE, error) from error
        await self._state.flush()
        return existed
