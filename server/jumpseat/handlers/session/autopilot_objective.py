"""``session.autopilotObjective.getState``: the objective of a session in autopilot mode."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.autopilot import ObjectiveState, ObjectiveStateResult
from jumpseat_protocol.sessions import SessionParams


def get_state(ctx: Context, params: SessionParams) -> ObjectiveStateResult:
    """Return the objective; no state if there is none, or if a client has written something else to its file."""
    objective = ctx.registry.live(params.session_id).autopilot.objective
    if objective is None:
        return ObjectiveStateResult(state=None)
    return ObjectiveStateResult(
        state=ObjectiveState(
            id=objective.id,
            objective=objective.text,
            status=objective.status,
            turn_count=objective.turns,
            credit_count_nano_aiu=str(objective.nano_aiu),
            completion_summary=objective.summary,
            pause_reason=objective.pause_reason,
        )
    )
