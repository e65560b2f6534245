"""What went wrong with a model call, in a paragraph for the person who has to mend it. Pure functions.

The text never holds a key: it is made of what errors say, which are masked, and of names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jumpseat.errors import (
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
)

WORKS: Final = 0
NOT_CONFIGURED: Final = 3
KEY: Final = 4
NOT_REACHED: Final = 5
REFUSED: Final = 6
QUOTA: Final = 7
PROVIDER_TROUBLE: Final = 8
"""Exit codes of ``jumpseat check``; 2 is for wrong arguments."""

_MODEL: Final = re.compile(r"\bmodels?\b|model_not_found", re.IGNORECASE)
_NOT_THE_MODEL: Final = re.compile(
    r"model_not_found|(?:unknown|invalid|no such|unsupported) model|not a valid model"
    r"|\bmodel\b.{0,80}(?:not found|not exist|unknown|not available|no access|not have access|decommissioned)",
    re.IGNORECASE | re.DOTALL,
)
_NO_NAME: Final = re.compile(
    r"name or service not known|nodename nor servname|no address associated|name resolution|getaddrinfo",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a call.

    ``key_env`` is the variable the key would come from, ``has_key`` whether one was sent. ``odd_key`` tells that
    the key holds quotes or spaces; ``proxy_envs`` are the variables that name proxies.
    """

    adapter: str
    model: str
    address: str
    key_env: str | None = None
    has_key: bool = False
    odd_key: bool = False
    proxy_envs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    exit_code: int
    text: str


def diagnose(error: JumpseatError, facts: Facts) -> Diagnosis:
    """What ``error`` means for the person who has configured the adapter, and what to try."""
    said = str(error)
    match error:
        case ConfigError():
            return Diagnosis(NOT_CONFIGURED, f"The configuration is not complete: {said}.")
        case ReplayError():
            return Diagnosis(NOT_CONFIGURED, f"JUMPSEAT_REPLAY is set, so nothing was sent: {said}.")
        case ProviderAuthError():
            return Diagnosis(KEY, f"{facts.address} was reached and refused the key: {said}. {_key(facts)}")
        case ProviderQuotaError():
            return Diagnosis(
                QUOTA,
                f"The key is good, but its account has nothing left to use: {said}. "
                "Look at the plan, the credit and the spending limit on the provider's site.",
            )
        case ProviderRateLimitError():
            wait = f" It asks to wait {error.retry_after_s:g} seconds." if error.retry_after_s else ""
            return Diagnosis(
                QUOTA, f"The key is good, but the provider takes no more requests for now: {said}.{wait}"
            )
        case ProviderTransportError():
            return Diagnosis(NOT_REACHED, _transport(said, error, facts))
        case ProviderOverloadedError():
            return Diagnosis(
                PROVIDER_TROUBLE,
                f"{facts.address} was reached, and the provider itself has trouble: {said}. Try again later; if "
                "it stays, a gateway on the way may have nothing behind it.",
            )
        case ProviderProtocolError():
            return Diagnosis(
                PROVIDER_TROUBLE,
                f"{facts.address} answers, but not as adapter {facts.adapter!r} expects it: {said}. The base URL "
                "may be that of a web page or of another API, or the adapter's type the wrong one for it.",
            )
        case ProviderContextError():
            return Diagnosis(REFUSED, f"Even a short request is too long for model {facts.model!r}: {said}.")
        case ProviderError():
            return Diagnosis(_refusal_code(error), _refusal(said, error, facts))
        case _:
            return Diagnosis(NOT_CONFIGURED, f"This cannot be called as it is set up: {said}.")


def _key(facts: Facts) -> str:
    name = facts.key_env or "the key of this adapter"
    if not facts.has_key:
        return f"No key was sent: set {name}." if facts.key_env else "No key was sent: name one with api_key_env."
    if facts.odd_key:
        return f"{name} holds quotes or spaces, which do not belong to a key."
    return f"Check that {name} holds a key of this very provider that is whole, not revoked and may use the model."


def _transport(said: str, error: ProviderTransportError, facts: Facts) -> str:
    if "certificate" in said:
        return (
            f"{facts.address} was reached, but shows a certificate that is not trusted here: {said}. Where a "
            "company's proxy opens the traffic, let NODE_EXTRA_CA_CERTS (or SSL_CERT_FILE) name its certificate."
        )
    if "proxy" in said:
        names = ", ".join(facts.proxy_envs) or "the system's settings"
        if "to the proxy" in said:
            return f"The proxy that {names} names was not reached: {said}. Check its address, and that it runs."
        return f"The proxy that {names} names does not let the request through: {said}. Check it, or use NO_PROXY."
    if error.refused:
        return (
            f"Nothing listens at that address: {said}. Is the server running, and the port of the base URL right?"
        )
    through = (
        f" Requests go through the proxy that {', '.join(facts.proxy_envs)} names." if facts.proxy_envs else ""
    )
    if _NO_NAME.search(said):
        return f"The host of the base URL is not known: {said}. Check its spelling, and the network.{through}"
    return f"The provider was not reached, or broke off: {said}. Check the base URL and the network.{through}"


def _refusal_code(error: ProviderError) -> int:
    return NOT_REACHED if error.status is not None and _is_address(error) else REFUSED


def _is_address(error: ProviderError) -> bool:
    """Whether a refusal means that this is not the address of the API."""
    status = error.status or 0
    return 300 <= status < 400 or status == 405 or (status == 404 and not _MODEL.search(f"{error} {error.code}"))


def _refusal(said: str, error: ProviderError, facts: Facts) -> str:
    if error.status is not None and _is_address(error):
        return (
            f"Something answers at {facts.address}, but the API is not there: {said}. Check the path of the base "
            "URL; many end in /v1."
        )
    if error.status == 404 or _NOT_THE_MODEL.search(f"{said} {error.code}"):
        return (
            f"The key was taken, but the provider does not serve model {facts.model!r} to it: {said}. Check the "
            f"name (jumpseat models {facts.adapter} shows what is declared), and whether the account may use it."
        )
    if isinstance(error, ProviderRequestError) and error.status is None:
        return f"The request cannot be sent: {said}. Check the base URL and the headers."
    return f"{facts.address} was reached and refused the request: {said}."
