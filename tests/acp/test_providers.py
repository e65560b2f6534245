"""Keys, addresses and models from the environment and from the editor, over the real wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.support.editor import Schemas, running_editor, value_of
from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply
from tests.support.pictures import PNG_BASE64
from tests.support.server import JsonObject

pytestmark = pytest.mark.anyio

NO_RETRY: Final = "[retry]\nattempts = 1\n"


def openai_says(text: str) -> Reply:
    chunks: list[JsonObject] = [
        {"choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    return event_stream(*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


def anthropic_says(text: str) -> Reply:
    started: JsonObject = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "m",
        "usage": {},
    }
    events: list[JsonObject] = [
        {"type": "message_start", "message": started},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return event_stream(*(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events))


@pytest.mark.parametrize(
    ("env", "path", "credentials"),
    [
        (
            {"OPENAI_API_KEY": "key-1", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": "m"},
            "/v1/chat/completions",
            ("authorization", "Bearer key-1"),
        ),
        (
            {"ANTHROPIC_API_KEY": "key-1", "ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_MODEL": "m"},
            "/v1/messages",
            ("x-api-key", "key-1"),
        ),
        (
            {
                "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
                "COPILOT_PROVIDER_API_KEY": "key-1",
                "COPILOT_MODEL": "m",
                # The variables of the provider take precedence over other keys and logins.
                "OPENAI_API_KEY": "not-this",
                "GH_TOKEN": "nor-this",
            },
            "/v1/chat/completions",
            ("authorization", "Bearer key-1"),
        ),
        (
            {
                "COPILOT_PROVIDER_TYPE": "anthropic",
                "COPILOT_PROVIDER_BASE_URL": "{url}",
                "COPILOT_PROVIDER_API_KEY": "not-this",
                "COPILOT_PROVIDER_BEARER_TOKEN": "token-1",
                "COPILOT_PROVIDER_MODEL_ID": "claude",
                "COPILOT_PROVIDER_WIRE_MODEL": "m",
            },
            "/v1/messages",
            ("authorization", "Bearer token-1"),
        ),
    ],
    ids=["openai", "anthropic", "copilot", "copilot-anthropic"],
)
async def test_keys_of_the_environment_work_without_any_login(
    tmp_path: Path, schemas: Schemas, env: dict[str, str], path: str, credentials: tuple[str, str]
) -> None:
    reply = anthropic_says("hello") if path == "/v1/messages" else openai_says("hello")
    models = json_reply({"data": [{"id": "m"}]})
    async with ModelServer(
        answer=lambda request: models if request.method == "GET" else reply, lists=True
    ) as model:
        environ = {name: value.format(url=model.url) for name, value in env.items()}
        async with running_editor(tmp_path, schemas, config=NO_RETRY, env=environ) as (_, editor):
            assert await editor.call("authenticate", {"methodId": "configured"}) == {}
            opened = await editor.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
            shown = next(option for option in opened["configOptions"] if option["id"] == "model")
            assert shown["currentValue"].endswith(("/m", "/claude"))
            assert (await editor.say(opened["sessionId"], "hi"))["stopReason"] == "end_turn"
            assert editor.answer_text(opened["sessionId"]) == "hello"
        (request,) = [request for request in model.requests if request.method == "POST"]
        assert request.path == path
        assert request.json["model"] == "m"
        assert request.headers[credentials[0]] == credentials[1]
        assert "not-this" not in str(request.headers)


@pytest.mark.parametrize(
    ("env", "listed", "used"),
    [
        (
            {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": "{url}/v1"},
            ["text-embedding-3", "gpt-5-nano", "gpt-5"],
            "gpt-5",
        ),
        (
            {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "{url}"},
            ["claude-opus-4-1", "claude-sonnet-4-5"],
            "claude-sonnet-4-5",
        ),
        ({"COPILOT_PROVIDER_BASE_URL": "{url}/v1"}, ["nobody-knows-me", "me-neither"], "nobody-knows-me"),
    ],
    ids=["openai", "anthropic", "copilot"],
)
async def test_a_key_alone_is_enough_if_the_provider_lists_its_models(
    tmp_path: Path, schemas: Schemas, env: dict[str, str], listed: list[str], used: str
) -> None:
    def answer(request: SeenRequest) -> Reply:
        if request.method == "GET":
            return json_reply({"data": [{"id": name} for name in listed]})
        return anthropic_says("hello") if "messages" in request.path else openai_says("hello")

    async with ModelServer(answer=answer, lists=True) as model:
        environ = {name: value.format(url=model.url) for name, value in env.items()}
        async with running_editor(tmp_path, schemas, config=NO_RETRY, env=environ, args=["--no-auto-login"]) as (
            _,
            editor,
        ):
            session = await editor.new(tmp_path)
            assert (await editor.say(session, "hi"))["stopReason"] == "end_turn"
            assert [request.json["model"] for request in model.requests if request.method == "POST"] == [used]
            again: JsonObject = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
            since = len(editor.messages)
            options = (await editor.call("session/resume", again))["configOptions"]
            if all(option["id"] != "model" for option in options):
                # The list of models may become known after the response; then an update has the option.
                options = (await editor.update("config_option_update", since=since))["configOptions"]
            assert value_of(options, "model").endswith(f"/{used}")


async def test_a_key_alone_names_the_variable_to_set_if_the_provider_lists_no_models(
    tmp_path: Path, schemas: Schemas
) -> None:
    async with ModelServer(answer=lambda _: json_reply({}, status=404)) as model:
        env = {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"{model.url}/v1"}
        async with running_editor(tmp_path, schemas, config=NO_RETRY, env=env, args=["--no-auto-login"]) as (
            _,
            editor,
        ):
            error = (await editor.response(await editor.begin(await editor.new(tmp_path), "hi")))["error"]
            assert "OPENAI_MODEL" in error["message"]


async def test_invalid_variables_are_reported_at_the_start(tmp_path: Path, schemas: Schemas) -> None:
    env = {"COPILOT_PROVIDER_BASE_URL": "http://localhost/v1", "COPILOT_PROVIDER_TYPE": "oracle"}
    async with running_editor(tmp_path, schemas, config=NO_RETRY, env=env, initialize=False) as (server, _):
        server.expect_exit = 1
        assert await server.exit_code(10) == 1
    assert "COPILOT_PROVIDER_TYPE" in server.stderr


async def test_an_editor_sets_the_address_and_headers_of_a_provider(tmp_path: Path, schemas: Schemas) -> None:
    env = {"OPENAI_API_KEY": "our-own-key", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "m"}
    async with (
        # The list of models may be asked for before or after the address is set.
        ModelServer(openai_says("hello"), openai_says("hello")) as model,
        running_editor(tmp_path, schemas, config=NO_RETRY, env=env) as (_, editor),
    ):
        providers = (await editor.call("providers/list"))["providers"]
        assert {provider["providerId"]: provider.get("current") for provider in providers} == {
            "openai": {"apiType": "openai", "baseUrl": "http://127.0.0.1:9/v1"},
            "anthropic": None,
        }
        session = await editor.new(tmp_path)
        setting = {
            "providerId": "openai",
            "apiType": "openai",
            "baseUrl": f"{model.url}/proxy",
            "headers": {"Authorization": "Bearer of-the-editor", "X-Team": "7"},
        }
        assert await editor.call("providers/set", setting) == {}
        assert (await editor.call("providers/list"))["providers"][0]["current"]["baseUrl"] == f"{model.url}/proxy"
        assert "of-the-editor" not in str(editor.messages)
        await editor.say(session, "hi")
        assert editor.answer_text(session) == "hello"
        (request,) = [request for request in model.requests if request.method == "POST"]
        assert request.path == "/proxy/chat/completions"
        assert (request.headers["authorization"], request.headers["x-team"]) == ("Bearer of-the-editor", "7")
        for wrong in (
            {**setting, "providerId": "other"},
            {**setting, "apiType": "bedrock"},
            {**setting, "baseUrl": "nowhere"},
            {**setting, "headers": {"a b": "c"}},
        ):
            assert (await editor.error_of("providers/set", wrong))["code"] == -32602
        for _ in range(2):
            assert await editor.call("providers/disable", {"providerId": "openai"}) == {}
        assert "current" not in (await editor.call("providers/list"))["providers"][0]
        error = (await editor.response(await editor.begin(session, "hi")))["error"]
        assert "no model is configured" in error["message"]
        assert await editor.call("logout") == {}
        assert (await editor.call("providers/list"))["providers"][0]["current"][
            "baseUrl"
        ] == "http://127.0.0.1:9/v1"


async def test_a_provider_that_only_the_editor_configures_accepts_any_model(
    tmp_path: Path, schemas: Schemas
) -> None:
    async with (
        ModelServer(openai_says("hello")) as model,
        running_editor(tmp_path, schemas, config=NO_RETRY, args=["--no-auto-login"]) as (_, editor),
    ):
        session = await editor.new(tmp_path)
        setting: JsonObject = {"providerId": "openai", "apiType": "openai", "baseUrl": model.url, "headers": {}}
        await editor.call("providers/set", setting)
        change = {"sessionId": session, "configId": "model", "value": "openai/some-model"}
        await editor.call("session/set_config_option", change)
        await editor.say(session, "hi")
        assert model.requests[0].json["model"] == "some-model"


async def test_notices_are_sent_to_editors_that_support_them(tmp_path: Path, schemas: Schemas) -> None:
    image = {"type": "image", "data": PNG_BASE64, "mimeType": "image/png"}
    showing: JsonObject = {"session": {"notices": {}}}
    for capabilities in (JsonObject(), showing):
        async with ModelServer(openai_says("I cannot see")) as model:
            table = f'[adapters.blind]\ntype = "openai"\nbase_url = "{model.url}"\n'
            config = f'{table}models = [{{id = "m", vision = false}}]\n{NO_RETRY}'
            async with running_editor(tmp_path, schemas, config=config, capabilities=capabilities) as (_, editor):
                session = await editor.new(tmp_path)
                await editor.call("session/prompt", {"sessionId": session, "prompt": [image]})
                notices = editor.updates(session, "notice")
                assert [notice["severity"] for notice in notices] == (["warning"] if capabilities else [])


async def test_a_server_that_cannot_be_used_is_shown_in_every_editor(tmp_path: Path, schemas: Schemas) -> None:
    showing: JsonObject = {"session": {"notices": {}}}
    async with ModelServer(answer=lambda _: json_reply({}, status=401)) as closed:
        servers: list[JsonObject] = [
            {"name": "gone", "command": "/no/such/program", "args": [], "env": []},
            {"name": "closed", "type": "http", "url": f"{closed.url}/mcp", "headers": []},
        ]
        for capabilities, kind in ((JsonObject(), "agent_thought_chunk"), (showing, "notice")):
            async with running_editor(tmp_path, schemas, capabilities=capabilities) as (_, editor):
                session = await editor.new(tmp_path, mcpServers=servers)
                for expected in ("'gone' has failed: cannot run", "'closed' requires a login"):
                    shown = await editor.until(lambda message, text=expected: text in json.dumps(message))
                    assert shown["params"]["update"]["sessionUpdate"] == kind
                await editor.say(session, "hi")
                assert len([update for update in editor.updates(session, kind) if "MCP" in json.dumps(update)]) == 2
