"""Conversion of providers' error responses to the error tree: status, code and message in every shape in use.

The shapes: OpenAI ``{error: {message, type, code}}``; Anthropic ``{type: "error", error: {type, message}}``,
also inside a stream; Gemini ``{error: {code, message, status, details}}``, alone or in a list; Ollama
``{error: "text"}``; OpenRouter ``{error: {code, message, metadata: {raw}}}``; vLLM ``{object: "error", message}``
and ``{detail}``; Tavily ``{detail: {error}}``; GitHub ``{message}``; Responses ``{response: {error}}`` and
``{response: {incomplete_details}}``; plain text. The :class:`Redactor` of the call removes secrets.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any, Final, cast

import orjson
from msgspec import Struct

from jumpseat.adapters.key_forms import forms_of, is_dummy, replace_parts
from jumpseat.adapters.wire import as_limit, as_list, as_object, one_line
from jumpseat.agent.secrets import MASK
from jumpseat.errors import (
    ProviderAuthError,
    ProviderContextError,
    ProviderError,
    ProviderFilterError,
    ProviderImagesError,
    ProviderLoadingError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderToolsError,
)

QUOTED_CHARS: Final = 200
"""The longest quotation of a body, in characters."""

_QUOTA_CODES: Final = frozenset(
    {
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "credit_balance_too_low",
        "credits_exhausted",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "insufficient_credits",
        "insufficient_funds",
        "insufficient_quota",
        "insufficient_user_quota",
        "payment_required",
        "quota_exceeded",
        "usage_limit_exceeded",
        "usage_limit_reached",
    }
)
_CONTEXT_CODES: Final = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "input_too_long",
        "max_tokens_exceeded",
        "model_context_window_exceeded",
        "model_max_prompt_tokens_exceeded",
        "prompt_too_long",
        "request_too_large",
    }
)
_AUTH_CODES: Final = frozenset(
    {
        "api_key_invalid",
        "authentication",
        "authentication_error",
        "invalid_api_key",
        "invalid_authentication_error",
        "permission_denied",
        "permission_error",
        "unauthenticated",
    }
)
_RATE_CODES: Final = frozenset(
    {
        "rate_limit_error",
        "rate_limit_exceeded",
        "rate_limit_reached_error",
        "resource_exhausted",
        "too_many_requests",
    }
)
_BUSY_CODES: Final = frozenset(
    {
        "api_error",
        "deadline_exceeded",
        "insufficient_system_resource",
        "internal",
        "internal_error",
        "internal_server_error",
        "overloaded_error",
        "server_error",
        "server_overloaded",
        "service_unavailable",
        "timeout",
        "timeout_error",
        "unavailable",
    }
)
_FILTER_CODES: Final = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "prohibited_content",
        "responsibleaipolicyviolation",
        "safety",
    }
)
_REFUSED_CODES: Final = frozenset(
    {
        "failed_precondition",
        "invalid_argument",
        "invalid_prompt",
        "invalid_request",
        "invalid_request_error",
        "not_found",
        "not_found_error",
        "unprocessable",
    }
)
JUDGED_CHARS: Final = 8192
"""The length of an error message that decides about its class, in characters."""

# Patterns for failures are compiled with the first one.
_CONTEXT_TEXT: Final = (
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|(?:input|prompt) tokens? (?:count )?.{0,40}exceed"
    r"|exceed.{0,40}(?:context|maximum number of (?:input )?tokens)"
    r"|reduce the length of the (?:messages|prompt|input)"
    r"|must have less than \d+ tokens|greater than max_seq_len"
)
# OpenAI, vLLM, llama.cpp and most others; Anthropic; TGI.
_LIMIT_TEXT: Final = (
    r"(?:maximum context|context (?:length|window|size|limit)|max_seq_len"
    r"|maximum number of (?:input )?tokens)[^\d>]{0,40}(\d[\d,]{2,9})"
    r"|> (\d[\d,]{2,9})|less than (\d[\d,]{2,9}) tokens"
)
_QUOTA_TEXT: Final = (
    r"quota.{0,80}exceeded|exceeded.{0,80}quota|credit balance is too low|insufficient (?:balance|credits|funds)"
)
# xAI, whose code names the argument.
_AUTH_TEXT: Final = r"(?:incorrect|invalid) api key"
# Tools in general, not one tool nor a part of its definition.
_TOOLS: Final = (
    r"(?<!hosted )(?:\btools?\b(?!\[|\.\w| ['\"`])|\btool[ _-](?:use|calls?|calling)\b"
    r"|\bfunction[ _-]?call(?:s|ing)?\b|\bfunctions\b(?!\[|\.\w))"
)
_NOT: Final = r"(?:not|n't|un)[ -]?(?:yet )?(?:be )?(?:support|enabled|available|allowed)"
# Anthropic, which has no code for it; Azure, where a gateway omits the code.
_FILTER_TEXT: Final = r"blocked by content filter|content management policy"
# Ollama, OpenRouter, OpenAI and its likes, Gemini and Mistral; then vLLM and llama.cpp, started without tools.
_NO_TOOLS_TEXT: Final = (
    rf"{_TOOLS}.{{0,60}}{_NOT}|{_NOT}.{{0,40}}{_TOOLS}|no endpoints found that support {_TOOLS}"
    r"|requires --enable-auto-tool-choice|tools? param(?:eter)? requires --jinja"
)
# Images in general, not the format or the size of one: llama.cpp, Ollama, OpenRouter, vLLM, DeepSeek, OpenAI.
_IMAGES: Final = (
    r"\b(?:image|picture|vision|multi-?modal)s?(?![ _-]?(?:type|format|size|media|dimension|mime|file))"
)
_NO_IMAGES_TEXT: Final = (
    rf"{_NOT}\w{{0,8}}\W.{{0,40}}{_IMAGES}"
    rf"|\b(?:image|vision|multi-?modal)[ _](?:input|url|content|support)s?\W.{{0,40}}{_NOT}|\bimages are {_NOT}"
    r"|no endpoints found that support image|at most 0 image|unknown variant .?image_url"
    r"|image_url.{0,40}only supported by|not a (?:vision|multi-?modal)|\bmmproj\b"
)
# Refusals that other servers give with 400: llama.cpp and Ollama give them with 500, LM Studio with 200.
_PERMANENT_TEXT: Final = (
    r"\bjinja\b|chat template|roles must alternate|system role|failed to parse input at"
    r"|requires more (?:system |video |gpu )?memory|unexpected endpoint"
)
# llama.cpp, TGI and Hugging Face, Ollama.
_LOADING_TEXT: Final = r"\bloading\b.{0,20}\bmodel|\bmodel\b.{0,80}\b(?:loading|warming up|starting)\b"
# Credentials with a recognizable form; providers echo keys, and not only the one that was sent.
_KNOWN_SHAPES: Final = (
    r"\b(?:sk|pk|rk|xai|gsk|nvapi|hf|tvly|jina)[-_][A-Za-z0-9_*.-]{7,}[A-Za-z0-9_*-]"
    r"|\b(?:gh[opusr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|AIza[A-Za-z0-9_-]{16,})"
    r"|(?<=bearer )[A-Za-z0-9._~+/=-]{7,}[A-Za-z0-9_~+/=-]"
)


class Redactor:
    """Removes the secrets of one call from texts that may reach a log or a user.

    Secret are ``secrets``, the values of ``headers``, in base64 too, and everything with the form of a well-known
    key; of credentials also every part of eight characters. What may be an ordinary word is not secret (see
    :func:`~jumpseat.adapters.key_forms.is_dummy`).
    """

    _CREDENTIALS: Final = re.compile(r"auth|key|token|secret|cookie|password|signature", re.IGNORECASE)

    def __init__(self, secrets: Iterable[str | None] = (), headers: Iterable[Mapping[str, str]] = ()) -> None:
        certain = {secret for secret in secrets if secret}
        found = set(certain)
        for layer in headers:
            for name, value in layer.items():
                # Servers echo "xyz" of "Bearer xyz" more often than the whole value.
                words = {word for word in (value, *value.split()) if word}
                found |= words
                if self._CREDENTIALS.search(name):
                    certain |= words
        # Longest first: otherwise a secret that starts with another one would stay half visible.
        self._secrets: tuple[str, ...] = tuple(sorted(found, key=len, reverse=True))
        self.certain = frozenset(certain)
        """The secrets given as credentials, not only as the value of a header."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets, the longest first, those that may be words included."""
        return self._secrets

    def __call__(self, text: str) -> str:
        masked = [secret for secret in self._secrets if not is_dummy(secret)]
        for form in sorted({form for secret in masked for form in forms_of(secret)}, key=len, reverse=True):
            text = text.replace(form, MASK)
        # Compiled here: it takes longer than the rest of this module, and few calls fail.
        text = re.sub(_KNOWN_SHAPES, MASK, text, flags=re.IGNORECASE)
        return replace_parts(self.certain.intersection(masked), text, MASK)

    def redact_error(self, error: ProviderError) -> ProviderError:
        """Return ``error`` with secrets removed from its text and code, and its text cut.

        Messages are cut nowhere else: half a key is a secret, too.
        """
        error.args = tuple(
            _cut(self(arg), error.longest_chars) if isinstance(arg, str) else arg for arg in error.args
        )
        if error.code is not None:
            error.code = self(error.code)
        return error


