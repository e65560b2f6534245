"""Users share a server: each has a connection, and sessions in the storage of the application."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.contract.hosts import Host
from tests.support.fake_copilot import ALICE, BOB, fake_copilot
from tests.support.toolchains import NEWEST_NPM_SDK, NEWEST_PYPI_SDK

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.parametrize("transport", ["uri"])]

NAMES = ("checkpoints/index.md", "events.jsonl", "options.json", "workspace.yaml")
FILES = [f"/session-state/{name}" for name in NAMES]


async def test_each_user_has_sessions_in_storage_of_the_application(host: Host) -> None:
    if host.sdk.version not in (NEWEST_PYPI_SDK, NEWEST_NPM_SDK):
        pytest.skip("the documentation is that of the newest version")
    async with fake_copilot() as copilot:
        observations = await replace(host, environ=copilot.environ).run(
            "share",
            "Hello",
            logins=[{"token": ALICE, "model": "by-chat"}, {"token": BOB, "model": "by-responses"}],
        )
    report = observations.report
    assert report["answers"] == [["chat/completions of alice", "responses of bob"]] * 2
    # The first user has tried to resume the session of the second one.
    assert report["files"] == [{"user-0": FILES, "user-1": []}, {"user-1": FILES}]
    assert "not found" in report["stolen"]["error"].lower()
    assert not [path for path in host.home.rglob("*") if "user-0" in str(path) or path.name == "events.jsonl"]
