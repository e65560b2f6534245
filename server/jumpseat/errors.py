"""The exceptions of the server, as one tree.

::

    JumpseatError
    ├── ConfigError                  a configuration file or a setting is wrong
    │   └── UnknownToolError         it names a tool that does not exist
    ├── SessionNotFoundError         no such session, live or on disk
    ├── SessionInUseError            another process has the session open
    ├── InvalidRequestError          the request is well formed but cannot be carried out as asked
    ├── UnknownItemError             the request names something that does not exist in the session
    ├── UnsupportedError             a method of the protocol that this server does not implement
    ├── AuthenticationRequiredError  wrong or missing connection token
    ├── StoreError                   the session store cannot read or write
    │   ├── StoreUnavailableError    the store of the cluster cannot be reached at the moment
    │   ├── OutcomeUnknownError      the replica that ran the request is gone, or cannot store
    │   └── ReplicaIncompatibleError  a replica of another version runs the session
    ├── SessionElsewhereError        the session needs the files of another host
    ├── ClientCallError              a request to the client failed or the client has disconnected
    │   └── ClientRefusedError       the client answered with an error
    ├── ResponseFormatError          the model's answer does not match the requested schema
    ├── TurnFailedError              the awaited prompt ended with a session.error
    ├── BudgetError                  a budget is used up, or cannot be kept
    ├── HookStopError                a hook ended the run
    │   └── PromptBlockedError       a hook blocked the prompt
    └── ProviderError                a model call failed
        ├── ProviderAuthError        401, 403: the key is wrong or missing
        ├── ProviderRateLimitError   429
        ├── ProviderQuotaError       402, or a 429 because the quota is exhausted
        ├── ProviderContextError     the conversation is too long for the model
        ├── ProviderRequestError     another 4xx: the provider rejects the request
        │   ├── ProviderFilterError  a content filter of the provider blocked the prompt or the answer
        │   ├── UnwritableBodyError  the body has a value that JSON cannot represent
        │   ├── ProviderToolsError   the provider rejects the request because the model cannot call tools
        │   └── ProviderImagesError  the provider rejects the request because the model cannot see images
        ├── ProviderOverloadedError  5xx
        │   └── ProviderLoadingError  the server is loading the model
        ├── ProviderTransportError   no connection, a time-out, a broken connection
        ├── ProviderProtocolError    the response violates the provider's wire format
        ├── AdapterError             a function of a declared adapter failed
        └── ReplayError              offline, and no recording matches the request

Messages name the offending thing with ``!r``, say what was expected and do not end with a period.
They never contain secrets: adapters redact them before they raise.
"""

from __future__ import annotations

from jumpseat_protocol.version import __version__


class JumpseatError(Exception):
    """Base of all errors that this server raises on purpose.

    ``error_type`` is the type of the ``session.error`` event if the error ends a run.
    """

    error_type = "query"


class ConfigError(JumpseatError):
    """A configuration file or a setting is wrong."""


class UnknownToolError(ConfigError):
    """An argument of the command line or a setting names a tool that does not exist."""


class SessionNotFoundError(JumpseatError):
    """No such session, live or on disk."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session not found: {session_id}")
        self.session_id = session_id


class SessionInUseError(JumpseatError):
    """Another process has the session open. ``pid`` is its id, if known; ``advice`` says what the client can do."""

    def __init__(self, session_id: str, pid: int | None, advice: str = "close it there first") -> None:
        owner = "another process" if pid is None else f"process {pid}"
        super().__init__(f"session {session_id!r} is in use by {owner}: {advice}")
        self.session_id = session_id
        self.pid = pid


class InvalidRequestError(JumpseatError):
    """The request is well formed but cannot be carried out as asked."""


class UnknownItemError(JumpseatError):
    """The request names a ``kind`` of thing, such as a queue item, that the session does not have."""

    def __init__(self, kind: str, item_id: str) -> None:
        super().__init__(f"unknown {kind} id {item_id!r}")


class UnsupportedError(JumpseatError):
    """A method of the protocol, or a part of one, that this server does not implement, and why."""

    def __init__(self, method: str, because: str = "") -> None:
        super().__init__(f"{method} is not supported by this server{because and ': '}{because}")
        self.method = method


class AuthenticationRequiredError(JumpseatError):
    """Wrong or missing connection token."""


class StoreError(JumpseatError):
    """The session store cannot read or write."""


class StoreUnavailableError(StoreError):
    """The store of the cluster cannot be reached at the moment. The request was not carried out."""

    def __init__(self) -> None:
        super().__init__("the session store cannot be reached at the moment: try again later")


class OutcomeUnknownError(StoreError):
    """The replica that ran the request is gone, or cannot store. The request may have been carried out."""

    def __init__(self, method: str) -> None:
        super().__init__(
            f"{method} may have been carried out or not: the replica that ran the session is gone, or cannot store"
        )


class ReplicaIncompatibleError(StoreError):
    """The session is one of a ``replica`` of another build, which requests cannot be relayed to.

    ``version`` is that of the build; ``theirs`` and ``ours`` are the versions of the relay protocol that either
    speaks.
    """

    def __init__(self, replica: str, version: str, theirs: str, ours: str) -> None:
        super().__init__(
            f"requests cannot be relayed to replica {replica} of jumpseat {version} with relay protocol {theirs}, "
            f"because this one of jumpseat {__version__} speaks {ours}: try again when that replica has ended"
        )
        self.replica = replica
        self.version = version


class SessionElsewhereError(JumpseatError):
    """The session has a local working folder, on a ``host`` without a living replica."""

    def __init__(self, session_id: str, host: str) -> None:
        super().__init__(
            f"session {session_id!r} works in a folder of host {host!r}, where no replica runs: start one there, "
            "or declare the folder in store.shared if all hosts have it"
        )
        self.session_id = session_id
        self.host = host


class ClientCallError(JumpseatError):
    """A request to the client failed, or the client has disconnected."""


class ClientRefusedError(ClientCallError):
    """The client answered a request with an error, so it has not done what was asked."""


class ResponseFormatError(JumpseatError):
    """The model's answer does not match the requested schema, even after a retry with the problems."""

    error_type = "response_format"


