"""A server with a provider on loopback, and prompts that reach the provider.

::

    async with serving(tmp_path, says("Hello")) as (server, provider):
        session = await server.wire.create(at(provider), model="m")
        request = await send_prompt(server.wire, provider, session, "hi")
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply
from tests.support.server import JsonObject, RunningServer, Wire, running_server


def says(text: str, **fields: Any) -> Reply:
    """Return a chat completion with this text."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json_reply({"choices": [choice], **fields})


def streamed_completion(text: str) -> Reply:
    """Return a streamed chat completion with this text."""
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return event_stream(f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n")


@asynccontextmanager
async def serving(
    folder: Path, *replies: Reply, env: dict[str, str] | None = None
) -> AsyncGenerator[tuple[RunningServer, ModelServer]]:
    """Start a server and a provider that sends ``replies``; without any, nine times "Hi"."""
    async with ModelServer(*(replies or [says("Hi")] * 9)) as provider, running_server(folder, env=env) as server:
        yield server, provider


def at(provider: ModelServer, **fields: Any) -> dict[str, Any]:
    """Return the provider options of a session that uses ``provider``."""
    return {"type": "openai", "baseUrl": f"{provider.url}/v1", "apiKey": "sk-key", **fields}


async def send_prompt(
    wire: Wire, provider: ModelServer, session: str, prompt: str = "go", **params: Any
) -> SeenRequest:
    """Send a prompt and return the last request that the provider received for it."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": prompt, **params})
    await wire.event("session.idle", session=session, since=since)
    failed = [
        event["data"]["message"] for event in wire.events(session, since=since) if event["type"] == "session.error"
    ]
    assert failed == []
    return provider.requests[-1]


async def send_failing_prompt(wire: Wire, session: str) -> str:
    """Send a prompt that must fail and return the error message."""
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    error = await wire.event("session.error", session=session, since=since)
    await wire.event("session.idle", session=session, since=since)
    return error["data"]["message"]


async def answer_of_new_session(server: RunningServer, **options: Any) -> str:
    """Return the answer of a new session to a prompt."""
    wire = server.wire
    session = (await wire.call("session.create", {"streaming": True, **options}))["sessionId"]
    answer = await wire.call("session.sendAndWait", {"sessionId": session, "prompt": "hi"})
    return answer["response"]["data"]["content"]


async def error_of_new_session(server: RunningServer, prompt: JsonObject | None = None, **options: Any) -> str:
    """Return the error that a prompt of a new session ends with."""
    wire = server.wire
    session = (await wire.call("session.create", {"streaming": True, **options}))["sessionId"]
    await wire.call("session.send", {"sessionId": session, "prompt": "hi", **(prompt or {})})
    event = await wire.event("session.error", session=session)
    return event["data"]["message"]
