"""``jumpseat.complete``: one model call outside of any session, from blocks to blocks."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.completion import call
from jumpseat.errors import InvalidRequestError, ProviderProtocolError
from jumpseat.sessions.context import Context
from jumpseat_protocol.complete import EVENT, CompleteDelta, CompleteParams, CompleteResult
from jumpseat_protocol.wire import to_wire

PIECES_PER_DRAIN: Final = 64
"""The number of notifications after which a slow client is waited for: nobody else waits for its answer."""


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
