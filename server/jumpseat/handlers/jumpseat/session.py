"""``jumpseat.session.nextRequest``: the next model request of a session."""

from __future__ import annotations

from jumpseat.agent.model_calls.requests import next_request as build_request
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.provider import NextRequestParams, NextRequestResult


async def next_request(ctx: Context, params: NextRequestParams) -> NextRequestResult:
    """Return the request that the session would send its provider next, with secrets masked. Nothing is sent.

    Raises:
        InvalidRequestError: the session's model is not called over HTTP.
        ProviderError: the request cannot be written.
    """
    from jumpseat.adapters.recording.masking import ContentMask, mask_headers, mask_url
    from jumpseat.adapters.transport.http import HttpModel

    session = ctx.registry.live(params.session_id)
    resolved, request = await build_request(session, params.prompt)
    model = resolved.model
    if not isinstance(model, HttpModel):
        raise InvalidRequestError(
            f"the session's model is not called over HTTP, but by the adapter {model.adapter_name!r}"
        )
    call, veil = await model.prepare(request)
    secrets = session.services.secrets
    mask = ContentMask(veil, secrets)
    return NextRequestResult(
        method=call.method,
        url=mask_url(call.url, mask),
        headers=dict(mask_headers(call.headers.items(), veil, mask)),
        body=mask.json(call.body),
    )
