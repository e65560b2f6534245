"""``jumpseat.complete`` and ``jumpseat.portability``: model calls outside of any session, from blocks to blocks."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.adapters.completion import call
from jumpseat.adapters.completion.conversion import to_conversation
from jumpseat.adapters.completion.portability import report
from jumpseat.adapters.completion.request import resolve_model, settings_of
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError, ProviderProtocolError
from jumpseat.sessions.context import Context
from jumpseat.system.file_trees import existing_folder
from jumpseat_protocol.complete import EVENT, CompleteDelta, CompleteParams, CompleteResult, PortabilityParams
from jumpseat_protocol.portability import Portability
from jumpseat_protocol.wire import to_wire

PIECES_PER_DRAIN: Final = 64
"""The number of notifications after which a slow client is waited for: no other client waits for its answer."""


async def complete(ctx: Context, params: CompleteParams) -> CompleteResult:
    """Call a model once. With ``stream``, notify the client of the deltas and blocks of the answer before it.

    Raises:
        InvalidRequestError: the request cannot be carried out as asked.
        ProviderError: the call failed. It is not retried.
    """
    if not params.stream:
        if params.stream_id is not None:
            raise InvalidRequestError("streamId is for a streamed answer, expected stream: true")
        return await call.complete(ctx.models, params)
    stream_id, running = params.stream_id, ctx.connection.streams
    if stream_id is None:
        raise InvalidRequestError("stream needs a streamId, which the notifications of this answer will carry")
    if stream_id in running:
        raise InvalidRequestError(f"streamId {stream_id!r:.100} belongs to another running request")
    running.add(stream_id)
    try:
        return await _stream(ctx, params, stream_id)
    finally:
        running.discard(stream_id)


async def _stream(ctx: Context, params: CompleteParams, stream_id: str) -> CompleteResult:
    sent = 0
    async with call.open_answer(ctx.models, params) as pieces:
        async for piece in pieces:
            if isinstance(piece, CompleteResult):
                return piece
            event: dict[str, Any] = {"streamId": stream_id}
            if isinstance(piece, CompleteDelta):
                event["delta"] = to_wire(piece)
            else:
                event["block"] = piece.wire()
            ctx.connection.notify(EVENT, event)
            sent += 1
            if sent % PIECES_PER_DRAIN == 0:
                await ctx.connection.wait_until_read()
    raise ProviderProtocolError("the model ended without a response")


async def portability(ctx: Context, params: PortabilityParams) -> Portability:
    """Return for each block whether the target model receives it unchanged, converted or not at all.

    Raises:
        InvalidRequestError: there is no conversation, or it is invalid.
        JumpseatError: the model cannot be resolved.
    """
    if (params.session_id is None) == (params.messages is None):
        raise InvalidRequestError("expected either sessionId or messages")
    if params.messages is not None:
        _, messages = to_conversation(params.messages, may_end_in_calls=True)
        return report(messages, await resolve_model(ctx.models, params, settings_of(params)), params.messages)
    session = ctx.registry.live(params.session_id or "")
    resolved = await resolve_model(ctx.models, params, _settings(session.settings, params))
    return report(session.conversation.messages(), resolved)


def _settings(settings: SessionSettings, params: PortabilityParams) -> SessionSettings:
    """Return the settings of a session with the target model in place of its own."""
    is_own = params.model is None and params.provider is None and params.adapter is None
    changed = settings.with_options(
        model=params.model or (settings.options.model if params.provider is None else None),
        provider=params.provider or settings.options.provider,
        # Those are for the session's own model.
        adapter_settings={},
        model_capabilities=settings.options.model_capabilities if is_own else None,
    )
    if params.cwd is not None:
        changed.cwd = existing_folder("cwd", params.cwd)
    return changed
