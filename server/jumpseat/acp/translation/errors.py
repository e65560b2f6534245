"""Convert exceptions into errors with ACP's codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat import errors
from jumpseat.rpc import wire_errors
from jumpseat_protocol.envelope import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, ErrorObject

AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002

CODES: Final[Mapping[type[errors.JumpseatError], int]] = {
    errors.SessionNotFoundError: RESOURCE_NOT_FOUND,
    errors.InvalidRequestError: INVALID_PARAMS,
    errors.UnsupportedError: METHOD_NOT_FOUND,
    errors.AuthenticationRequiredError: AUTH_REQUIRED,
    errors.ProviderAuthError: AUTH_REQUIRED,
}


def error_of(exc: Exception) -> ErrorObject:
    """Return the error of the response for ``exc``, without ``data``: some editors expect a string there."""
    if isinstance(exc, errors.JumpseatError):
        code = next((CODES[cls] for cls in type(exc).__mro__ if cls in CODES), INTERNAL_ERROR)
        return ErrorObject(code=code, message=str(exc))
    return wire_errors.error_of(exc)
