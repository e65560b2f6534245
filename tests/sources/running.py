"""Run the samples of documents on tools: in the home folder of a real server, called by a scripted model."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.server import JsonObject, RunningServer


def install(folder: Path, *modules: ModuleType) -> None:
    """Copy a sample into the home folder; further modules are appended to its file."""
    tools = folder / "home" / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    first, *more = (inspect.getsource(module) for module in modules)
    # What is appended adds to the declaration of the first module.
    appended = [text.replace('TOOL: dict = {"callback": {"output": {}}}\n', "") for text in more]
    name = modules[0].__name__.rpartition(".")[2]
    (tools / f"{name}.py").write_text("\n".join([first, *appended]))


def programs(folder: Path, **scripts: str) -> str:
    """Write shell scripts as programs; return a search path with them in front."""
    folder.mkdir()
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


class Run:
    """The events of one prompt whose model made ``calls``."""

    def __init__(self, session: str, events: list[JsonObject]) -> None:
        self.session = session
        self.events = events

    def data(self, kind: str) -> list[JsonObject]:
        """Return the data of all events of one type."""
        return [event["data"] for event in self.events if event["type"] == kind]

    def results(self) -> list[str]:
        """Return the results for the model, in the order of the calls."""
        completions = sorted(self.data("tool.execution_complete"), key=lambda data: data["toolCallId"])
        return [(data.get("result") or {"content": data["error"]["message"]})["content"] for data in completions]

    def notices(self) -> list[str]:
        """Return what the tools have told the user."""
        notices = self.data("session.info") + self.data("session.warning")
        return [data["message"] for data in notices if data.get("infoType", data.get("warningType")) == "tool"]

    def questions(self) -> list[JsonObject]:
        """Return the permission requests."""
        return [data["permissionRequest"] for data in self.data("permission.requested")]


async def run_calls(
    server: RunningServer, *calls: tuple[str, dict[str, Any]], decisions: tuple[JsonObject, ...] | None = ()
) -> Run:
    """Run one prompt in a new session and decide its permission requests; ``None`` approves everything."""
    wire = server.wire
    made = [{"id": f"c{number}", "name": name, "arguments": args} for number, (name, args) in enumerate(calls, 1)]
    script = {"turns": [{"tool_calls": made}, {"text": "done"}]}
    session = await wire.create({"type": "scripted", "script": script}, requestPermission=True)
    if decisions is None:
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "Use the @{calculator} tool for 100*50"})
    asked_since = since
    for decision in decisions or ():
        question = await wire.event("permission.requested", session=session, since=asked_since)
        asked_since = len(wire.messages)
        await wire.call(
            "session.permissions.handlePendingPermissionRequest",
            {"sessionId": session, "requestId": question["data"]["requestId"], "result": decision},
        )
    await wire.event("session.idle", session=session, since=since)
    return Run(session, wire.events(session, since=since))
