"""The newest Python SDK decodes the server's results: every fixed answer, and those about state and the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat_protocol.unsupported import NEUTRAL_ANSWERS
from tests.contract.hosts import DRIVERS
from tests.support.server import running_server, scripted
from tests.support.toolchains import NEWEST_PYPI_SDK, Sdk, require_sdk

# The first test of an SDK version installs it, which takes longer than a test's time limit.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

DECODER_LIMIT_S = 120
# Missing in the SDK for Python only.
NOT_IN_THE_SDK = {"session.factory.listRuns"}

METADATA = {"sessionId": "x", "startTime": "2026-01-01T00:00:00Z", "modifiedTime": "2026-01-01T00:00:00Z"}
SERVED: list[tuple[str, dict[str, Any]]] = [
    ("commands.list", {}),
    ("secrets.addFilterValues", {"values": ["hunter2"]}),
    ("sessions.bulkDelete", {"sessionIds": ["x"]}),
    ("sessions.checkInUse", {"sessionIds": ["x"]}),
    ("sessions.close", {"sessionId": "x"}),
    ("sessions.enrichMetadata", {"sessions": [{**METADATA, "isRemote": False}]}),
    ("sessions.findByPrefix", {"prefix": "0123456"}),
    ("sessions.getEventFilePath", {"sessionId": "x"}),
    ("sessions.getLastForContext", {}),
    ("sessions.getMetadata", {"sessionId": "SESSION"}),
    ("sessions.getSizes", {}),
    ("sessions.list", {}),
    ("sessions.listNonEmptySessionIds", {}),
    ("sessions.open", {"kind": "attach", "sessionId": "SESSION"}),
    ("sessions.pruneOld", {"olderThanDays": 0, "dryRun": True}),
    ("sessions.releaseLock", {"sessionId": "x"}),
    ("sessions.save", {"sessionId": "SESSION"}),
    ("tools.list", {}),
    ("user.settings.get", {}),
    ("user.settings.set", {"settings": {"skipCustomInstructions": True}}),
    ("session.commands.list", {}),
    ("session.commands.invoke", {"name": "help"}),
    ("session.commands.invoke", {"name": "permissions"}),
    ("session.commands.invoke", {"name": "review"}),
    ("session.commands.invoke", {"name": "autopilot", "input": "off"}),
    ("session.commands.execute", {"commandName": "help", "args": ""}),
    ("session.commands.handlePendingCommand", {"requestId": "x"}),
    ("session.commands.respondToQueuedCommand", {"requestId": "x", "result": {"handled": False}}),
    ("session.eventLog.read", {}),
    ("session.eventLog.tail", {}),
    ("session.eventLog.registerInterest", {"eventType": "command.queued"}),
    ("session.eventLog.releaseInterest", {"handle": "x"}),
    ("session.instructions.getSources", {}),
    ("session.log", {"message": "hello"}),
    ("session.metadata.activity", {}),
    ("session.metadata.contextInfo", {"promptTokenLimit": 1000, "outputTokenLimit": 100}),
    ("session.metadata.getContextAttribution", {}),
    ("session.metadata.getContextHeaviestMessages", {}),
    ("session.metadata.isProcessing", {}),
    ("session.metadata.recomputeContextTokens", {"modelId": "x"}),
    ("session.metadata.snapshot", {}),
    ("session.mode.get", {}),
    ("session.model.getCurrent", {}),
    ("session.model.list", {}),
    ("session.name.set", {"name": "A name"}),
    ("session.name.get", {}),
    ("session.name.setAuto", {"summary": "Another"}),
    ("session.permissions.getMode", {}),
    ("session.permissions.pendingRequests", {}),
    ("session.plan.update", {"content": "- one"}),
    ("session.plan.read", {}),
    ("session.plan.delete", {}),
    ("session.queue.pendingItems", {}),
    ("session.queue.removeMostRecent", {}),
    ("session.tools.getCurrentMetadata", {}),
    ("session.ui.registerDirectAutoModeSwitchHandler", {}),
    ("session.ui.unregisterDirectAutoModeSwitchHandler", {"handle": "x"}),
    ("session.usage.getMetrics", {}),
    ("session.workspaces.createFile", {"path": "a", "content": "b"}),
    ("session.workspaces.diff", {"mode": "branch"}),
    ("session.workspaces.getWorkspace", {}),
    ("session.workspaces.listFiles", {}),
    ("session.workspaces.readFile", {"path": "a"}),
    ("session.workspaces.saveLargePaste", {"content": "b"}),
    ("session.commands.enqueue", {"command": "/help"}),
    ("session.queue.clear", {}),
]


async def test_the_sdk_decodes_every_fixed_answer(tmp_path: Path) -> None:
    # An echoed value must be one that the SDK knows.
    fixed = [
        (method, {**answer.only, **dict.fromkeys(answer.needs, "direct")})
        for method, answer in NEUTRAL_ANSWERS.items()
    ]
    results = await answers(tmp_path, fixed)
    read = await decoded(results)
    assert {method: failure for method, failure in read.items() if failure} == {}
    assert results.keys() - read.keys() == NOT_IN_THE_SDK


async def test_the_sdk_decodes_results_about_state_and_the_disk(tmp_path: Path) -> None:
    process = await anyio.run_process(["git", "init", "--quiet", str(tmp_path)])
    assert process.returncode == 0
    results = await answers(tmp_path, SERVED)
    read = await decoded(results)
    assert {method: failure for method, failure in read.items() if failure} == {}
    assert results.keys() - read.keys() == set()


async def answers(folder: Path, requests: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return the server's results by method, in a session after one prompt."""
    results: dict[str, Any] = {}
    async with running_server(folder) as server:
        session = await server.wire.create(scripted({"text": "Hello!"}))
        await server.wire.prompt(session)
        for method, params in requests:
            given = {name: session if value == "SESSION" else value for name, value in params.items()}
            if method.startswith("session.") or (method in NEUTRAL_ANSWERS and method.startswith("sessions.")):
                given["sessionId"] = session
            results[method] = await server.wire.call(method, given)
    return results


async def decoded(results: dict[str, Any]) -> dict[str, str | None]:
    """Return the decoding errors of the SDK by method, without methods that it lacks."""
    python = require_sdk(Sdk("pypi", NEWEST_PYPI_SDK)) / "bin" / "python"
    with anyio.fail_after(DECODER_LIMIT_S):
        process = await anyio.run_process(
            [str(python), str(DRIVERS / "decode_results.py")], input=json.dumps(results).encode(), check=False
        )
    assert process.returncode == 0, process.stderr.decode()
    output = json.loads(process.stdout)
    assert output["sdk"] == NEWEST_PYPI_SDK
    return output["read"]
