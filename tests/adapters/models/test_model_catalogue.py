"""The models that clients see: those of all providers, with limits, capabilities and prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply, text_reply
from tests.support.provided import says
from tests.support.server import RunningServer, running_server

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"
USED = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}


def names(*ids: str) -> Reply:
    return json_reply({"data": [{"id": model_id} for model_id in ids]})


async def list_models(server: RunningServer) -> dict[str, Any]:
    return {model["id"]: model for model in (await server.wire.call("models.list", {}))["models"]}


def cents(model: dict[str, Any]) -> float:
    return model["billing"]["tokenPrices"]["inputPrice"]


async def test_a_model_is_listed_with_its_capabilities_limits_and_prices(tmp_path: Path) -> None:
    config = '[adapters.work]\ntype = "openai"\nbase_url = "http://127.0.0.1:1"\nmodels = ["gpt-5", "unheard-of"]\n'
    async with running_server(tmp_path, config=config) as server:
        models = await list_models(server)
        units = await server.wire.call("models.listTokenPriceUnits", {})

    assert units == {"units": [{"modelId": "work/gpt-5", "unit": "ai_credits"}]}
    assert models["work/gpt-5"] == {
        "id": "work/gpt-5",
        "name": "gpt-5",
        "capabilities": {
            "supports": {"vision": True, "reasoningEffort": True, "tool_calls": True, "reasoning": True},
            "limits": {
                "max_context_window_tokens": 400_000,
                "max_prompt_tokens": 272_000,
                "max_output_tokens": 128_000,
            },
        },
        "policy": {"state": "enabled", "terms": ""},
        # In US cents per million tokens.
        "billing": {
            "multiplier": 0,
            "tokenPrices": {"inputPrice": 125, "outputPrice": 1000, "cacheReadPrice": 12.5, "batchSize": 1_000_000},
        },
        "supportedReasoningEfforts": ["minimal", "low", "medium", "high"],
    }
    assert models["work/unheard-of"]["capabilities"]["supports"] == {"vision": False, "reasoningEffort": False}
    assert "billing" not in models["work/unheard-of"]


async def test_configured_facts_about_a_model_win_over_known_ones(tmp_path: Path) -> None:
    config = """
[adapters.work]
type = "openai"
base_url = "http://127.0.0.1:1"
models = [{id = "gpt-5", tools = false, reasoning = false, price = {input = 1, output = 0.5}}]

[adapters.own]
extends = "openai"
env = {base_url = "http://127.0.0.1:1"}

[adapters.own.schema.model]
choices = [{id = "m", meta = {price = {input = 3, output = 4}}, opts = {can_reason = true, can_use_tools = false}}]
"""
    async with running_server(tmp_path, config=config) as server:
        models = await list_models(server)

    supports = {name: model["capabilities"]["supports"] for name, model in models.items()}
    prices = {name: model["billing"]["tokenPrices"] for name, model in models.items()}
    assert supports["work/gpt-5"] == {
        "vision": True,
        "reasoningEffort": True,
        "tool_calls": False,
        "reasoning": False,
    }
    assert supports["own/m"] == {
        "vision": False,
        "reasoningEffort": False,
        "tool_calls": False,
        "reasoning": True,
    }
    assert prices == {
        "work/gpt-5": {"inputPrice": 100, "outputPrice": 50, "batchSize": 1_000_000},
        "own/m": {"inputPrice": 300, "outputPrice": 400, "batchSize": 1_000_000},
    }


async def test_all_providers_are_listed_and_those_without_configured_models_are_requested(tmp_path: Path) -> None:
    replies = {
        "/silent/models": names("gpt-5-mini"),
        "/home/v1/models": names("theirs"),
        "/declared/models": names("theirs", "gpt-5-nano"),
    }

    def answer(request: SeenRequest) -> Reply:
        return replies.get(request.path.partition("?")[0]) or text_reply("", status=404)

    async with ModelServer(answer=answer, lists=True) as provider:
        config = f"""
[adapters.silent]
type = "openai"
base_url = "{provider.url}/silent"

[adapters.says]
type = "openai"
base_url = "{provider.url}/says"
models = ["m"]

[adapters.never]
type = "openai"
base_url = "{provider.url}/never"
list_models = false

[adapters.declared]
extends = "openai"
list_models = true
headers = {{X-Team = "${{team}}"}}

[adapters.declared.env]
base_url = "{provider.url}/declared"
api_key = "cmd:echo key | tee -a {tmp_path}/calls"
team = "cmd:printf blue"

[adapters.declared.schema.model]
choices = ["own"]

[models.fast]
adapter = "silent"
model = "gpt-5-mini"

