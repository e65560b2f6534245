"""Execute a tool call: find the tool, prepare the call, ask for permission, run the call.

Every way through ends in a :class:`ToolOutcome`: an unknown tool, invalid arguments, a refusal and a crash, too.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import INTERRUPTED, canonical_json
from jumpseat.agent.observation import ToolCall
from jumpseat.agent.permissions.permissions import ApprovalLimits
from jumpseat.agent.permissions.questions import ALLOWED, Verdict
from jumpseat.agent.permissions.rules import Facts
from jumpseat.agent.session.hooks import WARNING
from jumpseat.agent.session.questions import ask_user
from jumpseat.agent.session.session import Session
from jumpseat.errors import JumpseatError
from jumpseat.tools.filters import EDITS, PATCH
from jumpseat.tools.orchestrator.change_recorder import ChangeRecorder
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.orchestrator.offered_tools import OfferedTools
from jumpseat.tools.running_commands import CommandRunner
from jumpseat.tools.session_sandbox import own_programs
from jumpseat.tools.tool import (
    Approve,
    BuiltinTool,
    Cancellable,
    Inner,
    Prepared,
    SequentialCalls,
    Severity,
    Tool,
    ToolContext,
    ToolOutcome,
    failure,
)
from jumpseat.tools.workspace_files import FileEdit, Files
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import PreToolUseOutput
from jumpseat_protocol.permissions import (
    HookPermission,
    PermissionDecision,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    WritePermission,
)

if TYPE_CHECKING:
    from jumpseat.tools.findings import Checker

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_MISSES: Final = 3
"""Changes of a file that the model may not read, of which it learns without a question that they do not fit."""

MOST_PREPARED: Final = 3
"""Files of a call that checkers look at before they are changed."""

LEAVE_WITHIN_S: Final = 1.0
"""Time for a tool to react when its turn ends while it is at work."""

NOTIFICATION: Final = "tool"
"""The type of ``session.info`` and ``session.warning`` in which tools notify the user."""

CANCELLED: Final = "The user cancelled this tool call."
NOT_RUN: Final = "This tool call did not run, because the user rejected another call of the same answer."


class SharedState(Struct):
    """The state that the calls of one answer share.

    ``stopped`` is the outcome of the calls that have not begun, once the user has cancelled all calls, or has
    rejected one in a way that ends the turn. ``turn_id`` is ``None`` for calls outside of a turn. ``calls_behind``
    is the number of calls that wait for those that run, and may ask for permission. ``aborted`` are the outcomes of
    calls that ran when the turn was aborted, ``records`` what is recorded about all calls, both by their positions.
    """

    stopped: ToolOutcome | None = None
    turn_id: str | None = None
    calls_behind: int = 0
    aborted: dict[int, ToolOutcome] = field(default_factory=dict[int, ToolOutcome])
    records: dict[int, ToolCall] = field(default_factory=dict[int, ToolCall])
    _is_cancelled: bool = False
    _questions: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])

    async def ask(self, question: Awaitable[Verdict]) -> Verdict:
        """Wait for a verdict; if the calls are cancelled meanwhile, withdraw the question."""
        with anyio.CancelScope() as scope:
            self._questions.add(scope)
            try:
                verdict = await question
            finally:
                self._questions.discard(scope)
            self._stop(verdict)
            return verdict
        return Verdict("denied", CANCELLED, cancelled=True, by="turn")

    def _stop(self, verdict: Verdict) -> None:
        """Let no further call begin, if the verdict on one call concerns all of them."""
        if verdict.cancelled:
            self._is_cancelled = True
            self.stopped = ToolOutcome(CANCELLED, status="denied")
            for scope in list(self._questions):
                scope.cancel()
        elif verdict.status == "rejected" and self.stopped is None:
            self.stopped = ToolOutcome(NOT_RUN, status="denied")

    def status_of(self, outcomes: Sequence[ToolOutcome]) -> events.ToolsStatus:
        """Return the common status of the calls with these ``outcomes``."""
        if self._is_cancelled:
            return "cancelled"
        if any(outcome.status == "rejected" for outcome in outcomes):
            return "rejected"
        return "success" if all(outcome.ok for outcome in outcomes) else "failure"


class WithAbort(Protocol):
    """Does work for a call; if the turn is aborted meanwhile, keeps the outcome."""

    async def __call__(self, work: Callable[[], Awaitable[T]], /) -> T: ...


class CallExecution:
    """Runs single calls of one session's tools."""

    def __init__(
        self,
        session: Session,
        environment: Environment,
        tools: OfferedTools,
        shells: CommandRunner,
        changes: ChangeRecorder,
    ) -> None:
        self._changes = changes
        self._session = session
        self._environment = environment
        self._tools = tools
        self._shells = shells
        self._checkers: list[Checker] | None = None
        # Files whose content the model was allowed to read, or has written as a whole.
        self._known: set[Path] | None = None
        # By path, the number of changes that did not fit.
        self._misses: Counter[str] | None = None
        self.inner: Callable[[ToolUseBlock, SharedState], Inner] | None = None
        """Begins the calls that a call makes."""

    async def close_off(self, command: Sequence[str]) -> list[str] | None:
        """Return the command line that confines a Python program to computing; ``None`` if no sandbox can."""
        sandboxes = self._environment.sandboxes
        if sandboxes is None:
            return None
        scope = self._session.permissions.path_scope
        return await sandboxes.close_off(command, [*scope.folders(), *scope.session_folders])

    async def execute(
        self,
        call: ToolUseBlock,
        state: SharedState,
        index: int,
        line: SequentialCalls | None,
        hook: PreToolUseOutput | None,
    ) -> ToolOutcome:
        """Run ``call``, which has the position ``index`` in its answer.

        The permission decision of a ``preToolUse`` hook replaces the question to the client.

        Raises:
            JumpseatError: an error of the session, such as a log that cannot be written.
        """
        tool = self._tools.find(call.name)
        if tool is None:
            return failure(await self._tools.absence(call.name))
        if (record := state.records.get(index)) is not None:
            record.description = tool.spec.description
            record.server = tool.spec.origin.server if tool.spec.origin is not None else None
        if call.problem is not None:
            return failure(call.problem)
        if call.arguments is None:
            return failure(
                f"The arguments of `{call.name}` are not a JSON object. Send the call again with valid JSON."
            )
        try:
            outcome = await self._run(tool, call, state, index, line, hook)
            return outcome if outcome.absent is None else await self._with_near_paths(outcome, outcome.absent, call)
        except JumpseatError:
            raise
        except Exception:
            log.exception("session %s: tool %s failed", self._session.id, call.name)
            return failure(
                f"Failed to execute `{call.name}` tool with arguments: {canonical_json(call.arguments)}"
                " due to error: Error: Tool execution failed",
                error="Tool execution failed",
            )

    async def cancelled(self, call: ToolUseBlock, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome of a call that does not run, with the text of its tool where it has one."""
        outcome = replace(outcome)
        tool = self._tools.find(call.name)
        if not isinstance(tool, Cancellable) or call.arguments is None:
            return outcome
        try:
            return await tool.cancelled(self._context(call, None, _deny), call, outcome)
        except Exception:
            log.exception("session %s: tool %s failed to cancel a call", self._session.id, call.name)
            return outcome

    async def _run(
        self,
        tool: Tool,
        call: ToolUseBlock,
        state: SharedState,
        index: int,
        line: SequentialCalls | None,
        hook: PreToolUseOutput | None,
    ) -> ToolOutcome:
        allowed_by_hook = hook is not None and hook.permission_decision == "allow"
        record = state.records.get(index)

        async def approve(request: PermissionRequest, limits: ApprovalLimits) -> Verdict:
            asked = None if allowed_by_hook else request
            verdict = await self._decide(request, asked, limits, call, state)
            _record(record, request, verdict)
            return verdict

        async def concerns(request: PermissionRequest) -> bool:
            facts, permissions = await self._facts(request, call), self._session.permissions
            return permissions.denial_by_rule(facts) is not None or bool(permissions.asking_rule(request, facts))

        ctx = self._context(call, line, approve)
        ctx.concerns = concerns
        if (inner := self.inner) is not None:
            ctx.inner = lambda: inner(call, state)
        with_abort = partial(_with_abort, state, index, ctx)
        prepared = await with_abort(lambda: _prepare(tool, ctx, call))
        if isinstance(prepared, ToolOutcome):
            return prepared
        refused = await with_abort(lambda: self._refusal(prepared, call, record))
        if refused is not None:
            return refused
        request = _request_after_hook(prepared.permission, call, hook)
        if isinstance(prepared.permission, WritePermission):
            # While somebody is asked, and the change is made.
            for name in _files_of(prepared.permission)[:MOST_PREPARED]:
                self._prepare_checks(ctx, Path(name))
        verdict = await with_abort(lambda: self._decide(prepared.permission, request, prepared.guard, call, state))
        _record(record, prepared.permission, verdict)
        if verdict.status != "allowed":
            ends_turn = verdict.status == "rejected"
            outcome = ToolOutcome(verdict.message, "rejected" if ends_turn else "denied", ends_turn=ends_turn)
            return await _refused_outcome(prepared, outcome, cancelled=verdict.cancelled)
        ctx.confined_only = verdict.confined_only
        if verdict.arguments is None or verdict.arguments == call.arguments:
            _settle_path(ctx, request)
            if isinstance(request, ReadPermission):
                self._know(ctx.files.place(Path(request.path)))
            await with_abort(lambda: self._begin_checks(ctx, prepared.permission))
            outcome = await with_abort(partial(self._watched, tool, ctx, prepared.run))
            if isinstance(request, ReadPermission) and outcome.ok:
                self._prepare_checks(ctx, Path(request.path))
            return outcome
        return await self._run_changed(tool, ctx, call, verdict, with_abort)

    async def _decide(
        self,
        declared: PermissionRequest | None,
        asked: PermissionRequest | None,
        limits: ApprovalLimits,
        call: ToolUseBlock,
        state: SharedState,
    ) -> Verdict:
        """Decide whether a call, or a part of one, may run.

        ``declared`` is the permission that it needs, ``asked`` the one to ask for; ``None`` asks nobody.
        """
        permissions = self._session.permissions
        facts = await self._facts(declared, call)
        # Deny rules come first: they hold for hooks that allow a call and for tools that need no permission, too.
        verdict = permissions.denial_by_rule(facts)
        verdict = verdict or self._denial_in_plan_mode(declared, facts, call)
        if verdict is not None:
            return verdict
        if state.stopped is not None:
            return Verdict("denied", state.stopped.text, cancelled=True, by="turn")
        if declared is not None and permissions.wants_person(declared, facts) is not None:
            # No hook takes the place of the person.
            asked = asked or declared
            asked.managed_approval_required = True
        if asked is None:
            return replace(ALLOWED, by="tool" if declared is None else "hook")
        asked.tool_call_id = call.id
        verdict = await self._ask_hooks(asked, call)
        if verdict is None:
            own_facts, asking = facts, None
            if asked is not declared:
                # The question of a hook does not say what is asked for: rules are about the call itself.
                own_facts = await self._facts(asked, call)
                asking = permissions.asking_rule(declared, facts) if declared is not None else None
            verdict = await state.ask(
                permissions.decide(asked, call.name, limits, own_facts, asking, state.calls_behind)
            )
        if verdict.status != "allowed":
            return verdict
        # The mode may have changed while the question was open.
        return self._denial_in_plan_mode(declared, facts, call) or verdict

    def _denial_in_plan_mode(
        self, declared: PermissionRequest | None, facts: Facts, call: ToolUseBlock
    ) -> Verdict | None:
        if not self._session.reads_only or (tool := self._tools.find(call.name)) is None:
            return None
        # Imported here: few sessions are ever in plan mode.
        from jumpseat.tools.orchestrator.plan_mode import refusal

        text = refusal(self._session, tool, declared, facts)
        return Verdict("denied", text, by="mode") if text is not None else None

    async def _ask_hooks(self, request: PermissionRequest, call: ToolUseBlock) -> Verdict | None:
        """Return what hooks decide in place of a person; they cannot allow what only a person can."""
        answer = await self._session.hooks.permission_request(call.name, call.arguments or {})
        if answer.behavior is None or (answer.behavior == "allow" and _needs_person(request)):
            return None
        questions = self._session.permissions.questions
        if answer.behavior == "allow":
            questions.publish_resolved(request, PermissionDecision(kind="approved"))
            return replace(ALLOWED, arguments=answer.updated_input, by="hook")
        denial = PermissionDecision(
            kind="denied-by-permission-request-hook", message=answer.message, interrupt=answer.interrupt
        )
        questions.publish_resolved(request, denial)
        reason = answer.message or "No reason provided"
        if answer.interrupt:
            text = f"A hook ended the run: {reason}"
            self._session.emit(events.SessionWarning(warning_type=WARNING, message=text))
        status = "rejected" if answer.interrupt else "denied"
        return Verdict(status, f"Denied by permissionRequest hook: {reason}", by="hook")

    async def _facts(self, request: PermissionRequest | None, call: ToolUseBlock) -> Facts:
        """Return the facts that decide about a call, which may need no permission."""
        if request is None:
            return Facts("", call.name)
        return await self._session.permissions.facts_of(request, call.name)

    async def _refusal(self, prepared: Prepared, call: ToolUseBlock, record: ToolCall | None) -> ToolOutcome | None:
        """Return the outcome of a call that nobody is asked about, because it cannot succeed as things are.

        It shows the content of files only if the session may read them. Whether a text fits is content, too: after
        a few misses, the model has to view the file.
        """
        request, refusal = prepared.permission, prepared.refusal
        if not isinstance(request, WritePermission) or (refusal is None and not self._misses):
            return refusal
        facts = await self._facts(request, call)
        verdict = self._session.permissions.denial_by_rule(facts) or self._denial_in_plan_mode(request, facts, call)
        if verdict is not None:
            _record(record, request, verdict)
            return ToolOutcome(verdict.message, "denied")
        intention = request.intention
        hidden = [path for path in _files_of(request) if not await self._may_read(path, intention, call)]
        misses = self._misses or Counter[str]()
        tried = next((path for path in hidden if misses[path] >= MOST_MISSES), None)
        if tried is not None:
            return failure(f"View {tried} before you change it: earlier changes did not fit.")
        if refusal is None or not hidden:
            return refusal
        if refusal.withheld is not None:
            misses.update(hidden)
            self._misses = misses
            return replace(refusal, text=refusal.withheld)
        return failure("This change cannot be made as things are.") if facts.outside_paths else refusal

    async def _with_near_paths(self, outcome: ToolOutcome, path: str, call: ToolUseBlock) -> ToolOutcome:
        """Add the paths that the model may have meant, if it may list the working directory unasked."""
        cwd, virtual = self._session.settings.cwd, self._session.storage.virtual_files
        if virtual is not None and virtual.covers(str(cwd)):
            return outcome
        if not await self._may_read(str(cwd), "List the working directory", call):
            return outcome
        # Imported here: few paths are wrong.
        from jumpseat.tools.files import ignored_paths
        from jumpseat.tools.near_paths import near_paths, question

        environ = self._environment.child_environ(self._session.id)
        programs = own_programs(self._session, self._environment.sandboxes)
        ignored = await ignored_paths(cwd, environ, programs)
        found = await anyio.to_thread.run_sync(near_paths, path, cwd, ignored, abandon_on_cancel=True)
        return replace(outcome, text=f"{outcome.text} {question(found)}") if found else outcome

    async def _may_read(self, path: str, intention: str, call: ToolUseBlock) -> bool:
        """Return whether the model may read a file unasked, or was allowed to."""
        permissions = self._session.permissions
        read = ReadPermission(intention=intention, path=path)
        facts = await self._facts(read, call)
        if permissions.denial_by_rule(facts) is not None:
            return False
        places = {Path(found.real) for found in facts.paths}
        if places <= (self._known or set()) or not await anyio.to_thread.run_sync(os.path.lexists, path):
            return True
        return await permissions.allows_unasked(read, call.name)

    def _know(self, place: Path) -> None:
        # Made with the first file: most sessions of a server that only talks have none.
        if self._known is None:
            self._known = set()
        self._known.add(place)

    def _context(self, call: ToolUseBlock, line: SequentialCalls | None, approve: Approve) -> ToolContext:
        edits: list[FileEdit] = []

        def changed(edit: FileEdit) -> None:
            self._changes.record(edit, call.id)
            edits.append(edit)
            if not edit.existed:
                self._know(edit.place)

        virtual_files = self._session.storage.virtual_files
        if virtual_files is not None:
            from jumpseat.tools.virtual import WatchedVirtualFiles

            virtual_files = WatchedVirtualFiles(virtual_files, edits.append)
        return ToolContext(
            call_id=call.id,
            session_id=self._session.id,
            cwd=self._session.settings.cwd,
            environ=lambda: self._environment.child_environ(self._session.id),
            shells=self._shells,
            partial=lambda output: self._show_partial(call.id, output),
            progress=lambda line: self._show_progress(call.id, line),
            ask_user=lambda question, choices, freeform: ask_user(
                self._session, call.id, question, choices, allow_freeform=freeform
            ),
            line=line,
            notify=self._notify,
            approve=approve,
            files=Files(self._session.clients.files(), changed),
            web=self._environment.web,
            programs=own_programs(self._session, self._environment.sandboxes),
            virtual_files=virtual_files,
            edits=edits,
        )

    async def _run_changed(
        self, tool: Tool, ctx: ToolContext, call: ToolUseBlock, verdict: Verdict, with_abort: WithAbort
    ) -> ToolOutcome:
        """Run ``call`` with the arguments that a person or a hook changed, and inform the model of the change."""
        arguments = verdict.arguments or {}
        text = canonical_json(arguments)
        changed = ToolUseBlock(call.id, call.name, text, arguments)
        prepared = await with_abort(lambda: _prepare(tool, ctx, changed))
        if isinstance(prepared, ToolOutcome):
            outcome = prepared
        elif (forbidden := await self._denial(prepared, call, by_hook=verdict.by == "hook")) is not None:
            outcome = await _refused_outcome(
                prepared, ToolOutcome(text=forbidden.message, status="denied"), cancelled=False
            )
        elif (refused := await self._refusal(prepared, call, None)) is not None:
            outcome = refused
        else:
            await with_abort(lambda: self._begin_checks(ctx, prepared.permission))
            outcome = await with_abort(partial(self._watched, tool, ctx, prepared.run))
        outcome.arguments = arguments
        who = "A hook" if verdict.by == "hook" else "The user"
        outcome.contexts.append(
            f"{who} changed the arguments of the call `{call.id}` of `{call.name}` before allowing it."
            f" You sent: {canonical_json(call.arguments or {})} It ran with: {text}"
        )
        return outcome

    async def _denial(self, prepared: Prepared, call: ToolUseBlock, *, by_hook: bool) -> Verdict | None:
        """Return what forbids a call with changed arguments. A hook makes none that a person has to see."""
        permissions, request = self._session.permissions, prepared.permission
        facts = await self._facts(request, call)
        if (denial := permissions.denial_by_rule(facts)) is not None:
            return denial
        if by_hook and request is not None:
            if (rule := permissions.wants_person(request, facts)) is not None:
                return Verdict("denied", f"A person has to decide about this call: {rule}", by="rule")
            if _needs_person(request):
                return Verdict("denied", "A person has to decide about this call", by="rule")
        return self._denial_in_plan_mode(request, facts, call)

    async def _watched(
        self, tool: Tool, ctx: ToolContext, run: Callable[[], Awaitable[ToolOutcome]]
    ) -> ToolOutcome:
        """Run a call; if it runs a command, record the files that the command changes."""
        if not isinstance(tool, BuiltinTool):
            outcome = await self._beside_editor(run)
        elif not tool.runs_commands:
            outcome = await run()
        else:
            await self._changes.begin(ctx.cwd)
            outcome = await self._beside_editor(run)
            await self._changes.end()
        return await self._with_findings(ctx, outcome)

    async def _with_findings(self, ctx: ToolContext, outcome: ToolOutcome) -> ToolOutcome:
        """Add the problems to an outcome that the changes of the call, and of earlier ones, have brought."""
        if not outcome.ok or not self._environment.checkers or (not ctx.edits and self._checkers is None):
            return outcome
        # Imported with the first change.
        from jumpseat.tools.findings import described, find, net_changes

        if found := await find(self._made_checkers(), net_changes(ctx.edits)):
            outcome.text = f"{outcome.text}\n{described(found, ctx.cwd, later=not ctx.edits)}"
        return outcome

    def _made_checkers(self) -> list[Checker]:
        if self._checkers is None:
            self._checkers = [make(self._session) for make in self._environment.checkers]
        return self._checkers

    async def _begin_checks(self, ctx: ToolContext, request: PermissionRequest | None) -> None:
        """Let checkers ask for the diagnostics before a change, if a tool of a client lists them."""
        if not isinstance(request, WritePermission) or not self._environment.checkers:
            return
        from jumpseat.tools.findings import Reporter, begin, find_reporter

        tool = find_reporter(self._tools.offered())
        if tool is not None:
            paths = [ctx.files.place(Path(name)) for name in _files_of(request) if not ctx.is_virtual(name)]
            reporter = Reporter(tool.spec.parameters, partial(self._ask_tool, ctx, tool), ctx.cwd)
            await begin(self._made_checkers(), paths, reporter)

    def _prepare_checks(self, ctx: ToolContext, path: Path) -> None:
        """Let checkers look in the background at a file that the model has read, or is about to change."""
        if self._environment.checkers and not {*EDITS, PATCH}.isdisjoint(self._tools.offered()):
            from jumpseat.tools.findings import prepare

            self._session.services.tasks.start_soon(prepare, self._made_checkers(), path, ctx.files)

    async def _ask_tool(self, ctx: ToolContext, tool: Tool, arguments: JsonObject) -> str | None:
        """Return the result of a tool that may run unasked."""
        call = ToolUseBlock(f"{ctx.call_id}-diagnostics", tool.name, canonical_json(arguments), arguments)
        prepared = await tool.prepare(self._context(call, None, _deny), call)
        if isinstance(prepared, ToolOutcome):
            return None
        permissions, request = self._session.permissions, prepared.permission
        if permissions.denial_by_rule(await self._facts(request, call)) is not None:
            return None
        if request is not None and not await permissions.allows_unasked(request, tool.name):
            return None
        outcome = await prepared.run()
        return outcome.text if outcome.ok else None

    async def _beside_editor(self, run: Callable[[], Awaitable[ToolOutcome]]) -> ToolOutcome:
        """Run a call that may change files whose buffers an editor lends."""
        editor = self._session.clients.files()
        if editor is None:
            return await run()
        editor.history.begin_call()
        try:
            return await run()
        finally:
            editor.history.end_call(continues=self._changes.is_running())

    def _notify(self, text: str, severity: Severity) -> None:
        if severity == "info":
            self._session.emit(events.SessionInfo(info_type=NOTIFICATION, message=text))
        else:
            self._session.emit(events.SessionWarning(warning_type=NOTIFICATION, message=text))

    def _show_partial(self, call_id: str, output: str) -> None:
        self._session.emit(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output=output))

    def _show_progress(self, call_id: str, line: str) -> None:
        self._session.emit(events.ToolExecutionProgress(tool_call_id=call_id, progress_message=line))


def _needs_person(request: PermissionRequest) -> bool:
    """Return whether no hook can allow what a request asks for."""
    return (
        isinstance(request, HookPermission)
        or (isinstance(request, ShellPermission) and request.request_sandbox_bypass is True)
        or request.managed_approval_required is True
    )


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


def _files_of(request: WritePermission) -> list[str]:
    return [file.path for file in request.files] or [request.file_name]


def _record(record: ToolCall | None, request: PermissionRequest | None, verdict: Verdict) -> None:
    if record is not None:
        record.kind = record.kind if request is None else request.kind
        record.decision, record.decided_by, record.reason = verdict.status, verdict.by, verdict.reason


def _settle_path(ctx: ToolContext, request: PermissionRequest | None) -> None:
    """Make the call open the file that its path resolved to when permission was given."""
    match request:
        case WritePermission(file_edits=[_, *_]):
            for file in request.files:
                ctx.files.settle(Path(file.path), Path(file.resolved_path or os.path.normpath(file.path)))
        case ReadPermission(path=name) | WritePermission(file_name=name):
            # Without resolved_path the path contains no links; a link that appears in it later is refused.
            ctx.files.settle(Path(name), Path(request.resolved_path or os.path.normpath(name)))
        case _:
            pass


async def _deny(_request: PermissionRequest, _limits: ApprovalLimits) -> Verdict:
    return Verdict("denied", CANCELLED)


async def _prepare(tool: Tool, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
    ctx.refused = None
    prepared = await tool.prepare(ctx, call)
    ctx.refused = prepared.refused if isinstance(prepared, Prepared) else None
    return prepared


async def _with_abort(state: SharedState, index: int, ctx: ToolContext, work: Callable[[], Awaitable[T]]) -> T:
    """Do ``work`` for a call; if the turn is aborted meanwhile, keep the tool's outcome of that."""
    try:
        return await work()
    except anyio.get_cancelled_exc_class():
        if ctx.refused is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
                state.aborted[index] = await ctx.refused(failure(INTERRUPTED), cancelled=True)
        raise


async def _refused_outcome(prepared: Prepared, outcome: ToolOutcome, *, cancelled: bool) -> ToolOutcome:
    return outcome if prepared.refused is None else await prepared.refused(outcome, cancelled=cancelled)
