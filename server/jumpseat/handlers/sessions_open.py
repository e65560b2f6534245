"""``sessions.open``: a session by what is known of it, be it new, on the disk or live."""

from __future__ import annotations

from pydantic import ValidationError

from jumpseat.agent.client import Attachment
from jumpseat.errors import InvalidRequestError, SessionNotFoundError, UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat.handlers.session_create import session_create
from jumpseat.handlers.session_name import name_set
from jumpseat.handlers.session_resume import session_resume
from jumpseat_protocol.maintenance import OpenOptions, SessionsOpenParams, SessionsOpenResult
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.sessions import SessionCreateParams, SessionResumeParams
from jumpseat_protocol.state import NameSetParams

NOT_FOUND = SessionsOpenResult(status="not_found")


async def sessions_open(ctx: Context, params: SessionsOpenParams) -> SessionsOpenResult:
    """Open it for this connection, which gets its events from then on."""
    match params.kind:
        case "create":
            return await _create(ctx, params)
        case "resume":
            return await _resume(ctx, params, ctx.registry.store.find(_named(params)))
        case "resumeLast":
            return await _resume(ctx, params, ctx.registry.store.best_for(params.context))
        case "attach":
            return _attach(ctx, _named(params))
        case "remote" | "cloud" | "handoff":
            raise UnsupportedError(f"sessions.open of kind {params.kind!r}")


async def _create(ctx: Context, params: SessionsOpenParams) -> SessionsOpenResult:
    if not params.emit_start:
        raise UnsupportedError("sessions.open without session.start")
    try:
        wanted = SessionCreateParams.model_validate(_given(params.options))
    except ValidationError:
        raise InvalidRequestError(f"{params.options.session_id!r} cannot be the id of a session") from None
    session_id = (await session_create(ctx, wanted)).session_id
    if params.options.name:
        name_set(ctx, NameSetParams(session_id=session_id, name=params.options.name))
    return SessionsOpenResult(status="created", session_id=session_id, startup_prompts=[])


async def _resume(ctx: Context, params: SessionsOpenParams, session_id: str | None) -> SessionsOpenResult:
    if session_id is None:
        return NOT_FOUND
    given = {**_given(params.options), "session_id": session_id, "disable_resume": not params.resume}
    try:
        await session_resume(ctx, SessionResumeParams.model_validate(given))
    except SessionNotFoundError:
        return NOT_FOUND
    return SessionsOpenResult(status="resumed", session_id=session_id, startup_prompts=[])


def _attach(ctx: Context, session_id: str) -> SessionsOpenResult:
    try:
        session = ctx.registry.live(session_id)
    except SessionNotFoundError:
        return NOT_FOUND
    if ctx.connection not in session.clients:
        session.attach(Attachment(ctx.connection, protocol=ctx.connection.protocol or PROTOCOL_VERSION))
    return SessionsOpenResult(status="resumed", session_id=session_id, startup_prompts=[])


def _named(params: SessionsOpenParams) -> str:
    if not params.session_id:
        raise InvalidRequestError(f"sessions.open of kind {params.kind!r} needs a sessionId")
    return params.session_id


def _given(options: OpenOptions) -> dict[str, object]:
    return {name: value for name, value in options if value is not None}
