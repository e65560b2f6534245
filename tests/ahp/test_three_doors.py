"""One session at three doors at once: the official Python SDK, an agent host client and an editor.

One of them begins the turns, one approves, denies, answers and cancels, one watches. All see the same, in the same
order.
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

SCRIPT: Final[Sequence[JsonObject]] = [
    {
        "when": "make",
        "turns": [
            calls("create", "first", path="one.txt", file_text="x\n"),
            calls("create", "second", path="two.txt", file_text="x\n"),
            {"deltas": ["Made ", "both"]},
        ],
    },
    {
        "when": "try",
        "turns": [calls("create", "third", path="never.txt", file_text="x\n"), {"text": "Not made"}],
    },
    {
        "when": "ask",
        "turns": [
            calls("ask_user", "fourth", question="Which?", choices=["Red", "Blue"]),
            {"text": "{{last_tool_result}}"},
        ],
    },
    {"when": "hang", "turns": [{"text": "I am", "hang": True}]},
    {"when": "go on", "turns": [{"text": "Went on"}]},
]
STEPS: Final[Sequence[tuple[str, Sequence[str], Sequence[str]]]] = [
    (
        "make",
        ("approve", "approve"),
        ("call: first", "result: first", "call: second", "result: second", "text: Made both"),
    ),
    ("try", ("deny",), ("call: third", "refused: third", "text: Not made")),
    ("ask", ("answer",), ("call: fourth", "result: fourth", "text: User selected: Blue")),
    ("hang", (), ("text: I am",)),
    ("go on", (), ("text: Went on",)),
]
"""Prompts, what the second client does, and what all of them see then. The prompt that hangs is cancelled."""


_PORTS: Final = re.compile(r"listening on port (\d+)\n(?:.*\n)*?.*WebSocket clients on port (\d+)\n")


class Seat(Protocol):
    """A client at one of the doors."""

    async def attach(self, role: str, session: str | None) -> str:
        """Create or join the session, and return its id."""
        ...

    async def begin(self, prompt: str) -> None: ...

    async def decide(self, how: str) -> None:
        """Answer the next question: ``approve``, ``deny`` or ``answer``."""
        ...

    async def cancel(self) -> None: ...

    def steps(self) -> list[str]:
        """Return what was seen so far."""
        ...

    async def read(self) -> None:
        """Wait for more."""
        ...


class SdkSeat:
    """The official Python SDK, in a process of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: Process | None = None
        self._lines: BufferedByteReceiveStream | None = None
        self._steps: list[str] = []
        self._texts: dict[str, int] = {}

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

    async def decide(self, how: str) -> None:
        """The program answers by itself."""

    async def cancel(self) -> None:
        await self.begin("/cancel")

    def steps(self) -> list[str]:
        return list(self._steps)

    async def read(self) -> None:
        event = await self._read()
        data = event.get("data", {})
        match event["type"]:
            case "user.message":
                self._steps.append(f"prompt: {data['content']}")
            case "tool.execution_start":
                self._steps.append(f"call: {data['toolCallId']}")
            case "tool.execution_complete":
                self._steps.append(f"{'result' if data['success'] else 'refused'}: {data['toolCallId']}")
            case "assistant.message_delta" if (place := self._texts.get(data["messageId"])) is not None:
                self._steps[place] += data["deltaContent"]
            case "assistant.message_delta":
                self._texts[data["messageId"]] = len(self._steps)
                self._steps.append(f"text: {data['deltaContent']}")
            case "assistant.message" if data["content"]:
                assert self._steps[self._texts[data["messageId"]]] == f"text: {data['content']}"
            case "abort":
                self._steps.append("cancelled")
            case _:
                pass

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
        self._answered: set[str] = set()

    async def attach(self, role: str, session: str | None) -> str:
        if session is None:
            return (await self._client.create()).removeprefix("ahp-session:/")
        await self._client.join(session_uri(session))
        return session

    async def begin(self, prompt: str) -> None:
        self._turns += 1
        assert "rejectionReason" not in await self._client.prompt(f"t{self._turns}", prompt)

    async def decide(self, how: str) -> None:
        client = self._client
        while (needed := self._needed()) is None:
            await client.any_action()
        self._answered.add(needed["id"])
        if how == "answer":
            request = needed["request"]
            blue = next(one["id"] for one in request["questions"][0]["options"] if one["label"] == "Blue")
            answers = {"answer": {"state": "submitted", "value": {"kind": "selected", "value": blue}}}
            sent = await client.dispatch(
                "chat/inputCompleted", requestId=request["id"], response="accept", answers=answers
            )
        else:
            names = {"turnId": needed["turnId"], "toolCallId": needed["toolCall"]["toolCallId"]}
            sent = await client.dispatch("chat/toolCallConfirmed", **names, approved=how == "approve")
        assert "rejectionReason" not in await client.echo(sent)

    def _needed(self) -> JsonObject | None:
        """Return a question that was not answered here."""
        needed: list[JsonObject] = self._client.states[self._client.session].get("inputNeeded") or []
        return next((one for one in needed if one["id"] not in self._answered), None)

    async def cancel(self) -> None:
        turn = self._client.states[self._client.chat]["activeTurn"]["id"]
        sent = await self._client.dispatch("chat/turnCancelled", turnId=turn, duration=1)
        assert "rejectionReason" not in await self._client.echo(sent)

    def steps(self) -> list[str]:
        found: list[str] = []
        texts: dict[str, int] = {}
        for message in self._client.received:
            if message.get("method") != "action" or message["params"]["channel"] != self._client.chat:
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
                case {"type": "chat/toolCallConfirmed", "toolCallId": call, "approved": False}:
                    found.append(f"refused: {call}")
                case {"type": "chat/toolCallComplete", "toolCallId": call}:
                    found.append(f"result: {call}")
                case {"type": "chat/turnCancelled"}:
                    found.append("cancelled")
                case _:
                    pass
        return found

    async def read(self) -> None:
        await self._client.any_action()


