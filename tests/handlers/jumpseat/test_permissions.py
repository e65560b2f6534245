"""``jumpseat.permissions.*``: approvals that outlast their calls are listed, and revoked one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

DONE = {"text": "Done."}


def bash(command: str) -> dict[str, Any]:
    return calls("bash", command=command, description="Run it")


async def prompt(wire: Wire, session: str, *decisions: str) -> int:
    """Send a prompt, answer its permission requests, and return their number."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    for decision in decisions:
        asked = await wire.event("permission.requested", session=session, since=since)
        answer = {
            "sessionId": session,
            "requestId": asked["data"]["requestId"],
            "result": {"kind": decision},
        }
        await wire.call("session.permissions.handlePendingPermissionRequest", answer)
    await wire.event("session.idle", session=session, since=since)
    return sum(event["type"] == "permission.requested" for event in wire.events(session, since=since))


async def kept(wire: Wire, session: str) -> list[tuple[str, Any]]:
    found = await wire.call("jumpseat.permissions.list", {"sessionId": session})
    return [(one["scope"], one["rules"]) for one in found["approvals"]]


@pytest.mark.parametrize(
    ("decision", "scope"), [("approve-for-session", "session"), ("approve-for-location", "location")]
)
async def test_an_approval_is_listed_once_and_asked_about_again_after_it_was_revoked(
    tmp_path: Path, decision: str, scope: str
) -> None:
    async with running_server(tmp_path) as server:
        turns = [bash("touch a.txt"), DONE, bash("touch a.txt"), DONE, bash("touch a.txt"), DONE]
        options = {"requestPermission": True, "workingDirectory": str(tmp_path)}
        session = await server.wire.create(scripted(*turns), **options)
        assert await kept(server.wire, session) == []
        assert await prompt(server.wire, session, decision) == 1
        assert await prompt(server.wire, session) == 0

        found = await server.wire.call("jumpseat.permissions.list", {"sessionId": session})
        assert found["location"] == str(tmp_path)
        (approval,) = found["approvals"]
        assert (approval["scope"], approval["rules"]) == (scope, [{"kind": "shell", "argument": "touch"}])
        assert approval["commandLines"] == ["touch a.txt"]

        revoke = {"sessionId": session, "ids": [approval["id"]]}
        assert (await server.wire.call("jumpseat.permissions.revoke", revoke)) == {"success": True}
        assert await kept(server.wire, session) == []
        assert await prompt(server.wire, session, "reject") == 1
        refused = await server.wire.error_of("jumpseat.permissions.revoke", revoke)
        assert refused["message"] == f"unknown approval {approval['id']!r}"


async def test_one_of_several_rules_can_be_revoked(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(DONE), workingDirectory=str(tmp_path))
        for where, kind in (("session", "write"), ("session", "memory"), ("location", "read")):
            rules = {"sessionId": session, "scope": where, "add": [{"kind": kind}]}
            await server.wire.call("session.permissions.modifyRules", rules)
        every = [
            ("session", [{"kind": "write", "argument": None}]),
            ("session", [{"kind": "memory", "argument": None}]),
            ("location", [{"kind": "read", "argument": None}]),
        ]
        assert await kept(server.wire, session) == every
        found = (await server.wire.call("jumpseat.permissions.list", {"sessionId": session}))["approvals"]
        ids = [found[0]["id"], found[2]["id"]]
        await server.wire.call("jumpseat.permissions.revoke", {"sessionId": session, "ids": ids})
        assert await kept(server.wire, session) == [every[1]]
