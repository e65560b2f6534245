"""A client's log of the Agent Host Protocol is played: the server does the same, or the first deviation is told."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from jumpseat.ahp.states.values import JsonObject
from jumpseat.system.installation import own_command
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play import Outcome
from jumpseat_testkit.play_file import play_file
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import PROTOCOLS
from tests.ahp.client import Socket, door_server, raw
from tests.support.forked import executable
from tests.support.server import calls

pytestmark = pytest.mark.anyio

SCRIPT: Final[JsonObject] = {
    "prompts": [
        {"when": "hang on", "turns": [{"deltas": ["I am ", "here"], "hang": True}]},
        {
            "when": "make a file",
            "turns": [
                calls("create", path="made.txt", file_text="x"),
                calls("view", "call-2", path="made.txt"),
                {"text": "It is made."},
            ],
        },
        {"when": "look", "turns": [calls("view", path="notes.txt"), {"text": "Seen."}]},
        {"turns": [{"reasoning": "Well.", "deltas": ["The ", "answer"], "usage": {"input": 7, "output": 2}}] * 9},
    ]
}


class Logged:
    """A connection of which a log is kept, in the form of VS Code's."""

    def __init__(self, socket: Socket, lines: list[JsonObject]) -> None:
        self._socket = socket
        self._lines = lines

    async def send(self, message: str) -> None:
        self._keep(message, "c2s")
        await self._socket.send(message)

    async def recv(self) -> str | bytes:
        message = await self._socket.recv()
        self._keep(message, "s2c")
        return message

    def _keep(self, message: str | bytes, direction: str) -> None:
        about = {"ts": "2026-11-29T04:00:00.000Z", "dir": direction, "connectionId": "1", "transport": "websocket"}
        self._lines.append({**json.loads(message), "_ahpLog": about})


async def recorded(folder: Path, project: Path) -> list[JsonObject]:
    """Return the log of a conversation with everything that depends on the run."""
    lines: list[JsonObject] = []
    async with door_server(folder, SCRIPT) as (_, port), raw(port, "a") as client:
        client.socket = Logged(client.socket, lines)
        await client.initialize()
        await client.create(workingDirectories=[project.as_uri()], config={"model": "fake/two"})
        await client.prompt("t1", "hello")
        await client.action("chat/turnComplete")
        await client.prompt("t2", "make a file")
        for _ in range(2):
            await client.action("session/inputNeededSet")
            call = client.states[client.session]["inputNeeded"][0]["toolCall"]["toolCallId"]
            confirmed = {"turnId": "t2", "toolCallId": call, "approved": True}
            await client.echo(await client.dispatch("chat/toolCallConfirmed", **confirmed))
        await client.action("chat/turnComplete")
        await client.prompt("t3", "hang on")
        await client.action("chat/delta")
        queued = {"kind": "queued", "id": "q1", "message": {"text": "and then", "origin": {"kind": "user"}}}
        await client.echo(await client.dispatch("chat/pendingMessageSet", **queued))
        await client.echo(await client.dispatch("chat/turnCancelled", turnId="t3", duration=1))
        await client.echo(await client.dispatch("session/titleChanged", title="Made"))
        await client.call("listSessions")
        assert "error" in await client.request("subscribe", f"ahp-session:/{uuid4()}")
        await client.settle()
    return lines


async def played(folder: Path, lines: list[JsonObject], files: Path | None = None) -> Outcome:
    path = folder / "ahp-log.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    command = [executable(), *PROTOCOLS["ahp"].command[len(own_command()) :]]
    return await play_file(path, PlayOptions(command, files=files))


def line_of(lines: list[JsonObject], kind: str) -> int:
    """Return the number of the first line in which the server tells of an action."""
    return next(
        number
        for number, line in enumerate(lines, 1)
        if line["_ahpLog"]["dir"] == "s2c" and line.get("params", {}).get("action", {}).get("type") == kind
    )


