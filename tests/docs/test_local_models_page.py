"""The page about local models: each of its servers, imitated, answers a session with the page's configuration."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply
from tests.support.pages import code_blocks
from tests.support.server import running_server

PAGE = "docs/local-models.md"


def adapters() -> dict[str, dict[str, Any]]:
    return tomllib.loads("\n".join(code_blocks(PAGE, "toml")))["adapters"]


def imitated(request: SeenRequest) -> Reply:
    """Answer as a server with one model does: OpenAI's chat completions, or Ollama's own API."""
    if request.path.endswith("/chat/completions"):
        chunk = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}
        return event_stream(f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n")
    if request.path.endswith("/api/chat"):
        answer = {"message": {"role": "assistant", "content": "Hello."}, "done": True, "done_reason": "stop"}
        return Reply([json.dumps(answer).encode() + b"\n"], headers={"Content-Type": "application/x-ndjson"})
    if request.path.endswith("/models"):
        return json_reply({"object": "list", "data": [{"id": "qwen3", "object": "model"}]})
    return json_reply({"error": {"message": "not found"}}, status=404)


@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted(adapters()))
async def test_a_server_of_the_page_answers_a_session(tmp_path: Path, name: str) -> None:
    adapter = adapters()[name]
    model, *_ = [each["id"] for each in adapter.get("models", [{"id": "qwen3"}])]
    async with ModelServer(answer=imitated, lists=True) as provider:
        (block,) = (text for text in code_blocks(PAGE, "toml") if f"[adapters.{name}]" in text)
        config = re.sub(r"http://127\.0\.0\.1:\d+", provider.url, block)
        if "base_url" not in adapter:
            config = config.replace(f"[adapters.{name}]", f'[adapters.{name}]\nbase_url = "{provider.url}"')
        async with running_server(tmp_path, config=config) as server:
            created = {"sessionId": "s", "streaming": True, "model": f"{name}/{model}"}
            await server.wire.call("session.create", created)
            result = await server.wire.call("session.sendAndWait", {"sessionId": "s", "prompt": "hi"})

    assert result["response"]["data"]["content"] == "Hello."
    (request,) = (each for each in provider.requests if each.path.endswith(("/chat/completions", "/api/chat")))
    assert request.json["model"] == model
    assert request.json["messages"][-1]["role"] == "user"
    assert adapter.get("options", {}).items() <= request.json.get("options", {}).items()


def test_the_file_of_the_proxy_names_the_model_of_its_configuration() -> None:
    (text,) = code_blocks(PAGE, "yaml")
    (model,) = yaml.safe_load(text)["model_list"]

    assert model["model_name"] == adapters()["litellm"]["models"][0]["id"]
    assert model["litellm_params"]["api_base"] == adapters()["llama"]["base_url"]
