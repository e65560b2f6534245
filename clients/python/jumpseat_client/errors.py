"""The exceptions of the client, as one tree.

::

    JumpseatClientError
    ├── HandshakeError      the server could not be started or reached, or has another protocol version
    ├── ServerGoneError     the connection ended while a caller was waiting
    ├── RpcError            the server answered a request with an error
    └── SessionFailed       a prompt ended with ``session.error``
        └── SessionAborted  a prompt was aborted before it was answered
"""

from __future__ import annotations

from typing import Any


class JumpseatClientError(Exception):
    """Base class of all errors of this client."""


class HandshakeError(JumpseatClientError):
    """The server could not be started or reached, refused the token, or has another protocol version."""


class ServerGoneError(JumpseatClientError):
    """The connection ended. The message has the exit code and last stderr output of a server the client started."""


class RpcError(JumpseatClientError):
    """The server answered with an error.

    Handlers of the server's requests may raise it too, to respond with this error.

    Attributes:
        code: JSON-RPC error code, for example ``-32601`` for an unknown method.
        message: the server's message.
        data: the error's additional JSON data, or ``None``.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class SessionFailed(JumpseatClientError):  # noqa: N818 - with its subclass, a statement of what happened
    """A prompt ended with ``session.error``. The session itself remains usable.

    Attributes:
        error_type: ``query``, ``rate_limit``, ``authentication``, ``quota``, ``context_limit`` and others.
        status_code: HTTP status from the model provider, or ``None``.
    """

    def __init__(self, message: str, *, error_type: str, status_code: int | None = None) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.status_code = status_code


class SessionAborted(SessionFailed):
    """A prompt was aborted, by ``Session.abort`` or by another client."""

    def __init__(self) -> None:
        super().__init__("the prompt was aborted", error_type="aborted")