async def test_a_log_is_played_and_the_first_deviation_is_told(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    lines = await recorded(tmp_path, project)
    outcome = await played(tmp_path, lines)
    assert outcome.failures == []
    # Not the messages of the log, but those of another run with other ids, in another folder.
    logged = line_of(lines, "chat/responsePart")
    assert str(lines[logged - 1]["params"]["action"]["part"]["id"]) not in str(outcome.conversation)
    assert project.as_uri() not in str(outcome.conversation)
    assert (project / "made.txt").read_text() == "x"

    title = line_of(lines, "session/titleChanged")
    changed = deepcopy(lines)
    changed[title - 1]["params"]["action"]["title"] = "Mine"
    (text,) = (await played(tmp_path, changed)).failures
    assert text.startswith(f"line {title}: session/titleChanged on ahp-session:/")
    assert '\n  params.action.title: expected "Mine", got ' in text

    done = line_of(lines, "chat/turnComplete")
    (text,) = (await played(tmp_path, lines[: done - 1] + lines[done:])).failures
    assert ", got chat/turnComplete on ahp-chat://default/" in text

    last = lines.index(next(line for line in reversed(lines) if line["_ahpLog"]["dir"] == "s2c"))
    missing = deepcopy(lines[last])
    missing["id"] = 12345
    (text,) = (await played(tmp_path, [*lines, missing])).failures
    assert text == f"line {len(lines) + 1}: the server did not send the result of request 12345"


async def test_the_files_of_the_project_are_those_that_are_given(tmp_path: Path) -> None:
    project, lines = tmp_path / "project", list[JsonObject]()
    project.mkdir()
    (project / "notes.txt").write_text("Buy milk")
    async with door_server(tmp_path, SCRIPT) as (_, port), raw(port, "a") as client:
        client.socket = Logged(client.socket, lines)
        await client.initialize()
        await client.create(workingDirectories=[project.as_uri()], config={"autoApprove": True})
        await client.prompt("t1", "look at the notes")
        await client.action("chat/turnComplete")
    assert (await played(tmp_path, lines, files=project)).failures == []
    (text,) = (await played(tmp_path, lines)).failures
    assert "params.action.result.success: expected true, got false" in text


def marked(message: JsonObject, direction: str = "c2s", **about: Any) -> JsonObject:
    return {"jsonrpc": "2.0", **message, "_ahpLog": {"dir": direction, "connectionId": "1", **about}}


BEGIN: Final = marked({"id": 1, "method": "initialize", "params": {"channel": "ahp-root://"}})


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([BEGIN, marked({"id": 2, "method": "ping"}, connectionId="2")], "the traffic of 2 connections"),
        ([marked({"id": 1, "method": "reconnect"})], "does not begin with initialize"),
        (
            [BEGIN, marked({"id": 2, "method": "x"}, truncated=True)],
            "line 2: this message of the client is shortened",
        ),
        ([BEGIN, {"id": 2, "method": "x"}], "line 2: expected a message with _ahpLog.dir, c2s or s2c"),
    ],
)
async def test_a_log_that_cannot_be_played_is_refused(tmp_path: Path, lines: list[JsonObject], text: str) -> None:
    with pytest.raises(ScriptError, match=text):
        await played(tmp_path, lines)


async def test_scripts_are_in_the_protocol_of_their_head(tmp_path: Path) -> None:
    offer = {"channel": "ahp-root://", "clientId": "c", "protocolVersions": ["1.0.0"]}
    script = {
        "protocol": "ahp",
        "steps": [
            {"call": "initialize", "params": offer, "result": {"protocolVersion": "1.0.0"}},
            {"call": "ping", "params": {"channel": "ahp-root://"}, "result": None},
        ],
    }
    (tmp_path / "ahp.script.json").write_text(json.dumps(script))
    outcome = await play_file(tmp_path / "ahp.script.json")
    assert outcome.failures == []


async def test_transcripts_are_in_the_protocol_of_their_handshake(tmp_path: Path) -> None:
    offer = {"channel": "ahp-root://", "clientId": "c", "protocolVersions": ["1.0.0"]}
    lines: list[JsonObject] = [
        {"->": {"id": 1, "method": "initialize", "params": offer}},
        {"<-": {"id": 1}},
        {"->": {"id": 2, "method": "ping", "params": {"channel": "ahp-root://"}}},
        {"<-": {"id": 2}},
    ]
    path = tmp_path / "ahp.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert (await play_file(path, update=True)).failures == []
    assert '"serverSeq": "<n>"' in path.read_text()
    assert (await play_file(path)).failures == []
