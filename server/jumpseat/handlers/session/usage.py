"""``session.usage.*``: the usage of a session."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.session.metrics import Metrics
from jumpseat.agent.session.session import Session
from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import CodeChanges, CodeChangesParams, UsageMetricsResult


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
            files_modified_count=len(metrics.files) if metrics.files_count is None else metrics.files_count,
            files_modified=list(metrics.files),
        ),
        model_metrics=metrics.models_wire(),
        total_model_metrics={name: used.wire() for name, used in metrics.total().items()},
        agent_metrics=_agent_metrics(session) if session.agents is not None else None,
        current_model=session.settings.options.model,
        last_call_input_tokens=metrics.last_input_tokens,
        last_call_output_tokens=metrics.last_output_tokens,
    )


def _agent_metrics(session: Session) -> dict[str, Any]:
    """Return the usage of each sub-agent that is remembered by its id, and that of the main agent."""
    all_of_it = session.metrics
    main = Metrics(api_ms=all_of_it.api_ms, nano_aiu=all_of_it.nano_aiu, models=dict(all_of_it.models))
    found: dict[str, Any] = {}
    # Imported late: most sessions have no sub-agents.
    from jumpseat.agent.subagents.subagents import sub_agents

    agents = sub_agents(session)
    main.subtract(agents.forgotten)
    for agent in agents:
        used = agent.metrics
        main.subtract(used)
        found[agent.id] = {"agentName": agent.type, "agentDisplayName": agent.name, **_usage(used)}
    return {"main": _usage(main), **found}


def _usage(metrics: Metrics) -> dict[str, Any]:
    return {
        "totalApiDurationMs": metrics.api_ms,
        "totalNanoAiu": metrics.nano_aiu,
        "modelMetrics": metrics.models_wire(),
    }


def set_code_changes(ctx: Context, params: CodeChangesParams) -> None:
    """Replace the counts of changed lines and files by those of a host that counts them itself."""
    metrics = ctx.registry.live(params.session_id).metrics
    metrics.set_code_changes(params.lines_added, params.lines_removed, params.files_count)
