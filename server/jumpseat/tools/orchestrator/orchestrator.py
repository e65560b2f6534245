"""From a model's calls to their results, the same way for every kind of tool.

Preparing a call finds the tool, checks the arguments and asks permission; then it runs; then its result is cut
to size and published. Whatever happens on the way (unknown tool, bad arguments, refusal, crash, cancellation)
ends in exactly one ``tool.execution_complete``. Calls of one answer run at the same time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import INTERRUPTED, canonical_json
from jumpseat.agent.conversation.mentions import expand_mentions, mentions
from jumpseat.agent.model import ToolOrigin, ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.shell.syntax import parse_shell
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.tools.builtin.workspace import Files
from jumpseat.tools.client_tools import ClientTools, object_of_outcome, outcome_of_object
from jumpseat.tools.filters import Filter
from jumpseat.tools.large_output import spill
from jumpseat.tools.orchestrator.builtin_tools import BuiltinTools
from jumpseat.tools.orchestrator.deferral import TOOL_SEARCH, Deferral, ToolSearch, activate, guidance
from jumpseat.tools.questions import ask_user
from jumpseat.tools.shell.shell import GRACE_S
from jumpseat.tools.shell.shells import Shells
from jumpseat.tools.tool import (
    BuiltinTool,
    Grouping,
    Instructing,
    Prepared,
    Sequential,
    SequentialCalls,
    Tool,
    ToolContext,
    ToolOutcome,
    ToolSource,
    failure,
)
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import PreToolUseOutput
from jumpseat_protocol.permissions import HookPermission, PermissionRequest, ReadPermission, WritePermission
from jumpseat_protocol.sessions import ClientTool

log = logging.getLogger(__name__)

LEAVE_WITHIN_S: Final = 1.0
"""For tools that hear of the end of a turn they were still at work in."""

MakeSource: TypeAlias = Callable[[Session], ToolSource]


@dataclass(frozen=True, slots=True)
class Environment:
    """What the tools of all sessions share.

    ``builtin`` are the built-in ones, ``environ`` is the environment of their child processes, and ``sources`` make
    what else a session has tools from. Clients are given ``client_tool_s`` seconds for a call, or all the time.
    """

    builtin: tuple[BuiltinTool[Any], ...]
    environ: Mapping[str, str]
    sources: tuple[MakeSource, ...] = ()
    client_tool_s: float | None = None


class ToolOrchestrator:
    """The tools of one session. ``output_dir`` takes outputs that are too large for the model."""

    def __init__(self, session: Session, environment: Environment, output_dir: Path) -> None:
        self._session = session
        self._environment = environment
        self._output_dir = output_dir
        self._shells = Shells(session.services.tasks, session.clients.terminals)
        self._builtin = BuiltinTools(session, environment.builtin)
        # Of two tools with one name, that of the later source counts.
        self._sources: list[ToolSource] = [
            self._builtin,
            *(make(session) for make in environment.sources),
            ClientTools(session, environment.client_tool_s),
        ]
        self._instructing = [source for source in self._sources if isinstance(source, Instructing)]
        self._grouping = [source for source in self._sources if isinstance(source, Grouping)]
        self._deferral = Deferral(session)
        # What the prompt mentions that is about to be said.
        self._mentioned_now: list[str] = []

    # --- what the model is offered ------------------------------------------------------------------------------

    async def look(self, prompt: str) -> None:
        self._mentioned_now = mentions(prompt)
        for source in self._grouping:
            await source.look(prompt)

    def expand_mentions(self, prompt: str) -> str:
        return expand_mentions(prompt, self._words)

    def _words(self, name: str) -> str | None:
        offered = self._offered()
        members = [member for member in self._members(name, offered) if member in offered]
        if not members:
            return f"the `{name}` tool" if name in offered else None
        words = (source.words(name, members) for source in self._grouping)
        listed = ", ".join(f"`{member}`" for member in members)
        return next((one for one in words if one is not None), f"the tools {listed}")

    def _members(self, name: str, tools: Mapping[str, Tool]) -> list[str]:
        """The tools of a group, or those in ``tools`` of the server that ``mcp:server`` names; else none."""
        found = (source.members(name) for source in self._grouping)
        members = next((one for one in found if one is not None), (name,))
        expanded: list[str] = []
        for member in members:
            if member.startswith("mcp:"):
                expanded += [one for one, tool in tools.items() if _is_of_server(tool, member[4:])]
            elif member != name:
                expanded.append(member)
        return expanded

    def _hidden(self, tools: Mapping[str, Tool], needed: str | None = None) -> dict[str, Tool]:
        """What the model is not told of now, which the user has not mentioned."""
        named = {*self._session.mentions, *self._mentioned_now}
        named.update(*(self._members(name, tools) for name in list(named)))
        return self._deferral.deferred(tools, named if needed is None else {*named, needed})

    def instructions(self) -> str:
        tools = self._offered()
        hidden = self._hidden(tools)
        shown = tools.keys() - hidden.keys()
        texts = [text for source in self._instructing for text in source.instructions(shown)]
        return "\n\n".join([*texts, guidance(hidden)] if hidden else texts)

    def specs(self, needed: str | None = None) -> list[ToolSpec]:
        tools = self._offered()
        hidden = self._hidden(tools, needed)
        if hidden and TOOL_SEARCH not in tools:
            tools[TOOL_SEARCH] = ToolSearch(self._session, hidden)
        return [tool.spec for name, tool in tools.items() if name not in hidden]

    def deferred(self) -> list[ToolSpec]:
        return [tool.spec for tool in self._hidden(self._offered()).values()]

    def names(self, settings: SessionSettings | None = None) -> list[str]:
        return list(self._offered(settings))

    def check(self, tools: Mapping[str, ClientTool]) -> None:
        """Refuse client tools that would hide a built-in one without saying so.

        Raises:
            InvalidRequestError: naming the tool.
        """
        builtin = {tool.name for tool in self._environment.builtin}
        for source in self._sources:
            builtin.update(name for name, tool in source.tools().items() if tool.source == "builtin")
        for name, tool in tools.items():
            if name in builtin and not tool.overrides_built_in_tool:
                raise InvalidRequestError(
                    f"tool {name!r} has the name of a built-in tool; set overridesBuiltInTool to replace it"
                )

    def _offered(self, settings: SessionSettings | None = None) -> dict[str, Tool]:
        settings = settings or self._session.settings
        every: dict[str, Tool] = {}
        for source in self._sources:
            for name, tool in source.tools().items():
                every.pop(name, None)
                every[name] = tool
        groups = self._grouping
        wanted = Filter(
            settings,
            lambda name: (
                self._members(name, every) if any(source.members(name) is not None for source in groups) else ()
            ),
        )
        return {
            name: tool
            for name, tool in every.items()
            if wanted.offers(name, tool.source, tool.spec.origin if tool.source == "mcp" else None)
        }

    async def ready(self) -> None:
        for source in self._sources:
            await source.ready()

    # --- what the user is shown ---------------------------------------------------------------------------------

    def intention(self, call: ToolUseBlock) -> str | None:
        tool = self._offered().get(call.name)
        return None if tool is None or call.arguments is None else tool.summary(call.arguments)

    def origin(self, name: str) -> ToolOrigin | None:
        tool = self._offered().get(name)
        return tool.spec.origin if tool else None

    def shell_info(self, call: ToolUseBlock) -> events.ShellToolInfo | None:
        command = (call.arguments or {}).get("command") if call.name == "bash" else None
        if not isinstance(command, str):
            return None
        line = parse_shell(command)
        return events.ShellToolInfo(
            possible_paths=list(line.possible_paths), has_write_file_redirection=line.has_write_file_redirection
        )

    # --- running ------------------------------------------------------------------------------------------------

    async def run(self, calls: list[ToolUseBlock], turn_id: str) -> bool:
        session = self._session
        for call in calls:
            origin = self.origin(call.name)
            session.emit(
                events.ToolExecutionStart(
                    tool_call_id=call.id,
                    tool_name=call.name,
                    arguments=call.arguments if call.arguments is not None else {},
                    turn_id=turn_id,
                    shell_tool_info=self.shell_info(call),
                    mcp_server_name=origin.server if origin else None,
                    mcp_tool_name=origin.tool if origin else None,
                )
            )
        # By position: a model may use one id twice.
        outcomes: list[ToolOutcome | None] = [None] * len(calls)

        async def run_one(index: int, line: SequentialCalls | None = None) -> None:
            outcome = await self._outcome(calls[index], line)
            outcome.text = self._fit(outcome.text)
            outcomes[index] = outcome
            self._publish(calls[index], outcome, turn_id)

        async def run_in_line(indexes: list[int]) -> None:
            line = SequentialCalls()
            try:
                for index, behind in zip(indexes, [*indexes[1:], None], strict=True):
                    line.following = None if behind is None else calls[behind].name
                    await run_one(index, line)
                await line.end()
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
                    await line.end()

        waiting = self._sequential(calls)
        try:
            if len(calls) == 1 and not waiting:
                await run_one(0)
            else:
                async with anyio.create_task_group() as tasks:
                    if waiting:
                        tasks.start_soon(run_in_line, waiting)
                    for index in range(len(calls)):
                        if index not in waiting:
                            tasks.start_soon(run_one, index)
        except BaseExceptionGroup as group:
            # The log cannot be written: one such error says it all.
            raise group.exceptions[0] from None
        finally:
            for call, outcome in zip(calls, outcomes, strict=True):
                if outcome is None:
                    self._publish(call, failure(INTERRUPTED), turn_id)
        settled = [outcome for outcome in outcomes if outcome is not None]
        tools = self._offered() if any(outcome.references for outcome in settled) else {}
        for outcome in settled:
            for source, text in outcome.says:
                session.add_context(text, source)
            activate(session, (name for name in outcome.references if name in tools), "client")
            for text in outcome.contexts:
                session.add_context(text)
        return any(outcome.ends_turn for outcome in settled)

    def _sequential(self, calls: list[ToolUseBlock]) -> list[int]:
        """The positions of the calls that are to wait for each other."""
        tools = self._offered()
        found = [(index, tools.get(call.name)) for index, call in enumerate(calls)]
        return [index for index, tool in found if isinstance(tool, Sequential) and tool.sequential]

    async def close(self, grace_s: float | None = None) -> None:
        grace_s = GRACE_S if grace_s is None else grace_s
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._shells.close, grace_s)
            for source in self._sources:
                tasks.start_soon(source.close, grace_s)

    async def _outcome(self, call: ToolUseBlock, line: SequentialCalls | None) -> ToolOutcome:
        """What ``call`` comes to, with what the hooks before and after it have to say."""
        hooks = self._session.hooks
        if not hooks.present:
            return await self._execute(call, line, permission=None)
        before = await hooks.pre_tool_use(call.name, call.arguments or {})
        if before.permission_decision == "deny":
            reason = before.permission_decision_reason or "No reason provided"
            outcome = ToolOutcome(text=f"Denied by preToolUse hook: {reason}", status="denied")
        else:
            if before.modified_args is not None:
                text = canonical_json(before.modified_args)
                call = ToolUseBlock(call.id, call.name, text, before.modified_args)
            outcome = await self._execute(call, line, permission=before)
            outcome = await self._after(call, outcome)
            outcome.arguments = outcome.arguments or before.modified_args
        if before.additional_context:
            outcome.contexts.insert(0, before.additional_context)
        return outcome

    async def _after(self, call: ToolUseBlock, outcome: ToolOutcome) -> ToolOutcome:
        hooks, arguments = self._session.hooks, outcome.arguments or call.arguments or {}
        if outcome.ok:
            after = await hooks.post_tool_use(call.name, arguments, object_of_outcome(outcome))
            if after.modified_result is not None:
                # What is shown to the user goes too: it may tell what the hook has taken out.
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

    async def _execute(
        self, call: ToolUseBlock, line: SequentialCalls | None, permission: PreToolUseOutput | None
    ) -> ToolOutcome:
        """Prepare and run ``call``; a hook's ``permission`` takes the place of the usual question."""
        tools = self._offered()
        tool = tools.get(call.name)
        if tool is None and call.name == TOOL_SEARCH and (hidden := self._hidden(tools)):
            tool = ToolSearch(self._session, hidden)
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
            return await self._run(tool, call, line, permission)
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
        self, tool: Tool, call: ToolUseBlock, line: SequentialCalls | None, permission: PreToolUseOutput | None
    ) -> ToolOutcome:
        ctx = ToolContext(
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
        )
        prepared = await tool.prepare(ctx, call)
        if isinstance(prepared, ToolOutcome):
            return prepared
        request = _to_ask(prepared.permission, call, permission)
        permissions = self._session.permissions
        # Before anything else: a hook, or a tool that needs no permission, goes by what is forbidden as well.
        verdict = permissions.denial_by_rule(prepared.permission, call.name)
        if verdict is None:
            if request is None:
                return await prepared.run()
            request.tool_call_id = call.id
            try:
                verdict = await permissions.decide(request, call.name, prepared.guard)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
                    await _refused(prepared, failure(INTERRUPTED), cancelled=True)
                raise
        match verdict.status:
            case "denied":
                outcome = ToolOutcome(text=verdict.message, status="denied")
                return await _refused(prepared, outcome, cancelled=verdict.cancelled)
            case "rejected":
                outcome = ToolOutcome(text=verdict.message, status="rejected", ends_turn=True)
                return await _refused(prepared, outcome, cancelled=False)
            case "allowed":
                if verdict.arguments is None or verdict.arguments == call.arguments:
                    _settle(ctx, request)
                    return await prepared.run()
                return await self._run_changed(tool, ctx, call, verdict.arguments)

    async def _run_changed(
        self, tool: Tool, ctx: ToolContext, call: ToolUseBlock, arguments: JsonObject
    ) -> ToolOutcome:
        """Run ``call`` as a person has changed it, and tell the model that it was."""
        text = canonical_json(arguments)
        prepared = await tool.prepare(ctx, ToolUseBlock(call.id, call.name, text, arguments))
        if isinstance(prepared, ToolOutcome):
            outcome = prepared
        elif (forbidden := self._session.permissions.denial_by_rule(prepared.permission, call.name)) is not None:
            outcome = await _refused(
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

    def _fit(self, text: str) -> str:
        # Before a file takes it: events are masked by the session.
        text = self._session.services.secrets(text)
        config = self._session.settings.large_output
        if not config.enabled:
            return text
        return spill(
            text, config.max_size_bytes, Path(config.output_dir) if config.output_dir else self._output_dir
        )

    def _publish(self, call: ToolUseBlock, outcome: ToolOutcome, turn_id: str) -> None:
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

    def _show_partial(self, call_id: str, output: str) -> None:
        self._session.emit(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output=output))

    def _show_progress(self, call_id: str, line: str) -> None:
        self._session.emit(events.ToolExecutionProgress(tool_call_id=call_id, progress_message=line))


def _settle(ctx: ToolContext, request: PermissionRequest | None) -> None:
    """Have the file that permission was given for opened where its path led when that was judged."""
    match request:
        case ReadPermission(path=name) | WritePermission(file_name=name):
            # Without another place, the path has no links; what stands in its way now is refused.
            ctx.files.settle(Path(name), Path(request.resolved_path or os.path.normpath(name)))
        case _:
            pass


def _is_of_server(tool: Tool, server: str) -> bool:
    origin = tool.spec.origin if tool.source == "mcp" else None
    return origin is not None and origin.server == server


async def _refused(prepared: Prepared, outcome: ToolOutcome, *, cancelled: bool) -> ToolOutcome:
    return outcome if prepared.refused is None else await prepared.refused(outcome, cancelled=cancelled)


def _to_ask(
    request: PermissionRequest | None, call: ToolUseBlock, permission: PreToolUseOutput | None
) -> PermissionRequest | None:
    """What is to be asked before ``call`` runs, as a hook would have it."""
    if permission is None:
        return request
    if permission.permission_decision == "ask":
        return HookPermission(
            tool_name=call.name,
            tool_args=call.arguments,
            hook_message=permission.permission_decision_reason,
        )
    return None if permission.permission_decision == "allow" else request
