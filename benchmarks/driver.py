"""The client of the bench: starts a server, speaks the protocol over stdio, and counts events.

The client does as little as possible, because its own time is part of every value.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

# The union of the flags passed by all versions of the SDKs.
SDK_FLAGS: Final = ("--headless", "--no-auto-update", "--log-level", "none", "--stdio", "--no-auto-login")
CALL_S: Final = 60.0
TURN_S: Final = 30.0
METHOD_NOT_FOUND: Final = -32601

ADD_TOOL: Final = {
    "name": "add",
    "description": "add numbers",
    "parameters": {"type": "object", "properties": {"a": {"type": "number"}}},
    "skipPermission": True,
}


class ServerError(Exception):
    """The server responded with an error, a turn failed, or the server has exited."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Turn:
    """A running prompt: its events so far, and its duration in seconds once it is done."""

    done: asyncio.Future[None] = field(repr=False)
    deltas: int = 0
    persisted: int = 0
    seconds: float = 0.0


class Server:
    """A server process. ``model_url`` is the base URL of the model for its sessions."""

    def __init__(self, process: asyncio.subprocess.Process, model_url: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._provider = {"type": "openai", "baseUrl": model_url, "apiKey": "none"}
        self._ids = 0
        self._responses: dict[int, asyncio.Future[Any]] = {}
        self._turns: dict[str, Turn] = {}
        self.tool_result = "42"
        """The result of every call of a client tool."""
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command: str, home: Path, model_url: str) -> Server:
        """Start ``command`` with ``home`` as its home and working directory."""
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command),
            *SDK_FLAGS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=environment(home),
            limit=1 << 20,
            start_new_session=True,
        )
        return cls(process, model_url)

    # --- requests -----------------------------------------------------------------------------------------------

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its result.

        Raises:
            ServerError: the response is an error, or the server has exited.
        """
        answer = asyncio.get_running_loop().create_future()
        self._responses[self._request(method, params)] = answer
        await self._stdin.drain()
        async with asyncio.timeout(CALL_S):
            return await answer

    async def create(self, **options: Any) -> str:
        """Create a session with one client tool, or with ``options`` instead; returns its id."""
        session_id = str(uuid.uuid4())
        await self.call("session.create", self._options(session_id, options or None))
        return session_id

    async def resume(self, session_id: str) -> None:
        """Resume a session from disk."""
        await self.call("session.resume", self._options(session_id))

    async def turn(self, session_id: str, prompt: str, **more: Any) -> Turn:
        """Send a prompt with ``more`` parameters, answer its tool calls, and wait for ``session.idle``.

        Raises:
            ServerError: the turn failed, or the server has exited.
        """
        turn = self._turns[session_id] = Turn(asyncio.get_running_loop().create_future())
        started = time.perf_counter()
        await self.call("session.send", {"sessionId": session_id, "prompt": prompt, **more})
        async with asyncio.timeout(TURN_S):
            await turn.done
        turn.seconds = time.perf_counter() - started
        return turn

    async def close_stdin(self) -> float:
        """Close the server's stdin and return the time until its exit, in seconds."""
        started = time.perf_counter()
        self._stdin.close()
        async with asyncio.timeout(CALL_S):
            await self._process.wait()
        return time.perf_counter() - started

    async def kill(self) -> None:
        """Kill the server, if it is still running."""
        with suppress(ProcessLookupError):
            # Kill its children too: they would keep its stdout open.
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        await self._reading

    # --- the wire -----------------------------------------------------------------------------------------------

    def _options(self, session_id: str, tools: dict[str, Any] | None = None) -> dict[str, Any]:
        return {
            "sessionId": session_id,
            "model": "fake-model",
            "provider": self._provider,
            "streaming": True,
            "requestPermission": True,
            "envValueMode": "direct",
            **({"tools": [ADD_TOOL], "availableTools": ["add"]} if tools is None else tools),
        }

    def _request(self, method: str, params: dict[str, Any]) -> int:
        self._ids += 1
        self._send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    def _send(self, message: dict[str, Any]) -> None:
        body = orjson.dumps(message)
        self._stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def _read(self) -> None:
        # A byte array, because bytes would be copied by each chunk of a large message.
        buffer = bytearray()
        while data := await self._stdout.read(1 << 18):
            buffer += data
            start = 0
            while (end := buffer.find(b"\r\n\r\n", start)) >= 0:
                length = int(buffer[start:end].rpartition(b":")[2])
                if len(buffer) < end + 4 + length:
                    break
                start = end + 4 + length
                self._receive(orjson.loads(buffer[end + 4 : start]))
            del buffer[:start]
        gone = ServerError("the server has closed its stdout")
        for waiting in (*self._responses.values(), *(turn.done for turn in self._turns.values())):
            _fail(waiting, gone)

    def _receive(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method == "session.event":
            self._event(message["params"]["sessionId"], message["params"]["event"])
        elif method is None:
            # The responses to tool results are ignored.
            answer = self._responses.pop(message["id"], None)
            if answer is None:
                return
            if error := message.get("error"):
                _fail(answer, ServerError(error["message"], error["code"]))
            elif not answer.done():
                answer.set_result(message.get("result"))
        elif "id" in message:
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": {}})

    def _event(self, session_id: str, event: dict[str, Any]) -> None:
        turn = self._turns.get(session_id)
        if turn is None:
            return
        kind = event["type"]
        if kind == "assistant.message_delta":
            turn.deltas += 1
            return
        if not event.get("ephemeral"):
            turn.persisted += 1
        if kind == "external_tool.requested":
            answer = {"sessionId": session_id, "requestId": event["data"]["requestId"], "result": self.tool_result}
            self._request("session.tools.handlePendingToolCall", answer)
        elif kind == "session.error":
            _fail(turn.done, ServerError(event["data"]["message"]))
        elif kind == "session.idle" and not turn.done.done():
            turn.done.set_result(None)


def _fail(waiting: asyncio.Future[Any], error: ServerError) -> None:
    if not waiting.done():
        waiting.set_exception(error)
        # Mark the exception as retrieved, in case the waiter is gone.
        waiting.exception()


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a server: no credentials, no proxy, and all state in ``home``."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COPILOT", "GITHUB", "GH_")) and not name.lower().endswith("_proxy")
    }
    folders = dict.fromkeys(("COPILOT_HOME", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), str(home))
    return own | folders
