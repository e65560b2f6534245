"""``session.fleet.start``: have the model split a task among sub-agents."""

from __future__ import annotations

from collections.abc import Awaitable

from jumpseat.handlers.session.session import after_run, check_attachments
from jumpseat.sessions.context import Context
from jumpseat.sessions.fleet import fleet_prompt
from jumpseat_protocol.tasks import FleetStartParams, FleetStartResult


def start(ctx: Context, params: FleetStartParams) -> FleetStartResult | Awaitable[FleetStartResult]:
    """Queue a prompt that makes the model lead sub-agents; answer at once, or when its run has ended.

    Raises:
        InvalidRequestError: an attachment lacks a required field of its type.
    """
    session = ctx.registry.live(params.session_id)
    prompt = fleet_prompt((params.prompt or "").strip(), check_attachments(params.attachments or []))
    prompt.billable = params.billable
    session.send(prompt)
    result = FleetStartResult(started=True)
    return after_run(prompt, result) if params.wait else result
