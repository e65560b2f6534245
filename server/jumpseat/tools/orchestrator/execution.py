"""Execute a tool call: find the tool, prepare the call, ask for permission, run the call.

Every way through ends in a :class:`ToolOutcome`: an unknown tool, invalid arguments, a refusal and a crash, too.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

import anyio

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import INTERRUPTED, canonical_json
from jumpseat.agent.session.session import Session
from jumpseat.errors import JumpseatError
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.orchestrator.offered_tools import OfferedTools
from jumpseat.tools.questions import ask_user
from jumpseat.tools.running_commands import CommandRunner
from jumpseat.tools.tool import Prepared, SequentialCalls, Tool, ToolContext, ToolOutcome, failure
from jumpseat.tools.workspace_files import Files
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import PreToolUseOutput
from jumpseat_protocol.permissions import HookPermission, PermissionRequest, ReadPermission, WritePermission

log = logging.getLogger(__name__)

LEAVE_WITHIN_S: Final = 1.0
"""Time for a tool to react when its turn ends while it is at work."""


class CallExecution:
    """Runs single calls of one session's tools."""

    def __init__(
        self, session: Session, environment: Environment, tools: OfferedTools, shells: CommandRunner
    ) -> None:
        self._session = session
        self._environment = environment
        self._tools = tools
        self._shells = shells

    async def execute(
        self, call: ToolUseBlock, line: SequentialCalls | None, hook: PreToolUseOutput | None
    ) -> ToolOutcome:
        """Run ``call``; the permission decision of a ``preToolUse`` hook replaces the question to the client.

        Raises:
            JumpseatError: an error of the session, such as a log that cannot be written.
        """
        tools = self._tools.offered()
        tool = self._tools.find(call.name, tools)
        if tool is None:
            names = ", ".join(tools)
            return failure(
                f"Tool '{call.name}' does not exist."
                + (f" Available tools that can be called are {names}." if names else "")
            )
        if call.problem is not None:
            return failure(call.problem)
        if call.arguments is None:
            return failure(
                f"The arguments of `{call.name}` are not a JSON object. Send the call again with valid JSON."
            )
        try:
            return await self._run(tool, call, line, hook)
        except JumpseatError:
            raise
        except Exception:
            log.exception("session %s: tool %s failed", self._session.id, call.name)
            return failure(
                f"Failed to execute `{call.name}` tool with arguments: {canonical_json(call.arguments)}"
                " due to error: Error: Tool execution failed",
                error="Tool execution failed",
            )

    async def _run(
        self, tool: Tool, call: ToolUseBlock, line: SequentialCalls | None, hook: PreToolUseOutput | None
    ) -> ToolOutcome:
        ctx = self._context(call, line)
        prepared = await tool.prepare(ctx, call)
        if isinstance(prepared, ToolOutcome):
            return prepared
        request = _request_after_hook(prepared.permission, call, hook)
        permissions = self._session.permissions
        # Deny rules come first: they hold for hooks that allow a call and for tools that need no permission, too.
        verdict = permissions.denial_by_rule(prepared.permission, call.name)
        if verdict is None:
            if request is None:
                return await prepared.run()
            request.tool_call_id = call.id
            try:
                verdict = await permissions.decide(request, call.name, prepared.guard)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
                    await _refused_outcome(prepared, failure(INTERRUPTED), cancelled=True)
                raise
        match verdict.status:
            case "denied":
                outcome = ToolOutcome(text=verdict.message, status="denied")
                return await _refused_outcome(prepared, outcome, cancelled=verdict.cancelled)
            case "rejected":
                outcome = ToolOutcome(text=verdict.message, status="rejected", ends_turn=True)
                return await _refused_outcome(prepared, outcome, cancelled=False)
            case "allowed":
                if verdict.arguments is None or verdict.arguments == call.arguments:
                    _settle_path(ctx, request)
                    return await prepared.run()
                return await self._run_changed(tool, ctx, call, verdict.arguments)

    def _context(self, call: ToolUseBlock, line: SequentialCalls | None) -> ToolContext:
        return ToolContext(
            call_id=call.id,
            session_id=self._session.id,
            cwd=self._session.settings.cwd,
            environ=dict(self._environment.environ),
            shells=self._shells,
            partial=lambda output: self._show_partial(call.id, output),
            progress=lambda line: self._show_progress(call.id, line),
            ask_user=lambda question, choices, freeform: ask_user(
                self._session, call.id, question, choices, allow_freeform=freeform
            ),
            line=line,
            files=Files(self._session.clients.files()),
            web=self._environment.web,
        )

    async def _run_changed(
        self, tool: Tool, ctx: ToolContext, call: ToolUseBlock, arguments: JsonObject
    ) -> ToolOutcome:
        """Run ``call`` with the arguments that a person has changed, and tell the model about the change."""
        text = canonical_json(arguments)
        prepared = await tool.prepare(ctx, ToolUseBlock(call.id, call.name, text, arguments))
        if isinstance(prepared, ToolOutcome):
            outcome = prepared
        elif (forbidden := self._session.permissions.denial_by_rule(prepared.permission, call.name)) is not None:
            outcome = await _refused_outcome(
                prepared, ToolOutcome(text=forbidden.message, status="denied"), cancelled=False
            )
        else:
            outcome = await prepared.run()
        outcome.arguments = arguments
        outcome.contexts.append(
            f"The user changed the arguments of the call `{call.id}` of `{call.name}` before allowing it."
            f" You sent: {canonical_json(call.arguments or {})} It ran with: {text}"
        )
        return outcome

    def _show_partial(self, call_id: str, output: str) -> None:
        self._session.emit(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output=output))

    def _show_progress(self, call_id: str, line: str) -> None:
        self._session.emit(events.ToolExecutionProgress(tool_call_id=call_id, progress_message=line))


def _request_after_hook(
    request: PermissionRequest | None, call: ToolUseBlock, hook: PreToolUseOutput | None
) -> PermissionRequest | None:
    """Return the permission to ask for, given the decision of a ``preToolUse`` hook; ``None`` to ask nobody."""
    if hook is None:
        return request
    if hook.permission_decision == "ask":
        return HookPermission(
            tool_name=call.name,
            tool_args=call.arguments,
            hook_message=hook.permission_decision_reason,
        )
    return None if hook.permission_decision == "allow" else request


def _settle_path(ctx: ToolContext, request: PermissionRequest | None) -> None:
    """Make the call open the file that its path resolved to when permission was given."""
    match request:
        case ReadPermission(path=name) | WritePermission(file_name=name):
            # Without resolved_path the path contains no links; a link that appears in it later is refused.
            ctx.files.settle(Path(name), Path(request.resolved_path or os.path.normpath(name)))
        case _:
            pass


async def _refused_outcome(prepared: Prepared, outcome: ToolOutcome, *, cancelled: bool) -> ToolOutcome:
    return outcome if prepared.refused is None else await prepared.refused(outcome, cancelled=cancelled)
