"""Files that people write for models: front matter in YAML, then text. Skills and agents lie in such files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, cast

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


def is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one.samefile(other)
    except OSError:
        return False