class ErrorDetails(Struct, frozen=True):
    """The message and the codes of an error body; ``codes`` has the most precise first."""

    message: str
    codes: tuple[str, ...] = ()
    status: int | None = None
    retry_after_s: float | None = None
    limit: int | None = None
    """The context window of the model in tokens, in the error of llama.cpp."""
    is_quoted: bool = False
    """Whether the message is the body itself, which has no known shape."""

    @property
    def code(self) -> str | None:
        return self.codes[0] if self.codes else None


def failure_of_response(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float | None = None
) -> ProviderError:
    """Return the error for a response whose status is not 2xx.

    ``headers`` must be case-insensitive, or have names in lower case; ``now`` is Unix time in seconds.
    """
    details = read_error_details(body)
    wait = _retry_after(headers, time.time() if now is None else now)
    return _failure(status, details, details.retry_after_s if wait is None else wait)


def failure_of_event(body: Any) -> ProviderError:
    """Return the error for an error object in a stream, or in a body with the status 200."""
    details = read_error_details(body)
    return _failure(details.status, details, details.retry_after_s)


def provider_error(
    message: str,
    *,
    status: int | None = None,
    code: str | None = None,
    retry_after_s: float | None = None,
) -> ProviderError:
    """Return the error for a failure whose parts are known."""
    return _failure(status, ErrorDetails(message, (code,) if code else ()), retry_after_s)


