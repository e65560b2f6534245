"""The first request of a session with the default tools, on every wire: small, and repeated by the next one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.agent.blocks import AssistantMessage, Message, TextBlock, UserMessage
from jumpseat.agent.encoded_history import encode
from jumpseat.agent.model import ModelRequest, ToolSchema, ToolSpec
from tests.adapters.test_written_messages import KEEPING
from tests.support.fake_openai import MODEL, fake_openai, says
from tests.support.server import running_server

pytestmark = pytest.mark.anyio

LIMIT_BYTES = 8400
CONVERSATION = ("messages", "input", "contents")


async def test_the_first_request_is_small_and_repeated_by_the_next_one_on_every_wire(tmp_path: Path) -> None:
    async with fake_openai({"go": [says("One."), says("Two.")]}) as model, running_server(tmp_path) as server:
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await server.wire.create(provider, model=MODEL, requestUserInput=True)
        await server.wire.prompt(session)
        await server.wire.prompt(session)
    first, second = model.requests
    assert second["tools"] == first["tools"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    system, prompt = (message["content"] for message in first["messages"])
    functions = [tool["function"] for tool in first["tools"]]
    assert len(functions) >= 10
    tools = [ToolSpec(tool["name"], tool["description"], ToolSchema.of(tool["parameters"])) for tool in functions]
    for name in KEEPING:
        messages: list[Message] = [UserMessage([TextBlock(prompt)])]
        sent = request_of(name, system, tools, messages)
        assert len(encode(sent)) <= LIMIT_BYTES, name
        following: list[Message] = [AssistantMessage([TextBlock("One.")]), UserMessage([TextBlock("And?")])]
        longer = request_of(name, system, tools, [*messages, *following])
        assert list(longer) == list(sent), name
        (key,) = (key for key in CONVERSATION if key in sent)
        assert encode(longer[key]).startswith(encode(sent[key]).removesuffix(b"]")), name
        assert all(encode(longer[other]) == encode(sent[other]) for other in sent if other != key), name


def request_of(name: str, system: str, tools: list[ToolSpec], messages: Sequence[Message]) -> dict[str, Any]:
    """Return the body that an adapter sends; markers for a cache, which move with the conversation, are off."""
    endpoint = Endpoint("http://h", options={"prompt_caching": False} if name == "anthropic" else {})
    return load_adapter(name).request(endpoint, ModelRequest("m-1", system, [*messages], tools=tools)).body
