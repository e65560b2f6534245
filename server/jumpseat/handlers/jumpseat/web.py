"""``jumpseat.web.*``: the login of a page, and descriptions of sessions for its list."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import anyio.to_thread
from pydantic import ValidationError

from jumpseat.agent.session.metrics import ModelUsage
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, SessionInUseError, SessionNotFoundError
from jumpseat.sessions.context import Context
from jumpseat.store.session.sessions import SessionFolder, shorten
from jumpseat.store.session.texts import find_words, texts_of
from jumpseat.store.user.page_access import LOGIN_S
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.web import (
    DayUsage,
    ModelCallsResult,
    ModelCallUsage,
    OpenQuestionsResult,
    SessionDescription,
    SessionMatch,
    WebDescribeParams,
    WebDescribeResult,
    WebDraftResult,
    WebLoginParams,
    WebLoginResult,
    WebLogoutParams,
    WebLogoutResult,
    WebSaveDraftParams,
    WebSaveDraftResult,
    WebSearchParams,
    WebSearchResult,
    WebUsageParams,
    WebUsageResult,
)
from jumpseat_protocol.wire import to_wire

MOST_SESSIONS: Final = 200
"""The number of sessions that one request may describe."""


async def login(ctx: Context, params: WebLoginParams) -> WebLoginResult:
    """Create a login with which a page connects again, also to a server that is started later.

    Raises:
        InvalidRequestError: the server has no page.
        StoreError: the login cannot be stored.
    """
    pages = ctx.process.gate.pages
    if pages is None:
        raise InvalidRequestError("this server has no page: start it with --ws-port")
    made = await anyio.to_thread.run_sync(pages.add_login, params.origin)
    return WebLoginResult(id=made.id, key=made.key, expires_in_s=int(LOGIN_S))


async def logout(ctx: Context, params: WebLogoutParams) -> WebLogoutResult:
    """Remove a login: no page connects with it any more. Connections that are open go on."""
    pages = ctx.process.gate.pages
    removed = pages is not None and await anyio.to_thread.run_sync(pages.remove_login, params.id)
    return WebLogoutResult(removed=removed)


async def describe(ctx: Context, params: WebDescribeParams) -> WebDescribeResult:
    """Return the state and the usage of sessions.

    Raises:
        InvalidRequestError: there are too many ids.
    """
    _check_number(params.session_ids)
    found: list[SessionDescription] = []
    stored: list[SessionFolder] = []
    open_here = [session.id for session in ctx.registry.live_sessions()] if params.open_too else []
    for session_id in dict.fromkeys([*open_here, *params.session_ids]):
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
    file = ctx.registry.store.get_existing(params.session_id).model_calls
    calls: list[ModelCallUsage] = []
    for call in await anyio.to_thread.run_sync(file.read):
        with suppress(ValidationError):
            calls.append(ModelCallUsage.model_validate(call))
    return ModelCallsResult(calls=calls)


async def search(ctx: Context, params: WebSearchParams) -> WebSearchResult:
    """Return the sessions whose title, folder, prompts and answers have all words.

    Raises:
        InvalidRequestError: there are too many ids.
    """
    _check_number(params.session_ids)
    words = params.text.casefold().split()
    stored: list[SessionFolder] = []
    for session_id in dict.fromkeys(params.session_ids):
        with suppress(SessionNotFoundError):
            stored.append(ctx.registry.store.get_existing(session_id))

    def find() -> list[SessionMatch]:
        found = ((folder.path.name, find_words(texts_of(folder), words)) for folder in stored)
        mask = ctx.process.secrets
        return [
            SessionMatch(session_id=name, excerpt=mask(part.text), event_id=part.event_id)
            for name, part in found
            if part is not None
        ]

    return WebSearchResult(matches=await anyio.to_thread.run_sync(find, abandon_on_cancel=True))


def open_questions(ctx: Context, params: SessionParams) -> OpenQuestionsResult:
    """Return the questions that were asked before the calling client joined the session.

    Raises:
        SessionNotFoundError: the session is not open in this server.
    """
    questions = [
        {"type": question.type, "data": to_wire(question)}
        for question in ctx.registry.live(params.session_id).clients.open_questions()
    ]
    return OpenQuestionsResult.model_validate({"questions": ctx.process.secrets.mask(questions)})


async def usage(ctx: Context, params: WebUsageParams) -> WebUsageResult:
    """Return the tokens and the cost of the sessions that the server stores, by day and model."""
    days = await ctx.registry.store.usage_by_day(time.time(), params.days)
    return WebUsageResult(
        usage=[
            DayUsage(
                day=day,
                model=model,
                calls=used.calls,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cache_read_tokens=used.cache_read_tokens,
                cache_write_tokens=used.cache_write_tokens,
                cost_usd=used.dollars,
            )
            for day, models in sorted(days.items(), reverse=True)
            for model, used in models.items()
        ]
    )


async def draft(ctx: Context, params: SessionParams) -> WebDraftResult:
    """Return the prompt that a person has begun to write in a session.

    Raises:
        SessionNotFoundError: the session is not open in this server.
    """
    stored = ctx.registry.storage(ctx.registry.live(params.session_id)).draft
    read = lambda: WebDraftResult(text=stored.text(), attachments=stored.attachments())  # noqa: E731
    return await anyio.to_thread.run_sync(read)


async def save_draft(ctx: Context, params: WebSaveDraftParams) -> WebSaveDraftResult:
    """Store the prompt that a person has begun to write in a session. Files of sessions hold no known secret.

    Raises:
        SessionNotFoundError: the session is not open in this server.
        InvalidRequestError: the draft is too large.
        StoreError: it cannot be written.
    """
    storage = ctx.registry.storage(ctx.registry.live(params.session_id))
    if storage.virtual_files is not None:
        return WebSaveDraftResult(stored=False)
    mask = ctx.process.secrets.mask
    is_open = mask(params.text) == params.text and mask(params.attachments) == params.attachments
    storage.draft.write(*((params.text, params.attachments) if is_open else ("", [])))
    return WebSaveDraftResult(stored=is_open)


def _check_number(session_ids: list[str]) -> None:
    if len(session_ids) > MOST_SESSIONS:
        raise InvalidRequestError(f"sessionIds: expected at most {MOST_SESSIONS}, got {len(session_ids)}")


def _describe_live(ctx: Context, session: Session) -> SessionDescription:
    clients = session.clients
    return SessionDescription(
        session_id=session.id,
        state="working" if session.working else "idle",
        open_questions=len(session.permissions.questions.pending.open()) + len(clients.open_questions()),
        clients=sum(client is not ctx.connection for client in clients),
        model=session.settings.options.model,
        title=_title(ctx, session),
        usage={name: used.wire() for name, used in session.metrics.total().items()},
    )


def _title(ctx: Context, session: Session) -> str | None:
    workspace, prompt = ctx.registry.storage(session).workspace, session.history.first_prompt
    named = None if workspace is None else workspace.name or workspace.summary
    return named or (shorten(prompt) if prompt is not None else None)


def _describe_stored(folder: SessionFolder) -> SessionDescription:
    workspace = folder.read_workspace()
    usage: dict[str, ModelUsage] = {} if workspace is None else workspace.model_usage()
    return SessionDescription(
        session_id=folder.path.name,
        state="elsewhere" if folder.in_use() else "stored",
        model=next(reversed(usage), None),
        usage={name: used.wire() for name, used in usage.items()},
    )
