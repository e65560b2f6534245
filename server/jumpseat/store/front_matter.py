"""Files that people write for models: front matter in YAML, then text. Skills and agents lie in such files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, cast

from jumpseat.errors import StoreError

LARGEST_BYTES: Final = 256 * 1024

_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def project_folders(cwd: Path) -> Iterator[tuple[Path, Literal["project", "inherited"]]]:
    """The working directory, then the folders above it up to the root of its project."""
    root = next((folder for folder in (cwd, *cwd.parents) if os.path.exists(folder / ".git")), cwd)
    for folder in (cwd, *cwd.parents):
        yield folder, "project" if folder in (cwd, root) else "inherited"
        if folder == root:
            return


def entries_of(folder: Path) -> list[str]:
    """The names in a folder, in order; none where there is no such folder.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"cannot be read: {reason or error}") from None


def read_text(path: Path) -> str:
    """The text of a file, with line ends as they are here.

    Raises:
        StoreError: it cannot be read, or is no text that somebody has written.
    """
    try:
        if not path.is_file():
            raise StoreError("it is not a file")  # a pipe, say, must not be waited for
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise StoreError(f"it cannot be read: {reason or error}") from None
    if len(data) > LARGEST_BYTES:
        raise StoreError(f"it is larger than {LARGEST_BYTES} bytes")
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def front_matter(text: str) -> dict[str, Any]:
    """What stands before the text; nothing where it has none.

    Raises:
        StoreError: it is no YAML, or no mapping.
    """
    front = _FRONT.match(text)
    if front is None:
        return {}
    import yaml

    try:
        values: Any = yaml.safe_load(front[1])
    except Exception as error:
        # Not only YAMLError: impossible dates, say, and nesting without end are raised as they come.
        place = getattr(error, "problem_mark", None)
        raise StoreError(f"its front matter is not YAML{f' (line {place.line + 2})' if place else ''}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise StoreError("its front matter is not a list of names with values")
    return cast("dict[str, Any]", values)


def body(text: str) -> str:
    """The text behind the front matter."""
    front = _FRONT.match(text)
    return (text[front.end() :] if front else text).strip()


def names(value: Any, separators: str = r"[,\s]+") -> tuple[str, ...] | None:
    """A list of names in front matter, which may also be one text; ``None`` where it is neither."""
    if isinstance(value, str):
        return tuple(name for name in re.split(separators, value) if name)
    if isinstance(value, list):
        return tuple(name for name in cast("list[Any]", value) if isinstance(name, str))
    return None


class Named(Protocol):
    """What such a file describes."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


@dataclass(slots=True)
class Found(Generic[T]):
    """What was found, in order, and what was wrong: ``warnings`` where something is there all the same."""

    items: list[T] = field(default_factory=lambda: list[T]())
    warnings: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])
    _paths: dict[str, Path] = field(default_factory=dict[str, Path])

    def entries(self, folder: Path, keep: Callable[[str], bool], most: int) -> list[str]:
        """The names in ``folder`` to ``keep``, in order, and no more than ``most`` of them."""
        try:
            names = [name for name in entries_of(folder) if keep(name)]
        except StoreError as error:
            self.errors.append(f"{folder}: {error}")
            return []
        if len(names) > most:
            self.warnings.append(f"{folder}: only the first {most} are looked into")
        return names[:most]

    def add(self, path: Path, read: Callable[[], T | None]) -> None:
        """Add what ``read`` makes of the file at ``path``, if anything; of two with one name, the first counts."""
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
            self.warnings.append(f"{path}: not used, because {first} has the name {item.name!r} too")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one.samefile(other)
    except OSError:
        return False