def read_error_details(body: Any) -> ErrorDetails:
    """Find the message and the codes in ``body``: raw bytes, text, or parsed JSON."""
    if isinstance(body, (bytes, str)):
        try:
            body = orjson.loads(body)
        except orjson.JSONDecodeError:
            text = body if isinstance(body, str) else body.decode("utf-8", "replace")
            return ErrorDetails(_readable(text))
    if isinstance(body, list):
        items = cast("list[Any]", body)
        return read_error_details(items[0]) if items else ErrorDetails("")
    if not isinstance(body, dict):
        return ErrorDetails("" if body is None else str(body))
    root = cast("dict[str, Any]", body)
    response = as_object(root.get("response"))
    inner = root.get("error") or response.get("error") or as_object(response.get("incomplete_details"))
    if isinstance(inner, str):
        # {"error": "text"}, sometimes beside a code or a longer message.
        return _error_details(root, inner)
    if isinstance(inner, dict) and inner:
        return _error_details(cast("dict[str, Any]", inner), "")
    detail = as_object(root.get("detail"))
    if isinstance(detail.get("error"), str):
        return _error_details(detail, detail["error"])
    errors = as_list(root.get("errors"))
    if errors and isinstance(errors[0], dict):
        return _error_details(cast("dict[str, Any]", errors[0]), "")
    found = _error_details(root, "")
    return found if found.message or not root else ErrorDetails(orjson.dumps(root).decode(), is_quoted=True)


def _error_details(node: dict[str, Any], text: str) -> ErrorDetails:
    message = text
    for key in ("message", "detail", "error_description", "error_message", "Message", "msg", "reason", "title"):
        value = node.get(key)
        if value and not isinstance(value, bool):
            found = value if isinstance(value, str) else orjson.dumps(value).decode()
            message = found if not text or text in found else f"{text}: {found}"
            break
    metadata = as_object(node.get("metadata"))
    raw = metadata.get("raw")
    if raw and str(raw) not in message:
        # OpenRouter: the message of the provider behind it, which is the useful part.
        message = f"{message}: {raw}"
    status: int | None = None
    codes: list[str] = []
    # OpenRouter's own name for the failure is more precise than the status that it puts into ``code``.
    for value in (metadata.get("error_type"), *map(node.get, ("code", "status", "type", "reason"))):
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            status = status or value
        elif isinstance(value, str) and value and value != "error" and value not in codes:
            if value.isdecimal() and 400 <= int(value) <= 599:
                status = status or int(value)
            codes.append(value)
    for detail in as_list(node.get("details")):
        # Gemini's ErrorInfo, more precise than its status: {"reason": "API_KEY_INVALID"}.
        reason = as_object(detail).get("reason")
        if isinstance(reason, str) and reason and reason not in codes:
            codes.append(reason)
    return ErrorDetails(
        message or ", ".join(codes), tuple(codes), status, _retry_delay(node), as_limit(node.get("n_ctx"))
    )