class EditorSeat:
    """An editor on stdin and stdout of the server."""

    def __init__(self, editor: Editor, folder: Path) -> None:
        self._editor = editor
        self._folder = folder
        self._session = ""
        self._answered = 0
        self._begun: dict[int, str] = {}

    async def attach(self, role: str, session: str | None) -> str:
        if session is None:
            self._session = await self._editor.new(self._folder)
        else:
            self._session = session
            params: JsonObject = {"sessionId": session, "cwd": str(self._folder), "mcpServers": []}
            await self._editor.call("session/load", params)
        return self._session

    async def begin(self, prompt: str) -> None:
        # An editor shows what it has sent by itself.
        self._begun[len(self._editor.updates(self._session))] = prompt
        await self._editor.begin(self._session, prompt)

    async def decide(self, how: str) -> None:
        question = await self._editor.question("session/request_permission", since=self._answered)
        self._answered = self._editor.messages.index(question) + 1
        member, wanted = {
            "approve": ("kind", "allow_once"),
            "deny": ("kind", "reject_once"),
            "answer": ("name", "Blue"),
        }[how]
        options: list[JsonObject] = question["params"]["options"]
        await self._editor.answer(
            question, option(next(one["optionId"] for one in options if one[member] == wanted))
        )

    async def cancel(self) -> None:
        await self._editor.cancel(self._session)

    async def read(self) -> None:
        await self._editor.wait_for_message_at(len(self._editor.messages))

    def steps(self) -> list[str]:
        found: list[str] = []
        for place, update in enumerate(self._editor.updates(self._session)):
            if place in self._begun:
                found.append(f"prompt: {self._begun[place]}")
            match update:
                case {"sessionUpdate": "user_message_chunk", "content": {"text": text}}:
                    found.append(f"prompt: {text}")
                case {"sessionUpdate": "agent_message_chunk", "content": {"text": text}}:
                    if found and found[-1].startswith("text: "):
                        found[-1] += text
                    else:
                        found.append(f"text: {text}")
                case {"sessionUpdate": "tool_call", "toolCallId": call}:
                    found.append(f"call: {call}")
                case {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed"}:
                    found.append(f"result: {call}")
                case {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "failed"}:
                    found.append(f"refused: {call}")
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
        beginner, decider, watcher = (cast("Seat", seats[name]) for name in roles)
        session = await beginner.attach("begins", None)
        await decider.attach("decides", session)
        await watcher.attach("watches", session)
        seen: list[str] = []
        for prompt, decisions, steps in STEPS:
            await beginner.begin(prompt)
            for how in decisions:
                await decider.decide(how)
            seen += [f"prompt: {prompt}", *steps]
            await check_seen(seats, seen)
            if prompt == "hang":
                await decider.cancel()
                seen.append("cancelled")
                await check_seen(seats, seen)
        assert (tmp_path / "two.txt").exists()
        assert not (tmp_path / "never.txt").exists()


async def check_seen(seats: dict[str, Any], seen: Sequence[str]) -> None:
    for name in seats:
        seat = cast("Seat", seats[name])
        # Only the editor that has begun a turn is told why it ended.
        expected = [one for one in seen if name != "acp" or one != "cancelled"]
        with anyio.move_on_after(WAIT_S):
            while seat.steps() != expected:
                await seat.read()
        assert seat.steps() == expected, name
