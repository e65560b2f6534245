"""Convert exceptions into JSON-RPC errors.

The errors of :mod:`jumpseat.errors` keep their messages. Any other exception is logged with its traceback and
reported as "Internal error", because its details may contain paths, prompts or keys.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from jumpseat import errors
from jumpseat.parsing.message_size import MOST_ENTRIES, MOST_LONG_ENTRIES, excess_of
from jumpseat.parsing.validation import validation_problems
from jumpseat_protocol import envelope
from jumpseat_protocol.envelope import ErrorObject
from jumpseat_protocol.version import __version__

log = logging.getLogger(__name__)

CODES: Final[Mapping[type[errors.JumpseatError], int]] = {
    errors.ConfigError: envelope.INVALID_OPERATION,
    errors.SessionNotFoundError: envelope.INTERNAL_ERROR,
    errors.SessionInUseError: envelope.SESSION_IN_USE,
    errors.InvalidRequestError: envelope.INVALID_OPERATION,
    errors.UnknownItemError: envelope.INVALID_PARAMS,
    errors.UnsupportedError: envelope.UNSUPPORTED,
    errors.AuthenticationRequiredError: envelope.AUTHENTICATION_FAILED,
    errors.StoreError: envelope.INTERNAL_ERROR,
    errors.SessionElsewhereError: envelope.SESSION_IN_USE,
    errors.ClientCallError: envelope.INTERNAL_ERROR,
    errors.ClientRefusedError: envelope.INTERNAL_ERROR,
    errors.ResponseFormatError: envelope.PROVIDER_FAILED,
    errors.BudgetError: envelope.INVALID_OPERATION,
    errors.TurnFailedError: envelope.PROVIDER_FAILED,
    errors.HookStopError: envelope.INVALID_OPERATION,
    errors.ProviderError: envelope.PROVIDER_FAILED,
}


SHOWN_PROBLEMS: Final = 5
LONG: Final = frozenset(
    {
        "jumpseat.complete",
        "jumpseat.portability",
        "session.tools.handlePendingToolCall",
        "sessions.bulkDelete",
        "sessions.checkInUse",
        "sessions.pruneOld",
    }
)
"""The methods whose params may have long arrays: conversations, results of tools, all sessions."""


class InvalidParamsError(Exception):
    """The params of ``method`` are not valid. The message names fields and expectations, never values."""

    def __init__(self, method: str, problems: Sequence[str]) -> None:
        super().__init__(f"Invalid params for {method}: {'; '.join(problems[:SHOWN_PROBLEMS])}")


def invalid_params(method: str, error: ValidationError, model: type[BaseModel]) -> InvalidParamsError:
    """Return the error for params that ``model`` rejects."""
    return InvalidParamsError(method, validation_problems(error, model, "params"))


def check_size(method: str, params: Any) -> None:
    """Check the number of values in the params of a request.

    Raises:
        InvalidParamsError: there are too many.
    """
    most = MOST_LONG_ENTRIES if method in LONG else MOST_ENTRIES
    if (excess := excess_of(_without_script(params), most)) is not None:
        raise InvalidParamsError(method, [f"params: {excess}"])


def _without_script(params: Any) -> Any:
    """Leave out the answers of the scripted model, which a tester writes: its deltas cost little each."""
    match params:
        case {"provider": {"script": _} as provider}:
            return {**params, "provider": {**provider, "script": None}}
        case _:
            return params


def error_of(exc: Exception) -> ErrorObject:
    """Return the error of the response for ``exc``."""
    if isinstance(exc, InvalidParamsError):
        return ErrorObject(code=envelope.INVALID_PARAMS, message=str(exc))
    for cls in type(exc).__mro__:
        if cls in CODES:
            explanation = exc.explanation if isinstance(exc, errors.ProviderError) else None
            return ErrorObject(code=CODES[cls], message=explanation or str(exc), data=_data(exc))
    log.error("internal error", exc_info=exc)
    return ErrorObject(code=envelope.INTERNAL_ERROR, message="Internal error")


def _data(exc: Exception) -> Any:
    if isinstance(exc, errors.TurnFailedError) and exc.completion_event_id is not None:
        # The SDKs wait for this event before they raise.
        return {"completionEventId": exc.completion_event_id}
    if isinstance(exc, errors.SessionInUseError):
        return {"sessionId": exc.session_id, "pid": exc.pid}
    if isinstance(exc, errors.SessionElsewhereError):
        return {"code": "session_elsewhere", "sessionId": exc.session_id, "host": exc.host}
    if isinstance(exc, errors.StoreUnavailableError):
        return {"code": "store_unavailable", "retryable": True}
    if isinstance(exc, errors.ReplicaIncompatibleError):
        return {
            "code": "replica_incompatible",
            "retryable": True,
            "replica": exc.replica,
            "version": exc.version,
            "ownVersion": __version__,
        }
    if isinstance(exc, errors.OutcomeUnknownError):
        return {"code": "outcome_unknown", "retryable": False}
    if isinstance(exc, errors.BudgetError):
        return {"code": "budget"}
    if isinstance(exc, errors.UnknownItemError):
        return {"code": "unknown_id"}
    return None
