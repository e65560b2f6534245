"""Failures of providers, as the providers document them, each with the message that ends the run of a session.

In answers and messages, ``{key}`` stands for the key that was sent, and ``https://llm.example.com`` for the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tests.support.model_server import Reply, event_stream, text_reply

KEY: Final = "sk-key-of-the-owner-1234"  # not a real one
VARIABLE: Final = "WORK_KEY"
"""The variable that holds the key."""

Server: TypeAlias = Literal["http", "tls", "closed", "unknown host", "proxy", "silent"]
"""The server behind an adapter: over TLS, it has a certificate that nobody trusts; the silent one never answers."""


class Failure(NamedTuple):
    """The answer of a provider, in words and as it is sent, and the message; both are about the adapter ``work``."""

    answer: str
    message: str
    reply: Reply = Reply()
    type: str = "openai"
    path: str = "/v1"
    server: Server = "http"
    model: str = "gpt-5"
    has_key: bool = True


def failure(
    status: int, body: Any, message: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Failure:
    """Return a failure with a status and a body, as JSON or as text."""
    text = body if isinstance(body, str) else json.dumps(body)
    content_type = "text/html" if text.startswith("<") else "application/json"
    shown = "".join(f", {name}: {value}" for name, value in (headers or {}).items())
    reply = text_reply(text.replace("{key}", KEY), status=status, headers=headers, content_type=content_type)
    return Failure(f"{status}{shown} `{text}`" if text else f"{status}{shown}", message, reply, **more)


CHECK: Final = f"Check that {VARIABLE} contains a complete key of this provider, and that the key is not revoked and may use the model."
TEST: Final = "To test it: jumpseat check work"
URL: Final = "https://llm.example.com/v1"
REJECTED: Final = f"{URL} was reached and rejected the key: HTTP 401 Unauthorized:"
NO_QUOTA: Final = "The key is valid, but its account has no quota left:"
PLAN: Final = "Check the plan, the credit and the spending limit on the provider's site."
LIMITED: Final = "The key is valid, but the provider limits the rate of requests:"
FAILED: Final = f"{URL} was reached, but the provider failed:"
LATER: Final = "Try again later; if the error persists, a gateway in between may have no server behind it."
NO_MODEL: Final = "The key was accepted, but model 'gpt-5' is not available with it:"
NAMES: Final = "Check the name (jumpseat models work lists the known ones), and that the account may use the model."
TOO_LONG: Final = "The conversation is too long for model 'gpt-5':"
SHORTEN: Final = "Shorten it (/compact summarizes a session), or use a model with a larger context."
FORMAT: Final = f"{URL} responds, but not in the format of adapter 'work':"
BASE: Final = "The base URL may be that of a web page or of another API, or the adapter's type may be wrong."
CALL: Final = f"{URL}/chat/completions"

FAILURES: Final[Mapping[str, Mapping[str, Failure]]] = {
    "The key": {
        "OpenAI, wrong key": failure(
            401,
            {
                "error": {
                    "message": "Incorrect API key provided: {key}. You can find your API key at "
                    "https://platform.openai.com/account/api-keys.",
                    "type": "invalid_request_error",
                    "param": None,
                    "code": "invalid_api_key",
                }
            },
            f"{REJECTED} Incorrect API key provided: [redacted]. You can find your API key at "
            f"https://platform.openai.com/account/api-keys. {CHECK} {TEST}",
        ),
        "OpenAI, no key": failure(
            401,
            {
                "error": {
                    "message": "You didn't provide an API key.",
                    "type": "invalid_request_error",
                    "param": None,
                    "code": None,
                }
            },
            f"{REJECTED} You didn't provide an API key. No key was sent: name one with api_key_env. {TEST}",
            has_key=False,
        ),
        "Anthropic, wrong key": failure(
            401,
            {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
            f"{REJECTED} invalid x-api-key. {CHECK} {TEST}",
            type="anthropic",
        ),
        "Gemini, wrong key": failure(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                    "details": [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
                }
            },
            f"{URL} was reached and rejected the key: HTTP 400 Bad Request: API key not valid. Please pass a valid "
            f"API key. {CHECK} {TEST}",
            type="gemini",
        ),
        "Mistral, wrong key": failure(
            401, {"detail": "Unauthorized"}, f"{REJECTED} Unauthorized. {CHECK} {TEST}", type="mistral"
        ),
        "DeepSeek, wrong key": failure(
            401,
            {
                "error": {
                    "message": "Authentication Fails, Your api key: ****1234 is invalid",
                    "type": "authentication_error",
                    "param": None,
                    "code": "invalid_request_error",
                }
            },
            f"{REJECTED} Authentication Fails, Your api key: ****1234 is invalid. {CHECK} {TEST}",
            type="deepseek",
        ),
        "xAI, wrong key": failure(
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "Incorrect API key provided: {key}. You can obtain an API key from https://console.x.ai.",
            },
            f"{URL} was reached and rejected the key: HTTP 400 Bad Request: Incorrect API key provided: [redacted]. "
            f"You can obtain an API key from https://console.x.ai. {CHECK} {TEST}",
            type="xai",
        ),
        "OpenRouter, wrong key": failure(
            401,
            {"error": {"message": "No auth credentials found", "code": 401}},
            f"{REJECTED} No auth credentials found. {CHECK} {TEST}",
            type="openrouter",
        ),
        "Azure, wrong key": failure(
            401,
            {
                "error": {
                    "code": "401",
                    "message": "Access denied due to invalid subscription key or wrong API endpoint.",
                }
            },
            f"{REJECTED} Access denied due to invalid subscription key or wrong API endpoint. {CHECK} {TEST}",
            type="azure",
        ),
        "Kimi, wrong key": failure(
            401,
            {"error": {"message": "Invalid Authentication", "type": "invalid_authentication_error"}},
            f"{REJECTED} Invalid Authentication. {CHECK} {TEST}",
            type="kimi",
        ),
        "OpenAI, a country that is not served": failure(
            403,
            {
                "error": {
                    "message": "Country, region, or territory not supported",
                    "type": "request_forbidden",
                    "param": None,
                    "code": "unsupported_country_region_territory",
                }
            },
            f"{URL} was reached and refused access: HTTP 403 Forbidden: Country, region, or territory not supported. "
            f"Check that {VARIABLE} may use model 'gpt-5'; firewalls and providers that do not serve your country "
            f"also refuse access. {TEST}",
        ),
    },
    "The account": {
        "OpenAI, no credit": failure(
            429,
            {
                "error": {
                    "message": "You exceeded your current quota, please check your plan and billing details.",
                    "type": "insufficient_quota",
                    "param": None,
                    "code": "insufficient_quota",
                }
            },
            f"{NO_QUOTA} HTTP 429 Too Many Requests: You exceeded your current quota, please check your plan and "
            f"billing details. {PLAN}",
        ),
        "DeepSeek, no credit": failure(
            402,
            {
                "error": {
                    "message": "Insufficient Balance",
                    "type": "unknown_error",
                    "code": "invalid_request_error",
                }
            },
            f"{NO_QUOTA} HTTP 402 Payment Required: Insufficient Balance. {PLAN}",
            type="deepseek",
        ),
        "Anthropic, no credit": failure(
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "Your credit balance is too low to access the Anthropic API.",
                },
            },
            f"{NO_QUOTA} HTTP 400 Bad Request: Your credit balance is too low to access the Anthropic API. {PLAN}",
            type="anthropic",
        ),
        "OpenAI, rate limit": failure(
            429,
            {
                "error": {
                    "message": "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29000",
                    "type": "tokens",
                    "param": None,
                    "code": "rate_limit_exceeded",
                }
            },
            f"{LIMITED} HTTP 429 Too Many Requests: Rate limit reached for gpt-5 on tokens per min (TPM): Limit "
            "30000, Used 29000. It asks to wait 3600 seconds.",
            headers={"Retry-After": "3600"},
        ),
    },
    "The request": {
        "OpenAI, unknown model": failure(
            404,
            {
                "error": {
                    "message": "The model `gpt-5` does not exist or you do not have access to it.",
                    "type": "invalid_request_error",
                    "param": None,
                    "code": "model_not_found",
                }
            },
            f"{NO_MODEL} HTTP 404 Not Found: The model `gpt-5` does not exist or you do not have access to it. "
            f"{NAMES} {TEST}",
        ),
        "Anthropic, unknown model": failure(
            404,
            {"type": "error", "error": {"type": "not_found_error", "message": "model: gpt-5"}},
            f"{NO_MODEL} HTTP 404 Not Found: model: gpt-5. {NAMES} {TEST}",
            type="anthropic",
        ),
        "Ollama, a model that was not pulled": failure(
            404,
            {"error": "model 'gpt-5' not found"},
            f"{NO_MODEL} HTTP 404 Not Found: model 'gpt-5' not found. {NAMES} {TEST}",
            type="ollama",
        ),
        "OpenAI, too long": failure(
            400,
            {
                "error": {
                    "message": "This model's maximum context length is 8192 tokens. However, your messages resulted "
                    "in 9001 tokens.",
                    "type": "invalid_request_error",
                    "param": "messages",
                    "code": "context_length_exceeded",
                }
            },
            f"{TOO_LONG} HTTP 400 Bad Request: This model's maximum context length is 8192 tokens. However, your "
            f"messages resulted in 9001 tokens. {SHORTEN}",
        ),
        "Anthropic, too large": failure(
            413,
            {
                "type": "error",
                "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"},
            },
            f"{TOO_LONG} HTTP 413 Request Entity Too Large: Request exceeds the maximum size. {SHORTEN}",
            type="anthropic",
        ),
        "Azure, content filter": failure(
            400,
            {
                "error": {
                    "message": "The response was filtered due to the prompt triggering Azure OpenAI's content "
                    "management policy.",
                    "type": None,
                    "param": "prompt",
                    "code": "content_filter",
                    "status": 400,
                }
            },
            "A content filter of the provider blocked the request: HTTP 400 Bad Request: The response was filtered "
            "due to the prompt triggering Azure OpenAI's content management policy.",
            type="azure",
        ),
        "OpenAI, an unsupported parameter": failure(
            400,
            {
                "error": {
                    "message": "Unsupported parameter: 'temperature' is not supported with this model.",
                    "type": "invalid_request_error",
                    "param": "temperature",
                    "code": "unsupported_parameter",
                }
            },
            f"{URL} was reached and rejected the request: HTTP 400 Bad Request: Unsupported parameter: 'temperature' "
            f"is not supported with this model. {TEST}",
        ),
    },
    "The server": {
        "OpenAI, an error of the server": failure(
            500,
            {
                "error": {
                    "message": "The server had an error while processing your request. Sorry about that!",
                    "type": "server_error",
                    "param": None,
                    "code": None,
                }
            },
            f"{FAILED} HTTP 500 Internal Server Error: The server had an error while processing your request. Sorry "
            f"about that! {LATER}",
        ),
        "Gemini, overloaded": failure(
            503,
            {
                "error": {
                    "code": 503,
                    "message": "The model is overloaded. Please try again later.",
                    "status": "UNAVAILABLE",
                }
            },
            f"{FAILED} HTTP 503 Service Unavailable: The model is overloaded. Please try again later. {LATER}",
            type="gemini",
        ),
        "Anthropic, overloaded": failure(
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            f"{FAILED} HTTP 529 Overloaded: Overloaded. {LATER}",
            type="anthropic",
        ),
        "a gateway without a server": failure(
            502,
            "<html><head><title>502 Bad Gateway</title></head><body></body></html>",
            f"{FAILED} HTTP 502 Bad Gateway: 502 Bad Gateway. {LATER}",
        ),
        "`/v1` is missing": failure(
            404,
            "404 page not found",
            "https://llm.example.com responds, but the API is not there: HTTP 404 Not Found: 404 page not found. "
            f"Check the path of the base URL; many end in /v1. {TEST}",
            path="",
        ),
        "a redirect to a login": failure(
            302,
            "",
            f"{URL} responds, but the API is not there: HTTP 302: {CALL} redirects elsewhere, and redirects are not "
            f"followed; check the base URL. Check the path of the base URL; many end in /v1. {TEST}",
            headers={"Location": "https://login.example.com/"},
        ),
        "a web page": failure(
            200,
            "<!doctype html><title>Sign in</title>",
            f"{FORMAT} expected JSON or an event stream from {CALL}, got text/html: "
            f"'<!doctype html><title>Sign in</title>'. {BASE}",
        ),
        "invalid JSON in the stream": Failure(
            '200 `data: {"choices": [{]}`',
            f"{FORMAT} expected JSON from the provider, got '{{\"choices\": [{{]}}'. {BASE}",
            event_stream(b'data: {"choices": [{]}\n\n'),
        ),
        "an error in the stream": Failure(
            '200 `data: {"error": {"message": "The model fell over", "code": 503}}`',
            f"{FAILED} HTTP 503 Service Unavailable: The model fell over. {LATER}",
            event_stream(b'data: {"error": {"message": "The model fell over", "code": 503}}\n\n'),
        ),
    },
    "The connection": {
        "nothing listens": Failure(
            "connection refused",
            f"Nothing listens at that address: cannot connect to {CALL}: connection refused. Check that the server is "
            f"running, and the port of the base URL. {TEST}",
            server="closed",
        ),
        "an unknown host": Failure(
            "no address for the host",
            f"The host was not found: cannot connect to {CALL}: [Errno -2] Name or service not known. "
            f"Check the network, and the spelling of the address. {TEST}",
            server="unknown host",
        ),
        "a certificate of a company": Failure(
            "a certificate that is not trusted",
            f"{URL} was reached, but its certificate is not trusted: cannot verify the certificate of {CALL}: [SSL: "
            "CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate. If it is a server "
            "of your own, or a company proxy inspects the traffic, set NODE_EXTRA_CA_CERTS (or SSL_CERT_FILE) to a "
            "PEM file with the certificate of its authority. "
            f"{TEST}",
            server="tls",
        ),
        "a proxy with a login": Failure(
            "407 of the proxy",
            "The proxy set by the adapter's --proxy requires a login: the proxy refused the connection to "
            f"{CALL}: 407 Proxy Authentication Required. Put user and password into the address of the proxy: "
            f"http://USER:PASSWORD@HOST:PORT. {TEST}",
            text_reply("", status=407),
            server="proxy",
        ),
        "no answer in time": Failure(
            "nothing, for longer than `first_byte`",
            f"The server accepted the request and sent nothing: no response from {CALL} within 0.25 s. It may be "
            f"loading the model, or have too much to do. {TEST}",
            Reply(silent=True, ending="hang"),
            server="silent",
        ),
        "an answer that is cut off": Failure(
            "200, then the connection ends",
            f"The answer was cut off: {CALL} closed the connection in the middle of its response: peer closed "
            "connection without sending complete message body (incomplete chunked read). Send the prompt again; if "
            f"that happens often, a proxy or gateway in between may end long connections. {TEST}",
            event_stream(b'data: {"choices": [{"index": 0, "delta": {"content": "Well, "}}]}\n\n', ending="cut"),
        ),
    },
}
