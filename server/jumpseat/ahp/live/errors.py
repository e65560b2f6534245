"""The errors of the protocol, with their codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jumpseat import errors
from jumpseat.rpc import wire_errors
from jumpseat_protocol.envelope import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, ErrorObject

SESSION_NOT_FOUND: Final = -32001
PROVIDER_NOT_FOUND: Final = -32002
SESSION_EXISTS: Final = -32003
TURN_IN_PROGRESS: Final = -32004
UNSUPPORTED_VERSION: Final = -32005
NOT_FOUND: Final = -32008
PERMISSION_DENIED: Final = -32009
CONFLICT: Final = -32011


class AhpError(errors.InvalidRequestError):
    """An error of this protocol, with its code and its data."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    @classmethod
    def invalid(cls, problem: str) -> AhpError:
        """Return the error for params of the wrong form."""
        return cls(INVALID_PARAMS, problem)

    @classmethod
    def session_exists(cls, uri: str) -> AhpError:
        """Return the error for a URI that another session has, or has had."""
        return cls(SESSION_EXISTS, f"session {uri[:200]!r} already exists")


CODES: Final[Mapping[type[errors.JumpseatError], int]] = {
    errors.SessionNotFoundError: SESSION_NOT_FOUND,
    errors.UnknownItemError: SESSION_NOT_FOUND,
    errors.InvalidRequestError: INVALID_PARAMS,
    errors.UnsupportedError: METHOD_NOT_FOUND,
}


def error_of(exc: Exception) -> ErrorObject:
    """Return the error of the response for ``exc``."""
    if isinstance(exc, AhpError):
        return ErrorObject(code=exc.code, message=str(exc), data=exc.data)
    if isinstance(exc, errors.JumpseatError):
        code = next((CODES[cls] for cls in type(exc).__mro__ if cls in CODES), INTERNAL_ERROR)
        return ErrorObject(code=code, message=str(exc))
    return wire_errors.error_of(exc)
