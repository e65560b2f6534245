"""The outcome of a sub-agent's work: the reason of its failure, and the events about its end."""

from __future__ import annotations

from collections.abc import Iterator

from jumpseat.agent.conversation.conversation import INTERRUPTED as INTERRUPTED_CALL
from jumpseat.agent.session.queue_items import Run
from jumpseat.agent.subagents import texts
from jumpseat.agent.subagents.subagent import INTERRUPTED, SubAgent
from jumpseat_protocol import events


def error_of(agent: SubAgent, run: Run) -> str | None:
    """Return why an agent has failed; ``None`` if it has answered or was cancelled."""
    if agent.stop_reason is not None:
        return agent.stop_reason
    if run.error is not None and isinstance(run.error.payload, events.SessionError):
        return run.error.payload.message
    return texts.NO_ANSWER if not run.aborted and agent.exchanges[-1].answer is None else None


def end_event(agent: SubAgent, duration_ms: int | None) -> events.SubagentCompleted | events.SubagentFailed:
    """Return the event for the end of an agent's first run."""
    if agent.error is not None:
        return events.SubagentFailed(
            tool_call_id=agent.call_id,
            agent_name=agent.type,
            agent_display_name=agent.name,
            error=agent.error,
            model=agent.model,
            total_tool_calls=agent.tool_calls,
            total_tokens=agent.tokens,
            duration_ms=duration_ms,
        )
    return events.SubagentCompleted(
        tool_call_id=agent.call_id,
        agent_name=agent.type,
        agent_display_name=agent.name,
        model=agent.model,
        cancelled=True if agent.status == "cancelled" else None,
        total_tool_calls=agent.tool_calls,
        total_tokens=agent.tokens,
        duration_ms=duration_ms,
    )


def interruption_events(agent: SubAgent) -> Iterator[events.EventPayload]:
    """Yield the events for an agent that is at work in the log only: results for its open calls, and
    its end. An agent that was working on a later message has had its end, and gets a warning.
    """
    for call_id in agent.open_calls:
        yield events.ToolExecutionComplete(
            tool_call_id=call_id,
            success=False,
            error=events.ToolError(message=INTERRUPTED_CALL, code="failure"),
            parent_tool_call_id=agent.call_id,
        )
    if agent.ended:
        yield events.SessionWarning(warning_type=texts.INTERRUPTION, message=INTERRUPTED)
    else:
        yield end_event(agent, None)
