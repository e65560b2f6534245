"""Answer the methods of ``jumpseat_protocol.no_op_answers``, whose subject does not exist in this server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import create_model

from jumpseat.errors import InvalidRequestError, UnsupportedError
from jumpseat.sessions.context import Context
from jumpseat_protocol.no_op_answers import NEUTRAL_ANSWERS, REFUSALS
from jumpseat_protocol.wire import WireModel


@cache
def fixed_answer_params(method: str) -> type[WireModel]:
    """Return the type of a method's params: the session, if it is about one, and its required strings."""
    answer = NEUTRAL_ANSWERS.get(method)
    required = (*(("sessionId",) if method.startswith("session.") else ()), *(answer.needs if answer else ()))
    fields: dict[str, Any] = dict.fromkeys(required, (str, ...))
    return create_model("FixedAnswerParams", __base__=WireModel, **fields)


def fixed_answer(ctx: Context, method: str, params: Mapping[str, Any]) -> Any:
    """Return the fixed answer to ``method``.

    Raises:
        SessionNotFoundError: the method is about a session that is not live.
        InvalidRequestError: the answer is a refusal, with a message that clients know.
        UnsupportedError: the answer does not apply to these params.
    """
    # Some methods of the server name a session, too.
    if method.startswith(("session.", "sessions.")) and isinstance(session_id := params.get("sessionId"), str):
        ctx.registry.live(session_id)
    if method in REFUSALS:
        raise InvalidRequestError(REFUSALS[method])
    answer = NEUTRAL_ANSWERS[method]
    if any(params.get(name) != value for name, value in answer.only.items()):
        raise UnsupportedError(method)
    if answer.echoes:
        return {name: params.get(name) for name in answer.echoes}
    return answer.result
