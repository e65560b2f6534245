"""Conversion of providers' error responses to the error tree."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest

from jumpseat.adapters.failures import Redactor, failure_of_event, failure_of_response
from jumpseat.agent.secrets import MASK
from jumpseat.errors import (
    ProviderAuthError,
    ProviderContextError,
    ProviderError,
    ProviderFilterError,
    ProviderLoadingError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderToolsError,
)
from tests.support.cases import all_cases, check_each


def failure(status: int, body: Any, **headers: str) -> ProviderError:
    content = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return failure_of_response(status, named, content.encode(), now=1_800_000_000)


RESPONSES: Final[list[tuple[int, Any, type[ProviderError], str | None, str | None]]] = [
    # OpenAI
    (
        401,
        {
            "error": {
                "message": "Bad key",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_api_key",
            }
        },
        ProviderAuthError,
        "invalid_api_key",
        "HTTP 401 Unauthorized: Bad key",
    ),
    (
        429,
        {"error": {"message": "Slow", "type": "tokens", "code": "rate_limit_exceeded"}},
        ProviderRateLimitError,
        "rate_limit_exceeded",
        "HTTP 429 Too Many Requests: Slow",
    ),
    (
        400,
        {
            "error": {
                "message": "The response was filtered",
                "code": "content_filter",
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        ProviderFilterError,
        "content_filter",
        "HTTP 400 Bad Request: The response was filtered",
    ),
    (
        400,
        {"error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}},
        ProviderFilterError,
        "invalid_request_error",
        "HTTP 400 Bad Request: Output blocked by content filtering policy",
    ),
    (
        429,
        {"error": {"message": "Pay", "type": "insufficient_quota", "code": "insufficient_quota"}},
        ProviderQuotaError,
        "insufficient_quota",
        "HTTP 429 Too Many Requests: Pay",
    ),
    (
        400,
        {"error": {"message": "Too long", "type": "invalid_request_error", "code": "context_length_exceeded"}},
        ProviderContextError,
        "context_length_exceeded",
        "HTTP 400 Bad Request: Too long",
    ),
    (
        400,
        {"error": {"message": "No such field", "type": "invalid_request_error", "code": None}},
        ProviderRequestError,
        "invalid_request_error",
        "HTTP 400 Bad Request: No such field",
    ),
    # Anthropic
    (
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ProviderOverloadedError,
        "overloaded_error",
        "HTTP 529 Overloaded: Overloaded",
    ),
    (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210000 tokens > 200000 maximum",
            },
        },
        ProviderContextError,
        "invalid_request_error",
        "HTTP 400 Bad Request: prompt is too long: 210000 tokens > 200000 maximum",
    ),
    (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to go on"},
        },
        ProviderQuotaError,
        "invalid_request_error",
        "HTTP 400 Bad Request: Your credit balance is too low to go on",
    ),
    (
        413,
        {"error": {"type": "request_too_large"}},
        ProviderContextError,
        "request_too_large",
        None,
    ),
    # Gemini
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "API key not valid. Please pass a valid API key.",
                "status": "INVALID_ARGUMENT",
                "details": [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
            }
        },
        ProviderAuthError,
        "INVALID_ARGUMENT",
        "HTTP 400 Bad Request: API key not valid. Please pass a valid API key.",
    ),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "The input token count (1200000) exceeds the maximum number of tokens allowed.",
                "status": "INVALID_ARGUMENT",
            }
        },
        ProviderContextError,
        "INVALID_ARGUMENT",
        "HTTP 400 Bad Request: The input token count (1200000) exceeds the maximum number of tokens allowed.",
    ),
    (
        429,
        [
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your quota",
                    "status": "RESOURCE_EXHAUSTED",
                }
            }
        ],
        ProviderRateLimitError,
        "RESOURCE_EXHAUSTED",
        "HTTP 429 Too Many Requests: You exceeded your quota",
    ),
    # Ollama, the tests' proxy, and a code beside the text
    (
        404,
        {"error": "no model 'x'"},
        ProviderRequestError,
        None,
        "HTTP 404 Not Found: no model 'x'",
    ),
    (
        400,
        {"error": "protocol_mismatch", "message": "wrong wire"},
        ProviderRequestError,
        None,
        "HTTP 400 Bad Request: protocol_mismatch: wrong wire",
    ),
    # OpenRouter
    (
        402,
        {"error": {"code": 402, "message": "Insufficient credits"}},
        ProviderQuotaError,
        None,
        "HTTP 402 Payment Required: Insufficient credits",
    ),
    (
        400,
        {"error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": "bad tool"}}},
        ProviderRequestError,
        None,
        "HTTP 400 Bad Request: Provider returned error: bad tool",
    ),
    # vLLM, FastAPI
    (
        400,
        {
            "object": "error",
            "message": "maximum context is 4096",
            "type": "BadRequestError",
            "code": 400,
        },
        ProviderContextError,
        "BadRequestError",
        "HTTP 400 Bad Request: maximum context is 4096",
    ),
    (
        422,
        {"detail": [{"loc": ["body"], "msg": "field required"}]},
        ProviderRequestError,
        None,
        'HTTP 422 Unprocessable Entity: [{"loc":["body"],"msg":"field required"}]',
    ),
    # Tavily
    (
        432,
        {"detail": {"error": "This request exceeds your plan's set usage limit."}},
        ProviderRequestError,
        None,
        "HTTP 432: This request exceeds your plan's set usage limit.",
    ),
    # llama.cpp
    (
        500,
        {
            "error": {
                "code": 500,
                "message": "exceeds the available context size",
                "type": "server_error",
            }
        },
        ProviderContextError,
        "server_error",
        None,
    ),
    # GitHub and Copilot
    (401, {"message": "Bad credentials"}, ProviderAuthError, None, "HTTP 401 Unauthorized: Bad credentials"),
    (429, "quota exceeded for this month\n", ProviderQuotaError, None, None),
    (403, "", ProviderAuthError, None, "HTTP 403 Forbidden"),
    # Gateways
    (408, {}, ProviderOverloadedError, None, "HTTP 408 Request Timeout"),
    (409, "busy", ProviderOverloadedError, None, "HTTP 409 Conflict: busy"),
    (
        502,
        "<!DOCTYPE html><html><head><title>Bad\n gateway</title></head><body>long</body></html>",
        ProviderOverloadedError,
        None,
        "HTTP 502 Bad Gateway: Bad gateway",
    ),
    (
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        ProviderLoadingError,
        "unavailable_error",
        "HTTP 503 Service Unavailable: Loading model",
    ),
    (503, {"error": "Model org/m is currently loading"}, ProviderLoadingError, None, None),
    (503, {"error": "no server"}, ProviderOverloadedError, None, None),
    # Servers with templates give these with 500, and no later attempt succeeds.
    (500, {"error": {"message": "Jinja Exception: System role not supported"}}, ProviderRequestError, None, None),
    (
        500,
        {"error": {"message": "Conversation roles must alternate user/assistant"}},
        ProviderRequestError,
        None,
        None,
    ),
    (500, {"error": {"message": "Failed to parse input at pos 0"}}, ProviderRequestError, None, None),
    (
        500,
        {"error": "model requires more system memory (8.4 GiB) than is available (3 GiB)"},
        ProviderRequestError,
        None,
        None,
    ),
    (418, "null", ProviderRequestError, None, "HTTP 418 I'm a Teapot"),
    (400, '"just a string"', ProviderRequestError, None, "HTTP 400 Bad Request: just a string"),
    (400, "[]", ProviderRequestError, None, "HTTP 400 Bad Request"),
]


def test_a_response_with_an_error_status_becomes_the_matching_error() -> None:
    with all_cases() as case:
        for status, body, kind, code, message in RESPONSES:
            with case(f"{status} {body}"):
                error = failure(status, body)

                assert (type(error), error.code, error.status) == (kind, code, status)
                assert message is None or str(error) == message
                assert error.retryable == issubclass(kind, ProviderRateLimitError | ProviderOverloadedError)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}, ProviderRateLimitError, "m"),
        ({"type": "error", "error": {"type": "authentication_error", "message": "m"}}, ProviderAuthError, "m"),
        ({"type": "error", "error": {"type": "api_error", "message": "m"}}, ProviderOverloadedError, "m"),
        ({"error": {"code": 502, "message": "m"}}, ProviderOverloadedError, "HTTP 502 Bad Gateway: m"),
        ({"error": {"code": "403", "message": "m"}}, ProviderAuthError, "HTTP 403 Forbidden: m"),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}},
            ProviderOverloadedError,
            "m",
        ),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}},
            ProviderFilterError,
            "content_filter",
        ),
        ({"error": "text only"}, ProviderOverloadedError, "text only"),
        ({"error": True}, ProviderOverloadedError, '{"error":true}'),
        (
            {"error": "Unexpected endpoint or method. (POST /chat/completions)"},
            ProviderRequestError,
            "Unexpected endpoint or method. (POST /chat/completions)",
        ),
        ({}, ProviderOverloadedError, "the provider reported an error without a message"),
    ],
)
def test_an_error_inside_a_response_becomes_the_matching_error(
    body: Any, kind: type[ProviderError], message: str
) -> None:
    error = failure_of_event(body)

    assert (type(error), str(error)) == (kind, message)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0"}, 0.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after": "30", "retry_after_ms": "250"}, 0.25),
        ({"retry_after": "Fri, 15 Jan 2027 08:01:00 GMT"}, 60.0),
        ({"retry_after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry_after": "Fri, 15 Jan 2027 08:01:00"}, 60.0),
        ({"retry_after": "30", "x_ms_retry_after_ms": "250"}, 0.25),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "inf"}, None),
        ({}, None),
    ],
)
def test_the_retry_delay_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert failure(429, {}, **headers).retry_after_s == seconds


def test_the_retry_delay_of_gemini_is_read_from_the_body() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    error = failure(429, {"error": {"code": 429, "message": "quota exceeded", "details": details}})

    assert (type(error), error.retry_after_s) == (ProviderRateLimitError, 34.5)


def test_the_redactor_masks_keys_header_values_and_strings_like_keys() -> None:
    veil = Redactor(
        ["key-1-of-2", None, ""],
        [{"Authorization": "Bearer abcdefgh-7", "X-Api-Key": "xyz-0123", "X-Team": "blue-team-42", "X-Flag": "on"}],
    )

    assert veil("key-1-of-2 is wrong") == f"{MASK} is wrong"
    assert veil("Bearer abcdefgh-7") == MASK
    assert veil("token abcdefgh-7!") == f"token {MASK}!"
    assert veil("xyz-0123") == MASK
    assert veil("member of blue-team-42, turned on") == f"member of {MASK}, turned on"
    assert veil("provided: sk-proj-****************wxy.") == f"provided: {MASK}."
    assert veil("ghp_0123456789abcdefABCDEF gho_0123456789abcdefABCDEF") == f"{MASK} {MASK}"
    assert veil("nothing to hide, the task-force said") == "nothing to hide, the task-force said"


def test_the_redactor_keeps_words_that_are_dummy_keys() -> None:
    text = "a model on localhost does not exist: no test of ollama needs a key, none or EMPTY, lm-studio included"
    keys = ("x", "e", "test", "none", "ollama", "EMPTY", "lm-studio", "not-needed", "localhost")
    check_each({key: key for key in keys}, lambda key: _unchanged(Redactor([key], [{"X-Api-Key": key}]), text))


def _unchanged(veil: Redactor, text: str) -> None:
    assert veil(text) == text


def test_the_redactor_masks_a_key_in_base64_and_in_parts() -> None:
    key = "prod.4f9a0c77.Qm1x2Z"
    veil = Redactor([key])
    texts = {
        f"{place}: {len(before)}": encode(before + key.encode() + after).decode()
        for place, encode in (("standard", base64.b64encode), ("for URLs", base64.urlsafe_b64encode))
        for before, after in ((b"", b""), (b"u:", b""), (b"Bearer ", b" "), (b"user:", b":x"))
    }
    with all_cases() as case:
        for name, text in texts.items():
            with case(name):
                masked = veil(text)
                assert MASK in masked
                assert len(masked) - len(MASK) <= len(text) - len(key) * 4 // 3 + 1
    assert veil("begins with prod.4f9a, ends with 7.Qm1x2Z") == f"begins with {MASK}, ends with {MASK}"
    assert veil("a part: 4f9a0c7") == "a part: 4f9a0c7"
    assert veil(f"reversed: {key[::-1]}") == f"reversed: {MASK}"


def test_the_redactor_masks_the_longer_of_two_secrets_first() -> None:
    assert Redactor(["abcd-123", "abcd-123-efgh"])("abcd-123-efgh abcd-123") == f"{MASK} {MASK}"


def test_the_redactor_masks_text_and_code_of_an_error() -> None:
    error = Redactor(["key-1-of-2"]).redact_error(ProviderRequestError("key-1-of-2 bad", code="key-1-of-2"))

    assert (str(error), error.code) == (f"{MASK} bad", MASK)


def test_a_long_message_is_truncated_after_masking_so_that_no_part_of_a_secret_is_left() -> None:
    for length in range(940, 1010):
        error = Redactor(["top-secret-key-1"]).redact_error(
            failure(503, f"{'x' * length} top-secret-key-1 and more")
        )
        assert "top" not in str(error)
        assert len(str(error)) <= 1000


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": "registry.ollama.ai/library/tiny:latest does not support tools"}),
        (404, {"error": {"message": "No endpoints found that support tool use. See the docs.", "code": 404}}),
        (400, {"error": {"message": "`tools` is not supported with this model", "type": "invalid_request_error"}}),
        (400, {"error": {"message": "tool calling is not supported with this model"}}),
        (400, {"object": "error", "message": '"auto" tool choice requires --enable-auto-tool-choice to be set'}),
        (500, {"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}}),
        (400, [{"error": {"code": 400, "message": "Function calling is not enabled for models/tiny"}}]),
        (400, {"error": {"message": "tiny-reasoner does not support Function Calling"}}),
        (400, {"message": "This model doesn't support tool use in streaming mode."}),
        (400, {"error": {"message": "Unsupported parameter: 'tools'", "code": "unsupported_parameter"}}),
        (422, {"detail": "Tool use has not been enabled, because it is unsupported by tiny."}),
    ],
)
def test_a_refusal_of_all_tools_is_a_separate_error(status: int, body: Any) -> None:
    error = failure(status, body)
    assert type(error) is ProviderToolsError
    assert not error.retryable


@pytest.mark.parametrize(
    "text",
    [
        "tools[0].function.parameters: 'oneOf' is not supported",
        "tools.1.type: 'web_search' is not supported",
        "Hosted tool 'web_search' is not supported with tiny",
        "Invalid schema for function 'add': 'format' is not permitted",
        "Tool 'add' is not allowed twice",
        "messages with role 'tool' must follow a message with 'tool_calls'",
    ],
)
def test_a_refusal_of_one_tool_is_not_a_refusal_of_all(text: str) -> None:
    assert type(failure(400, {"error": {"message": text}})) is ProviderRequestError
