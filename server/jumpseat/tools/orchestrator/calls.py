"""The tool calls of one answer, from their start events to their results.

Calls run concurrently, except for those of sequential tools. Whatever happens on the way, cancellation included,
each call ends in exactly one ``tool.execution_complete``.
"""

from __future__ import annotations

from pathlib import Path

import anyio

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat.agent.session.session import Session
from jumpseat.agent.shell.syntax import parse_shell
from jumpseat.tools.large_output import spill
from jumpseat.tools.orchestrator.call_hooks import run_with_hooks
from jumpseat.tools.orchestrator.deferral import activate
from jumpseat.tools.orchestrator.execution import LEAVE_WITHIN_S, CallExecution
from jumpseat.tools.orchestrator.offered_tools import OfferedTools
from jumpseat.tools.tool import Sequential, SequentialCalls, ToolOutcome, failure
from jumpseat_protocol import events


class ToolCalls:
    """Runs the calls of one session. Outputs that are too large for the model go to ``output_dir``."""

    def __init__(self, session: Session, tools: OfferedTools, execution: CallExecution, output_dir: Path) -> None:
        self._session = session
        self._tools = tools
        self._execution = execution
        self._output_dir = output_dir

    async def run(self, calls: list[ToolUseBlock], turn_id: str) -> bool:
        """Run the calls of one answer; return whether the turn ends after them."""
        self._publish_starts(calls, turn_id)
        # By position: a model may use one id twice.
        outcomes: list[ToolOutcome | None] = [None] * len(calls)

        async def run_one(index: int, line: SequentialCalls | None = None) -> None:
            outcome = await run_with_hooks(
                self._session,
                calls[index],
                lambda call, hook: self._execution.execute(call, line, hook),
            )
            outcome.text = self._fit(outcome.text)
            outcomes[index] = outcome
            self._publish_end(calls[index], outcome, turn_id)

        async def run_in_line(indexes: list[int]) -> None:
            line = SequentialCalls()
            try:
                for index, following in zip(indexes, [*indexes[1:], None], strict=True):
                    line.following = None if following is None else calls[following].name
                    await run_one(index, line)
                await line.end()
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
                    await line.end()

        sequential = self._sequential(calls)
        try:
            if len(calls) == 1 and not sequential:
                await run_one(0)
            else:
                async with anyio.create_task_group() as tasks:
                    if sequential:
                        tasks.start_soon(run_in_line, sequential)
                    for index in range(len(calls)):
                        if index not in sequential:
                            tasks.start_soon(run_one, index)
        except BaseExceptionGroup as group:
            # The log cannot be written: all calls fail for this one reason.
            raise group.exceptions[0] from None
        finally:
            for call, outcome in zip(calls, outcomes, strict=True):
                if outcome is None:
                    self._publish_end(call, failure(INTERRUPTED), turn_id)
        return self._add_contexts([outcome for outcome in outcomes if outcome is not None])

    def _sequential(self, calls: list[ToolUseBlock]) -> list[int]:
        """Return the positions of the calls that must run one after the other."""
        tools = self._tools.offered()
        found = [(index, tools.get(call.name)) for index, call in enumerate(calls)]
        return [index for index, tool in found if isinstance(tool, Sequential) and tool.sequential]

    def _add_contexts(self, outcomes: list[ToolOutcome]) -> bool:
        """Add the messages that follow the results; return whether an outcome ends the turn."""
        session = self._session
        tools = self._tools.offered() if any(outcome.references for outcome in outcomes) else {}
        for outcome in outcomes:
            for source, text in outcome.messages:
                session.add_context(text, source)
            activate(session, (name for name in outcome.references if name in tools), "client")
            for text in outcome.contexts:
                session.add_context(text)
        return any(outcome.ends_turn for outcome in outcomes)

    def _fit(self, text: str) -> str:
        # Masked before the text is written to a file; events are masked by the session.
        text = self._session.services.secrets(text)
        config = self._session.settings.large_output
        if not config.enabled:
            return text
        return spill(
            text, config.max_size_bytes, Path(config.output_dir) if config.output_dir else self._output_dir
        )

    def _publish_starts(self, calls: list[ToolUseBlock], turn_id: str) -> None:
        for call in calls:
            tool = self._tools.offered().get(call.name)
            origin = tool.spec.origin if tool else None
            self._session.emit(
                events.ToolExecutionStart(
                    tool_call_id=call.id,
                    tool_name=call.name,
                    arguments=call.arguments if call.arguments is not None else {},
                    turn_id=turn_id,
                    shell_tool_info=shell_info(call),
                    mcp_server_name=origin.server if origin else None,
                    mcp_tool_name=origin.tool if origin else None,
                )
            )

    def _publish_end(self, call: ToolUseBlock, outcome: ToolOutcome, turn_id: str) -> None:
        error = None
        if not outcome.ok:
            error = events.ToolError(message=outcome.error or outcome.text, code=outcome.status)
        binary = [
            events.BinaryResult(data=image.data, mime_type=image.mime_type, description=image.label)
            for image in outcome.images
        ] + outcome.resources
        result = None
        if error is None or binary or outcome.text != error.message:
            result = events.ToolResult(
                content=outcome.text, detailed_content=outcome.detail, binary_results_for_llm=binary or None
            )
        self._session.emit(
            events.ToolExecutionComplete(
                tool_call_id=call.id,
                success=outcome.ok,
                result=result,
                error=error,
                effective_arguments=outcome.arguments,
                tool_telemetry=outcome.telemetry,
                session_log=outcome.session_log,
                turn_id=turn_id,
            )
        )


def shell_info(call: ToolUseBlock) -> events.ShellToolInfo | None:
    """Return what the command of a ``bash`` call touches, as far as its text shows; ``None`` for other tools."""
    command = (call.arguments or {}).get("command") if call.name == "bash" else None
    if not isinstance(command, str):
        return None
    line = parse_shell(command)
    return events.ShellToolInfo(
        possible_paths=list(line.possible_paths), has_write_file_redirection=line.has_write_file_redirection
    )
