"""Read declarations from TOML files, Python files and entry points of installed packages.

The content of a declaration is not validated here. If reading fails, a :class:`~jumpseat.errors.ConfigError` names
the file. The code of a declaration may raise anything: an exception that is not an ``Exception``, such as
``SystemExit``, would end the server, even from a thread.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias, cast

from jumpseat.declared.values import unpaired_surrogate
from jumpseat.errors import ConfigError
from jumpseat.parsing.toml_text import TomlError, parse_toml
from jumpseat.system.regular_files import read_whole

LARGEST_BYTES: Final = 256 * 1024
"""Limit on the size of a declaration file: 4 KiB of TOML take up to a millisecond, and block all clients."""

Stamp: TypeAlias = tuple[int, ...]
"""Differs between versions of a file."""


def stamp_of(path: Path) -> Stamp:
    """Return what differs between versions of a file, or if it was replaced; zeros if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return (0,)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def read_toml(path: Path) -> Mapping[str, Any]:
    """Parse a TOML file.

    Raises:
        ConfigError: the file cannot be read or is not valid TOML.
    """
    try:
        content = read_whole(path, LARGEST_BYTES)
        text = content.decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from None
    try:
        return parse_toml(text)
    except TomlError as error:
        raise ConfigError(error.in_file(path)) from None


class _SourceLoader(SourceFileLoader):
    """Compiles a file each time: cached bytecode misses a change of the same second that keeps the size."""

    def path_stats(self, path: Any) -> Any:
        # Without it, bytecode is neither read nor written.
        raise OSError


def run_python(path: Path, prefix: str) -> ModuleType:
    """Run a Python file as a module whose name begins with ``prefix``, and return the module.

    Raises:
        ConfigError: the file cannot be read, or running it raises an exception.
    """
    try:
        name = f"{prefix}_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path)))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except BaseException as error:
        raise ConfigError(f"{path}: cannot be run: {type(error).__name__}: {error}{_line(error, path)}") from error
    return module


def _line(error: BaseException, path: Path) -> str:
    """Return the last line of a file that led to an exception, as text; empty if unknown."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            found = trace.tb_lineno
        trace = trace.tb_next
    return "" if found is None else f" (line {found})"


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
    except BaseException as error:
        raise ConfigError(f"{kind} {point.name!r} of {point.value}: {type(error).__name__}: {error}") from error


def as_mapping(where: str, value: Any, attribute: str) -> Mapping[str, Any]:
    """Return ``value``, or the result of calling it, as a mapping. ``attribute`` is the expected attribute's name.

    Raises:
        ConfigError: the value is not a mapping, or contains a string that cannot be encoded.
    """
    try:
        value = value() if callable(value) else value
        table = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else None
    except BaseException as error:
        raise ConfigError(f"{where}: {type(error).__name__}: {error}") from error
    if table is None:
        raise ConfigError(f"{where}: expected a mapping called {attribute}")
    if (place := unpaired_surrogate(table)) is not None:
        raise ConfigError(f"{where}: {place or 'a key'} contains an unpaired surrogate: write the character itself")
    return table
