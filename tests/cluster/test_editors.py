"""The Agent Client Protocol in a cluster: editors use the sessions of all replicas, whoever owns them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copy
from typing import Any, Final

import anyio
import pytest
from websockets.asyncio.client import connect

from jumpseat.store.user.connection_tokens import FILE, ConnectionTokenFile
from tests.acp.conftest import package
from tests.acp.test_editor_mcp import MADE, SERVER, serve
from tests.acp.test_remote import WebSocketEnd
from tests.cluster.replicas import Replicas, running_replicas
from tests.support.editor import Editor, Schemas, option
from tests.support.server import JsonObject, calls

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

MODEL: Final = '[adapters.fake]\ntype = "scripted"\nscript = "script.json"\nmodels = ["one", "two"]\n'
PREFIX: Final = "jumpseat serves WebSocket clients on port "
SCRIPT: Final[JsonObject] = {
    "prompts": [
        {"when": "make a file", "turns": [calls("create", path="made.txt", file_text="x"), {"text": "Made."}]},
        {
            "when": "look at it",
            "turns": [calls("view", path="notes.txt"), {"text": "It says {{last_tool_result}}"}],
        },
        {"when": "what is selected", "turns": [MADE, {"text": "It is: {{last_tool_result}}"}]},
        {"when": "hang on", "turns": [{"deltas": ["I", " am"], "hang": True}] * 4},
        {"turns": [{"deltas": ["Hel", "lo"]}] * 9},
    ]
}
PERMISSION: Final = "session/request_permission"


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    """Return the protocol's schemas from its npm package."""
    return Schemas(package())


@pytest.fixture(scope="module")
def draft_schemas() -> Schemas:
    """Return the schemas of version 2, a draft."""
    return Schemas(package(), 2)


def home_of(folder: Path, number: int) -> Path:
    return folder / f"replica{number}" / "home"


@asynccontextmanager
async def hosts(folder: Path, **options: Any) -> AsyncGenerator[tuple[Replicas, list[int]]]:
    """Run two replicas whose models are scripted, and yield their WebSocket ports, too."""
    for number in range(2):
        home_of(folder, number).mkdir(parents=True, exist_ok=True)
        (home_of(folder, number) / "script.json").write_text(json.dumps(SCRIPT))
    settings: Any = {"more": MODEL, "args": ("--ws-port", "0"), "patience_s": 5, "limit_s": 250, **options}
    async with running_replicas(folder, 2, **settings) as replicas:
        yield replicas, [int((await server.next_line()).removeprefix(PREFIX)) for server in replicas.servers]


@asynccontextmanager
async def editor_at(
    port: int, schemas: Schemas, token: str = "none", capabilities: JsonObject | None = None
) -> AsyncGenerator[Editor]:
    """Connect an editor, and introduce it."""
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(f"ws://127.0.0.1:{port}/acp", proxy=None, additional_headers=headers) as client:
        editor = Editor(WebSocketEnd(client), schemas)
        editor.wait_s = 30
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(editor.read)
            tasks.start_soon(editor.answer_questions)
            await editor.initialize(capabilities)
            yield editor
            assert editor.problem is None, editor.problem
            tasks.cancel_scope.cancel()


def opening(session: str, folder: Path) -> JsonObject:
    return {"sessionId": session, "cwd": str(folder), "mcpServers": []}


