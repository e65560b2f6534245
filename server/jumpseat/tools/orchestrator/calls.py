"""The tool calls of one answer, from their start events to their results.

Calls run in the order of the answer, one after the other. Neighbouring calls that only read run side by side, and
the calls of independent tools, those of clients above all, run beside the others. Calls beyond the limit of one
answer do not run. Whatever happens on the way, cancellation included, each call ends in exactly one
``tool.execution_complete``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio
import anyio.lowlevel

from jumpseat.agent.blocks import ToolMessage, ToolUseBlock
from jumpseat.agent.conversation.conversation import INTERRUPTED, canonical_json
from jumpseat.agent.conversation.result_size import largest_result
from jumpseat.agent.interfaces import ToolsResult
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.observation import ToolCall
from jumpseat.agent.session.history import NO_NAMES
from jumpseat.agent.session.hooks import stop_of
from jumpseat.agent.session.questions import ask_user
from jumpseat.agent.session.session import Session
from jumpseat.tools.client_tools import object_of_outcome, outcome_of_object
from jumpseat.tools.filters import SourceName
from jumpseat.tools.orchestrator.environment import RepeatLimits
from jumpseat.tools.orchestrator.execution import LEAVE_WITHIN_S, CallExecution, SharedState
from jumpseat.tools.orchestrator.offered_tools import OfferedTools, activate
from jumpseat.tools.shell.sandbox_needs import MAX_COMMAND_BYTES
from jumpseat.tools.tool import (
    BuiltinTool,
    Inner,
    Ordering,
    SequentialCalls,
    Tool,
    ToolOutcome,
    failure,
    is_ignoring,
)
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import PreToolUseOutput
from jumpseat_protocol.events import CallDecision

if TYPE_CHECKING:
    from jumpseat.tools.orchestrator.repeats import Repeats

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
        outcome = ToolOutcome(text=f"Denied by preToolUse hook: {reason}", status="denied", stopped=stop_of(before))
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
        stopped = stop_of(after)
        if after.modified_result is not None:
            # The text for the user is dropped, too: it may contain what the hook has removed.
            changed = outcome_of_object(call, after.modified_result)
            changed.ends_turn = changed.ends_turn or (outcome.ends_turn and changed.ok)
            outcome = changed
        if after.additional_context:
            outcome.contexts.append(after.additional_context)
        outcome.stopped = outcome.stopped or stopped
    elif outcome.status in ("failure", "timeout"):
        failed = await hooks.post_tool_use_failure(call.name, arguments, outcome.error or outcome.text)
        if failed.additional_context:
            outcome.contexts.append(
                f'Tool "{call.name}" failed. Additional guidance from postToolUseFailure hooks:\n'
                f"{failed.additional_context}"
            )
        outcome.stopped = outcome.stopped or stop_of(failed)
    return outcome


MAX_NOTES_CHARS: Final = 10_000
"""The end of a result in which notes are looked for."""

STOPPED: Final = "This tool call did not run, because a hook ended the run."
TOO_MANY: Final = "This tool call did not run: only the first {most} calls of one answer run."


class ToolCalls:
    """Runs the calls of one session, the first ``most`` of each answer.

    Outputs that are too large for the model go to the storage of the session.
    """

    def __init__(
        self, session: Session, tools: OfferedTools, execution: CallExecution, most: int, repeats: RepeatLimits
    ) -> None:
        self._repeat_limits = repeats
        self._repeats: Repeats | None = None
        self._session = session
        self._tools = tools
        self._execution = execution
        execution.inner = self._begin_inner
        self._most = most
        # Notes about names of other agents' tools that the model has got since its conversation was rewritten.
        self._told = NO_NAMES
        self._told_in = 0

    def _begin_inner(self, outer: ToolUseBlock, state: SharedState) -> Inner:
        # Imported with the first script.
        from jumpseat.tools.orchestrator.inner_calls import InnerCalls

        return InnerCalls(self, outer, state)

    def callable_specs(self) -> list[ToolSpec]:
        """Return the specs of all tools that can be called."""
        return [tool.spec for tool in self._tools.offered().values()]

    async def close_off(self, command: Sequence[str]) -> list[str] | None:
        """Return the command line that confines a Python program to computing; ``None`` if no sandbox can."""
        return await self._execution.close_off(command)

    def ordering(self, name: str) -> Ordering:
        """Return the ordering of a tool; calls of an unknown one wait for nothing."""
        tool = self._tools.find(name)
        return "independent" if tool is None else tool.ordering

    def may_ask(self, name: str) -> bool:
        """Return whether calls of a tool may ask for permission, apart from those that only read."""
        tool = self._tools.find(name)
        if tool is None or tool.ordering == "reading":
            return False
        return tool.may_ask if isinstance(tool, BuiltinTool) else True

    async def run(self, calls: list[ToolUseBlock], turn_id: str) -> ToolsResult:
        """Run the calls of one answer; those beyond the limit fail, and the model is told the reason."""
        answer = await self._run(calls, turn_id)
        outcomes = [outcome for outcome in answer.outcomes if outcome is not None]
        stopped = next((outcome.stopped for outcome in outcomes if outcome.stopped is not None), None)
        return ToolsResult(answer.state.status_of(outcomes), self._add_contexts(outcomes), stopped)

    def begin_prompt(self) -> None:
        """Count repeated calls from here, because the user has said something."""
        self._repeats = None

    async def run_beside(self, call: ToolUseBlock) -> ToolOutcome:
        """Run a call that a client asks for. The conversation does not get it: its events are ephemeral."""
        (outcome,) = (await self._run([call], None)).outcomes
        return outcome or failure(INTERRUPTED)

    async def _run(self, calls: list[ToolUseBlock], turn_id: str | None) -> _Answer:
        orderings: list[Ordering] = [self.ordering(call.name) for call in calls[: self._most]]
        answer = _Answer(self, calls, orderings, turn_id)
        try:
            await answer.run()
        except BaseExceptionGroup as group:
            # The log cannot be written: all calls fail for this one reason.
            raise _first(group) from None
        finally:
            await answer.complete()
        return answer

    async def run_one(
        self, call: ToolUseBlock, state: SharedState, index: int, line: SequentialCalls | None, *, in_turn: bool
    ) -> ToolOutcome:
        """Run one call between its hooks; without them if the calls of the answer have been cancelled."""
        if index:
            # If no call ever waits, other tasks still have to run. Before the first, the loop has let them.
            await anyio.lowlevel.checkpoint()
        record = state.records[index] = ToolCall(
            session_id=self._session.id, call_id=call.id, tool=call.name, arguments=call.arguments
        )
        with self._session.services.observers.watch(record):
            outcome = await self._run_one(call, state, index, line, in_turn=in_turn)
            record.status, record.exit_code = outcome.status, outcome.exit_code
            record.result = outcome.text
            if record.decided_by is not None and record.decided_by != "client":
                outcome.decision = CallDecision(by=record.decided_by, reason=record.reason or None)
        if self._session.reminds_of_checks:
            # Imported with the first call of a process.
            from jumpseat.agent.session.checks import note_call

            own = isinstance(self._tools.find(call.name), BuiltinTool)
            note_call(self._session, record, files_are_noted=own)
        return outcome

    async def _run_one(
        self, call: ToolUseBlock, state: SharedState, index: int, line: SequentialCalls | None, *, in_turn: bool
    ) -> ToolOutcome:
        # Looked up before the call, during which the session may end.
        tool = self._tools.find(call.name)
        if state.stopped is not None:
            outcome = await self._execution.cancelled(call, state.stopped)
        else:

            def run() -> Awaitable[ToolOutcome]:
                return run_with_hooks(
                    self._session,
                    call,
                    lambda changed, hook: self._execution.execute(changed, state, index, line, hook),
                    state.records[index],
                )

            outcome = await (self._unless_repeated(call, run) if in_turn else run())
            if outcome.stopped is not None and state.stopped is None:
                state.stopped = ToolOutcome(STOPPED, status="denied")
        outcome.text = self._fit(outcome.text)
        outcome.notes += filter(None, (_ignored(call, tool), self._own_terms(call, tool)))
        return outcome

    def _own_terms(self, call: ToolUseBlock, tool: Tool | None) -> str:
        """Return the note about a name of another agent's tool, unless the model sees it in an earlier result."""
        note = "" if call.dialect is None else _terms_of(call, call.dialect, tool)
        conversation = self._session.conversation
        if conversation.rewrites != self._told_in:
            # Results may have been summarized, cleared or undone.
            self._told, self._told_in = NO_NAMES, conversation.rewrites
        if not note or note in self._told:
            return ""
        self._told |= {note}
        was_told = any(
            note in result.text[-MAX_NOTES_CHARS:]
            for message in conversation.messages()
            if isinstance(message, ToolMessage)
            for result in message.results
        )
        return "" if was_told else note

    async def _unless_repeated(self, call: ToolUseBlock, run: Callable[[], Awaitable[ToolOutcome]]) -> ToolOutcome:
        """Run a call, unless it is repeated without end."""
        if self._repeats is None:
            # Imported with the first call of a process.
            from jumpseat.tools.orchestrator.repeats import Repeats

            self._repeats = Repeats(self._repeat_limits)
        tool = self._tools.find(call.name)
        source: SourceName = "custom" if tool is None else tool.source
        if not self._repeats.watches(call.name, source):
            return await run()
        refused = await self._repeats.check(
            call,
            source,
            lambda question, choices: ask_user(self._session, call.id, question, choices, allow_freeform=True),
        )
        if refused is not None:
            return refused
        outcome = await run()
        outcome.notes += filter(None, [self._repeats.count(call, source, outcome)])
        return outcome

    async def outcome_of_abort(self, call: ToolUseBlock) -> ToolOutcome:
        """Return the outcome of a call that had not begun when the turn was aborted."""
        outcome = await self._execution.cancelled(call, failure(INTERRUPTED))
        outcome.text = self._fit(outcome.text)
        return outcome

    def is_left_open(self, call: ToolUseBlock) -> bool:
        """Return whether a call has no result because the session closes: its MCP server has a task for it."""
        return self._session.queue.closed and call.id in self._session.history.mcp_tasks

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
        config = self._session.settings.options.large_output
        limit = self._session.prompt_limit
        most = config.max_size_bytes if limit is None else min(config.max_size_bytes, largest_result(limit))
        # A character is one byte at least.
        if not config.enabled or len(text) * 4 <= most:
            return text
        # Few sessions have an output that is too large.
        from jumpseat.tools.orchestrator.result_limit import spill

        return spill(
            text,
            most,
            lambda name, data: self._session.storage.save_output(name, data, config.output_dir or None),
        )

    def excess_outcome(self) -> ToolOutcome:
        """Return the outcome of a call beyond the limit of one answer."""
        return failure(TOO_MANY.format(most=self._most))

    def publish_start(
        self, call: ToolUseBlock, turn_id: str | None, *, runs: bool, outer: str | None = None
    ) -> None:
        """Publish that a call begins; the command of a call that never ``runs`` is not parsed.

        Without ``turn_id``, the call is not part of a turn. ``outer`` is the id of the call that makes this one.
        """
        tool = self._tools.find(call.name)
        origin = tool.spec.origin if tool else None
        self._session.emit(
            events.ToolExecutionStart(
                tool_call_id=call.id,
                tool_name=call.name,
                arguments=call.arguments if call.arguments is not None else {},
                turn_id=turn_id,
                shell_tool_info=shell_info(call) if runs else None,
                mcp_server_name=origin.server if origin else None,
                mcp_tool_name=origin.tool if origin else None,
                parent_tool_call_id=outer,
            ),
            ephemeral=turn_id is None,
        )

    def publish_end(
        self, call: ToolUseBlock, outcome: ToolOutcome, turn_id: str | None, *, outer: str | None = None
    ) -> None:
        """Publish the result of a call; the arguments are those of :meth:`publish_start`."""
        error = None
        if not outcome.ok:
            error = events.ToolError(message=outcome.error or outcome.text, code=outcome.status)
        binary = [
            events.BinaryResult(data=image.data, mime_type=image.mime_type, description=image.label)
            for image in outcome.images
        ] + outcome.resources
        result = None
        if error is None or binary or outcome.text != error.message or outcome.detail is not None:
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
                sandboxed=outcome.sandboxed,
                jumpseat_decision=outcome.decision,
                turn_id=turn_id,
                parent_tool_call_id=outer,
            ),
            ephemeral=turn_id is None,
        )


