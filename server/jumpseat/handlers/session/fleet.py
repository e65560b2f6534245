"""``session.fleet.start``: have the model split a task among sub-agents."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat.sessions.fleet import fleet_prompt
from jumpseat_protocol.tasks import FleetStartParams, FleetStartResult


def start(ctx: Context, params: FleetStartParams) -> FleetStartResult:
    """Queue a prompt that makes the model lead sub-agents."""
    ctx.registry.live(params.session_id).send(fleet_prompt((params.prompt or "").strip()))
    return FleetStartResult(started=True)