def _failure(status: int | None, details: ErrorDetails, retry_after_s: float | None) -> ProviderError:
    message = one_line(details.message)
    if status is not None:
        head = f"HTTP {status} {_phrase(status)}".rstrip()
        message = f"{head}: {message}" if message else head
    kind, retryable = _kind(status, details, retry_after_s)
    error = kind(
        message or "the provider reported an error without a message",
        status=status,
        code=details.code,
        retry_after_s=retry_after_s,
    )
    if retryable is not None:
        error.retryable = retryable
    if details.is_quoted:
        error.longest_chars = QUOTED_CHARS
    if isinstance(error, ProviderContextError):
        error.limit = details.limit or _limit_in(details.message)
    return error


def _limit_in(message: str) -> int | None:
    """Return the limit in tokens that a refusal names."""
    found = re.search(_LIMIT_TEXT, message[:JUDGED_CHARS], re.IGNORECASE)
    return as_limit(int(next(filter(None, found.groups())).replace(",", ""))) if found is not None else None


def _kind(
    status: int | None, details: ErrorDetails, retry_after_s: float | None
) -> tuple[type[ProviderError], bool | None]:
    """Return the class for a failure, and whether to retry if that differs from the default of the class."""
    codes = {code.lower() for code in details.codes}
    text = details.message[:JUDGED_CHARS]
    server_side = status is not None and status >= 500
    if not server_side and (codes & _FILTER_CODES or re.search(_FILTER_TEXT, text, re.IGNORECASE)):
        return ProviderFilterError, None
    if codes & _QUOTA_CODES or status == 402:
        return ProviderQuotaError, None
    if not server_side and codes & _CONTEXT_CODES:
        return ProviderContextError, None
    if status == 413 or (status in (None, 400, 422, 500) and re.search(_CONTEXT_TEXT, text, re.IGNORECASE)):
        return ProviderContextError, None
    if status in (None, 400, 404, 422, 500, 501) and re.search(_NO_TOOLS_TEXT, text, re.IGNORECASE):
        return ProviderToolsError, None
    if status in (None, 400, 404, 415, 422, 500, 501) and re.search(_NO_IMAGES_TEXT, text, re.IGNORECASE):
        return ProviderImagesError, None
    if status in (401, 403) or (
        status == 400 and ("api_key_invalid" in codes or re.search(_AUTH_TEXT, text, re.IGNORECASE))
    ):
        return ProviderAuthError, None
    if status == 429 or (status is None and codes & _RATE_CODES):
        # Gemini calls every rate limit a quota, but with a time to wait; an exhausted quota has none.
        used_up = (
            not details.codes and retry_after_s is None and re.search(_QUOTA_TEXT, text, re.IGNORECASE | re.DOTALL)
        )
        return (ProviderQuotaError if used_up else ProviderRateLimitError), None
    if status in (None, 500, 501) and re.search(_PERMANENT_TEXT, text, re.IGNORECASE):
        return ProviderRequestError, None
    if status == 503 and re.search(_LOADING_TEXT, text, re.IGNORECASE):
        return ProviderLoadingError, None
    if server_side:
        return ProviderOverloadedError, None
    if status in (408, 409, 425):
        return ProviderOverloadedError, True
    if status is not None:
        return (
            ProviderQuotaError if re.search(_QUOTA_TEXT, text, re.IGNORECASE | re.DOTALL) else ProviderRequestError
        ), None
    if codes & _AUTH_CODES:
        return ProviderAuthError, None
    if codes & _REFUSED_CODES and not codes & _BUSY_CODES:
        return ProviderRequestError, None
    if not codes and re.search(_QUOTA_TEXT, text, re.IGNORECASE | re.DOTALL):
        return ProviderQuotaError, None
    # The request was accepted and the answer begun: a later failure is the provider's, and is temporary.
    return ProviderOverloadedError, None


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _phrase(status: int) -> str:
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else ""


def _readable(text: str) -> str:
    """Return a body that is not JSON as text; of an HTML page, the title."""
    if re.match(r"\s*<(?:!doctype|html)", text, re.IGNORECASE):
        title = re.search(r"<title[^<>]*>([^<]*)</title>", text, re.IGNORECASE | re.DOTALL)
        return title.group(1) if title else "an HTML page"
    return text


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _number(headers.get(name))
        if milliseconds is not None:
            return milliseconds / 1000
    value = headers.get("retry-after")
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    # Its import takes as long as a turn.
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(value)
        # HTTP dates are in UTC, even without a zone.
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        return max(0.0, when.timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _retry_delay(node: dict[str, Any]) -> float | None:
    """Read Gemini's ``RetryInfo``, in seconds: ``{"retryDelay": "34.07s"}``."""
    for detail in as_list(node.get("details")):
        delay = as_object(detail).get("retryDelay")
        if isinstance(delay, str):
            return _number(delay.removesuffix("s"))
    return None


def _number(value: str | None) -> float | None:
    """Parse a wait in seconds or milliseconds: finite and not negative."""
    try:
        number = float(value) if value else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
