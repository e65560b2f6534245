"""Fixtures for the tests of the Agent Client Protocol."""

from __future__ import annotations

import pytest

from tests.support.editor import Schemas
from tests.support.toolchains import require_acp_sdk


@pytest.fixture(scope="session")
def schemas() -> Schemas:
    """Return the protocol's schemas from its npm package."""
    return Schemas(require_acp_sdk("npm") / "node_modules" / "@agentclientprotocol" / "sdk")
