"""Strings and lists whose length costs the server more than their bytes, and their limits."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

MAX_PATH_CHARS: Final = 4096
"""No system opens a longer path."""
MAX_PATH_FOLDERS: Final = 256
"""Folders of a path, which are looked at one by one."""
MOST_PATHS: Final = 500
"""The paths of one list."""
MAX_KEY_CHARS: Final = 16 * 1024
"""Errors and logs are searched for parts of keys."""
MOST_HEADERS: Final = 200
MOST_HEADER_CHARS: Final = 32 * 1024
"""All headers of a request to a provider, with their names. Servers accept less."""


def has_few_folders(path: str) -> bool:
    """Return whether a path has at most ``MAX_PATH_FOLDERS`` folders."""
    return path.count("/") + path.count("\\") <= MAX_PATH_FOLDERS


def _check_folders(path: str) -> str:
    if not has_few_folders(path):
        raise ValueError(f"a path has at most {MAX_PATH_FOLDERS} folders")
    return path


PathText: TypeAlias = Annotated[str, Field(max_length=MAX_PATH_CHARS), AfterValidator(_check_folders)]
"""The path of a file or folder. Every field whose name says that it is a path has this type."""
PathTexts: TypeAlias = Annotated[list[PathText], Field(max_length=MOST_PATHS)]
"""Paths of files or folders."""
KeyText: TypeAlias = Annotated[str, Field(max_length=MAX_KEY_CHARS)]
"""A key, token or password. Every field whose name says that it is one has this type."""


def is_path(value: str) -> bool:
    """Return whether a string is short enough for a path."""
    return len(value) <= MAX_PATH_CHARS and has_few_folders(value)
