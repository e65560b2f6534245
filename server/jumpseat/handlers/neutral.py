"""Methods whose answer is the same for every session, because what they ask about does not exist here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import create_model

from jumpseat.errors import InvalidRequestError, UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat_protocol.neutral import NEUTRAL_ANSWERS, REFUSALS
from jumpseat_protocol.wire import WireModel


@cache
def neutral_params(method: str) -> type[WireModel]:
    """What a method with a fixed answer must be given: its session, if it has one, and what it names."""
    answer = NEUTRAL_ANSWERS.get(method)
    needs = (*(("sessionId",) if method.startswith("session.") else ()), *(answer.needs if answer else ()))
    fields: dict[str, Any] = dict.fromkeys(needs, (str, ...))
    return create_model("NeutralParams", __base__=WireModel, **fields)


def neutral(ctx: Context, method: str, given: Mapping[str, Any]) -> Any:
    """The fixed answer to ``method``, for a live session where it is about one.

    Raises:
        SessionNotFoundError: it is about a session that is not live.
        InvalidRequestError: the answer is a refusal, in words that clients know.
        UnsupportedError: the answer does not hold for these params.
    """
    # Some methods of the server are about a session, too.
    if method.startswith(("session.", "sessions.")) and isinstance(session_id := given.get("sessionId"), str):
        ctx.registry.live(session_id)
    if method in REFUSALS:
        raise InvalidRequestError(REFUSALS[method])
    answer = NEUTRAL_ANSWERS[method]
    if any(given.get(name) != value for name, value in answer.only.items()):
        raise UnsupportedError(method)
    if answer.echoes:
        return {name: given.get(name) for name in answer.echoes}
    return answer.result
