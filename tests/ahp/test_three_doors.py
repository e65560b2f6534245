"""One session at three doors at once: the official Python SDK, an agent host client and an editor.

One of them begins the turns, one approves, one watches. All see the same, in the same order.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final, Protocol, cast

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.uris import session_uri
from tests.acp.conftest import schemas
from tests.ahp.client import Client, check_equal, connected
from tests.support.editor import Editor, Schemas, option, running_editor
from tests.support.limits import WAIT_S
from tests.support.server import calls
from tests.support.toolchains import NEWEST_PYPI_SDK, Sdk, require_sdk

pytestmark = pytest.mark.anyio
__all__ = ["schemas"]

PROMPTS: Final = ("make one", "make two")
SCRIPT: Final[Sequence[JsonObject]] = [
    {
        "when": prompt,
        "turns": [
            calls("create", f"{prompt[5:]}-file", path=f"{prompt[5:]}.txt", file_text="x\n"),
            calls("create", f"{prompt[5:]}-copy", path=f"{prompt[5:]}.bak", file_text="x\n"),
            {"deltas": ["Made ", prompt[5:]]},
        ],
    }
    for prompt in PROMPTS
]
EXPECTED: Final = [
    step
    for name in ("one", "two")
    for step in (
        f"prompt: make {name}",
        f"call: {name}-file",
        f"result: {name}-file",
        f"call: {name}-copy",
        f"result: {name}-copy",
        f"text: Made {name}",
    )
]


_PORTS: Final = re.compile(r"listening on port (\d+)\n(?:.*\n)*?.*WebSocket clients on port (\d+)\n")


class Seat(Protocol):
    """A client at one of the doors."""

    async def attach(self, role: str, session: str | None) -> str:
        """Create or join the session, and return its id."""
        ...

    async def begin(self, prompt: str) -> None: ...

    async def approve(self) -> None:
        """Answer the next question."""
        ...

    async def steps(self, count: int) -> list[str]:
        """Wait for some steps, and return all so far."""
        ...


class SdkSeat:
    """The official Python SDK, in a process of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: Process | None = None
        self._lines: BufferedByteReceiveStream | None = None
        self._steps: list[str] = []

    async def attach(self, role: str, session: str | None) -> str:
        python = require_sdk(Sdk("pypi", NEWEST_PYPI_SDK)) / "bin" / "python"
        program = Path(__file__).with_name("sdk_of_three.py")
        environ = {"HOME": "/nonexistent", "PATH": "/bin:/usr/bin"}
        command = [str(python), str(program), self._url, role, session or "-"]
        self._process = await anyio.open_process(command, env=environ, stdin=PIPE, stderr=None)
        assert self._process.stdout is not None
        self._lines = BufferedByteReceiveStream(self._process.stdout)
        return (await self._read())["session"]

    async def begin(self, prompt: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        await self._process.stdin.send(f"{prompt}\n".encode())

    async def approve(self) -> None:
        """The program answers by itself."""

    async def steps(self, count: int) -> list[str]:
        while len(self._steps) < count:
            event = await self._read()
            data = event.get("data", {})
            match event["type"]:
                case "user.message":
                    self._steps.append(f"prompt: {data['content']}")
                case "tool.execution_start":
                    self._steps.append(f"call: {data['toolCallId']}")
                case "tool.execution_complete":
                    self._steps.append(f"result: {data['toolCallId']}")
                case "assistant.message" if data["content"]:
                    self._steps.append(f"text: {data['content']}")
                case _:
                    pass
        return self._steps

    async def _read(self) -> JsonObject:
        assert self._lines is not None
        return json.loads(await self._lines.receive_until(b"\n", 1 << 20))

    async def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.aclose()


class AhpSeat:
    """An agent host client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._turns = 0
        self._approved: set[str] = set()

    async def attach(self, role: str, session: str | None) -> str:
        if session is None:
            return (await self._client.create()).removeprefix("ahp-session:/")
        await self._client.join(session_uri(session))
        return session

    async def begin(self, prompt: str) -> None:
        self._turns += 1
        assert "rejectionReason" not in await self._client.prompt(f"t{self._turns}", prompt)

    async def approve(self) -> None:
        client = self._client
        call = ""
        while not call:
            needed: list[JsonObject] = client.states[client.session].get("inputNeeded") or []
            calls = [one["toolCall"]["toolCallId"] for one in needed]
            call = next((one for one in calls if one not in self._approved), "")
            if not call:
                await client.action("session/inputNeededSet")
        self._approved.add(call)
        turn = client.states[client.chat]["activeTurn"]["id"]
        sent = await client.dispatch("chat/toolCallConfirmed", turnId=turn, toolCallId=call, approved=True)
        assert "rejectionReason" not in await client.echo(sent)

    async def steps(self, count: int) -> list[str]:
        client = self._client
        while True:
            await client.settle()
            found: list[str] = []
            texts: dict[str, int] = {}
            for message in client.received:
                if message.get("method") != "action" or message["params"]["channel"] != client.chat:
                    continue
                match action := message["params"]["action"]:
                    case {"type": "chat/turnStarted"}:
                        found.append(f"prompt: {action['message']['text']}")
                    case {"type": "chat/responsePart", "part": {"kind": "markdown", "id": part, "content": text}}:
                        texts[part] = len(found)
                        found.append(f"text: {text}")
                    case {"type": "chat/delta", "partId": part, "content": text}:
                        found[texts[part]] += text
                    case {"type": "chat/toolCallStart", "toolCallId": call}:
                        found.append(f"call: {call}")
                    case {"type": "chat/toolCallComplete", "toolCallId": call}:
                        found.append(f"result: {call}")
                    case _:
                        pass
            if len(found) >= count and client.states[client.chat].get("activeTurn") is None:
                return found


class EditorSeat:
    """An editor on stdin and stdout of the server."""

    def __init__(self, editor: Editor, folder: Path) -> None:
        self._editor = editor
        self._folder = folder
        self._session = ""
        self._answered = 0

    async def attach(self, role: str, session: str | None) -> str:
        if session is None:
            self._session = await self._editor.new(self._folder)
        else:
            self._session = session
            params: JsonObject = {"sessionId": session, "cwd": str(self._folder), "mcpServers": []}
            await self._editor.call("session/load", params)
        return self._session

    async def begin(self, prompt: str) -> None:
        await self._editor.begin(self._session, prompt)

    async def approve(self) -> None:
        question = await self._editor.question("session/request_permission", since=self._answered)
        self._answered = self._editor.messages.index(question) + 1
        options: list[JsonObject] = question["params"]["options"]
        chosen = next(one["optionId"] for one in options if one["kind"] == "allow_once")
        await self._editor.answer(question, option(chosen))

    async def steps(self, count: int) -> list[str]:
        while True:
            before = len(self._editor.messages)
            found = self._steps()
            if len(found) >= count and found[-1].endswith(("Made one", "Made two")):
                return found
            await self._editor.until(lambda _message: True, since=before)

    def _steps(self) -> list[str]:
        found: list[str] = []
        for update in self._editor.updates(self._session):
            match update:
                case {"sessionUpdate": "user_message_chunk", "content": {"text": text}}:
                    found.append(f"prompt: {text}")
                case {"sessionUpdate": "agent_message_chunk", "content": {"text": text}}:
                    if found[-1].startswith("text: "):
                        found[-1] += text
                    else:
                        found.append(f"text: {text}")
                case {"sessionUpdate": "tool_call", "toolCallId": call}:
                    found.append(f"call: {call}")
                case {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed"}:
                    found.append(f"result: {call}")
                case _:
                    pass
        return found


@asynccontextmanager
async def three_seats(folder: Path, schemas: Schemas) -> AsyncGenerator[tuple[int, dict[str, Any]]]:
    ports = ("--port", "0", "--ws-port", "0", "--no-token")
    async with running_editor(folder, schemas, prompts=SCRIPT, args=ports) as (server, editor):
        port, web_port = map(int, (await server.found_in_stderr(_PORTS)).groups())
        sdk = SdkSeat(f"localhost:{port}")
        try:
            async with connected(web_port, "a") as client:
                yield web_port, {"sdk": sdk, "ahp": AhpSeat(client), "acp": EditorSeat(editor, folder)}
                await check_equal(web_port, client)
        finally:
            with anyio.CancelScope(shield=True):
                await sdk.close()


@pytest.mark.parametrize("roles", list(permutations(("sdk", "ahp", "acp"))), ids="-".join)
@pytest.mark.timeout(4 * WAIT_S)
async def test_all_see_the_same_order(tmp_path: Path, schemas: Schemas, roles: tuple[str, ...]) -> None:
    async with three_seats(tmp_path, schemas) as (_, seats):
        beginner, approver, watcher = (cast("Seat", seats[name]) for name in roles)
        session = await beginner.attach("begins", None)
        await approver.attach("approves", session)
        await watcher.attach("watches", session)
        for number, prompt in enumerate(PROMPTS, 1):
            await beginner.begin(prompt)
            await approver.approve()
            await approver.approve()
            for seat in (beginner, approver, watcher):
                expected = EXPECTED[: number * len(EXPECTED) // 2]
                if seat is beginner is seats["acp"]:
                    # An editor shows what it has sent by itself.
                    expected = [one for one in expected if not one.startswith("prompt: ")]
                with anyio.fail_after(WAIT_S):
                    assert await seat.steps(len(expected)) == expected
        assert (tmp_path / "two.txt").exists()
