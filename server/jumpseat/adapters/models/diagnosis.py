"""Explain a failed model call in a paragraph for the person who configured the adapter. Pure functions.

The text never contains a key: it is made of error messages, which are masked, and of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jumpseat.errors import (
    AdapterError,
    ConfigError,
    JumpseatError,
    ProviderAuthError,
    ProviderContextError,
    ProviderError,
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

_MODEL: Final = re.compile(r"\bmodels?\b|model_not_found", re.IGNORECASE)
_MODEL_UNAVAILABLE: Final = re.compile(
    r"model_not_found|(?:unknown|invalid|no such|unsupported) model|not a valid model"
    r"|\bmodel\b.{0,80}(?:not found|not exist|unknown|not available|no access|not have access|decommissioned)",
    re.IGNORECASE | re.DOTALL,
)
_UNKNOWN_HOST: Final = re.compile(
    r"name or service not known|nodename nor servname|no address associated|name resolution|getaddrinfo",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Facts:
    """The known facts about a call.

    ``key_env`` is the environment variable of the key; ``has_key`` is true if a key was sent. ``malformed_key`` is
    true if the key contains quotes or spaces. ``proxy_envs`` are the variables that name proxies.
    """

    adapter: str
    model: str
    address: str
    key_env: str | None = None
    has_key: bool = False
    malformed_key: bool = False
    proxy_envs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The exit code of ``jumpseat check`` and the explanation."""

    exit_code: int
    text: str


def diagnose(error: JumpseatError, facts: Facts) -> Diagnosis:
    """Explain ``error`` to the person who configured the adapter, and suggest what to try."""
    message = str(error)
    match error:
        case AdapterError():
            return Diagnosis(FUNCTIONS, f"A function of the adapter has a bug: {message}.")
        case ConfigError():
            return Diagnosis(NOT_CONFIGURED, f"The configuration is incomplete: {message}{_full_stop(message)}")
        case ReplayError():
            return Diagnosis(NOT_CONFIGURED, f"JUMPSEAT_REPLAY is set, so nothing was sent: {message}.")
        case ProviderAuthError():
            return Diagnosis(KEY, f"{facts.address} was reached and rejected the key: {message}. {_key(facts)}")
        case ProviderQuotaError():
            return Diagnosis(
                QUOTA,
                f"The key is valid, but its account has no quota left: {message}. "
                "Check the plan, the credit and the spending limit on the provider's site.",
            )
        case ProviderRateLimitError():
            wait = f" It asks to wait {error.retry_after_s:g} seconds." if error.retry_after_s else ""
            return Diagnosis(
                QUOTA, f"The key is valid, but the provider limits the rate of requests: {message}.{wait}"
            )
        case ProviderTransportError():
            return Diagnosis(UNREACHABLE, _transport(message, error, facts))
        case ProviderOverloadedError():
            return Diagnosis(
                PROVIDER_FAILED,
                f"{facts.address} was reached, but the provider failed: {message}. Try again later; if the error "
                "persists, a gateway in between may have no server behind it.",
            )
        case ProviderProtocolError():
            return Diagnosis(
                PROVIDER_FAILED,
                f"{facts.address} responds, but not in the format of adapter {facts.adapter!r}: {message}. The "
                "base URL may be that of a web page or of another API, or the adapter's type may be wrong.",
            )
        case ProviderContextError():
            return Diagnosis(REFUSED, f"Even a short request is too long for model {facts.model!r}: {message}.")
        case ProviderError():
            return Diagnosis(_refusal_code(error), _refusal(message, error, facts))
        case _:
            return Diagnosis(NOT_CONFIGURED, f"The adapter cannot be called with this configuration: {message}.")


def list_problems(problems: Iterable[str]) -> Diagnosis:
    """Explain what is wrong with the functions of an adapter."""
    lines = "".join(f"\n- {problem}" for problem in problems)
    text = f"Its functions were tried on an invented conversation, and nothing was sent:{lines}"
    return Diagnosis(FUNCTIONS, text)


def _key(facts: Facts) -> str:
    name = facts.key_env or "the key of this adapter"
    if not facts.has_key:
        return f"No key was sent: set {name}." if facts.key_env else "No key was sent: name one with api_key_env."
    if facts.malformed_key:
        return f"{name} contains quotes or spaces, which are not part of a key."
    return (
        f"Check that {name} contains a complete key of this provider, and that the key is not revoked and may use "
        "the model."
    )


def _transport(message: str, error: ProviderTransportError, facts: Facts) -> str:
    if "certificate" in message:
        return (
            f"{facts.address} was reached, but its certificate is not trusted: {message}. If a company proxy "
            "inspects the traffic, set NODE_EXTRA_CA_CERTS (or SSL_CERT_FILE) to the proxy's certificate."
        )
    if "proxy" in message:
        names = ", ".join(facts.proxy_envs) or "the system's settings"
        if "to the proxy" in message:
            return f"The proxy set by {names} was not reached: {message}. Check its address, and that it runs."
        return f"The proxy set by {names} refused the request: {message}. Check the proxy, or use NO_PROXY."
    if error.refused:
        return (
            f"Nothing listens at that address: {message}. Check that the server is running, and the port of the "
            "base URL."
        )
    through = f" Requests go through the proxy set by {', '.join(facts.proxy_envs)}." if facts.proxy_envs else ""
    if _UNKNOWN_HOST.search(message):
        return f"The host of the base URL is unknown: {message}. Check its spelling, and the network.{through}"
    return f"The connection to the provider failed: {message}. Check the base URL and the network.{through}"


def _refusal_code(error: ProviderError) -> int:
    return UNREACHABLE if error.status is not None and _is_address(error) else REFUSED


def _is_address(error: ProviderError) -> bool:
    """Return whether a rejected request indicates that the URL is not that of the API."""
    status = error.status or 0
    return 300 <= status < 400 or status == 405 or (status == 404 and not _MODEL.search(f"{error} {error.code}"))


def _refusal(message: str, error: ProviderError, facts: Facts) -> str:
    if error.status is not None and _is_address(error):
        return (
            f"{facts.address} responds, but the API is not there: {message}. Check the path of the base URL; many "
            "end in /v1."
        )
    if error.status == 404 or _MODEL_UNAVAILABLE.search(f"{message} {error.code}"):
        return (
            f"The key was accepted, but model {facts.model!r} is not available with it: {message}. Check the name "
            f"(jumpseat models {facts.adapter} lists the declared ones), and that the account may use the model."
        )
    if isinstance(error, UnwritableBodyError):
        return f"The request was not sent: {message}. A function or a value of the adapter put it there."
    if isinstance(error, ProviderRequestError) and error.status is None:
        return f"The request cannot be sent: {message}. Check the base URL and the headers."
    return f"{facts.address} was reached and rejected the request: {message}."


def _full_stop(message: str) -> str:
    return "" if message.endswith("?") else "."
