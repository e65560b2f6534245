"""``jumpseat.web.*``: the login of a page, and descriptions of sessions for its list."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import anyio.to_thread
from pydantic import ValidationError

from jumpseat.agent.session.metrics import ModelUsage
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, SessionInUseError, SessionNotFoundError
from jumpseat.sessions.context import Context
from jumpseat.store.model_calls import ModelCallFile
from jumpseat.store.page_access import LOGIN_S
from jumpseat.store.sessions import SessionFolder
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.web import (
    ModelCallsResult,
    ModelCallUsage,
    SessionDescription,
    WebDescribeParams,
    WebDescribeResult,
    WebLoginResult,
)

MOST_SESSIONS: Final = 200
"""The number of sessions that one request may describe."""


async def login(ctx: Context, params: EmptyParams) -> WebLoginResult:
    """Create a token with which a page connects again, also to a server that is started later.

    Raises:
        InvalidRequestError: the server has no page.
        StoreError: the token cannot be stored.
    """
    pages = ctx.process.gate.pages
    if pages is None:
        raise InvalidRequestError("this server has no page: start it with --ws-port")
    return WebLoginResult(token=await anyio.to_thread.run_sync(pages.add_login), expires_in_s=int(LOGIN_S))


async def describe(ctx: Context, params: WebDescribeParams) -> WebDescribeResult:
    """Return the state and the usage of sessions.

    Raises:
        InvalidRequestError: there are too many ids.
    """
    if len(params.session_ids) > MOST_SESSIONS:
        raise InvalidRequestError(f"sessionIds: expected at most {MOST_SESSIONS}, got {len(params.session_ids)}")
    found: list[SessionDescription] = []
    stored: list[SessionFolder] = []
    for session_id in dict.fromkeys(params.session_ids):
        try:
            found.append(_describe_live(ctx, ctx.registry.live(session_id)))
        except (SessionNotFoundError, SessionInUseError):
            with suppress(SessionNotFoundError):
                stored.append(ctx.registry.store.get_existing(session_id))
    found += await anyio.to_thread.run_sync(lambda: [_describe_stored(folder) for folder in stored])
    return WebDescribeResult(sessions=found)


async def model_calls(ctx: Context, params: SessionParams) -> ModelCallsResult:
    """Return the tokens, the cost and the times of the model calls of a session, also of one that is not open.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    file = ModelCallFile(ctx.registry.store.get_existing(params.session_id).path)
    calls: list[ModelCallUsage] = []
    for call in await anyio.to_thread.run_sync(file.read):
        with suppress(ValidationError):
            calls.append(ModelCallUsage.model_validate(call))
    return ModelCallsResult(calls=calls)


def _describe_live(ctx: Context, session: Session) -> SessionDescription:
    clients = session.clients
    questions = (session.permissions.questions.pending, clients.user_inputs, clients.plans, clients.elicitations)
    return SessionDescription(
        session_id=session.id,
        state="working" if session.working else "idle",
        open_questions=sum(len(pending.open()) for pending in questions),
        clients=sum(client is not ctx.connection for client in clients),
        model=session.settings.model,
        usage={name: used.wire() for name, used in session.metrics.total().items()},
    )


def _describe_stored(folder: SessionFolder) -> SessionDescription:
    workspace = folder.read_workspace()
    usage: dict[str, ModelUsage] = {} if workspace is None else workspace.model_usage()
    return SessionDescription(
        session_id=folder.path.name,
        state="elsewhere" if folder.in_use() else "stored",
        model=next(reversed(usage), None),
        usage={name: used.wire() for name, used in usage.items()},
    )
