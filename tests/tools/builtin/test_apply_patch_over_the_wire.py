"""The permissions of a patch: each of its files counts, and one question is about all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.server import JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

DONE = {"text": "Done."}


def adding(*names: str) -> str:
    return "".join(f"*** Add File: {name}\n+x\n" for name in names)


async def test_rules_and_protected_places_hold_for_each_file_of_a_patch(tmp_path: Path) -> None:
    turns = [
        calls("apply_patch", "c1", input=adding("a.txt", "b.txt")),
        calls("apply_patch", "c2", input=adding("c.txt", "secret/d.txt")),
        calls("apply_patch", "c3", input=adding("d.txt") + "*** Update File: a.txt\n-none\n+y\n"),
        calls("apply_patch", "c4", input=adding("e.txt", ".git/hooks/pre-commit")),
        DONE,
    ]
    config = '[permissions]\nallow = ["write(**/*.txt)"]\ndeny = ["write(secret/**)"]\n'
    folder = tmp_path / "project"
    folder.mkdir()
    async with running_server(tmp_path, config=config) as server:
        session = await server.wire.create(scripted(*turns), workingDirectory=str(folder), requestPermission=True)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        # Rules decide about the first two calls, and the third cannot be made.
        asked = await server.wire.event("permission.requested", session=session)
        request: JsonObject = asked["data"]["permissionRequest"]
        decision = {"sessionId": session, "requestId": asked["data"]["requestId"], "result": {"kind": "reject"}}
        await server.wire.call("session.permissions.handlePendingPermissionRequest", decision)
        await server.wire.event("session.idle", session=session)
        events = server.wire.events(session)
    results = [event["data"] for event in events if event["type"] == "tool.execution_complete"]
    assert [event["type"] for event in events].count("permission.requested") == 1
    assert request["fileName"] == str(folder)
    assert [edit["after"]["path"] for edit in request["fileEdits"]] == [
        str(folder / "e.txt"),
        str(folder / ".git/hooks/pre-commit"),
    ]
    assert "Programs obey this file" in request["warning"]
    assert [result["success"] for result in results] == [True, False, False, False]
    assert "write(secret/**)" in results[1]["error"]["message"]
    assert results[2]["error"]["message"].startswith("The hunk was not found in a.txt.")
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt"]
