"""The recipe for a family of models in CONTRIBUTING.md, applied to a copy of the server."""

from __future__ import annotations

from pathlib import Path

from tests.support.recipes import recipe_server


def test_the_recipe_adds_a_family_whose_models_get_its_tools(tmp_path: Path) -> None:
    provider = {"type": "openai", "baseUrl": "http://127.0.0.1:1/v1", "apiKey": "k"}
    offered: dict[str, set[str]] = {}
    with recipe_server(tmp_path) as server:
        for model in ("x-ai/grok-code-fast-1", "x-ai/grok-4"):
            session = server.call("session.create", {"model": model, "provider": provider})["sessionId"]
            tools = server.call("session.tools.getCurrentMetadata", {"sessionId": session})["tools"]
            offered[model] = {tool["name"] for tool in tools} & {"edit", "create", "apply_patch"}
    assert offered == {"x-ai/grok-code-fast-1": {"apply_patch"}, "x-ai/grok-4": {"edit", "create"}}
