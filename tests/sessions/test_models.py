"""A session's model, provider and credentials, as applications set and change them, over the real wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply
from tests.support.pictures import PNG_BASE64
from tests.support.provided import at, says, send_failing_prompt, send_prompt, serving
from tests.support.server import running_server

pytestmark = pytest.mark.anyio

ALLOWED = {"COPILOT_ALLOW_GET_PROVIDER_ENDPOINT": "true"}


# --- the session's own provider -----------------------------------------------------------------------------------


async def test_a_session_with_a_provider_needs_a_model_only_at_its_first_prompt(tmp_path: Path) -> None:
    async with serving(tmp_path, env=ALLOWED) as (server, provider):
        session = await server.wire.create(at(provider, headers={"X-Mine": "yes"}))
        endpoint = await server.wire.call("session.provider.getEndpoint", {"sessionId": session})
        assert await server.wire.call("session.model.getCurrent", {"sessionId": session}) == {}
        error = await send_failing_prompt(server.wire, session)
        assert provider.requests == []
        await server.wire.call("session.model.switchTo", {"sessionId": session, "modelId": "late"})
        request = await send_prompt(server.wire, provider, session)
    assert endpoint == {
        "type": "openai",
        "wireApi": "completions",
        "baseUrl": f"{provider.url}/v1",
        "apiKey": "sk-key",
        "headers": {"X-Mine": "yes"},
    }
    assert "needs a model: set model, or provider.modelId" in error
    assert request.json["model"] == "late"


async def test_the_endpoint_of_a_model_other_than_the_current_one_can_be_requested(tmp_path: Path) -> None:
    named = {"name": "beta", "type": "anthropic", "baseUrl": "https://beta.invalid", "apiKey": "sk-beta"}
    async with serving(tmp_path, env=ALLOWED) as (server, provider):
        created = await server.wire.call(
            "session.create", {"provider": at(provider), "model": "m", "providers": [named]}
        )
        params = {"sessionId": created["sessionId"], "modelId": "beta/opus"}
        endpoint = await server.wire.call("session.provider.getEndpoint", params)
        current = await server.wire.call("session.model.getCurrent", {"sessionId": created["sessionId"]})
    assert endpoint == {
        "type": "anthropic",
        "baseUrl": "https://beta.invalid",
        "apiKey": "sk-beta",
        "headers": {},
    }
    assert current == {"modelId": "m"}


# --- named providers ----------------------------------------------------------------------------------------------


async def test_a_provider_added_to_a_live_session_serves_its_models(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m")
        added = await wire.call(
            "session.provider.add",
            {
                "sessionId": session,
                "providers": [
                    {**at(provider, headers={"X-Provider": "late"}), "name": "late", "apiKey": "sk-late"}
                ],
                "models": [
                    {"provider": "late", "id": "one", "name": "Late One", "wireModel": "w", "maxPromptTokens": 9}
                ],
            },
        )
        listing = await wire.call("session.model.list", {"sessionId": session})
        await wire.call("session.model.switchTo", {"sessionId": session, "modelId": "late/one"})
        request = await send_prompt(wire, provider, session)
        # A model may be added after its provider.
        more = {"sessionId": session, "models": [{"provider": "late", "id": "two"}]}
        assert [model["id"] for model in (await wire.call("session.provider.add", more))["models"]] == ["late/two"]
    [model] = added["models"]
    assert (model["id"], model["name"]) == ("late/one", "Late One")
    assert model["capabilities"]["limits"]["max_prompt_tokens"] == 9
    assert [model["id"] for model in listing["list"]] == ["m", "late/one"]
    assert request.json["model"] == "w"
    assert request.headers["authorization"] == "Bearer sk-late"
    assert request.headers["x-provider"] == "late"
    files = "".join(path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert "sk-late" not in files


async def test_a_client_limits_the_models_of_a_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        named = {**at(provider), "name": "p"}
        models = [{"provider": "p", "id": "one"}, {"provider": "p", "id": "two"}]
        planner = {"name": "planner", "prompt": "x", "model": "p/one"}
        session = await wire.create(
            at(provider), model="m", providers=[named], models=models, customAgents=[planner]
        )
        of_session = {"sessionId": session}

        async def allow(names: list[str] | None) -> dict[str, Any]:
            return await wire.call("session.model.setAllowedModels", {**of_session, "allowedModels": names})

        for refused in ([], ["gone"]):
            await wire.error_of("session.model.setAllowedModels", {**of_session, "allowedModels": refused})
        assert (await send_prompt(wire, provider, session)).json["model"] == "m"

        limited = ["gone", "p/two"]
        assert await allow(limited) == {
            "allowedModels": limited,
            "effectiveAllowedModels": limited,
            "modelId": "p/two",
        }
        assert (await send_prompt(wire, provider, session)).json["model"] == "two"
        listing = await wire.call("session.model.list", of_session)
        assert [model["id"] for model in listing["list"]] == ["p/two"]
        for method, change in (
            ("session.model.switchTo", {"modelId": "m"}),
            ("session.options.update", {"model": "m"}),
            ("session.resume", {"model": "m", "provider": at(provider)}),
        ):
            assert "allowed models" in (await wire.error_of(method, {**of_session, **change}))["message"]
        # The agent's model is not allowed, so that the session's is used.
        await wire.call("session.agent.select", {**of_session, "name": "planner"})
        assert (await send_prompt(wire, provider, session)).json["model"] == "two"

        assert await allow(None) == {"modelId": "p/two"}
        assert (await send_prompt(wire, provider, session)).json["model"] == "one"


async def test_a_session_is_opened_with_a_limit_of_its_models(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        named = {**at(provider), "name": "p"}
        models = [{"provider": "p", "id": "one"}, {"provider": "p", "id": "two"}]
        options: dict[str, Any] = {"providers": [named], "models": models}

        async def open_session(method: str, **params: Any) -> str:
            return (await wire.call(method, {**options, **params}))["sessionId"]

        session = await open_session("session.create", allowedModels=["gone", "p/two"])
        assert (await send_prompt(wire, provider, session)).json["model"] == "two"
        switch = {"sessionId": session, "modelId": "p/one"}
        assert "allowed models" in (await wire.error_of("session.model.switchTo", switch))["message"]
        explicit = {"allowedModels": ["p/two"], "model": "p/one"}
        refusals: list[dict[str, Any]] = [{"allowedModels": []}, {"allowedModels": ["gone"]}, explicit]
        for refusal in refusals:
            assert "allowedModels" in (await wire.error_of("session.create", {**options, **refusal}))["message"]

        await wire.call("session.detach", {"sessionId": session})
        refused = {**options, "sessionId": session, "allowedModels": ["gone"]}
        assert "none of these models" in (await wire.error_of("session.resume", refused))["message"]
        assert await open_session("session.resume", sessionId=session, allowedModels=["p/one"]) == session
        assert (await send_prompt(wire, provider, session)).json["model"] == "one"


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"providers": [{"name": "old", "baseUrl": "http://h"}]}, "duplicate name 'old'"),
        ({"providers": [{"name": "new", "type": "nope"}]}, "providers.new.type: unknown type 'nope'"),
        ({"providers": [{"name": "new", "baseUrl": "no url"}]}, "providers.new.baseUrl"),
        ({"models": [{"provider": "none", "id": "m"}]}, "unknown provider 'none'"),
        ({"models": [{"provider": "old", "id": "m"}]}, "duplicate model 'old/m'"),
        ({"models": [{"provider": "old"}]}, "models[0].id: required, but missing"),
    ],
)
async def test_invalid_additions_are_named_and_nothing_is_added(
    tmp_path: Path, params: dict[str, Any], what: str
) -> None:
    async with serving(tmp_path) as (server, provider):
        created = await server.wire.call(
            "session.create",
            {"providers": [{**at(provider), "name": "old"}], "models": [{"provider": "old", "id": "m"}]},
        )
        session = {"sessionId": created["sessionId"]}
        error = await server.wire.error_of("session.provider.add", {**session, **params})
        assert await server.wire.call("session.provider.add", session) == {"models": []}
        listing = await server.wire.call("session.model.list", session)
    assert what in error["message"]
    assert [model["id"] for model in listing["list"]] == ["old/m"]


async def test_an_added_provider_can_request_its_token_from_the_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m")
        late = {"name": "late", "baseUrl": f"{provider.url}/v1", "hasBearerTokenProvider": True}
        await wire.call("session.provider.add", {"sessionId": session, "providers": [late]})
        await wire.call("session.model.switchTo", {"sessionId": session, "modelId": "late/x"})
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        question = await wire.until(lambda message: message.get("method") == "providerToken.getToken")
        assert question["params"] == {"sessionId": session, "providerName": "late"}
        await wire.answer(question, {"token": "fresh"})
        await wire.event("session.idle", session=session)
    assert provider.requests[-1].headers["authorization"] == "Bearer fresh"


async def test_the_command_for_a_key_runs_before_every_model_call(tmp_path: Path) -> None:
    counter = tmp_path / "count"
    command = f"printf x >> '{counter}'; printf 'key-%s\\n' $(wc -c < '{counter}')"
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        for kind, header in (("openai", "authorization"), ("azure", "api-key"), ("work", "authorization")):
            if kind == "work":
                work = {"name": "work", "extends": "openai", "env": {"base_url": provider.url, "api_key": "other"}}
                await wire.call("jumpseat.adapters.register", {"declaration": work})
            own = {**at(provider), "type": kind, "apiKey": "static", "apiKeyCommand": command}
            session = await wire.create(own, model="m")
            counter.write_text("")
            for number in (1, 2):
                request = await send_prompt(wire, provider, session)
                assert request.headers[header].removeprefix("Bearer ") == f"key-{number}"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo sk-secret-1234567; exit 3", "its command ended with status 3"),
        ("true", "its command printed nothing"),
    ],
)
async def test_a_failing_command_for_a_key_ends_the_turn_before_any_request(
    tmp_path: Path, command: str, reason: str
) -> None:
    async with serving(tmp_path) as (server, provider):
        session = await server.wire.create({**at(provider), "apiKeyCommand": command}, model="m")
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        error = (await server.wire.event("session.error", session=session))["data"]
        await server.wire.event("session.idle", session=session)

    assert error["errorType"] == "authentication"
    assert error["message"] == f"Execution failed: no key for provider 'default': {reason}."
    assert not provider.requests


# --- custom agents ------------------------------------------------------------------------------------------------


async def test_custom_agents_are_listed_with_their_models(tmp_path: Path) -> None:
    planner = {
        "name": "planner",
        "displayName": "Planner",
        "description": "Plans.",
        "prompt": "You plan.",
        "model": "alpha/sonnet",
        "tools": ["view"],
        "mcpServers": {"db": {"command": "x", "env": {"KEY": "sk-mcp"}}, "plain": {"command": "y", "tools": ["*"]}},
    }
    async with serving(tmp_path) as (server, provider):
        session = await server.wire.create(
            at(provider), model="m", customAgents=[planner, {"name": "bare", "prompt": "x"}]
        )
        agents = (await server.wire.call("session.agent.list", {"sessionId": session}))["agents"]
        listing = await server.wire.call("session.agent.list", {"sessionId": session, "includePrompt": True})
        again = await server.wire.call("session.agent.reload", {"sessionId": session})
        plain = await server.wire.create(at(provider), model="m")
        none = await server.wire.call("session.agent.list", {"sessionId": plain})
    assert agents == [
        {
            "name": "planner",
            "displayName": "Planner",
            "description": "Plans.",
            "id": "planner",
            "userInvocable": True,
            "tools": ["view"],
            "model": "alpha/sonnet",
            "models": ["alpha/sonnet"],
            "mcpServers": {"plain": {"command": "y", "tools": ["*"]}},
        },
        {"name": "bare", "displayName": "bare", "description": "", "id": "bare", "userInvocable": True},
    ]
    assert [agent["prompt"] for agent in listing["agents"]] == ["You plan.", "x"]
    assert again["agents"] == agents
    assert none == {"agents": []}


async def test_custom_agents_with_the_same_name_are_refused(tmp_path: Path) -> None:
    agent = {"name": "twin", "prompt": "x"}
    async with serving(tmp_path) as (server, provider):
        error = await server.wire.error_of(
            "session.create", {"provider": at(provider), "model": "m", "customAgents": [agent, agent]}
        )
    assert error["message"] == "customAgents: two agents have the same name"


# --- changing the model ------------------------------------------------------------------------------------------


async def test_a_model_selected_during_a_turn_gets_the_next_call(tmp_path: Path) -> None:
    tool = {"name": "wait", "skipPermission": True}
    call = {"id": "c1", "type": "function", "function": {"name": "wait", "arguments": "{}"}}
    asks = json_reply({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]})
    async with serving(tmp_path, asks, says("Done")) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="first", reasoningEffort="low", tools=[tool])
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        waiting = await wire.event("external_tool.requested", session=session)
        switched = await wire.call(
            "session.model.switchTo", {"sessionId": session, "modelId": "second", "reasoningEffort": "high"}
        )
        answer = {"requestId": waiting["data"]["requestId"], "result": "now"}
        await wire.call("session.tools.handlePendingToolCall", {"sessionId": session, **answer})
        await wire.event("session.idle", session=session)
        change = await wire.event("session.model_change", session=session)
        current = await wire.call("session.model.getCurrent", {"sessionId": session})
    assert switched == current == {"modelId": "second", "reasoningEffort": "high"}
    assert [(request.json["model"], request.json["reasoning_effort"]) for request in provider.requests] == [
        ("first", "low"),
        ("second", "high"),
    ]
    assert change["data"] == {
        "newModel": "second",
        "previousModel": "first",
        "reasoningEffort": "high",
        "source": "sdk",
    }


@pytest.mark.parametrize("way", ["switchTo", "options.update", "resume", "silent resume"])
async def test_a_resumed_session_calls_its_last_model(tmp_path: Path, way: str) -> None:
    async with serving(tmp_path) as (server, provider):
        session = await server.wire.create(at(provider), model="first", reasoningEffort="low")
        await send_prompt(server.wire, provider, session)
    async with serving(tmp_path) as (server, provider):
        wire, here = server.wire, {"sessionId": session}
        chosen = {"model": "second", "reasoningEffort": "high"}
        if "resume" in way:
            silent = {"disableResume": True} if way == "silent resume" else {}
            await wire.call("session.resume", {**here, "provider": at(provider), **chosen, **silent})
        else:
            await wire.call("session.resume", {**here, "provider": at(provider)})
            if way == "switchTo":
                chosen["modelId"] = chosen.pop("model")
            await wire.call(f"session.{'model.' if way == 'switchTo' else ''}{way}", {**here, **chosen})
        await send_prompt(wire, provider, session)
    async with serving(tmp_path) as (server, provider):
        await server.wire.call("session.resume", {"sessionId": session, "provider": at(provider)})
        request = await send_prompt(server.wire, provider, session)
    assert (request.json["model"], request.json["reasoning_effort"]) == ("second", "high")


async def test_invalid_options_are_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m")
        error = await wire.error_of(
            "session.options.update", {"sessionId": session, "model": "other", "provider": {"type": "nope"}}
        )
        request = await send_prompt(wire, provider, session)
    assert "provider.type: unknown type 'nope'" in error["message"]
    assert request.json["model"] == "m"
    assert [event for event in wire.events(session) if event["type"] == "session.model_change"] == []


async def test_capability_overrides_apply_until_they_are_replaced_and_survive_a_resume(tmp_path: Path) -> None:
    image = {"type": "blob", "data": PNG_BASE64, "mimeType": "image/png", "displayName": "shot.png"}

    def blind(request: SeenRequest) -> bool:
        return "image_url" not in request.body.decode()

    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m")
        here = {"sessionId": session}
        requests = [await send_prompt(wire, provider, session, attachments=[image])]
        no_vision = {"supports": {"vision": False}}
        await wire.call("session.model.switchTo", {**here, "modelId": "m", "modelCapabilities": no_vision})
        requests.append(await send_prompt(wire, provider, session))
        vision = {"supports": {"vision": True}}
        await wire.call("session.options.update", {**here, "modelCapabilitiesOverrides": vision})
        requests.append(await send_prompt(wire, provider, session))
        await wire.call("session.model.switchTo", {**here, "modelId": "m", "modelCapabilities": no_vision})
        await wire.call("session.detach", here)
        await wire.call("session.resume", {**here, "provider": at(provider)})
        requests.append(await send_prompt(wire, provider, session))
    assert [blind(request) for request in requests] == [False, True, False, True]


async def test_models_are_listed_for_the_token_of_the_request_or_session(tmp_path: Path) -> None:
    models = [json_reply({"data": [{"id": name}]}) for name in ("of-the-asker", "of-the-session")]
    user = json_reply({"login": "ada"})
    async with ModelServer(models[0], user, models[1], lists=True) as github:
        env = {"COPILOT_DEBUG_GITHUB_API_URL": github.url, "COPILOT_API_URL": github.url}
        async with running_server(tmp_path, env=env) as server:
            asker = await server.wire.call("models.list", {"gitHubToken": "token-a"})
            created = await server.wire.call("session.create", {"gitHubToken": "token-b"})
            own = await server.wire.call("session.model.list", {"sessionId": created["sessionId"]})
    assert [model["id"] for model in asker["models"]] == ["of-the-asker"]
    assert [model["id"] for model in own["list"]] == ["of-the-session"]
    tokens = [request.headers["authorization"] for request in github.requests]
    assert tokens == ["Bearer token-a", "Bearer token-b", "Bearer token-b"]


# --- limits -------------------------------------------------------------------------------------------------------


def statuses(request: SeenRequest) -> list[str]:
    """Return the limit statuses that the model received, in order."""
    texts = [str(message["content"]) for message in request.json["messages"] if message["role"] == "user"]
    return [text.split("\n")[1].partition(".  ")[0] for text in texts if text.startswith("<session_limits_status>")]


async def test_session_limits_are_sent_to_the_model_counted_and_stored(tmp_path: Path) -> None:
    def costs(credits_taken: float) -> Reply:
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        return says("Hi", usage=usage, copilot_usage={"total_nano_aiu": int(credits_taken * 1e9)})

    async with serving(tmp_path, costs(1.25), costs(0), costs(30)) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m", sessionLimits={"maxAiCredits": 30})
        here = {"sessionId": session}
        requests = [await send_prompt(wire, provider, session) for _ in range(3)]
        assert "limit of 30 AI credits is used up" in await send_failing_prompt(wire, session)
        error = await wire.event("session.error", session=session)
        started = await wire.event("session.start", session=session)
        usage = await wire.event("assistant.usage", session=session)
        snapshot = await wire.call("session.metadata.snapshot", here)
        metrics = await wire.call("session.usage.getMetrics", here)
        await wire.call("session.detach", here)
        await wire.call("session.resume", {**here, "provider": at(provider)})
        kept = await wire.call("session.metadata.snapshot", here)
        assert len(provider.requests) == 3
    assert [len(statuses(request)) for request in requests] == [1, 2, 2]
    assert requests[0].json["messages"][-1]["content"] == (
        "<session_limits_status>\nRemaining session limits: 30 AI credits. Later session_limits_status messages"
        " supersede earlier ones. Be frugal; avoid optional exploration and unnecessary tool calls."
        "\n</session_limits_status>"
    )
    assert statuses(requests[1])[-1].startswith("Remaining session limits: 28.75 AI credits.")
    assert error["data"]["errorType"] == "quota"
    assert started["data"]["sessionLimits"] == snapshot["sessionLimits"] == kept["sessionLimits"]
    assert snapshot["sessionLimits"] == {"maxAiCredits": 30}
    assert isinstance(snapshot["sessionLimits"]["maxAiCredits"], int), "30.0 is no integer to the typed SDKs"
    assert metrics["totalNanoAiu"] == 31_250_000_000
    assert usage["data"]["costUsd"] == 0.0125


async def test_a_session_without_limits_sends_no_limit_status(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, provider):
        session = await server.wire.create(at(provider), model="m", sessionLimits={})
        request = await send_prompt(server.wire, provider, session)
        error = await server.wire.error_of("session.create", {"sessionLimits": {"maxAiCredits": -1}})
    assert statuses(request) == []
    assert "sessionLimits.maxAiCredits" in error["message"]


# --- options of a provider -------------------------------------------------------------------------------


async def test_models_of_named_providers_are_called_by_their_wire_names(tmp_path: Path) -> None:
    alpha = {"name": "alpha", "headers": {"X-Provider": "alpha"}, "apiKey": "sk-alpha"}
    delta = {"name": "delta", "headers": {"X-Provider": "delta"}, "bearerToken": "delta-token"}
    models = [
        {"provider": "alpha", "id": "sonnet", "wireModel": "w-sonnet", "modelId": "known"},
        {"provider": "alpha", "id": "haiku", "modelId": "known", "maxPromptTokens": 4000},
        {"provider": "delta", "id": "turbo", "maxOutputTokens": 77, "maxContextWindowTokens": 5000},
    ]
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        providers = [at(provider, **options) for options in (alpha, delta)]
        created = await wire.call(
            "session.create", {"model": "alpha/sonnet", "providers": providers, "models": models}
        )
        session = created["sessionId"]
        requests = [await send_prompt(wire, provider, session)]
        for name in ("alpha/haiku", "delta/turbo", "delta/undeclared"):
            await wire.call("session.model.switchTo", {"sessionId": session, "modelId": name})
            requests.append(await send_prompt(wire, provider, session))
        window = [
            event["data"]["tokenLimit"] for event in wire.events(session) if event["type"] == "session.usage_info"
        ]
    assert [
        (request.json["model"], request.headers["x-provider"], request.headers["authorization"])
        for request in requests
    ] == [
        ("w-sonnet", "alpha", "Bearer sk-alpha"),
        ("known", "alpha", "Bearer sk-alpha"),
        ("turbo", "delta", "Bearer delta-token"),
        ("undeclared", "delta", "Bearer delta-token"),
    ]
    assert [request.json.get("max_tokens") for request in requests] == [None, None, 77, None]
    # The most that a prompt may have, where the window is not known.
    assert window[1:3] == [4000, 5000]


@pytest.mark.parametrize(
    ("fields", "model", "wire_name"),
    [
        ({"wireModel": "w", "modelId": "known"}, "m", "w"),
        ({"modelId": "known"}, "m", "known"),
        ({}, "m", "m"),
        ({"modelId": "known"}, None, "known"),
    ],
)
async def test_the_model_is_called_by_its_name_at_the_provider(
    tmp_path: Path, fields: dict[str, Any], model: str | None, wire_name: str
) -> None:
    async with serving(tmp_path) as (server, provider):
        created = await server.wire.call(
            "session.create",
            {
                "provider": at(
                    provider, maxOutputTokens=9, maxPromptTokens=99, maxContextWindowTokens=200, **fields
                ),
                "model": model,
            },
        )
        request = await send_prompt(server.wire, provider, created["sessionId"])
        usage = await server.wire.event("session.usage_info")
    assert (request.json["model"], request.json["max_tokens"]) == (wire_name, 9)
    assert usage["data"]["tokenLimit"] == 99


# --- images -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "model"), [("deepseek", "deepseek-chat"), ("kimi", "kimi-k2-thinking")])
async def test_images_for_a_model_without_vision_are_left_out_with_a_warning(
    tmp_path: Path, kind: str, model: str
) -> None:
    picture = {"type": "blob", "data": PNG_BASE64, "mimeType": "image/png", "displayName": "a.png"}
    async with serving(tmp_path) as (server, provider):
        session = await server.wire.create(at(provider, type=kind), model=model)
        request = await send_prompt(server.wire, provider, session, attachments=[picture])
        warnings = [event["data"] for event in server.wire.events(session) if event["type"] == "session.warning"]

    assert PNG_BASE64 not in str(request.json)
    (warning,) = warnings
    assert warning["warningType"] == "portability"
    assert warning["message"].endswith("Left out: 1 image (the model has no vision).")
