"""Addresses and credentials of Azure's adapters; their wires are those of OpenAI."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.azure import AzureChatAdapter, AzureResponsesAdapter
from jumpseat.adapters.wires.chat import is_openai
from tests.adapters.conversations import REQUESTS

HOST = "https://name.openai.azure.com"


def url(adapter: AzureChatAdapter | AzureResponsesAdapter, base_url: str, version: str | None) -> str:
    endpoint = Endpoint(base_url, options={"api_version": version})
    return adapter.request(endpoint, REQUESTS["prompt"]).url.removeprefix(HOST)


@pytest.mark.parametrize(
    ("base_url", "version", "chat", "responses"),
    [
        (HOST, None, "/openai/v1/chat/completions", "/openai/v1/responses"),
        (f"{HOST}/", None, "/openai/v1/chat/completions", "/openai/v1/responses"),
        (f"{HOST}/openai", None, "/openai/v1/chat/completions", "/openai/v1/responses"),
        (f"{HOST}/openai/v1/", None, "/openai/v1/chat/completions", "/openai/v1/responses"),
        (
            f"{HOST}/openai/v1",
            "preview",
            "/openai/v1/chat/completions?api-version=preview",
            "/openai/v1/responses?api-version=preview",
        ),
        (
            HOST,
            "2025-04-01-preview",
            "/openai/deployments/m-1/chat/completions?api-version=2025-04-01-preview",
            "/openai/responses?api-version=2025-04-01-preview",
        ),
        (
            f"{HOST}/openai",
            "2024-10-21",
            "/openai/deployments/m-1/chat/completions?api-version=2024-10-21",
            "/openai/responses?api-version=2024-10-21",
        ),
        (
            f"{HOST}/openai/deployments/mine",
            "2024-10-21",
            "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
            "/openai/deployments/mine/responses?api-version=2024-10-21",
        ),
    ],
)
def test_the_route_follows_the_version(base_url: str, version: str | None, chat: str, responses: str) -> None:
    assert url(AzureChatAdapter(), base_url, version) == chat
    assert url(AzureResponsesAdapter(), base_url, version) == responses


def test_a_key_has_its_own_header_and_a_bearer_token_replaces_it() -> None:
    for adapter in (AzureChatAdapter(), AzureResponsesAdapter()):
        keyed = adapter.request(Endpoint(HOST, api_key="k"), REQUESTS["prompt"]).headers
        signed = adapter.request(Endpoint(HOST, api_key="k", bearer_token="t"), REQUESTS["prompt"]).headers

        assert (keyed["api-key"], keyed.get("Authorization")) == ("k", None)
        assert (signed.get("api-key"), signed["Authorization"]) == (None, "Bearer t")


@pytest.mark.parametrize(
    ("options", "limit", "usage"),
    [
        ({}, "max_completion_tokens", True),
        ({"api_version": "2025-04-01-preview"}, "max_completion_tokens", True),
        ({"api_version": "preview"}, "max_completion_tokens", True),
        ({"api_version": "2024-06-01"}, "max_tokens", False),
        ({"api_version": "2024-06-01", "max_tokens_field": "limit", "stream_usage": True}, "limit", True),
    ],
)
def test_old_versions_get_no_fields_that_they_do_not_know(options: dict[str, Any], limit: str, usage: bool) -> None:
    written = AzureChatAdapter().request(Endpoint(HOST, options=options), REQUESTS["reasoning_effort"]).body

    assert written[limit] == 4000
    assert ("stream_options" in written) == usage


def test_azure_counts_as_openai_also_with_the_openai_adapter() -> None:
    assert is_openai(f"{HOST}/openai/v1")
    assert not is_openai("https://openai.azure.com.example/v1")
