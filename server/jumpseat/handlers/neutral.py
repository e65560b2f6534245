"""Methods whose answer is the same for every session, because what they ask about does not exist here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from jumpseat.errors import InvalidRequestError, UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat_protocol.neutral import NEUTRAL_ANSWERS, REFUSALS


def neutral(ctx: Context, method: str, session_id: str | None, params: Any) -> Any:
    """The fixed answer to ``method``, for a session where it is one of a session.

    Raises:
        SessionNotFoundError: it is about a session that is not live.
        InvalidRequestError: the answer is a refusal, in words that clients know.
        UnsupportedError: the answer does not hold for these params.
    """
    given: Mapping[str, Any] = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
    if session_id is None and method.startswith("sessions."):
        # Some methods of the server are about a session all the same.
        session_id = given.get("sessionId")
    if session_id is not None:
        ctx.registry.live(str(session_id))
    if method in REFUSALS:
        raise InvalidRequestError(REFUSALS[method])
    answer = NEUTRAL_ANSWERS[method]
    if any(given.get(name) != value for name, value in answer.only.items()):
        raise UnsupportedError(method)
    if answer.echoes:
        return {name: given.get(name) for name in answer.echoes}
    return answer.result
