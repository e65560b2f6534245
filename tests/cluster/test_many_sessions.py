"""Requests that concern many sessions, or find one, are about those of the whole cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.replicas import Replicas, running_replicas
from tests.support.server import JsonObject, Wire, scripted

pytestmark = pytest.mark.anyio

SCRIPT = scripted({"text": "an answer about pears"}, {"text": "more"})


async def some_sessions(replicas: Replicas) -> tuple[list[Wire], dict[str, str]]:
    """Make a session that is open at each replica, and one that nobody has open; returns the clients of both."""
    wires = [await replicas.connect(number) for number in range(2)]
    sessions: dict[str, str] = {}
    for name, wire in (("here", wires[0]), ("there", wires[1]), ("stored", wires[1])):
        session = sessions[name] = await wire.create(SCRIPT)
        await wire.prompt(session, f"tell me of {name}")
        changed = {"sessionId": session, "set": {"kept": name}}
        await wire.call("session.metadata.updateClientMetadata", changed)
    await wires[1].call("session.destroy", {"sessionId": sessions["stored"]})
    return wires, sessions


async def test_what_clients_ask_of_several_sessions_is_answered_for_each_where_it_is(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        (wire, _), sessions = await some_sessions(replicas)
        ids = {"sessionIds": [*sessions.values(), "unknown"]}
        kept = await wire.call("sessions.getClientMetadata", ids)
        assert [(entry["status"], entry.get("metadata")) for entry in kept] == [
            *(("ok", {"kept": name}) for name in sessions),
            ("notFound", None),
        ]
        described = (await wire.call("jumpseat.web.describe", ids))["sessions"]
        assert [(one["sessionId"], one["state"]) for one in described] == [
            (sessions["here"], "idle"),
            (sessions["there"], "idle"),
            (sessions["stored"], "stored"),
        ]
        found = (await wire.call("jumpseat.web.search", {**ids, "text": "pears there"}))["matches"]
        assert [match["sessionId"] for match in found] == [sessions["there"]]
        assert (await wire.call("sessions.checkInUse", ids))["inUse"] == [sessions["there"]]
        sizes = (await wire.call("sessions.getSizes"))["sizes"]
        assert sizes.keys() == set(sessions.values())
        assert min(sizes.values()) > 500
        listed = {entry["sessionId"]: entry for entry in (await wire.call("session.list", {}))["sessions"]}
        bare = [
            {name: entry[name] for name in ("sessionId", "startTime", "modifiedTime", "isRemote")}
            for entry in listed.values()
        ]
        enriched: list[JsonObject] = (await wire.call("sessions.enrichMetadata", {"sessions": bare}))["sessions"]
        assert {entry["sessionId"]: entry["summary"] for entry in enriched} == {
            session: f"tell me of {name}" for name, session in sessions.items()
        }
        too_many = {"sessionIds": [f"{number}" for number in range(1001)]}
        assert "at most 1000" in (await wire.error_of("sessions.getClientMetadata", too_many))["message"]


async def test_a_session_is_opened_by_the_beginning_of_its_id_and_by_its_place(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    async with running_replicas(tmp_path, 2, shared=[str(shared)]) as replicas:
        wire, other = [await replicas.connect(number) for number in range(2)]
        session = await other.create(SCRIPT, workingDirectory=str(shared))
        await other.prompt(session)
        options = {"provider": SCRIPT}
        for params in (
            {"kind": "resume", "sessionId": session[:8]},
            {"kind": "attach", "sessionId": session},
            {"kind": "resumeLast", "context": {"cwd": str(shared)}},
        ):
            opened = await wire.call("sessions.open", {**params, "options": options})
            assert (opened["status"], opened["sessionId"]) == ("resumed", session)
            await wire.call("session.detach", {"sessionId": session})
        for params in ({"kind": "resume", "sessionId": "none"}, {"kind": "attach", "sessionId": "none"}):
            assert (await wire.call("sessions.open", params))["status"] == "not_found"


async def test_old_sessions_of_all_replicas_are_pruned_and_deleted(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        (wire, other), sessions = await some_sessions(replicas)
        named = await other.create(SCRIPT, name="kept for good")
        await other.call("session.destroy", {"sessionId": named})
        old = {"olderThanDays": 0}
        dry = await wire.call("sessions.pruneOld", {**old, "dryRun": True})
        assert (dry["candidates"], dry["deleted"]) == ([sessions["stored"]], [])
        assert set(dry["skipped"]) == {sessions["here"], sessions["there"], named}
        done = await wire.call("sessions.pruneOld", old)
        assert done["deleted"] == [sessions["stored"]]
        assert done["freedBytes"] > 500
        ids = {"sessionIds": [sessions["there"], sessions["stored"], named, "unknown"]}
        freed = (await wire.call("sessions.bulkDelete", ids))["freedBytes"]
        assert {session: size > 0 for session, size in freed.items()} == {
            sessions["there"]: True,
            sessions["stored"]: False,
            named: True,
            "unknown": False,
        }
        assert (await other.call("sessions.getSizes"))["sizes"].keys() == {sessions["here"]}
