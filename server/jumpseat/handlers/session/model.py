"""``session.model.*``: the model of a session."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Final

import anyio

from jumpseat.adapters.completion.portability import depends_on_the_model, report
from jumpseat.agent.blocks import Message
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.handlers.models import model_to_wire
from jumpseat.sessions import changes
from jumpseat.sessions.context import Context
from jumpseat.sessions.options import allow_models, check_allowed, session_models
from jumpseat_protocol.models import (
    AllowedModelsParams,
    AllowedModelsResult,
    CurrentModelResult,
    ModelSwitchParams,
    ModelSwitchResult,
    ReasoningEffortParams,
    ReasoningEffortResult,
    SessionModelsParams,
    SessionModelsResult,
)
from jumpseat_protocol.sessions import SessionParams

REPORT_S: Final = 3.0
"""The longest time that a switch waits for the report on the conversation, in seconds."""


async def get_current(ctx: Context, params: SessionParams) -> CurrentModelResult:
    """Return the model of the next call."""
    settings = ctx.registry.live(params.session_id).settings
    model = settings.options.model or await ctx.models.default_name(settings)
    return CurrentModelResult(model_id=model, reasoning_effort=settings.options.reasoning_effort)


def switch_to(ctx: Context, params: ModelSwitchParams) -> ModelSwitchResult | Awaitable[ModelSwitchResult]:
    """Use another model from the next call on. Unlisted names are accepted, since lists may be incomplete.

    The switch takes place at once, unless the client requires that the model is available. The report on the
    conversation may have to wait for the provider's list.

    Raises:
        InvalidRequestError: the session may not use the model, or it is required and not available.
    """
    session = ctx.registry.live(params.session_id)
    check_allowed(session.settings, params.model_id)
    return _switch_if_available(ctx, session, params) if params.require_available else _switch(ctx, session, params)


async def _switch_if_available(ctx: Context, session: Session, params: ModelSwitchParams) -> ModelSwitchResult:
    wanted = session.settings.with_options(model=params.model_id, agent=None)
    try:
        resolved = await ctx.models.resolve(wanted, ask_token=session.clients.ask_token)
    except JumpseatError as error:
        raise InvalidRequestError(f"the model {params.model_id!r} is not available: {error}") from error
    if not (resolved.listed and resolved.info.enabled):
        raise InvalidRequestError(f"the model {params.model_id!r} is not available: the provider does not offer it")
    result = _switch(ctx, session, params)
    return await result if isinstance(result, Awaitable) else result


def _switch(
    ctx: Context, session: Session, params: ModelSwitchParams
) -> ModelSwitchResult | Awaitable[ModelSwitchResult]:
    settings = session.settings
    if params.model_capabilities is not None or params.reasoning_summary is not None:
        settings.set_options(model_capabilities=params.model_capabilities or settings.options.model_capabilities)
        settings.set_options(reasoning_summary=params.reasoning_summary or settings.options.reasoning_summary)
        ctx.registry.store_options(session)
    session.use_model(params.model_id, params.source or "sdk", reasoning_effort=params.reasoning_effort)
    result = ModelSwitchResult(model_id=params.model_id, reasoning_effort=settings.options.reasoning_effort)
    messages = session.conversation.messages()
    return _with_portability(ctx, session, messages, result) if depends_on_the_model(messages) else result


async def _with_portability(
    ctx: Context, session: Session, messages: list[Message], result: ModelSwitchResult
) -> ModelSwitchResult:
    """Add the report, unless the model cannot be resolved: then the next prompt will report the problem."""
    with anyio.move_on_after(REPORT_S), suppress(JumpseatError):
        result.portability = report(messages, await ctx.models.resolve(session.settings))
    return result


async def set_allowed_models(ctx: Context, params: AllowedModelsParams) -> AllowedModelsResult:
    """Limit the session to some models while it is open, or lift the limit; see :func:`allow_models`."""
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    if params.allowed_models is None:
        settings.allowed_models = None
    else:
        await allow_models(ctx, session, list(dict.fromkeys(params.allowed_models)))
    allowed, current = settings.allowed_models, settings.options.model or await ctx.models.default_name(settings)
    return AllowedModelsResult(allowed_models=allowed, effective_allowed_models=allowed, model_id=current)


async def set_reasoning_effort(ctx: Context, params: ReasoningEffortParams) -> ReasoningEffortResult:
    """Set the reasoning effort from the next model call on. The provider's levels are not checked."""
    session = ctx.registry.live(params.session_id)
    await changes.set_reasoning_effort(ctx, session, params.reasoning_effort)
    return ReasoningEffortResult(reasoning_effort=params.reasoning_effort)


async def list_(ctx: Context, params: SessionModelsParams) -> SessionModelsResult:
    """Return the session's own models, followed by those of the server if it has no default provider."""
    settings = ctx.registry.live(params.session_id).settings
    models = await session_models(ctx, settings, refresh=params.skip_cache)
    return SessionModelsResult(list=[model_to_wire(info) for info in models])
