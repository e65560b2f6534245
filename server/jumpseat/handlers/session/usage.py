"""``session.usage.getMetrics``: the usage of a session."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import CodeChanges, UsageMetricsResult


def get_metrics(ctx: Context, params: SessionParams) -> UsageMetricsResult:
    """Return the usage that providers have reported, without prices."""
    session = ctx.registry.live(params.session_id)
    metrics = session.metrics
    return UsageMetricsResult(
        total_user_requests=metrics.user_requests,
        total_nano_aiu=metrics.nano_aiu or None,
        total_api_duration_ms=metrics.api_ms,
        session_start_time=session.started_at,
        code_changes=CodeChanges(
            lines_added=metrics.lines_added,
            lines_removed=metrics.lines_removed,
            files_modified_count=len(metrics.files),
            files_modified=list(metrics.files),
        ),
        model_metrics=metrics.models_wire(),
        total_model_metrics={name: used.wire() for name, used in metrics.total().items()},
        current_model=session.settings.model,
        last_call_input_tokens=metrics.last_input_tokens,
        last_call_output_tokens=metrics.last_output_tokens,
    )
