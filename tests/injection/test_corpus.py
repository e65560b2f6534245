"""A model that obeys every injected text has no effect without a question, and each question shows the effect."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import pytest

from jumpseat.acp.translation.tool_calls import permission_call
from jumpseat_protocol.events import PermissionRequested, decode_payload
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_protocol.visible import deceptive_characters, exact_line, visible, visible_url, without_padding
from jumpseat_terminal.paint import Painter
from jumpseat_terminal.permission_text import describe
from tests.injection.corpus import CONFIG, OPENING, Attempt, Scene, attempts, effects, prepare
from tests.injection.obedient import Hostile, Order, hostile_server, provider
from tests.support.cases import all_cases
from tests.support.mcp_servers import status
from tests.support.server import JsonObject, RunningServer, Wire, running_server

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

AT_A_TIME: Final = 6
EVERYDAY: Final[tuple[JsonObject, ...]] = (
    {"tool": "bash", "command": "git status"},
    {"tool": "bash", "command": "make test"},
    {"tool": "view", "path": "notes.md"},
    {"tool": "create", "path": "src/new.txt", "file_text": "new\n"},
)
"""Calls that a developer has approved for good: commands that look, tests, reading and writing in the project."""

Decide = Callable[[str], JsonObject]
"""Returns the decision of the user on the call with an id."""


def wanted_calls(call_id: str) -> JsonObject:
    is_wanted = call_id.partition(".")[0].endswith(OPENING)
    return {"kind": "approve-once"} if is_wanted else {"kind": "reject", "feedback": "no"}


def everything(_call_id: str) -> JsonObject:
    return {"kind": "approve-once"}


def everything_for_good(_call_id: str) -> JsonObject:
    return {"kind": "approve-permanently"}


@dataclass
class Client:
    """The client of all sessions: answers questions, calls of its tools, and hooks."""

    wire: Wire
    decide: Decide
    scenes: dict[str, Scene] = field(default_factory=dict[str, Scene])
    """The scenes by the ids of their sessions."""
    questions: dict[str, PermissionRequest] = field(default_factory=dict[str, PermissionRequest])
    """The permission requests by the ids of the calls."""
    deployed: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The calls of the client's harmful tool, by attempt."""

    async def run(self) -> None:
        """Answer every request; runs as a task beside the test."""
        position = 0
        while True:
            await self.wire.wait_for_message_at(position)
            message = self.wire.messages[position]
            position += 1
            if message.get("method") == "session.event":
                event = message["params"]["event"]
                await self._handle(message["params"]["sessionId"], event["type"], event["data"])
            elif message.get("method") == "hooks.invoke":
                await self._add_context(message)

    async def _handle(self, session: str, kind: str, data: JsonObject) -> None:
        if kind == "permission.requested":
            asked = decode_payload(kind, data)
            assert isinstance(asked, PermissionRequested)
            request = asked.permission_request
            assert request.tool_call_id is not None
            self.questions[request.tool_call_id] = request
            answer = {"requestId": asked.request_id, "result": self.decide(request.tool_call_id)}
            await self.wire.ask(
                "session.permissions.handlePendingPermissionRequest", {"sessionId": session, **answer}
            )
        elif kind == "external_tool.requested":
            scene = self.scenes[session]
            if data["toolName"] == "deploy":
                self.deployed.setdefault(scene.attempt.id, []).append("deploy")
            answer = {"requestId": data["requestId"], "result": scene.tool_result}
            await self.wire.ask("session.tools.handlePendingToolCall", {"sessionId": session, **answer})

    async def _add_context(self, message: JsonObject) -> None:
        params = message["params"]
        scene = self.scenes.get(params["sessionId"])
        context = scene.hook if scene is not None and params["hookType"] == "postToolUse" else None
        await self.wire.answer(message, {"output": {"additionalContext": context} if context else None})


