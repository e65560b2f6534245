"""The official SDK packages that tests run against: their versions, and their installation.

Every version has its own folder in :data:`TOOLS`, outside the checkout, and is installed from the package index at
first use. If that fails, the test is skipped, or fails where ``CI`` is set.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import pytest

from tests.support.locks import locked

ROOT = Path(__file__).resolve().parents[2]
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
# Virtual environments belong to the interpreter that has created them.
TOOLS = Path(
    os.environ.get("JUMPSEAT_TEST_TOOLS")
    or _CACHE / "jumpseat-tests" / f"python{sys.version_info.major}.{sys.version_info.minor}"
)
"""The folder of everything that tests install: all checkouts of a user share it."""
INSTALL_LIMIT_S = 240

# The newest published versions at the time of writing; raise them after reading the changes of the packages.
NEWEST_PYPI_SDK = os.environ.get("JUMPSEAT_NEWEST_PYPI_SDK") or "1.0.27"
ACP_PYPI = os.environ.get("JUMPSEAT_ACP_PYPI") or "0.12.1"
ACP_NPM_1 = "1.9.0"
"""The last version of the first line of the package, which editors still use."""
ACP_NPM = os.environ.get("JUMPSEAT_ACP_NPM") or "2.4.0"
NEWEST_NPM_SDK = os.environ.get("JUMPSEAT_NEWEST_NPM_SDK") or "1.0.14"


@dataclass(frozen=True)
class Sdk:
    """One version of the official SDK for one language."""

    registry: Literal["pypi", "npm"]
    version: str

    def __str__(self) -> str:
        return f"{self.registry}-{self.version}"

    @property
    def folder(self) -> Path:
        return TOOLS / str(self)


SDKS = (
    Sdk("pypi", NEWEST_PYPI_SDK),
    Sdk("pypi", "1.0.6"),
    Sdk("npm", NEWEST_NPM_SDK),
    Sdk("npm", "1.0.6"),
)

# From before 1.0: versions 0.1 know only protocol 2; 0.2 and 0.3 know 3 as well and connect in the same way.
OLD_SDKS = (
    Sdk("pypi", "0.1.17"),
    Sdk("pypi", "0.1.23"),
    Sdk("pypi", "0.2.3"),
    Sdk("pypi", "0.3.0"),
    Sdk("npm", "0.1.17"),
    Sdk("npm", "0.1.23"),
    Sdk("npm", "0.3.0"),
)


def require_sdk(sdk: Sdk) -> Path:
    """Install ``sdk`` if necessary and return its folder; skip or fail the test if that is impossible."""
    stamp = sdk.folder / ".installed"
    with locked(TOOLS / f"{sdk}.lock"):
        if not stamp.exists():
            shutil.rmtree(sdk.folder, ignore_errors=True)
            sdk.folder.mkdir()
            if sdk.registry == "pypi":
                _install_from_pypi(sdk)
            else:
                _install_from_npm(sdk)
            stamp.touch()
    return sdk.folder


def require_npm(package: str, version: str) -> Path:
    """Install an npm package if necessary and return its folder; skip or fail the test if that is impossible."""
    tool = Sdk("npm", f"{package.rpartition('/')[2]}-{version}")
    stamp = tool.folder / ".installed"
    with locked(TOOLS / f"{tool}.lock"):
        if not stamp.exists():
            shutil.rmtree(tool.folder, ignore_errors=True)
            tool.folder.mkdir()
            _install_npm_package(tool.folder, "--omit=optional", f"{package}@{version}")
            stamp.touch()
    return tool.folder


def require_acp_sdk(registry: Literal["pypi", "npm"], version: str | None = None) -> Path:
    """Install an SDK of the Agent Client Protocol if necessary and return its folder, like :func:`require_sdk`.

    The JavaScript SDK contains the protocol's schemas.
    """
    version = version or {"pypi": ACP_PYPI, "npm": ACP_NPM}[registry]
    folder = TOOLS / f"acp-{registry}-{version}"
    stamp = folder / ".installed-with-ws"
    with locked(TOOLS / f"{folder.name}.lock"):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if registry == "npm":
                _install_npm_package(folder, f"@agentclientprotocol/sdk@{version}", "zod@4", "ws@8")
            else:
                _install_pypi_package(folder, f"agent-client-protocol=={version}")
            stamp.touch()
    return folder


def require_program(name: str) -> str:
    """Return the path of a program; skip or fail the test if it is missing."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name!r} is not installed")
    return path


@contextlib.contextmanager
def tool_folder(name: str) -> Generator[Path]:
    """Yield a folder in the cache of test tools and lock it against other test runs."""
    with locked(TOOLS / f"{name}.lock"):
        yield TOOLS / name


def in_ci() -> bool:
    """Return whether the environment says that the tests run in continuous integration."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def missing(what: str) -> NoReturn:
    """End a test because a tool is missing: skip it, or fail it in CI."""
    if in_ci():
        pytest.fail(f"{what} (a failure because CI is set)", pytrace=False)
    pytest.skip(what)


def _install_from_pypi(sdk: Sdk) -> None:
    _install_pypi_package(sdk.folder, f"github-copilot-sdk=={sdk.version}")
    # From 0.1.23 to 0.3 the wheels contain the vendor's server, 130 MB that no test may run by mistake.
    for package in sdk.folder.glob("lib/python*/site-packages/copilot"):
        shutil.rmtree(package / "bin", ignore_errors=True)


def _install_from_npm(sdk: Sdk) -> None:
    require_program("node")
    npm = require_program("npm")
    # The vendor's server, 135 MB that tests do not use, is a dependency of old versions, optional in later ones.
    server = "@github/copilot"
    stand_in = sdk.folder / "stand-in"
    stand_in.mkdir()
    (stand_in / "package.json").write_text(json.dumps({"name": server, "version": "0.0.0"}))
    # Without a package.json in this folder, npm would install into the nearest parent folder that has one.
    overrides = {server: f"file:./{stand_in.name}"}
    (sdk.folder / "package.json").write_text(json.dumps({"private": True, "overrides": overrides}))
    options = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
    patience = ("--fetch-retries=1", "--fetch-timeout=20000")
    _run(sdk, npm, "install", *options, *patience, f"@github/copilot-sdk@{sdk.version}")


def _install_pypi_package(folder: Path, requirement: str) -> None:
    # Unpacking pip into each environment, and compiling all modules, would take longer than the installation.
    _run_in(folder, sys.executable, "-m", "venv", "--without-pip", str(folder))
    pip = (sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--quiet")
    options = ("--disable-pip-version-check", "--no-compile", "--retries=1", "--timeout=20")
    _run_in(folder, *pip, "install", *options, requirement)


def _install_npm_package(folder: Path, *packages: str) -> None:
    require_program("node")
    npm = require_program("npm")
    # Without a package.json in this folder, npm would install into the nearest parent folder that has one.
    (folder / "package.json").write_text(json.dumps({"private": True}))
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
    _run_in(folder, npm, "install", *options, "--fetch-retries=1", "--fetch-timeout=20000", *packages)


def _run(sdk: Sdk, *command: str) -> None:
    _run_in(sdk.folder, *command)


def _run_in(folder: Path, *command: str) -> None:
    try:
        process = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        missing(f"{folder.name} could not be installed: {command[0]} took longer than {INSTALL_LIMIT_S} s")
    if process.returncode != 0:
        missing(f"{folder.name} could not be installed: {' '.join(process.stderr.split())[-400:]}")
