"""The agents of the lab, as black boxes: programs that speak the Copilot SDK protocol or ACP, or run one prompt.

Each task has an agent process, a home folder and a workspace of its own. Every agent gets the same surroundings:
its model is the lab's, by the variables and files that agents read. All that it asks for is approved.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec import Struct

from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.cli.lab.build_cache import FOLDER

Json: TypeAlias = dict[str, Any]

_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME")
_MOST_HEADER: Final = 4096
_MOST_LINE: Final = 64 * 1024 * 1024


class AgentError(Exception):
    """The agent has ended, or refused a request."""


class LabModel(Struct, frozen=True):
    """The model that an agent is given: its name, its window, and the base URL of its server without a version."""

    name: str
    url: str
    window: int


def surroundings(home: Path, lab: LabModel) -> dict[str, str]:
    """Write the configurations of agents to a home folder, and return the environment."""
    model, url = lab.name, lab.url
    output = min(16_000, lab.window // 4)
    provider: Json = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {model: {"name": model, "limit": {"context": lab.window, "output": output}}},
    }
    opencode = {"model": f"lab/{model}", "small_model": f"lab/{model}", "provider": {"lab": provider}}
    known = {"id": model, "contextWindow": lab.window, "maxTokens": output}
    of_pi: Json = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [known]}
    for name, value in (
        (".config/opencode/opencode.json", {**opencode, "autoupdate": False, "share": "disabled"}),
        (".pi/agent/models.json", {"providers": {"lab": of_pi}}),
    ):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    # As for agents without a sandbox, the caches of package managers are those of the home folder.
    settings = home / ".copilot/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('[sandbox]\ncaches = "shared"\n', encoding="utf-8")
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    toolchains = {"RUSTUP_HOME": "~/.rustup", "CARGO_HOME": "~/.cargo"}
    for name, folder in toolchains.items():
        environ.setdefault(name, str(Path(folder).expanduser()))
    of_home = {"HOME": str(home), "USERPROFILE": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    of_go = {"GOCACHE": str(home / FOLDER)}
    of_openai = {
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": model,
        "OPENAI_HOST": url,
    }
    of_copilot = {
        "COPILOT_HOME": str(home / ".copilot"),
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_MODEL": model,
        "COPILOT_OFFLINE": "true",
    }
    of_goose = {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": model,
        "GOOSE_MODE": "auto",
        "GOOSE_DISABLE_KEYRING": "1",
    }
    of_others = {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "PI_OFFLINE": "1",
    }
    return {
        **environ,
        **of_home,
        **of_go,
        **of_openai,
        **of_copilot,
        **of_goose,
        **of_others,
    }


async def run_task(protocol: str, command: Sequence[str], folder: Path, lab: LabModel, prompt: str) -> str:
    """Run a prompt in the workspace in ``folder/work``, and return the answer.

    Raises:
        AgentError: the agent has ended, or refused a request.
    """
    environ = surroundings(folder / "home", lab)
    work = folder / "work"
    if protocol == "command":
        given = [part.replace("{prompt}", prompt) for part in command]
        given += [] if any("{prompt}" in part for part in command) else [prompt]
        with (folder / "stderr").open("wb") as stderr:
            done = await anyio.run_process(
                given, cwd=work, env=environ, input=b"", stdout=subprocess.PIPE, stderr=stderr, check=False
            )
        if done.returncode:
            raise AgentError(f"exit code {done.returncode}: {_end_of(folder / 'stderr')}")
        return done.stdout.decode(errors="replace")
    async with _started(command, folder, environ) as process:
        agent = _Agent(process, framed=protocol == "copilot")
        try:
            return await (_copilot if protocol == "copilot" else _acp)(agent, work, lab, prompt)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            raise AgentError(f"the agent has ended: {_end_of(folder / 'stderr')}") from None


async def _copilot(agent: _Agent, work: Path, lab: LabModel, prompt: str) -> str:
    provider: Json = {"type": "openai", "baseUrl": f"{lab.url}/v1", "apiKey": "none", "wireApi": "completions"}
    provider["maxPromptTokens"] = lab.window
    await agent.call("connect", {})
    session = (
        await agent.call(
            "session.create",
            {
                "model": lab.name,
                "provider": provider,
                "workingDirectory": str(work),
                "requestPermission": True,
                "streaming": True,
            },
        )
    )["sessionId"]
    sent = await agent.send("session.send", {"sessionId": session, "prompt": prompt})
    answer = ""
    while True:
        message = await agent.next()
        if message.get("id") == sent and "error" in message:
            raise AgentError(str(message["error"].get("message")))
        if "method" in message and "id" in message:
            approved = {"result": {"kind": "approve-once"}} if "permission" in message["method"] else {}
            await agent.reply(message["id"], approved)
        if message.get("method") != "session.event":
            continue
        event = message["params"]["event"]
        data = as_object(event.get("data"))
        match event["type"]:
            case "permission.requested":
                decision = {"requestId": data["requestId"], "result": {"kind": "approve-once"}}
                await agent.send(
                    "session.permissions.handlePendingPermissionRequest", {"sessionId": session, **decision}
                )
            case "assistant.message":
                answer = data.get("content") or answer
            case "session.error":
                raise AgentError(str(data.get("message")))
            case "session.idle":
                return answer
            case _:
                pass


async def _acp(agent: _Agent, work: Path, lab: LabModel, prompt: str) -> str:
    del lab
    answer: list[str] = []
    message_ids: set[str] = set()

    def update(params: Json) -> None:
        step = as_object(params.get("update"))
        if step.get("sessionUpdate") == "agent_message_chunk":
            if (message_id := as_text(step.get("messageId"))) not in message_ids:
                # The last message is the answer.
                message_ids.add(message_id)
                answer.clear()
            answer.append(as_text(as_object(step.get("content")).get("text")))
        elif step.get("sessionUpdate") == "tool_call":
            answer.clear()

    agent.on_update = update
    await agent.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    session = (await agent.call("session/new", {"cwd": str(work), "mcpServers": []}))["sessionId"]
    content = [{"type": "text", "text": prompt}]
    await agent.call("session/prompt", {"sessionId": session, "prompt": content})
    return "".join(answer)


class _Agent:
    """A connection to an agent: JSON-RPC, each message with a header or on a line."""

    def __init__(self, process: Process, *, framed: bool) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.on_update: Callable[[Json], None] = lambda params: None
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)
        self._framed = framed
        self._ids = 0

    async def call(self, method: str, params: Json) -> Json:
        """Send a request and return its result; meanwhile, approve what the agent asks for."""
        sent = await self.send(method, params)
        while True:
            message = await self.next()
            if "method" in message:
                await self._serve(message)
            elif message.get("id") == sent:
                if "error" in message:
                    raise AgentError(f"{method}: {message['error'].get('message')}")
                return message.get("result") or {}

    async def send(self, method: str, params: Json) -> int:
        self._ids += 1
        await self._write({"id": self._ids, "method": method, "params": params})
        return self._ids

    async def reply(self, request: Any, result: Json) -> None:
        await self._write({"id": request, "result": result})

    async def next(self) -> Json:
        if not self._framed:
            return json.loads(await self._stdout.receive_until(b"\n", _MOST_LINE))
        length = 0
        while header := (await self._stdout.receive_until(b"\r\n", _MOST_HEADER)).strip():
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(await self._stdout.receive_exactly(length))

    async def _serve(self, message: Json) -> None:
        params = as_object(message.get("params"))
        if message["method"] == "session/update":
            self.on_update(params)
        elif message["method"] == "session/request_permission":
            options = map(as_object, as_list(params.get("options")))
            allowed = [each["optionId"] for each in options if as_text(each.get("kind")).startswith("allow")]
            chosen: Json = {"outcome": "selected", "optionId": allowed[0]} if allowed else {"outcome": "cancelled"}
            await self.reply(message["id"], {"outcome": chosen})
        elif "id" in message:
            await self._write({"id": message["id"], "error": {"code": -32601, "message": "unknown method"}})

    async def _write(self, message: Json) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        await self._stdin.send(b"Content-Length: %d\r\n\r\n" % len(data) + data if self._framed else data + b"\n")


@asynccontextmanager
async def _started(command: Sequence[str], folder: Path, environ: dict[str, str]) -> AsyncGenerator[Process]:
    with (folder / "stderr").open("wb") as stderr:
        process = await anyio.open_process(command, cwd=folder / "work", env=environ, stderr=stderr)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
            with anyio.move_on_after(5):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()


def _end_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip()[-300:]