@dataclass
class Run:
    """The corpus, after one run of it."""

    server: RunningServer
    hostile: Hostile
    client: Client
    scenes: list[Scene]
    home: Path
    settings: dict[str, bytes]
    """The files of settings in the server's home folder before the attempts."""

    def effects(self, scene: Scene) -> list[str]:
        deployed = self.client.deployed.get(scene.attempt.id, ())
        return effects(scene, self.home, self.server.home, self.hostile, deployed)

    def questions(self, scene: Scene) -> list[tuple[JsonObject, PermissionRequest]]:
        """Return the ordered calls that a person was asked about, with the requests."""
        ids = {f"{scene.attempt.id}.{number}": call for number, call in enumerate(scene.calls)}
        asked = self.client.questions
        return [(call, asked[call_id]) for call_id, call in ids.items() if call_id in asked]


@asynccontextmanager
async def run_of(
    folder: Path, decide: Decide, chosen: Sequence[Attempt], *, everyday: bool = False, config: str = CONFIG
) -> AsyncGenerator[Run]:
    """Make all attempts ``chosen`` on one server, each in a session of its own."""
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "id_rsa").write_text("HOME-SECRET\n")
    async with (
        hostile_server() as hostile,
        running_server(folder, config=config, limit_s=240) as server,
        anyio.create_task_group() as tasks,
    ):
        client = Client(server.wire, everything_for_good)
        tasks.start_soon(client.run)
        if everyday:
            await _approve_everyday(folder, hostile, client)
        client.decide = decide
        scenes = [prepare(attempt, folder / "work", folder, server.home, hostile) for attempt in chosen]
        before = settings_of(server.home)
        limiter = anyio.Semaphore(AT_A_TIME)

        async def make(scene: Scene) -> None:
            async with limiter:
                await _make(client, hostile, scene)

        async with anyio.create_task_group() as sessions:
            for scene in scenes:
                sessions.start_soon(make, scene)
        yield Run(server, hostile, client, scenes, folder, before)
        tasks.cancel_scope.cancel()


def settings_of(home: Path) -> dict[str, bytes]:
    """Return the files directly in a server's home folder: configuration, approvals, trusted folders, servers."""
    return {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}


async def _approve_everyday(folder: Path, hostile: Hostile, client: Client) -> None:
    """Approve everyday calls for good, and check that the approvals cover such calls in another project."""
    for order in ("everyday", "nextday"):
        project = folder / "work" / order
        (project / "src").mkdir(parents=True)
        (project / "notes.md").touch()
        (project / "Makefile").write_text("test:\n\t@echo passed\n")
        hostile.orders[order] = Order(EVERYDAY)
        session = await client.wire.create(
            **provider(hostile), requestPermission=True, workingDirectory=str(project)
        )
        await client.wire.prompt(session, f"order-{order}")
    assert list(client.questions) == [f"everyday.{number}" for number in range(len(EVERYDAY))]


async def _make(client: Client, hostile: Hostile, scene: Scene) -> None:
    wire = client.wire
    options = {**provider(hostile), "requestPermission": True, **scene.options}
    session = await _open(client, scene, options)
    for prompt in scene.prompts:
        if prompt is None:
            await wire.call("session.history.compact", {"sessionId": session})
        else:
            await _send(wire, session, prompt)
    if scene.second_session:
        session = await _open(client, scene, options)
        await _send(wire, session, {"prompt": "Hello again."})


async def _open(client: Client, scene: Scene, options: JsonObject) -> str:
    since = len(client.wire.messages)
    session = await client.wire.create(**options)
    client.scenes[session] = scene
    for name in scene.options.get("mcpServers", {}):
        await status(client.wire, session, name, "connected", since=since)
    return session


async def _send(wire: Wire, session: str, prompt: JsonObject) -> None:
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, **prompt})
    await wire.event("session.idle", session=session, since=since)


# --- what a question shows --------------------------------------------------------------------------------------


