"""Explain a failed model call in a paragraph for the person who configured the adapter. Pure functions.

The text never contains a key: it is made of error messages, which are masked, and of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from jumpseat.errors import (
    AdapterError,
    ConfigError,
    JumpseatError,
    ProviderAuthError,
    ProviderContextError,
    ProviderError,
    ProviderFilterError,
    ProviderOverloadedError,
    ProviderProtocolError,
    ProviderQuotaError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderTransportError,
    ReplayError,
    UnwritableBodyError,
)

WORKS: Final = 0
NOT_CONFIGURED: Final = 3
KEY: Final = 4
UNREACHABLE: Final = 5
REFUSED: Final = 6
QUOTA: Final = 7
PROVIDER_FAILED: Final = 8
FUNCTIONS: Final = 9
"""Exit codes of ``jumpseat check``; 2 is for wrong arguments."""

_TESTED: Final = frozenset({KEY, UNREACHABLE, REFUSED})
"""The exit codes of problems that a small request shows, too."""

_PROXY_LOGIN: Final = "Put user and password into the address of the proxy: http://USER:PASSWORD@HOST:PORT."

_MODEL: Final = re.compile(r"\bmodels?\b|model_not_found", re.IGNORECASE)
_MODEL_UNAVAILABLE: Final = re.compile(
    r"model_not_found|(?:unknown|invalid|no such|unsupported) model|not a valid model"
    r"|\bmodel\b.{0,80}(?:not found|not exist|unknown|not available|no access|not have access|decommissioned)",
    re.IGNORECASE | re.DOTALL,
)
_NO_TLS: Final = re.compile(r"wrong_version_number|wrong version number|record layer failure", re.IGNORECASE)
_UNKNOWN_HOST: Final = re.compile(
    r"name or service not known|nodename nor servname|no address associated|name resolution|getaddrinfo",
    re.IGNORECASE,
)


class Facts(Struct, frozen=True):
    """The known facts about a call.

    ``key_env`` is the environment variable of the key; ``has_key`` is true if a key was sent. ``malformed_key`` is
    true if the key contains quotes or spaces. ``proxy_envs`` are the variables that name proxies. ``key_source``
    describes a key that is not in a variable. ``command`` tests the adapter. ``in_session`` is true for the call of
    a session, which may have a long conversation, and false for a test.
    """

    adapter: str
    model: str
    address: str
    key_env: str | None = None
    has_key: bool = False
    malformed_key: bool = False
    proxy_envs: tuple[str, ...] = ()
    key_source: str | None = None
    command: str | None = None
    in_session: bool = False


class Diagnosis(Struct, frozen=True):
    """The exit code of ``jumpseat check`` and the explanation."""

    exit_code: int
    text: str


def diagnose(error: JumpseatError, facts: Facts) -> Diagnosis:
    """Explain ``error`` to the person who configured the adapter, and suggest what to try."""
    found = _diagnose(error, facts)
    is_about_content = isinstance(error, ProviderContextError | ProviderFilterError)
    if facts.command is not None and found.exit_code in _TESTED and not is_about_content:
        return Diagnosis(found.exit_code, f"{found.text} To test it: {facts.command}")
    return found


def _diagnose(error: JumpseatError, facts: Facts) -> Diagnosis:
    message = _sentence(_with_attempts(error))
    match error:
        case AdapterError():
            return Diagnosis(FUNCTIONS, f"A function of the adapter has a bug: {message}")
        case ConfigError():
            return Diagnosis(NOT_CONFIGURED, f"The configuration is incomplete: {message}")
        case ReplayError():
            return Diagnosis(NOT_CONFIGURED, f"JUMPSEAT_REPLAY is set, so nothing was sent: {message}")
        case ProviderAuthError(status=None, code=None):
            # Nothing was sent: the message says why there is no key.
            return Diagnosis(KEY, message)
        case ProviderAuthError(status=403):
            return Diagnosis(KEY, f"{facts.address} was reached and refused access: {message} {_access(facts)}")
        case ProviderAuthError():
            return Diagnosis(KEY, f"{facts.address} was reached and rejected the key: {message} {_key(facts)}")
        case ProviderQuotaError():
            return Diagnosis(
                QUOTA,
                f"The key is valid, but its account has no quota left: {message} "
                "Check the plan, the credit and the spending limit on the provider's site.",
            )
        case ProviderRateLimitError():
            wait = f" It asks to wait {error.retry_after_s:g} seconds." if error.retry_after_s else ""
            return Diagnosis(
                QUOTA, f"The key is valid, but the provider limits the rate of requests: {message}{wait}"
            )
        case ProviderTransportError():
            return Diagnosis(UNREACHABLE, _transport(message, error, facts))
        case ProviderOverloadedError():
            return Diagnosis(
                PROVIDER_FAILED,
                f"{facts.address} was reached, but the provider failed: {message} Try again later; if the error "
                "persists, a gateway in between may have no server behind it.",
            )
        case ProviderProtocolError():
            return Diagnosis(
                PROVIDER_FAILED,
                f"{facts.address} responds, but not in the format of adapter {facts.adapter!r}: {message} The "
                "base URL may be that of a web page or of another API, or the adapter's type may be wrong.",
            )
        case ProviderContextError():
            return Diagnosis(REFUSED, _too_long(message, facts))
        case ProviderFilterError():
            return Diagnosis(REFUSED, f"A content filter of the provider blocked the request: {message}")
        case ProviderError():
            return Diagnosis(_refusal_code(error), _refusal(message, error, facts))
        case _:
            return Diagnosis(NOT_CONFIGURED, f"The adapter cannot be called with this configuration: {message}")


def _with_attempts(error: JumpseatError) -> str:
    attempts = error.attempts if isinstance(error, ProviderError) else 1
    return f"{error} (tried {attempts} times)" if attempts > 1 else str(error)


def _sentence(message: str) -> str:
    """Return a message as a sentence: those of providers end with a full stop, ours do not."""
    return message if message.endswith((".", "?", "!", "…")) else f"{message}."


def list_problems(problems: Iterable[str]) -> Diagnosis:
    """Explain what is wrong with the functions of an adapter."""
    lines = "".join(f"\n- {problem}" for problem in problems)
    text = f"Its functions were tried on an invented conversation, and nothing was sent:{lines}"
    return Diagnosis(FUNCTIONS, text)


def _key(facts: Facts) -> str:
    if facts.key_source is not None:
        return (
            f"Check that {facts.key_source} is complete, valid and not revoked, and may use the model."
            if facts.has_key
            else f"No key was sent: there is none in {facts.key_source.removeprefix('the key of ')}."
        )
    name = facts.key_env or "the key of this adapter"
    if not facts.has_key:
        return f"No key was sent: set {name}." if facts.key_env else "No key was sent: name one with api_key_env."
    if facts.malformed_key:
        return f"{name} contains quotes or spaces, which are not part of a key."
    return (
        f"Check that {name} contains a complete key of this provider, and that the key is not revoked and may use "
        "the model."
    )


def _model(facts: Facts) -> str:
    return f"model {facts.model!r}" if facts.model else "the model"


def _access(facts: Facts) -> str:
    if not facts.has_key:
        return _key(facts)
    name = facts.key_source or facts.key_env or "the key of this adapter"
    return (
        f"Check that {name} may use {_model(facts)}; firewalls and providers that do not serve your country "
        "also refuse access."
    )


def _too_long(message: str, facts: Facts) -> str:
    if not facts.in_session:
        return f"Even a short request is too long for {_model(facts)}: {message}"
    return (
        f"The conversation is too long for {_model(facts)}: {message} Shorten it (/compact summarizes a "
        "session), or use a model with a larger context."
    )


def _transport(message: str, error: ProviderTransportError, facts: Facts) -> str:
    if "certificate" in message:
        return (
            f"{facts.address} was reached, but its certificate is not trusted: {message} If it is a server of "
            "your own, or a company proxy inspects the traffic, set NODE_EXTRA_CA_CERTS (or SSL_CERT_FILE) to a "
            "PEM file with the certificate of its authority."
        )
    if "proxy" in message:
        names = ", ".join(facts.proxy_envs) or "the system's settings"
        if "to the proxy" in message:
            return f"The proxy set by {names} was not reached: {message} Check its address, and that it runs."
        if "407" in message:
            return f"The proxy set by {names} requires a login: {message} {_PROXY_LOGIN}"
        return f"The proxy set by {names} refused the request: {message} Check the proxy, or use NO_PROXY."
    if error.refused:
        return (
            f"Nothing listens at that address: {message} Check that the server is running, and the port of the "
            "base URL."
        )
    through = f" Requests go through the proxy set by {', '.join(facts.proxy_envs)}." if facts.proxy_envs else ""
    if _UNKNOWN_HOST.search(message):
        return f"The host was not found: {message} Check the network, and the spelling of the address.{through}"
    if _NO_TLS.search(message):
        return f"The server does not speak TLS: {message} If it is a local server, use http:// in the base URL."
    if "in the middle of" in message or "stopped sending" in message:
        return (
            f"The answer was cut off: {message} Send the prompt again; if that happens often, a proxy or gateway "
            f"in between may end long connections.{through}"
        )
    if message.startswith("no response"):
        return (
            f"The server accepted the request and sent nothing: {message} It may be loading the model, or have too "
            f"much to do.{through}"
        )
    return f"The connection to the provider failed: {message} Check the base URL and the network.{through}"


def _refusal_code(error: ProviderError) -> int:
    return UNREACHABLE if error.status is not None and _is_address(error) else REFUSED


def _is_address(error: ProviderError) -> bool:
    """Return whether a rejected request indicates that the URL is not that of the API."""
    status = error.status or 0
    return (
        300 <= status < 400
        or status in (405, 407)
        or (status == 404 and not _MODEL.search(f"{error} {error.code}"))
    )


_CURES: Final = (
    (
        re.compile(r"system role", re.IGNORECASE),
        "The chat template of the model takes no system message: set options = "
        '{system_role = "user"} for the adapter.',
    ),
    (
        re.compile(r"roles must alternate", re.IGNORECASE),
        "The chat template of the model takes no tool results or several messages in a row: start the server with "
        'another template, or set tool_protocol = "xml" for the model.',
    ),
    (
        re.compile(r"jinja|chat template|failed to parse input at", re.IGNORECASE),
        "The server's chat template does not fit the model's tool calls: update the server, start it with another "
        'template (llama.cpp: --chat-template-file), or set tool_protocol = "xml" for the model.',
    ),
    (
        re.compile(r"requires more .{0,10}memory", re.IGNORECASE),
        "Use a smaller model or a smaller context window, or free memory on the server.",
    ),
    (re.compile(r"unexpected endpoint", re.IGNORECASE), "Check the path of the base URL; many end in /v1."),
)
"""Advice for refusals of local servers, which no later attempt cures."""


def _refusal(message: str, error: ProviderError, facts: Facts) -> str:
    for pattern, cure in _CURES:
        if pattern.search(message):
            return f"{facts.address} was reached and rejected the request: {message} {cure}"
    if error.status == 407:
        names = ", ".join(facts.proxy_envs) or "the system's settings"
        return f"The proxy set by {names} requires a login: {message} {_PROXY_LOGIN}"
    if error.status is not None and _is_address(error):
        return (
            f"{facts.address} responds, but the API is not there: {message} Check the path of the base URL; many "
            "end in /v1."
        )
    if error.status == 404 or _MODEL_UNAVAILABLE.search(f"{message} {error.code}"):
        # Only what the user has configured has a list.
        is_listed = facts.command is not None or not facts.in_session
        listed = f" (jumpseat models {facts.adapter} lists the known ones)" if is_listed else ""
        return (
            f"The key was accepted, but {_model(facts)} is not available with it: {message} Check the name"
            f"{listed}, and that the account may use the model."
        )
    if isinstance(error, UnwritableBodyError):
        return f"The request was not sent: {message} A function or a value of the adapter put it there."
    if isinstance(error, ProviderRequestError) and error.status is None and error.code is None:
        # Not every reason is in these: a declared adapter may refuse a request.
        advice = (
            " Check the base URL and the headers."
            if re.search(r"\b(?:address|URL|header|write the request)", message)
            else ""
        )
        return f"The request was not sent: {message}{advice}"
    return f"{facts.address} was reached and rejected the request: {message}"
