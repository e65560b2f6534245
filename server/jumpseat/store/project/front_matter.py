"""Markdown files with YAML front matter, in which skills and custom agents are written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, cast

from msgspec import Struct, field

from jumpseat.errors import StoreError
from jumpseat.parsing.yaml_text import read_foreign_yaml
from jumpseat.system.regular_files import decode_text, read_whole, repository_root, scan_folder

LARGEST_BYTES: Final = 256 * 1024

MOST_ENTRIES: Final = 10_000
"""Limit on the entries that are looked at below one folder."""

_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def project_folders(cwd: Path) -> Iterator[tuple[Path, Literal["project", "inherited"]]]:
    """Yield the working directory and the folders above it, up to the root of its repository."""
    root = repository_root(cwd)
    for folder in (cwd, *cwd.parents):
        yield folder, "project" if folder in (cwd, root) else "inherited"
        if folder == root:
            return


def entries_of(folder: Path) -> list[str]:
    """Return the sorted names in a folder; empty if the folder does not exist.

    Raises:
        StoreError: the folder cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"cannot be read: {reason or error}") from None


def files_below(folder: Path, suffix: str, most: int) -> list[Path]:
    """Return the files in a folder and the folders below whose names end in ``suffix``, sorted, at most ``most``.

    Links to folders are not followed.
    """
    found: list[Path] = []
    pending, entries = [folder], 0
    while pending:
        current = pending.pop()
        for entry in scan_folder(current):
            entries += 1
            if entries > MOST_ENTRIES:
                return sorted(found)[:most]
            if entry.is_folder and not entry.is_link:
                pending.append(current / entry.name)
            elif entry.name.endswith(suffix):
                found.append(current / entry.name)
    return sorted(found)[:most]


def read_text(path: Path, project: Path | None = None) -> str:
    """Read a text file, replacing invalid bytes, with ``\\n`` as line ends.

    If the file belongs to a folder of a ``project``, its target must be in the repository of that folder.

    Raises:
        StoreError: the file cannot be read, is too large, is not a regular file or leads out of the project.
    """
    try:
        data = read_whole(path, LARGEST_BYTES, project and repository_root(project))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"cannot be read: {reason or error}") from None
    return decode_text(data).replace("\r\n", "\n")


def front_matter(text: str) -> dict[str, Any]:
    """Parse the front matter of a text; empty if the text has none.

    Raises:
        StoreError: the front matter is not YAML, or not a mapping.
    """
    front = _FRONT.match(text)
    if front is None:
        return {}
    try:
        values = read_foreign_yaml(front[1], first_line=2)
    except ValueError as error:
        raise StoreError(f"the front matter {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise StoreError("the front matter is not a mapping")
    return cast("dict[str, Any]", values)


def plain_fields(text: str) -> dict[str, str]:
    """Return the fields of front matter that is not YAML, one a line, as other agents read it."""
    front = _FRONT.match(text)
    lines = front[1].splitlines() if front is not None else []
    fields = (line.partition(":") for line in lines if line[:1].isalpha())
    return {name.strip(): value.strip().strip("\"'") for name, colon, value in fields if colon}


def body(text: str) -> str:
    """Return the text after the front matter."""
    front = _FRONT.match(text)
    return (text[front.end() :] if front else text).strip()


def names(value: Any, separators: str = r"[,\s]+") -> tuple[str, ...] | None:
    """Return the names in a value of front matter, a list or a string to split; ``None`` if it is neither."""
    if isinstance(value, str):
        return tuple(name for name in re.split(separators, value) if name)
    if isinstance(value, list):
        return tuple(name for name in cast("list[Any]", value) if isinstance(name, str))
    return None


class Named(Protocol):
    """An item that such a file describes."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class Found(Struct, Generic[T]):
    """The items in order, and the problems of files; ``warnings`` are problems of files that are used anyway."""

    items: list[T] = field(default_factory=lambda: list[T]())
    warnings: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])
    _paths: dict[str, Path] = field(default_factory=dict[str, Path])

    def entries(self, folder: Path, keep: Callable[[str], bool], most: int) -> list[str]:
        """Return the sorted names in ``folder`` that ``keep`` accepts, at most ``most`` of them."""
        try:
            names = [name for name in entries_of(folder) if keep(name)]
        except StoreError as error:
            self.errors.append(f"{folder}: {error}")
            return []
        if len(names) > most:
            self.warnings.append(f"{folder}: only the first {most} entries are read")
        return names[:most]

    def add(self, path: Path, read: Callable[[], T | None]) -> None:
        """Add the item that ``read`` returns for the file at ``path``, unless its name is taken already."""
        try:
            item = read()
        except StoreError as error:
            self.errors.append(f"{path}: {error}")
            return
        if item is None:
            return
        first = self._paths.setdefault(item.name, path)
        if first == path:
            self.items.append(item)
        elif not _is_same(first, path):
            self.warnings.append(f"{path}: ignored, because {first} has the same name {item.name!r}")


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file."""
    try:
        return one.samefile(other)
    except OSError:
        return False
