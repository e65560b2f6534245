"""Reading declarations: TOML files, Python files and entry points of installed packages.

What a Python file or an entry point gives is not judged here. Whatever is wrong with reading it is a
:class:`~jumpseat.errors.ConfigError` that names the file.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from jumpseat.errors import ConfigError

ENDING: Final = (SystemExit, KeyboardInterrupt)
"""What the code of a declaration may raise, also in a thread, that would end the server."""


def declaration_files(folder: Path) -> list[Path]:
    """The files of ``folder`` that may hold declarations, sorted; none where there is no such folder."""
    return sorted(path for path in (*folder.glob("*.toml"), *folder.glob("*.py")) if path.is_file())


def trusted_files(folder: Path, is_trusted: Callable[[Path], bool]) -> list[Path]:
    """Those of a project that the user trusts, sorted. Links count as what they lead to."""
    return [path for path in declaration_files(folder) if is_trusted(path)]


def stamp_of(path: Path) -> tuple[int, int]:
    """What tells whether a file has changed: its time and its size; zeros where there is none any more."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def read_toml(path: Path) -> Mapping[str, Any]:
    """The table that a TOML file holds.

    Raises:
        ConfigError: it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None


def run_python(path: Path, prefix: str) -> ModuleType:
    """The module that a Python file becomes, under a name of its own that begins with ``prefix``.

    Raises:
        ConfigError: it cannot be read, or raises.
    """
    try:
        spec = importlib.util.spec_from_file_location(f"{prefix}_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (Exception, *ENDING) as error:
        raise ConfigError(f"{path}: {type(error).__name__}: {error}") from error
    return module


def entry_points(group: str) -> Iterable[Any]:
    """The entry points of installed packages; looking for them takes some milliseconds."""
    from importlib import metadata

    return metadata.entry_points(group=group)


def load_entry_point(point: Any, kind: str) -> Any:
    """What an entry point stands for. ``kind`` says what of, for the error text.

    Raises:
        ConfigError: it cannot be imported.
    """
    try:
        return point.load()
    except (Exception, *ENDING) as error:
        raise ConfigError(f"{kind} {point.name!r} of {point.value}: {type(error).__name__}: {error}") from error


def as_mapping(where: str, value: Any, attribute: str) -> Mapping[str, Any]:
    """``value``, or what it gives when called, where that is a mapping. ``attribute`` is what it is to be called.

    Raises:
        ConfigError: it is something else.
    """
    if callable(value):
        try:
            value = value()
        except ENDING as error:
            raise ConfigError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: expected a mapping {attribute}")
    return cast("Mapping[str, Any]", value)
