"""What a project and the errors seeded into it consist of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

FILLER_FILES: Final = 30
FILLER_PARTS: Final = 25

_PLACE: Final = re.compile(r"[\w/]+\.\w+: ")


class Seed(NamedTuple):
    """A change, and the places of the errors that it brings.

    The change is an edit of ``path``. Without ``old``, ``path`` is a new file, with ``to``, it gets that name, and
    with neither of these nor ``new``, it is deleted.
    A place is ``PATH: TEXT``, with a part of the first line that has it after the change. Those that are ``also``
    wrong then need not be told: they follow from the errors in ``places``.
    """

    what: str
    path: str
    old: str = ""
    new: str = ""
    to: str = ""
    places: Sequence[str] = ()
    also: Sequence[str] = ()


class Project(NamedTuple):
    """A project of one language, with the program of its language server.

    ``part`` is valid code that occurs often in further files, whose names come from ``filler``; ``NUMBER`` in both
    is another number each time.
    """

    language: str
    program: str
    files: Mapping[str, str]
    seeds: Sequence[Seed]
    filler: str
    part: str
    head: str = ""
    tail: str = ""

    def all_files(self) -> dict[str, str]:
        """Return the texts of all files."""
        files = dict(self.files)
        for number in range(FILLER_FILES):
            parts = (self.part.replace("NUMBER", f"{number}x{index}") for index in range(FILLER_PARTS))
            text = self.head + "".join(parts) + self.tail
            files[self.filler.replace("NUMBER", str(number))] = text.replace("FILE", str(number))
        return files


def edit(what: str, path: str, old: str, new: str, *places: str, also: Sequence[str] = ()) -> Seed:
    """Return a seed of one edit. Places without the path of a file are in the edited one."""
    wanted, other = ([p if _PLACE.match(p) else f"{path}: {p}" for p in some] for some in (places, also))
    return Seed(what, path, old, new, places=wanted, also=other)


def create(what: str, path: str, text: str, *places: str) -> Seed:
    """Return a seed of a new file."""
    return Seed(what, path, new=text, places=places)


def delete(path: str, *places: str, also: Sequence[str] = ()) -> Seed:
    """Return a seed of a deleted file."""
    return Seed("a deleted file", path, places=places, also=also)


def move(path: str, to: str, *places: str, also: Sequence[str] = ()) -> Seed:
    """Return a seed of a file with another name."""
    return Seed("a moved file", path, to=to, places=places, also=also)
