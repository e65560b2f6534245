"""Read declarations from TOML files, Python files and entry points of installed packages.

The content of a declaration is not validated here. If reading fails, a :class:`~jumpseat.errors.ConfigError` names
the file.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from jumpseat.errors import ConfigError

FATAL_ERRORS: Final = (SystemExit, KeyboardInterrupt)
"""Exceptions raised by a declaration's code that would end the server if not caught, even in a thread."""


def declaration_files(folder: Path) -> list[Path]:
    """Return the TOML and Python files in ``folder``, sorted; empty if the folder does not exist."""
    return sorted(path for path in (*folder.glob("*.toml"), *folder.glob("*.py")) if path.is_file())


def trusted_files(folder: Path, is_trusted: Callable[[Path], bool]) -> list[Path]:
    """Return the declaration files of a project that the user trusts, sorted; symbolic links are resolved."""
    return [path for path in declaration_files(folder) if is_trusted(path)]


def stamp_of(path: Path) -> tuple[int, int]:
    """Return the modification time in ns and the size of a file, to detect changes; zeros if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def read_toml(path: Path) -> Mapping[str, Any]:
    """Parse a TOML file.

    Raises:
        ConfigError: the file cannot be read or is not valid TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None


def run_python(path: Path, prefix: str) -> ModuleType:
    """Run a Python file as a module whose name begins with ``prefix``, and return the module.

    Raises:
        ConfigError: the file cannot be read, or running it raises an exception.
    """
    try:
        spec = importlib.util.spec_from_file_location(f"{prefix}_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (Exception, *FATAL_ERRORS) as error:
        raise ConfigError(f"{path}: {type(error).__name__}: {error}") from error
    return module


def entry_points(group: str) -> Iterable[Any]:
    """Return the entry points of a group in installed packages; this takes some milliseconds."""
    from importlib import metadata

    return metadata.entry_points(group=group)


def load_entry_point(point: Any, kind: str) -> Any:
    """Load the object of an entry point. ``kind`` ("adapter", "tool") is used in errors.

    Raises:
        ConfigError: importing it raises an exception.
    """
    try:
        return point.load()
    except (Exception, *FATAL_ERRORS) as error:
        raise ConfigError(f"{kind} {point.name!r} of {point.value}: {type(error).__name__}: {error}") from error


def as_mapping(where: str, value: Any, attribute: str) -> Mapping[str, Any]:
    """Return ``value``, or the result of calling it, as a mapping. ``attribute`` is the expected attribute's name.

    Raises:
        ConfigError: the value is not a mapping.
    """
    if callable(value):
        try:
            value = value()
        except FATAL_ERRORS as error:
            raise ConfigError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: expected a mapping {attribute}")
    return cast("Mapping[str, Any]", value)
