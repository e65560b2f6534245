"""Fixtures: one host application per SDK version and transport."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.hosts import Host, TransportKind
from tests.support.toolchains import SDKS, Sdk, require_program, require_sdk


@pytest.fixture(scope="session", params=SDKS, ids=str)
def installed_sdk(request: pytest.FixtureRequest) -> tuple[Sdk, Path]:
    """Return an SDK version and its installation folder."""
    sdk: Sdk = request.param
    if sdk.registry == "npm":
        require_program("node")
    return sdk, require_sdk(sdk)


@pytest.fixture(params=["stdio", "tcp", "uri"])
def transport(request: pytest.FixtureRequest) -> TransportKind:
    """Return how the SDK reaches the server: it starts the server with pipes or a port, or is given a URI."""
    return request.param


@pytest.fixture
def host(installed_sdk: tuple[Sdk, Path], transport: TransportKind, tmp_path: Path) -> Host:
    """Return a host application with an empty home and an empty workspace."""
    sdk, folder = installed_sdk
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    return Host(sdk, folder, transport, home, workspace)