async def test_a_session_of_another_replica_is_like_one_of_this(tmp_path: Path, schemas: Schemas) -> None:
    async with (
        hosts(tmp_path) as (replicas, (here, there)),
        replicas.servers[1].connect() as sdk,
        editor_at(here, schemas) as owner,
        editor_at(there, schemas) as guest,
    ):
        session = await owner.new(tmp_path)
        assert (await owner.say(session, "hello"))["stopReason"] == "end_turn"
        (listed,) = (await guest.call("session/list", {}))["sessions"]
        assert (listed["sessionId"], listed["cwd"]) == (session, str(tmp_path))
        since = len(guest.messages)
        loaded = await guest.call("session/load", opening(session, tmp_path))
        assert loaded["modes"]["currentModeId"]
        # The history precedes the response, and the commands follow it.
        kinds = [
            message["params"]["update"]["sessionUpdate"] if "method" in message else "response"
            for message in guest.messages[since:]
        ]
        assert kinds[-1] == "response"
        assert "available_commands_update" not in kinds
        assert guest.answer_text(session) == "Hello"
        await guest.update("available_commands_update", since=since)

        # Both are asked, and the first answer counts.
        prompt = await guest.begin(session, "make a file")
        asked = [await one.question(PERMISSION) for one in (owner, guest)]
        await owner.answer(asked[0], option("allow_once"))
        await guest.until(lambda message: message.get("method") == "$/cancel_request")
        await guest.answer(asked[1], option("reject_once"))
        assert (await guest.response(prompt))["result"]["stopReason"] == "end_turn"
        await owner.until(lambda _message: "Made." in owner.answer_text(session))
        assert (tmp_path / "made.txt").read_text() == "x"

        # Options, cancelling, other clients of the server.
        await guest.call(
            "session/set_config_option", {"sessionId": session, "configId": "model", "value": "fake/two"}
        )
        await owner.update("config_option_update")
        await sdk.call("session.resume", {"sessionId": session})
        hanging = await guest.begin(session, "hang on")
        await owner.until(lambda _message: owner.answer_text(session).endswith("I am"))
        await owner.cancel(session)
        assert (await guest.response(hanging))["result"]["stopReason"] == "cancelled"
        await sdk.event("session.idle")

        # A copy is a session of its own. A session that is closed or deleted is so for all.
        forked = (await guest.call("session/fork", opening(session, tmp_path)))["sessionId"]
        assert forked != session
        assert (await guest.say(forked, "hello"))["stopReason"] == "end_turn"
        assert (await owner.call("session/status", {"sessionId": forked}))["status"] == "open"
        await guest.call("session/close", {"sessionId": forked})
        await owner.call("session/delete", {"sessionId": session})
        await owner.call("session/delete", {"sessionId": session})
        left = [one["sessionId"] for one in (await guest.call("session/list", {}))["sessions"]]
        assert left == [forked]
        for method, params in (
            ("session/load", opening(session, tmp_path)),
            ("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}),
        ):
            assert (await guest.error_of(method, params))["code"] == -32002
        assert (await guest.error_of("session/load", {"sessionId": forked}))["code"] == -32602
        assert (await guest.error_of("session/new", {"cwd": "here", "mcpServers": []}))["code"] == -32602


async def test_an_editor_goes_on_when_the_owner_is_killed(tmp_path: Path, schemas: Schemas) -> None:
    async with hosts(tmp_path) as (replicas, (here, there)), editor_at(there, schemas) as guest:
        async with editor_at(here, schemas) as owner:
            session = await owner.new(tmp_path)
            await owner.say(session, "hello")
            await guest.call("session/load", opening(session, tmp_path))
            prompt = await guest.begin(session, "make a file")
            asked = await guest.question(PERMISSION)
            await replicas.servers[0].kill()
        # What became of the prompt is not known; the question of the owner that is gone is withdrawn.
        assert "error" in await guest.response(prompt)
        withdrawn = await guest.until(lambda message: message.get("method") == "$/cancel_request")
        assert withdrawn["params"]["requestId"] == asked["id"]
        assert (await guest.say(session, "hello"))["stopReason"] == "end_turn"
        guest.answers[PERMISSION] = option("allow_once")
        assert (await guest.say(session, "make a file"))["stopReason"] == "end_turn"
        assert (tmp_path / "made.txt").read_text() == "x"


async def test_an_editor_of_version_2_follows_a_session_to_its_next_owner(
    tmp_path: Path, draft_schemas: Schemas
) -> None:
    async with hosts(tmp_path) as (replicas, (here, there)), editor_at(there, draft_schemas) as guest:
        async with editor_at(here, draft_schemas) as owner:
            session = await owner.new(tmp_path)
            await owner.say(session, "hello")
            await guest.call("session/resume", {**opening(session, tmp_path), "replayFrom": {"type": "start"}})
            await guest.begin(session, "hang on")
            await guest.update("state_update", state="running")
            since = len(guest.messages)
            await replicas.servers[0].kill()
        await guest.update("state_update", since=since, state="idle")
        await guest.say(session, "hello")


async def test_a_turn_goes_on_without_its_editor_wherever_its_session_is(tmp_path: Path, schemas: Schemas) -> None:
    async with hosts(tmp_path) as (_, (here, there)), editor_at(here, schemas) as owner:
        sessions = [await owner.new(tmp_path), await owner.new(tmp_path)]
        for number, port in enumerate((here, there)):
            session = sessions[number]
            await owner.say(session, "hello")
            async with editor_at(port, schemas) as guest:
                await guest.call("session/load", opening(session, tmp_path))
                await guest.begin(session, "make a file")
                await guest.question(PERMISSION)
                await guest.hang_up()
            asked = await owner.until(
                lambda message, session=session: (
                    message.get("method") == PERMISSION and message["params"]["sessionId"] == session
                )
            )
            await owner.answer(asked, option("allow_once"))
            await owner.until(lambda _message, session=session: "Made." in owner.answer_text(session))
            (tmp_path / "made.txt").unlink()


async def test_two_tokens_see_nothing_of_each_other_on_any_replica(tmp_path: Path, schemas: Schemas) -> None:
    home_of(tmp_path, 0).mkdir(parents=True)
    home_of(tmp_path, 1).mkdir(parents=True)
    tokens = ConnectionTokenFile(home_of(tmp_path, 0))
    ada_token, eve_token = (tokens.add(name, all_sessions=False) for name in ("ada", "eve"))
    copy(home_of(tmp_path, 0) / FILE, home_of(tmp_path, 1) / FILE)
    async with (
        hosts(tmp_path, without_token=()) as (replicas, (here, there)),
        editor_at(here, schemas, ada_token) as ada,
        editor_at(there, schemas, ada_token) as too,
        editor_at(there, schemas, eve_token) as eve,
    ):
        session = await ada.new(tmp_path)
        await ada.say(session, "hello")
        await too.call("session/resume", opening(session, tmp_path))
        assert (await too.say(session, "hello"))["stopReason"] == "end_turn"
        assert (await eve.call("session/list", {}))["sessions"] == []
        prompt = [{"type": "text", "text": "x"}]
        for method, params in (
            ("session/load", opening(session, tmp_path)),
            ("session/resume", opening(session, tmp_path)),
            ("session/fork", opening(session, tmp_path)),
            ("session/prompt", {"sessionId": session, "prompt": prompt}),
            ("session/close", {"sessionId": session}),
            ("session/status", {"sessionId": session}),
            ("session/set_mode", {"sessionId": session, "modeId": "plan"}),
        ):
            error = await eve.error_of(method, params)
            assert error["code"] == -32002, (method, error)
        async with replicas.servers[1].connect(token=eve_token) as sdk:
            for _ in range(2):
                refused = await sdk.error_of("session.resume", {"sessionId": session})
                assert "not found" in refused["message"], refused
        await eve.cancel(session)
        await eve.call("session/delete", {"sessionId": session})
        assert (await too.say(session, "hello"))["stopReason"] == "end_turn"
        assert eve.updates(session) == []


async def test_an_owner_uses_files_and_mcp_servers_of_an_editor_at_another_replica(
    tmp_path: Path, schemas: Schemas
) -> None:
    (tmp_path / "notes.txt").write_text("saved")
    async with (
        hosts(tmp_path) as (_, (here, there)),
        editor_at(here, schemas) as owner,
        editor_at(there, schemas, capabilities={"fs": {"readTextFile": True}}) as guest,
        anyio.create_task_group() as tasks,
    ):
        session = await owner.new(tmp_path)
        await owner.say(session, "hello")
        guest.unstable = True
        tasks.start_soon(lambda: serve(guest, with_progress=True))
        guest.answers["fs/read_text_file"] = {"content": "not saved yet"}
        guest.answers[PERMISSION] = option("allow_once")
        await guest.call("session/load", {**opening(session, tmp_path), "mcpServers": [SERVER]})
        await guest.say(session, "look at it")
        assert "not saved yet" in guest.answer_text(session)
        # The notification of progress finds its way to the request, and the result to the model.
        await guest.say(session, "what is selected")
        assert guest.answer_text(session).endswith("It is: three lines")
        tasks.cancel_scope.cancel()