class _Answer:
    """The calls of one answer; those without an ordering do not run.

    ``outcomes`` are by position, because a model may use one id twice.
    """

    def __init__(
        self, owner: ToolCalls, calls: list[ToolUseBlock], orderings: Sequence[Ordering], turn_id: str | None
    ) -> None:
        self.state = SharedState(turn_id=turn_id)
        self.outcomes: list[ToolOutcome | None] = [None] * len(calls)
        self._owner = owner
        self._calls = calls
        self._turn_id = turn_id
        self._most = len(orderings)
        self._started: set[int] = set()
        self._queued = {index for index, ordering in enumerate(orderings) if ordering == "queued"}
        self._independent = [index for index, ordering in enumerate(orderings) if ordering == "independent"]
        self._line = SequentialCalls()
        waiting = (index for index, ordering in enumerate(orderings) if ordering != "independent")
        # A queued call is alone in its group; neighbouring reading calls share one.
        self._groups = [
            list(group)
            for _, group in groupby(waiting, lambda index: index if index in self._queued else "reading")
        ]

    async def run(self) -> None:
        """Run the calls, then fail those that are too many."""
        await self._run_first()
        for index in range(self._most, len(self._calls)):
            # Thousands of events in a row would hold up everything else.
            await anyio.lowlevel.checkpoint()
            self._start(index)
            self.outcomes[index] = outcome = self._owner.excess_outcome()
            self._owner.publish_end(self._calls[index], outcome, self._turn_id)

    async def _run_first(self) -> None:
        first = self._groups[0] if self._groups else []
        for index in sorted([*self._independent, *first]):
            self._start(index)
        if not self._independent:
            await self._run_queue()
        elif self._most == 1:
            await self._run_one(0)
        else:
            async with anyio.create_task_group() as tasks:
                if self._groups:
                    tasks.start_soon(self._run_queue)
                for index in self._independent:
                    tasks.start_soon(self._run_one, index)

    async def complete(self) -> None:
        """Publish results of the calls that the end of the turn left without one."""
        left = [index for index, outcome in enumerate(self.outcomes) if outcome is None]
        if not left:
            return
        outcomes = {index: self.state.aborted.get(index) for index in left}
        with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
            for index in left:
                if index not in self._started:
                    outcomes[index] = await self._owner.outcome_of_abort(self._calls[index])
        with anyio.CancelScope(shield=True):
            for index, outcome in outcomes.items():
                if outcome is None and self._owner.is_left_open(self._calls[index]):
                    continue
                self._start(index)
                self._owner.publish_end(self._calls[index], outcome or failure(INTERRUPTED), self._turn_id)
                await anyio.lowlevel.checkpoint()

    async def _run_queue(self) -> None:
        line = self._line
        try:
            for at, (group, following) in enumerate(zip(self._groups, [*self._groups[1:], None], strict=True)):
                line.following = None if following is None else self._calls[following[0]].name
                behind = (self._calls[index].name for group in self._groups[at + 1 :] for index in group)
                self.state.calls_behind = sum(map(self._owner.may_ask, behind))
                for index in group:
                    self._start(index)
                if len(group) == 1:
                    await self._run_one(group[0])
                    continue
                async with anyio.create_task_group() as tasks:
                    for index in group:
                        tasks.start_soon(self._run_one, index)
            await line.end()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
                await line.end()

    async def _run_one(self, index: int) -> None:
        line = self._line if index in self._queued else None
        outcome = await self._owner.run_one(
            self._calls[index], self.state, index, line, in_turn=self._turn_id is not None
        )
        outcome.text += "".join(dict.fromkeys(outcome.notes))
        self.outcomes[index] = outcome
        self._owner.publish_end(self._calls[index], outcome, self._turn_id)

    def _start(self, index: int) -> None:
        if index not in self._started:
            self._started.add(index)
            self._owner.publish_start(self._calls[index], self._turn_id, runs=index < self._most)


