"""The hooks before and after a tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.observation import ToolCall
from jumpseat.agent.session.session import Session
from jumpseat.tools.client_tools import object_of_outcome, outcome_of_object
from jumpseat.tools.tool import ToolOutcome
from jumpseat_protocol.callbacks import PreToolUseOutput

Execute: TypeAlias = Callable[[ToolUseBlock, PreToolUseOutput | None], Awaitable[ToolOutcome]]
"""Runs a call; the output of ``preToolUse`` may replace the question for permission."""


async def run_with_hooks(session: Session, call: ToolUseBlock, execute: Execute, record: ToolCall) -> ToolOutcome:
    """Run ``call`` between the session's hooks, which may deny it, change its arguments and change its result.

    A denial is noted in ``record``.
    """
    hooks = session.hooks
    if not await hooks.surround(call.name):
        return await execute(call, None)
    before = await hooks.pre_tool_use(call.name, call.arguments or {})
    if before.permission_decision == "deny":
        record.decision, record.decided_by = "denied", "hook"
        reason = before.permission_decision_reason or "No reason provided"
        outcome = ToolOutcome(text=f"Denied by preToolUse hook: {reason}", status="denied")
    else:
        if before.modified_args is not None:
            text = canonical_json(before.modified_args)
            call = ToolUseBlock(call.id, call.name, text, before.modified_args)
        outcome = await execute(call, before)
        outcome = await _after(session, call, outcome)
        outcome.arguments = outcome.arguments or before.modified_args
    if before.additional_context:
        outcome.contexts.insert(0, before.additional_context)
    return outcome


async def _after(session: Session, call: ToolUseBlock, outcome: ToolOutcome) -> ToolOutcome:
    hooks, arguments = session.hooks, outcome.arguments or call.arguments or {}
    if outcome.ok:
        after = await hooks.post_tool_use(call.name, arguments, object_of_outcome(outcome))
        if after.modified_result is not None:
            # The text for the user is dropped, too: it may contain what the hook has removed.
            changed = outcome_of_object(call, after.modified_result)
            changed.ends_turn = changed.ends_turn or (outcome.ends_turn and changed.ok)
            outcome = changed
        if after.additional_context:
            outcome.contexts.append(after.additional_context)
    elif outcome.status in ("failure", "timeout"):
        failed = await hooks.post_tool_use_failure(call.name, arguments, outcome.error or outcome.text)
        if failed.additional_context:
            outcome.contexts.append(
                f'Tool "{call.name}" failed. Additional guidance from postToolUseFailure hooks:\n'
                f"{failed.additional_context}"
            )
    return outcome
