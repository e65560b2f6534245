"""Everything the client raises on purpose, as one tree.

::

    JumpseatClientError
    ├── HandshakeError      the server could not be started or reached, or speaks another protocol
    ├── ServerGoneError     the connection ended while something still waited for it
    ├── RpcError            the server answered a request with an error
    └── SessionFailed       a prompt ended with ``session.error``
        └── SessionAborted  a prompt was aborted before it was answered
"""

from __future__ import annotations

from typing import Any


class JumpseatClientError(Exception):
    """Base of all errors of this client."""


class HandshakeError(JumpseatClientError):
    """The server could not be started or reached, refused the token, or speaks another protocol."""


class ServerGoneError(JumpseatClientError):
    """The connection ended. The text holds the exit code and the end of stderr of a server we started."""


class RpcError(JumpseatClientError):
    """The server answered with an error.

    Handlers of requests from the server may raise it too, to answer with exactly this error.

    Attributes:
        code: number as in JSON-RPC, ``-32601`` for an unknown method.
        message: the server's own words.
        data: whatever JSON came with it, or ``None``.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class SessionFailed(JumpseatClientError):  # noqa: N818 - with its subclass, a statement of what happened
    """A prompt ended with ``session.error``. The session itself lives on and takes the next prompt.

    Attributes:
        error_type: ``query``, ``rate_limit``, ``authentication``, ``quota``, ``context_limit`` and others.
        status_code: HTTP status of the model's provider, where there was one.
    """

    def __init__(self, message: str, *, error_type: str, status_code: int | None = None) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.status_code = status_code


class SessionAborted(SessionFailed):
    """A prompt was aborted, by ``Session.abort`` or by another client."""

    def __init__(self) -> None:
        super().__init__("the prompt was aborted", error_type="aborted")