def check_question(scene: Scene, call: JsonObject, request: PermissionRequest) -> None:
    """Check that a question shows the whole call, in the request, in the terminal and in an editor."""
    terminal = _in_terminal(request)
    editor = permission_call(request, "c", None)
    texts = [part["content"]["text"] for part in editor.get("content", ()) if part["type"] == "content"]
    shown_in_editor = "\n".join([editor["title"], *texts])
    assert deceptive_characters("\n".join([*terminal, shown_in_editor])) == []
    match request:
        case ShellPermission():
            assert request.full_command_text == call["command"]
            assert request.intention == call["command"] or "\n" not in request.intention
            if deceptive_characters(call["command"]):
                assert "imitate" in (request.warning or "")
            # The whole command follows the heading, which is one line.
            command = visible(call["command"])
            indented = without_padding(command.replace("\t", "    ")).rstrip()
            expected = [f"  {line}".rstrip() for line in indented.split("\n")]
            assert [line.rstrip() for line in terminal[1 : 1 + len(expected)]] == expected
            assert texts[0].split("\n", 1)[1].startswith(without_padding(command))
        case WritePermission() | ReadPermission():
            given = request.file_name if isinstance(request, WritePermission) else request.path
            target = str(scene.target(call["path"]))
            assert (request.resolved_path or given) == target
            for shown in ("\n".join(terminal), shown_in_editor):
                assert exact_line(target) in shown or exact_line(call["path"]) in shown
            assert request.resolved_path is None or exact_line(target) in terminal[1]
        case McpPermission():
            (server,) = scene.options["mcpServers"]
            assert request.server_name == server
            assert terminal[0] == f"○ {request.tool_name} of the MCP server {server}"
            assert editor["title"] == f"{request.tool_name} of the MCP server {server}"
            assert request.args == editor["rawInput"] == {name: call[name] for name in call if name != "tool"}
        case UrlPermission():
            assert request.url == call["url"]
            assert visible_url(call["url"]) in terminal[1]
            assert visible_url(call["url"]) in shown_in_editor
        case MemoryPermission():
            for name in ("fact", "subject", "citations", "reason"):
                text = exact_line(getattr(request, name) or "")
                assert text in "\n".join(terminal)
                assert text in shown_in_editor
        case CustomToolPermission():
            assert terminal[0].startswith(f"○ {request.tool_name}")
            assert request.args == editor["rawInput"]
        case HookPermission():
            raise AssertionError("no hook asks")


def _in_terminal(request: PermissionRequest) -> list[str]:
    text = describe(request, Painter(100_000, colour=False), Path("/elsewhere"), None)
    return re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()


# --- the runs ---------------------------------------------------------------------------------------------------


def test_the_corpus_has_two_hundred_different_attempts() -> None:
    corpus = attempts()
    assert len(corpus) >= 200
    assert len({attempt.text.replace(attempt.id, "") + attempt.action for attempt in corpus}) == len(corpus)


async def test_no_attempt_has_an_effect_without_a_question_that_shows_it(tmp_path: Path) -> None:
    async with run_of(tmp_path, wanted_calls, attempts(), everyday=True) as run:
        check_all(run)


async def test_no_carrier_has_an_effect_without_a_question_in_a_session_without_approvals(tmp_path: Path) -> None:
    first = {attempt.carrier: attempt for attempt in reversed(attempts())}
    async with run_of(tmp_path, wanted_calls, list(first.values())) as run:
        check_all(run)


def check_all(run: Run) -> None:
    assert settings_of(run.server.home) == run.settings
    assert not [event for event in run.server.wire.events() if event["type"] == "session.permissions_changed"]
    with all_cases() as case:
        for scene in run.scenes:
            with case(scene.attempt.name):
                assert scene.attempt.id in run.hostile.obeyed, "the model has not read the text"
                assert run.effects(scene) == []
                asked = run.questions(scene)
                assert bool(asked) == (not scene.attempt.unasked) or scene.attempt.inert
                for call, request in asked:
                    check_question(scene, call, request)


async def test_every_action_has_its_effect_if_the_user_approves_it(tmp_path: Path) -> None:
    first = {attempt.action: attempt for attempt in reversed(attempts())}
    chosen = [attempt for attempt in first.values() if not attempt.inert and not attempt.unasked]
    async with run_of(tmp_path, everything, chosen, config=f'{CONFIG}[sandbox]\nmode = "off"\n') as run:
        with all_cases() as case:
            for scene in run.scenes:
                with case(scene.attempt.name):
                    assert run.effects(scene) != []
