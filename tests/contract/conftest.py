"""Fixtures: one host application per SDK version and transport."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.hosts import Host, TransportKind
from tests.support.toolchains import NEWEST_NPM_SDK, NEWEST_PYPI_SDK, SDKS, Sdk, require_program, require_sdk


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the older SDKs over sockets: their users have pipes, and the newest shows what the server does."""
    newest = (NEWEST_PYPI_SDK, NEWEST_NPM_SDK)
    items[:] = [
        item
        for item in items
        if not isinstance(item, pytest.Function)
        or not hasattr(item, "callspec")
        or not isinstance(sdk := item.callspec.params.get("installed_sdk"), Sdk)
        or sdk.version in newest
        or item.callspec.params.get("transport", "stdio") == "stdio"
    ]
