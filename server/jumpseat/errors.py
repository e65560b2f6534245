"""Everything that can go wrong, as one tree.

::

    JumpseatError
    ├── ConfigError                  a configuration file or a setting is wrong
    ├── SessionNotFoundError         no such session, live or on disk
    ├── InvalidRequestError          the request is well formed but cannot be carried out as asked
    ├── UnsupportedError             a method of the protocol that this server does not implement
    ├── AuthenticationRequiredError  wrong or missing connection token
    ├── StoreError                   the session store cannot read or write
    ├── ClientCallError              a request to the client failed or the client is gone
    ├── ResponseFormatError          the model's answer does not have the form that was asked for
    ├── TurnFailedError              the prompt that was waited for ended in a session.error
    └── ProviderError                a model call failed
        ├── ProviderAuthError        401, 403: the key is wrong or missing
        ├── ProviderRateLimitError   429
        ├── ProviderQuotaError       402, or a 429 that says the quota is used up
        ├── ProviderContextError     the conversation is too long for the model
        ├── ProviderRequestError     another 4xx: the provider refuses the request
        │   ├── ProviderFilterError  a filter of the provider let nothing pass
        │   └── ProviderToolsError   it refuses it because its model cannot call tools
        ├── ProviderOverloadedError  5xx
        ├── ProviderTransportError   no connection, a time-out, a connection that broke
        ├── ProviderProtocolError    an answer that is not what the provider's wire promises
        └── ReplayError              offline, and no recording answers the request

Messages name the thing with ``!r``, say what was expected and do not end with a period.
They never hold a secret: adapters redact before they raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class JumpseatError(Exception):
    """Base of all errors that this server raises on purpose.

    ``error_type`` is that of the ``session.error`` where one ends a run.
    """

    error_type = "query"


class ConfigError(JumpseatError):
    """A configuration file or a setting is wrong."""


class SessionNotFoundError(JumpseatError):
    """No such session, live or on disk."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session not found: {session_id}")
        self.session_id = session_id


class InvalidRequestError(JumpseatError):
    """The request is well formed but cannot be carried out as asked."""


class UnsupportedError(JumpseatError):
    """A method of the protocol that this server does not implement."""

    def __init__(self, method: str) -> None:
        super().__init__(f"{method} is not supported by this server")
        self.method = method


class AuthenticationRequiredError(JumpseatError):
    """Wrong or missing connection token."""


class StoreError(JumpseatError):
    """The session store cannot read or write."""


class ClientCallError(JumpseatError):
    """A request to the client failed, or the client is gone."""


class ResponseFormatError(JumpseatError):
    """The model's answer does not have the form that was asked for, not even after it was told so."""

    error_type = "response_format"


class TurnFailedError(JumpseatError):
    """The prompt that was waited for ended in a ``session.error``, whose event id is ``completion_event_id``."""

    def __init__(self, message: str, completion_event_id: str | None = None) -> None:
        super().__init__(message)
        self.completion_event_id = completion_event_id


class ProviderError(JumpseatError):
    """A model call failed.

    Attributes:
        status: HTTP status, or ``None`` where there was no answer.
        code: the provider's own error code, if it gave one.
        retry_after_s: seconds the provider asks to wait.
        retryable: whether the same request may succeed later.
        attempts: how often the loop had tried when it gave up.
    """

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s
        self.attempts = 1


class ProviderAuthError(ProviderError):
    """401, 403: the key is wrong or missing."""

    error_type = "authentication"


class ProviderRateLimitError(ProviderError):
    """429."""

    error_type = "rate_limit"
    retryable = True


class ProviderQuotaError(ProviderError):
    """402, or a 429 that says the quota is used up."""

    error_type = "quota"


class ProviderContextError(ProviderError):
    """The conversation is too long for the model."""

    error_type = "context_limit"


class ProviderRequestError(ProviderError):
    """Another 4xx: the provider refuses the request."""


class ProviderFilterError(ProviderRequestError):
    """A filter of the provider let the prompt or all of the answer not pass."""

    error_type = "content_filter"


class ProviderToolsError(ProviderRequestError):
    """The provider refuses the request because its model cannot call tools."""


class ProviderOverloadedError(ProviderError):
    """5xx."""

    retryable = True


class ProviderTransportError(ProviderError):
    """No connection, a time-out, a connection that broke.

    ``refused`` tells that nothing listens at the address: on loopback that is soon final.
    """

    retryable = True

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class ProviderProtocolError(ProviderError):
    """An answer that is not what the provider's wire promises."""

    retryable = True


class ReplayError(ProviderError):
    """Offline, and no recording answers the request; the text shows how the nearest one differs."""

    error_type = "replay"


def validation_problems(error: ValidationError, whole: str = "") -> list[str]:
    """What does not fit a model, as ``where: what`` each; never the value, which may be a secret.

    ``whole`` stands for the place where it is the value as such.
    """
    return [
        f"{'.'.join(str(part) for part in item['loc']) or whole}: {item['msg']}"
        for item in error.errors(include_input=False, include_url=False, include_context=False)
    ]