[models.other]
adapter = "silent"
model = "gpt-5-nano"
"""
        adapters = tmp_path / "home" / "adapters"
        adapters.mkdir(parents=True)
        (adapters / "file.toml").write_text(
            f'extends = "anthropic"\n[env]\nbase_url = "{provider.url}/home"\napi_key = "{KEY}"\n'
        )
        async with running_server(tmp_path, config=config, env={"DEEPSEEK_API_KEY": KEY}) as server:
            assert provider.requests == []
            models = await list_models(server)
            again = await list_models(server)

    assert list(models) == [
        "fast",
        "other",
        "silent/gpt-5-mini",
        "says/m",
        "declared/own",
        "declared/theirs",
        "declared/gpt-5-nano",
        "file/theirs",
    ]
    assert again == models
    # Both aliases have the known facts, also the second, whose model is in no list.
    assert [cents(models[name]) for name in ("fast", "other", "declared/gpt-5-nano")] == [25, 5, 5]
    requests_by_path = {request.path.partition("?")[0]: request.headers for request in provider.requests}
    assert len(provider.requests) == len(requests_by_path) == 3
    declared_request = requests_by_path["/declared/models"]
    assert (declared_request["x-team"], declared_request["authorization"]) == ("blue", "Bearer key")
    assert requests_by_path["/home/v1/models"]["x-api-key"] == KEY
    # The key is looked up only when the provider is requested, not while its cached list is valid.
    assert (tmp_path / "calls").read_text() == "key\n"


async def test_a_key_meant_for_other_programs_is_used_for_a_list_only_without_other_providers(
    tmp_path: Path,
) -> None:
    async with ModelServer(names("deepseek-chat"), names("unasked"), lists=True) as provider:
        env = {"DEEPSEEK_API_KEY": KEY, "DEEPSEEK_BASE_URL": provider.url}
        async with running_server(tmp_path, env=env) as server:
            alone = await list_models(server)
        main = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1", "OPENAI_MODEL": "m"}
        async with running_server(tmp_path, env={**env, **main}) as server:
            beside = await list_models(server)

    assert (list(alone), list(beside)) == (["deepseek/deepseek-chat"], ["openai/m"])


async def test_a_failing_list_hides_no_other_and_discloses_no_secret(tmp_path: Path) -> None:
    config = f"""
[adapters.refused]
type = "openai"
base_url = "http://127.0.0.1:1"

[adapters.keyless]
extends = "openai"
list_models = true
env = {{base_url = "http://127.0.0.1:1", api_key = "cmd:echo {KEY} >&2; false"}}

[adapters.wire]
type = "azure"
base_url = "http://127.0.0.1:1"
list_models = true

[adapters.broken]
extends = "nobody"

[adapters.fine]
type = "openai"
base_url = "http://127.0.0.1:1"
models = ["m"]
"""
    async with running_server(tmp_path, config=config) as server:
        assert list(await list_models(server)) == ["fine/m"]
    assert "cannot list the models of refused" in server.stderr
    assert "cannot list the models of wire" in server.stderr
    assert KEY not in server.stderr


async def test_the_models_of_a_session_are_listed_with_known_facts(tmp_path: Path) -> None:
    provider = {"type": "anthropic", "apiKey": KEY, "baseUrl": "http://127.0.0.1:1"}
    async with running_server(tmp_path) as server:
        own = await server.wire.create(provider, model="claude-sonnet-4-5-20250929")
        listing = await server.wire.call("session.model.list", {"sessionId": own})
        more = {
            "sessionId": own,
            "providers": [{**provider, "name": "a"}],
            "models": [{"id": "c", "provider": "a", "wireModel": "claude-sonnet-4-5"}],
        }
        added = await server.wire.call("session.provider.add", more)
        both = await server.wire.call("session.model.list", {"sessionId": own})

    assert [model["id"] for model in listing["list"]] == ["claude-sonnet-4-5-20250929"]
    assert (cents(listing["list"][0]), cents(added["models"][0])) == (300, 300)
    assert [model["id"] for model in both["list"]] == ["claude-sonnet-4-5-20250929", "a/c"]


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        # 600 fresh tokens, 400 cached ones and 100 of output.
        pytest.param("gpt-5", USED, (600 * 1.25 + 400 * 0.125 + 100 * 10) / 1e6, id="known"),
        pytest.param("gpt-5", {**USED, "cost": 0.25}, 0.25, id="told"),
        pytest.param("unheard-of", USED, None, id="unknown"),
        pytest.param("gpt-5", None, None, id="not counted"),
    ],
)
async def test_the_usage_of_a_call_has_its_cost_if_the_price_is_known(
    tmp_path: Path, model: str, usage: dict[str, Any] | None, cost: float | None
) -> None:
    reply = says("Hi", usage=usage) if usage else says("Hi")
    async with ModelServer(reply) as provider, running_server(tmp_path) as server:
        session = await server.wire.create({"type": "openai", "baseUrl": provider.url}, model=model)
        await server.wire.prompt(session)
        used = (await server.wire.event("assistant.usage", session=session))["data"]

    assert used.get("costUsd") == (pytest.approx(cost) if cost is not None else None)
    # `cost` would be premium requests of a Copilot plan.
    assert "cost" not in used


async def test_a_capability_that_a_declared_model_is_known_to_lack_causes_a_warning(
    tmp_path: Path,
) -> None:
    async with ModelServer(says("Hi")) as provider:
        config = f"""
[adapters.own]
extends = "openai"
env = {{base_url = "{provider.url}"}}

[adapters.own.schema.model]
choices = ["gpt-4o"]
"""
        async with running_server(tmp_path, config=config) as server:
            created = await server.wire.call("session.create", {"model": "own/gpt-4o", "reasoningEffort": "high"})
            await server.wire.prompt(created["sessionId"])
            warned = await server.wire.event("session.warning", session=created["sessionId"])

    assert warned["data"]["warningType"] == "capability"
    assert "own/gpt-4o is not known to support reasoning" in warned["data"]["message"]
    assert provider.requests[0].json["reasoning_effort"] == "high"
