"""``llmInference.*``: a client that performs the server's model requests."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.llm_inference import AcceptedResult, HttpResponseChunkParams, HttpResponseStartParams
from jumpseat_protocol.server import EmptyParams, SuccessResult


def set_provider(ctx: Context, params: EmptyParams) -> SuccessResult:
    """Send every model request of the process through this client, in place of any earlier one."""
    ctx.models.connections.tunnel_through(ctx.connection)
    return SuccessResult()


def http_response_start(ctx: Context, params: HttpResponseStartParams) -> AcceptedResult:
    """Receive the status and the headers of a response."""
    tunnel = ctx.models.connections.tunnel
    return AcceptedResult(accepted=tunnel is not None and tunnel.response_started(params))


def http_response_chunk(ctx: Context, params: HttpResponseChunkParams) -> AcceptedResult:
    """Receive a part of a response, its end, or its failure."""
    tunnel = ctx.models.connections.tunnel
    return AcceptedResult(accepted=tunnel is not None and tunnel.response_chunk(params))
