"""Approvals and settings of the user are those of the whole cluster; a location of one host is none of another."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from tests.agent.permissions.test_permissions_over_the_wire import bash, open_session, outcomes, run
from tests.cluster.replicas import running_replicas
from tests.cluster.test_operating import command
from tests.support.nats import running_nats
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

TURNS = (bash("touch a"), {"text": "Done."})
REJECT = {"kind": "reject", "feedback": "no"}


async def until_setting(wire: Wire, name: str, value: object) -> None:
    """Wait until a replica knows a setting that was changed through another one."""
    with anyio.fail_after(wire.wait_s):
        while (await wire.call("user.settings.get"))["settings"][name]["value"] != value:
            await anyio.lowlevel.checkpoint()


async def test_settings_and_approvals_are_seen_by_all_replicas_and_outlive_them(tmp_path: Path) -> None:
    project, shared = tmp_path / "project", tmp_path / "shared"
    for folder in (project, shared):
        folder.mkdir()
    hosts = ["alpha", "beta", "alpha"]
    async with running_nats(tmp_path, 1) as nats:
        for life in range(2):
            async with running_replicas(
                tmp_path / f"{life}", 3, hosts=hosts, shared=[str(shared)], given=nats
            ) as replicas:
                alpha, beta, other_alpha = [await replicas.connect(number) for number in range(3)]
                if life == 0:
                    await alpha.call("user.settings.set", {"settings": {"model": "of all"}})
                    await run(alpha, await open_session(alpha, project, *TURNS), {"kind": "approve-for-location"})
                    await run(alpha, await open_session(alpha, shared, *TURNS), {"kind": "approve-for-location"})
                    # Changes are seen in their order.
                    await alpha.call("user.settings.set", {"settings": {"reasoningEffort": "low"}})
                for wire in (alpha, beta, other_alpha):
                    await until_setting(wire, "reasoningEffort", "low")
                    assert (await wire.call("user.settings.get"))["settings"]["model"]["value"] == "of all"
                # The folder of another host is another folder.
                for wire, folder, silent in (
                    (other_alpha, project, True),
                    (beta, project, False),
                    (beta, shared, True),
                ):
                    events = await run(
                        wire, await open_session(wire, folder, *TURNS), *([] if silent else [REJECT])
                    )
                    assert outcomes(events) == ["ok" if silent else "denied"], (life, folder)


async def test_changes_of_two_replicas_at_once_are_both_kept(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        wires = [await replicas.connect(number) for number in range(2)]
        names = [f"skill-{number}" for number in range(20)]

        async def disable(wire: Wire, mine: list[str]) -> None:
            for name in mine:
                await wire.call("skills.config.setSkillDisabled", {"name": name, "disabled": True})

        async with anyio.create_task_group() as tasks:
            for number, wire in enumerate(wires):
                tasks.start_soon(disable, wire, names[number::2])
        home = tmp_path / "back"
        home.mkdir()
        (home / "config.toml").write_text(replicas.nats.config())
        await command(home, "store", "copy", "--to", "files")
        assert sorted(json.loads((home / "settings.json").read_text())["disabledSkills"]) == sorted(names)


async def test_approvals_and_settings_are_copied_without_those_of_other_programs(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with running_nats(tmp_path) as nats:
        async with running_server(tmp_path / "files") as server:
            await run(server.wire, await open_session(server, project, *TURNS), {"kind": "approve-for-location"})
            home = server.home
        before: JsonObject = json.loads((home / "approvals.json").read_text())
        (home / "settings.json").write_text(json.dumps({"model": "mine", "theirs": {"token": "secret"}}))
        (home / "config.toml").write_text(nats.config(host="alpha"))
        printed = await command(home, "store", "copy", "--to", "cluster")
        assert "approvals: copied" in printed
        assert "settings: copied" in printed
        assert "settings: exists" in await command(home, "store", "copy", "--to", "cluster")
        for host in ("alpha", "beta"):
            back = tmp_path / host
            back.mkdir()
            (back / "config.toml").write_text(nats.config(host=host))
            await command(back, "store", "copy", "--to", "files")
            assert json.loads((back / "settings.json").read_text()) == {"model": "mine"}
        assert json.loads((tmp_path / "alpha" / "approvals.json").read_text()) == before
        assert json.loads((tmp_path / "beta" / "approvals.json").read_text())["locations"] == {}


async def test_usage_by_day_and_by_call_is_known_to_all_replicas(tmp_path: Path) -> None:
    async with running_replicas(tmp_path, 2) as replicas:
        wires = [await replicas.connect(number) for number in range(2)]
        model = scripted({"text": "Done.", "usage": {"input": 100, "output": 20}})
        sessions = [await wire.create(model) for wire in wires]
        for wire, session in zip(wires, sessions, strict=True):
            await wire.prompt(session)
            # What belongs to it is stored.
            await wire.call("session.destroy", {"sessionId": session})
        for wire in wires:
            [day] = (await wire.call("jumpseat.web.usage"))["usage"]
            assert (day["calls"], day["inputTokens"], day["outputTokens"]) == (2, 200, 40)
            for session in sessions:
                calls = (await wire.call("jumpseat.web.modelCalls", {"sessionId": session}))["calls"]
                assert [call["inputTokens"] for call in calls] == [100]
