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
    capped = objective.status == "cap_reached"
    return ObjectiveStateResult(
        state=ObjectiveState(
            id=objective.id,
            objective=objective.text,
            status="paused" if objective.status == "cap_reached" else objective.status,
            turn_count=objective.turns,
            completion_summary=objective.summary,
            pause_reason="the limit on continuations was reached" if capped else None,
        )
    )