class TurnFailedError(JumpseatError):
    """The awaited prompt ended with a ``session.error``, whose event id is ``completion_event_id``."""

    def __init__(self, message: str, completion_event_id: str | None = None) -> None:
        super().__init__(message)
        self.completion_event_id = completion_event_id


class BudgetError(JumpseatError):
    """A budget is used up, or one in dollars cannot be kept, because the price of the model is unknown."""

    error_type = "budget"


class HookStopError(JumpseatError):
    """A hook ended the run, for a ``reason`` that is meant for the user."""

    error_type = "hook"
    fact = "a hook ended the run"

    def __init__(self, reason: str | None) -> None:
        super().__init__(f"{self.fact}: {reason or 'it gave no reason'}")


class PromptBlockedError(HookStopError):
    """A hook blocked the prompt, which the model does not get."""

    fact = "a hook blocked the prompt"


class ProviderError(JumpseatError):
    """A model call failed.

    Attributes:
        status: HTTP status, or ``None`` if there was no response.
        code: the provider's own error code, if any.
        retry_after_s: seconds that the provider asks to wait.
        retryable: whether the same request may succeed later.
        attempts: number of attempts before the loop gave up.
        explanation: the failure in a paragraph for the user, with what to check; ``None`` if nothing is known.
        longest_chars: the length to which the message is cut once secrets have been masked.
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
        self.explanation: str | None = None
        self.longest_chars = 1000


class ProviderAuthError(ProviderError):
    """401, 403: the key is wrong or missing."""

    error_type = "authentication"


class ProviderRateLimitError(ProviderError):
    """429."""

    error_type = "rate_limit"
    retryable = True


class ProviderQuotaError(ProviderError):
    """402, or a 429 because the quota is exhausted."""

    error_type = "quota"


class ProviderContextError(ProviderError):
    """The conversation is too long for the model. ``limit`` is its limit in tokens, where the provider names it."""

    error_type = "context_limit"
    limit: int | None = None


class ProviderRequestError(ProviderError):
    """Another 4xx: the provider rejects the request."""


class UnwritableBodyError(ProviderRequestError):
    """The body of a request has a value that JSON cannot represent. Nothing was sent."""


class ProviderFilterError(ProviderRequestError):
    """A content filter of the provider blocked the prompt or all of the answer."""

    error_type = "content_filter"


class ProviderToolsError(ProviderRequestError):
    """The provider rejects the request because the model cannot call tools."""


class ProviderImagesError(ProviderRequestError):
    """The provider rejects the request because the model cannot see images."""


class ProviderOverloadedError(ProviderError):
    """5xx."""

    retryable = True


class ProviderLoadingError(ProviderOverloadedError):
    """503 while the server is loading the model, which may take minutes."""


class ProviderTransportError(ProviderError):
    """No connection, a time-out, or a broken connection.

    ``refused`` means that nothing listens at the address; on loopback, few retries are worthwhile then.
    """

    retryable = True

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class ProviderProtocolError(ProviderError):
    """The response violates the provider's wire format."""

    retryable = True


class AdapterError(ProviderError):
    """A function of a declared adapter failed, took too long, or returned a result of the wrong form.

    ``function`` names it, ``source`` is its place in the code (``work.py:12``), and ``detail`` the message of its
    exception, which may quote a secret.
    """

    error_type = "adapter"

    def __init__(self, message: str, function: str = "", source: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.function = function
        self.source = source
        self.detail = detail


class ReplayError(ProviderError):
    """Offline, and no recording matches the request; the text shows how the closest one differs."""

    error_type = "replay"
