"""The Copilot account: user and models, and the headers and merging of its chat adapter."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.models.copilot_account import CopilotAccount
from jumpseat.adapters.models.wire_caller import WireCaller
from jumpseat.adapters.providers.copilot import COPILOT_API_URL, model_from_wire
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.adapters.wires.copilot import CopilotChatAdapter
from jumpseat.agent.blocks import (
    AssistantMessage,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import Completed, ModelInfo, ModelRequest, Price
from jumpseat.agent.retry import RetryPolicy
from jumpseat.errors import ProviderAuthError, ProviderOverloadedError, ProviderProtocolError
from tests.adapters.conversations import REQUESTS
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, json_reply

pytestmark = pytest.mark.anyio

TOKEN = "gho-like-token-1"
PROMPT = UserMessage([TextBlock("p")])


@pytest.fixture
async def transport() -> AsyncGenerator[HttpTransport]:
    async with HttpTransport() as transport:
        yield transport


def account(server: ModelServer, transport: HttpTransport, **more: Any) -> CopilotAccount:
    return CopilotAccount(TOKEN, transport, github_api_url=f"{server.url}/github/", user_agent="app/1", **more)


def headers(request: ModelRequest, **options: Any) -> dict[str, str]:
    written = CopilotChatAdapter().request(Endpoint("http://h", bearer_token=TOKEN, options=options), request)
    return {name.lower(): value for name, value in written.headers.items()}


async def test_the_user_is_requested_from_github_with_the_token(transport: HttpTransport) -> None:
    async with ModelServer(json_reply({"login": "me", "copilot_plan": "pro"})) as server:
        with anyio.fail_after(WAIT_S):
            assert await account(server, transport).user() == {"login": "me", "copilot_plan": "pro"}

    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/github/copilot_internal/user")
    assert (request.headers["authorization"], request.headers["user-agent"]) == (f"Bearer {TOKEN}", "app/1")


async def test_a_bad_token_is_an_authentication_error_that_says_401_unauthorized(transport: HttpTransport) -> None:
    async with ModelServer(json_reply({"message": f"Bad credentials {TOKEN}"}, status=401)) as server:
        with anyio.fail_after(WAIT_S), pytest.raises(ProviderAuthError) as caught:
            await account(server, transport).user()

    assert str(caught.value) == "HTTP 401 Unauthorized: Bad credentials [redacted]"


async def test_a_response_that_is_not_an_object_is_a_protocol_error(transport: HttpTransport) -> None:
    async with ModelServer(json_reply([])) as server:
        with anyio.fail_after(WAIT_S), pytest.raises(ProviderProtocolError):
            await account(server, transport).user()


async def test_a_look_up_that_a_gateway_answers_with_502_is_tried_again(transport: HttpTransport) -> None:
    bad = json_reply({"message": "Bad Gateway"}, status=502)
    async with ModelServer(bad, bad, json_reply({"login": "me"}), bad, bad, bad) as server:
        copilot_account = account(server, transport, retry=RetryPolicy(attempts=3, first_wait_s=0))
        with anyio.fail_after(WAIT_S):
            assert await copilot_account.user() == {"login": "me"}
            with pytest.raises(ProviderOverloadedError, match="502"):
                await copilot_account.user(refresh=True)

    assert len(server.requests) == 6


async def test_the_address_of_the_api_is_requested_from_github_once(transport: HttpTransport) -> None:
    async with ModelServer(lists=True) as server:
        server.replies += [json_reply({"endpoints": {"api": f"{server.url}/tenant/"}}), json_reply({"data": []})]
        copilot_account = account(server, transport)
        with anyio.fail_after(WAIT_S):
            assert await copilot_account.models() == []
            endpoint = await copilot_account.endpoint({"X-A": "1"})

    assert [request.path for request in server.requests] == ["/github/copilot_internal/user", "/tenant/models"]
    assert endpoint == Endpoint(
        f"{server.url}/tenant", bearer_token=TOKEN, headers={"X-A": "1"}, user_agent="app/1"
    )


async def test_the_public_api_is_used_if_github_names_none(transport: HttpTransport) -> None:
    async with ModelServer(json_reply({"login": "me"})) as server:
        with anyio.fail_after(WAIT_S):
            assert await account(server, transport).api_url() == COPILOT_API_URL


async def test_a_given_api_is_used_without_asking_github(transport: HttpTransport) -> None:
    async with ModelServer(json_reply({"data": [{"id": "m"}]}), lists=True) as server:
        with anyio.fail_after(WAIT_S):
            models = await account(server, transport, api_url=f"{server.url}/api").models()

    assert [model.id for model in models] == ["m"]
    (request,) = server.requests
    assert (request.path, request.headers["authorization"]) == ("/api/models", f"Bearer {TOKEN}")
    assert {"copilot-integration-id", "x-github-api-version"} <= set(request.headers)


async def test_models_are_cached_until_a_refresh_and_concurrent_callers_share_a_request(
    transport: HttpTransport,
) -> None:
    async with ModelServer(
        json_reply([{"id": "one"}]), json_reply({"data": [{"id": "two"}]}), lists=True
    ) as server:
        copilot_account = account(server, transport, api_url=server.url)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(copilot_account.models)
            assert [model.id for model in await copilot_account.models()] == ["one"]
            assert len(server.requests) == 1
            assert [model.id for model in await copilot_account.models(refresh=True)] == ["two"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"id": "m"}, ModelInfo("m", "m")),
        (
            {
                "id": "claude-sonnet-4.5",
                "name": "Claude",
                "capabilities": {
                    "supports": {"vision": True},
                    "limits": {"max_context_window_tokens": 128000},
                },
            },
            ModelInfo("claude-sonnet-4.5", "Claude", vision=True, context_window=128000),
        ),
        (
            {
                "id": "g",
                "name": "G",
                "vendor": "OpenAI",
                "model_picker_enabled": True,
                "policy": {"state": "enabled"},
                "billing": {"is_premium": True, "multiplier": 0.33},
                "supported_endpoints": ["/chat/completions", "/responses"],
                "supportedReasoningEfforts": ["low", "high"],
                "defaultReasoningEffort": "low",
                "capabilities": {
                    "type": "chat",
                    "supports": {"vision": False, "tool_calls": True},
                    "limits": {
                        "max_context_window_tokens": 400000,
                        "max_prompt_tokens": 272000,
                        "max_output_tokens": 128000,
                    },
                },
            },
            ModelInfo(
                "g",
                "G",
                vendor="OpenAI",
                vision=False,
                tools=True,
                context_window=400000,
                max_prompt_tokens=272000,
                max_output_tokens=128000,
                reasoning_efforts=("low", "high"),
                default_reasoning_effort="low",
                wires=("/chat/completions", "/responses"),
                multiplier=0.33,
            ),
        ),
        (
            {
                "id": "t",
                "billing": {
                    "token_prices": {
                        "batch_size": 1_000_000,
                        "default": {
                            "input_price": 500,
                            "output_price": 2500,
                            "cache_price": 50,
                            "cache_write_price": 625,
                            "context_max": 200_000,
                        },
                        "long_context": {"input_price": 1000, "output_price": 3750},
                    }
                },
            },
            ModelInfo("t", "t", price=Price(5.0, 25.0, 0.5, 6.25)),
        ),
        (
            {
                "id": "u",
                "billing": {
                    "token_prices": {
                        "batch_size": 2_000_000,
                        "input_price": 500_000_000_000,
                        "output_price": 2_500_000_000_000,
                        "cache_price": 0,
                    }
                },
            },
            ModelInfo("u", "u", price=Price(2.5, 12.5, 0.0)),
        ),
        ({"id": "v", "billing": {"token_prices": {"input_price": "free"}}}, ModelInfo("v", "v")),
        ({"id": "p", "policy": {"state": "disabled"}}, ModelInfo("p", "p", enabled=False)),
        ({"id": "h", "model_picker_enabled": False}, ModelInfo("h", "h", enabled=False)),
        (
            {"id": "r", "supported_endpoints": ["/responses"]},
            ModelInfo("r", "r", wires=("/responses",)),
        ),
        ({"id": "e", "capabilities": {"type": "embeddings"}}, None),
        ({"name": "nameless"}, None),
        ({"id": "odd", "capabilities": [], "policy": 1, "billing": "x"}, ModelInfo("odd", "odd")),
    ],
)
def test_an_entry_of_the_model_list_is_decoded(entry: dict[str, Any], expected: ModelInfo | None) -> None:
    assert model_from_wire(entry) == expected


def test_the_initiator_is_the_user_for_prompts_and_the_agent_after_tool_results() -> None:
    call = AssistantMessage([ToolUseBlock("c", "t", "{}", {})])
    results = ToolMessage([ToolResultBlock("c", "t", "r")])

    assert headers(ModelRequest("m", "", [PROMPT]))["x-initiator"] == "user"
    assert headers(ModelRequest("m", "", [PROMPT, call, results]))["x-initiator"] == "agent"
    assert headers(ModelRequest("m", "", [PROMPT, call, results, PROMPT]))["x-initiator"] == "user"


def test_headers_for_interaction_and_images_are_sent_only_if_there_are_any() -> None:
    assert headers(ModelRequest("m", "", [], interaction_id="i-1"))["x-interaction-id"] == "i-1"
    assert "x-interaction-id" not in headers(ModelRequest("m", "", []))
    assert headers(REQUESTS["pictures"])["copilot-vision-request"] == "true"
    assert "copilot-vision-request" not in headers(REQUESTS["pictures_for_a_blind_model"])
    assert headers(ModelRequest("m", "", []), integration_id="mine")["copilot-integration-id"] == "mine"


async def test_a_chat_merges_all_choices_of_the_answer(transport: HttpTransport) -> None:
    choices = [
        {"message": {"content": "Looking."}, "finish_reason": "stop"},
        {"message": {"tool_calls": [{"id": "toolcall_0", "function": {"name": "view", "arguments": "{}"}}]}},
    ]
    async with ModelServer(json_reply({"choices": choices})) as server:
        endpoint = await account(server, transport, api_url=server.url).endpoint()
        with anyio.fail_after(WAIT_S):
            model = HttpModel(WireCaller(CopilotChatAdapter(), endpoint), transport)
            async with model.stream(ModelRequest("m", "s", [PROMPT], stream=False)) as events:
                (done,) = [event async for event in events]

    expected = AssistantMessage([TextBlock("Looking."), ToolUseBlock("toolcall_0", "view", "{}", {})])
    assert done == Completed(expected, "tool_use")
    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
