"""Build a folder, and an archive of it, that run jumpseat on systems without Python.

The folder contains the Python that runs this, so that everything works as it does in any other installation: child
processes in Python, tools and hooks in Python, entry points. The archive runs on systems of this platform whose C
library is not older than that of this one.
"""

from __future__ import annotations

import argparse
import compileall
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final
from zipfile import ZipFile

from archives import pack_tar, pack_zip
from contents import ROOT, MissingError, copy_jumpseat, copy_package, mark, required
from interpreter import NotMovableError, copy_interpreter, copy_libraries, strip
from notice import write_notice

from jumpseat_protocol.version import __version__

_SYSTEMS: Final = {"linux": "linux", "darwin": "darwin", "win32": "win32"}
_PROCESSORS: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}

_LAUNCHER: Final = """\
#!/bin/sh
# Run jumpseat with the Python beside this file, wherever this folder is.
self=$0
if [ -h "$self" ]; then
  self=$(PATH="$PATH:/usr/bin:/bin" readlink -f -- "$self") || exit 127
fi
case $self in
  */*) here=${self%/*} ;;
  *) here=. ;;
esac
exec "$here/python/bin/python3" -I "$here/python/start.py" "$0" "$@"
"""

_START: Final = """\
# Run jumpseat under the name that it was called by.
import sys

sys.argv.pop(0)

from jumpseat.__main__ import main

main()
"""


def platform_name() -> str:
    """Return the name of this platform as npm and VS Code use it, such as "linux-x64".

    Raises:
        NotMovableError: there is no name for it.
    """
    system, machine = _SYSTEMS.get(sys.platform), _PROCESSORS.get(platform.machine().lower())
    if system is None or machine is None:
        raise NotMovableError(f"there is no standalone form for {sys.platform} on {platform.machine()}")
    return f"{system}-{machine}"


def folder_name() -> str:
    """Return the name of the folder, which is that of the archive as well."""
    return f"jumpseat-{__version__}-{platform_name()}"


def build_folder(folder: Path, *, wheel: Path | None = None) -> None:
    """Build the folder; one that exists is replaced.

    Raises:
        MissingError: a package or the page for browsers is not installed here.
        NotMovableError: this Python cannot be copied.
    """
    packages = required()
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "python"
    executable = copy_interpreter(python)
    site = _site(executable, python)
    for package in packages:
        copy_package(package, site)
    copy_jumpseat(site, wheel)
    mark(site, "standalone")
    libraries: dict[str, Path] = {}
    if sys.platform == "linux":
        # Not programs and bundled libraries of wheels.
        for module in site.rglob("*.so"):
            strip(module)
        libraries = copy_libraries(python)
    write_notice(folder, packages, libraries, site)
    _compile(python, site)
    _write_commands(folder)


def _site(executable: Path, python: Path) -> Path:
    """Return the folder in which the copied interpreter looks for packages; some systems have changed it."""
    code = "import site; print('\\n'.join(site.getsitepackages()))"
    done = subprocess.run([executable, "-I", "-c", code], capture_output=True, text=True, check=False, env=_libs())
    for line in done.stdout.splitlines():
        if Path(line).is_relative_to(python):
            Path(line).mkdir(parents=True, exist_ok=True)
            return Path(line)
    raise NotMovableError(f"{sys.base_prefix} cannot be moved: {done.stderr.strip() or done.stdout.strip()}")


def _libs() -> dict[str, str]:
    """Return an environment in which the interpreter finds its library before the library has been copied."""
    return {**os.environ, "LD_LIBRARY_PATH": str(Path(sys.base_prefix) / "lib")}


def _write_commands(folder: Path) -> None:
    if sys.platform == "win32":
        _write_windows_command(folder)
        return
    (folder / "python" / "start.py").write_text(_START)
    command = folder / "jumpseat"
    command.write_text(_LAUNCHER)
    command.chmod(0o755)


def _write_windows_command(folder: Path) -> None:
    """Write ``jumpseat.exe``: the launcher that pip gives to commands, with a relative path and our script."""
    import pip

    name = "t64-arm.exe" if platform.machine().lower() == "arm64" else "t64.exe"
    launcher = (Path(pip.__file__).parent / "_vendor" / "distlib" / name).read_bytes()
    command = folder / "jumpseat.exe"
    command.write_bytes(launcher + b"#!<launcher_dir>\\python\\python.exe -I\r\n")
    with ZipFile(command, "a") as script:
        script.writestr("__main__.py", "from jumpseat.__main__ import main\n\nmain()\n")


def _compile(python: Path, site: Path) -> None:
    """Compile all modules, and remove the sources of others' modules, which are half of the files.

    Nothing compares modules with their sources, whose times archives may change.
    """
    ours = [folder for folder in site.iterdir() if folder.name.startswith("jumpseat") and folder.is_dir()]
    compile_modules = partial(
        compileall.compile_dir,
        quiet=2,
        workers=0,
        stripdir=str(python.parent),
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    for folder in ours:
        compile_modules(folder)
    of_others = [file for file in python.rglob("*.py") if not any(file.is_relative_to(folder) for folder in ours)]
    compile_modules(python, legacy=True, rx=re.compile(r"/jumpseat(_\w+)?/"))
    for file in of_others:
        if file.with_suffix(".pyc").exists():
            file.unlink()


def pack_in_dist(description: str | None, pack: Callable[[Path], Path]) -> int:
    """Let a command, with this description, ``pack`` the folder in ``dist``; return its exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="default: dist")
    try:
        packed = pack(parser.parse_args().dist)
    except (MissingError, NotMovableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{packed}: {packed.stat().st_size / 1e6:.1f} MB")
    return 0


def main() -> int:
    """Build the folder and its archive in ``dist``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="the wheel of jumpseat; default: build it")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument("--no-archive", action="store_true", help="build the folder alone")
    arguments = parser.parse_args()
    try:
        folder = arguments.dist / folder_name()
        build_folder(folder, wheel=arguments.wheel)
    except (MissingError, NotMovableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB")
    if not arguments.no_archive:
        pack, ending = (pack_zip, ".zip") if platform_name().startswith("win32") else (pack_tar, ".tar.gz")
        archive = arguments.dist / f"{folder.name}{ending}"
        pack(archive, {folder.name: folder})
        print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