def shell_info(call: ToolUseBlock) -> events.ShellToolInfo | None:
    """Return what the command of a ``bash`` call touches, as far as its text shows; ``None`` for other tools."""
    command = (call.arguments or {}).get("command") if call.name == "bash" else None
    if not isinstance(command, str) or len(command) > MAX_COMMAND_BYTES:
        return None
    from jumpseat.agent.shell.syntax import parse_shell

    line = parse_shell(command)
    return events.ShellToolInfo(
        possible_paths=list(line.possible_paths), has_write_file_redirection=line.has_write_file_redirection
    )


def _ignored(call: ToolUseBlock, tool: Tool | None) -> str:
    """Return the line that tells the model which of its arguments had no effect."""
    if tool is None or not is_ignoring(tool):
        return ""
    names = ", ".join(f"`{name[:40]}`" for name in tool.ignored(call.arguments or {})[:10])
    return f"\n[Ignored, because `{call.name}` has no such argument: {names}]" if names else ""


def _terms_of(call: ToolUseBlock, dialect: str, tool: Tool | None) -> str:
    """Return the line that tells the model what the tool and its arguments are called."""
    names = ", ".join(tool.spec.parameters.get("properties", {})) if tool is not None else ""
    # Imported with the first such call.
    from jumpseat.agent.model_calls.dialects import meant_tool

    if names and meant_tool(dialect, {}) not in (None, call.name):
        # A command that is nothing but the call of another tool.
        return f"\n[This was run as a call of `{call.name}`: call that tool itself, with the arguments {names}.]"
    other = f" not `{dialect}`," if dialect != call.name else ""
    return f"\n[This tool is called `{call.name}`,{other} and its arguments are {names}.]" if names else ""


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
