"""Fixtures for the tests of the Agent Client Protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.editor import Schemas
from tests.support.toolchains import require_acp_sdk


def package() -> Path:
    """Return the folder of the protocol's npm package, which has its schemas."""
    return require_acp_sdk("npm") / "node_modules" / "@agentclientprotocol" / "sdk"


@pytest.fixture(scope="session")
def schemas() -> Schemas:
    """Return the protocol's schemas from its npm package."""
    return Schemas(package())


@pytest.fixture(scope="session")
def draft_schemas() -> Schemas:
    """Return the schemas of version 2, a draft."""
    return Schemas(package(), 2)


@pytest.fixture(params=[1, 2])
def each_version(request: pytest.FixtureRequest, schemas: Schemas, draft_schemas: Schemas) -> Schemas:
    """Return the schemas of each version in turn."""
    return schemas if request.param == 1 else draft_schemas
