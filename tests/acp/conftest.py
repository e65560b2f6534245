"""What the tests of the second front door share."""

from __future__ import annotations

import pytest

from tests.support.editor import Schemas
from tests.support.toolchains import require_acp_sdk


@pytest.fixture(scope="session")
def schemas() -> Schemas:
    """The schemas of the protocol, as its npm package ships them."""
    return Schemas(require_acp_sdk("npm") / "node_modules" / "@agentclientprotocol" / "sdk")
