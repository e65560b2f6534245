"""A call of a declared tool, from its arguments to its result.

::

    arguments -> env -> setup -> asked for permission -> cmd 1 -> success -> cmd 2 -> success -> on_exit
                                       |                   |
                                       |                   error -> on_exit
                                       rejected, cancelled -> on_exit

``success`` is called after every command or function, ``error`` once. Whatever the functions do, the call has a
result: the text that they have added, else the output of the commands. Exceptions of functions go to the log only.

For a tool with the handler ``approved`` (of 2024), permission is asked for each command before it runs.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.permissions.permissions import ApprovalLimits
from jumpseat.agent.permissions.questions import Verdict
from jumpseat.agent.secrets import MIN_LENGTH, Secrets
from jumpseat.declared.calling import HandlerError
from jumpseat.declared.env import SECRET_NAME, EnvResolver, EnvValues
from jumpseat.errors import ConfigError
from jumpseat.sandbox.session import SandboxUnavailableError
from jumpseat.sandbox.view import TEMP_FOLDERS
from jumpseat.tools.declared.approval import line_of, request_for
from jumpseat.tools.declared.cmd_functions import run_function
from jumpseat.tools.declared.definition import Command, Definition, Handler, read_step
from jumpseat.tools.declared.handler_calls import Handlers
from jumpseat.tools.declared.schema import lenient, problems_of
from jumpseat.tools.declared.substitution import Entries, Filled, fill, values_of_call
from jumpseat.tools.declared.view import ChatView, ToolView, as_text
from jumpseat.tools.files import describe
from jumpseat.tools.shell.captured_commands import CommandResult, Commands
from jumpseat.tools.shell.sandbox_needs import Placement, place
from jumpseat.tools.tool import Prepared, SequentialCalls, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import PermissionRequest, ShellPermission

log = logging.getLogger(__name__)

OUTSIDE: Final = (
    "<only the user can change that: with a reason in `unsandboxed`, the declaration of this tool asks for its"
    " commands to run outside of the sandbox>"
)

CLOCK_S: Final = 0.05
"""The time by which the clock of a file system may be behind."""

_TEMPORARY: Final = re.compile(r"/[^\s\"'`$;&|<>()\0]+")

FAILED: Final = "Tool execution failed"

REJECTED: Final = Verdict("denied", "The user rejected this tool call.")
UNCHANGEABLE: Final = Verdict("denied", "The arguments of this tool call cannot be changed any more.")


class Services(Struct):
    """Shared by the calls of one session. ``flags`` record whether commands with a flag succeeded.

    Functions and commands share temporary files that have changed ``since`` then.
    """

    session_id: str
    commands: Commands
    resolver: EnvResolver
    secrets: Secrets
    flags: dict[str, bool]
    adapter: str | None = None
    since: float = field(default_factory=time.time)


class _Done(Struct, frozen=True):
    """The result of one step. ``given`` is the input of the next step, ``report`` the text for the model.

    ``refusals`` are the lines in it about the sandbox.
    """

    status: Literal["success", "failure", "timeout"]
    data: Any
    given: Any
    report: str
    error: str | None = None
    refusals: str = ""

    @property
    def ok(self) -> bool:
        return self.status == "success"


class Call:
    """A call of a declared tool. ``always_ask`` is set for tools of clients, which cannot waive approval."""

    def __init__(
        self, definition: Definition, use: ToolUseBlock, ctx: ToolContext, services: Services, *, always_ask: bool
    ) -> None:
        self._definition = definition
        self._ctx = ctx
        self._services = services
        self._always_ask = always_ask
        self._line = ctx.line or SequentialCalls()
        self._chat = ChatView(services.session_id, ctx.cwd, services.flags, services.adapter, ctx.notify)
        self._view = ToolView(definition, use, self._chat)
        self._owner = f"tool {definition.name!r}"
        values = values_of_call(EnvValues(self._owner, {}), self._view.args, definition.parameters)
        self._handlers = Handlers(definition, self._view, self._chat, values)
        self._cwd = ctx.cwd
        self._entries = Entries()
        self._steps: Sequence[Filled | Handler] = ()
        self._continues = False
        self._is_asked = self._asks_each = False
        self._place = Placement()
        self._sandboxed: bool | None = None
        self._is_set_up = False
        self._has_exited = False
        # The reports of the commands, the result of the last function, and the reports that the model must get even
        # if functions have added other text.
        self._reports: list[str] = []
        self._last = ""
        self._untold: list[str] = []

    # --- before ---------------------------------------------------------------------------------------------------

    async def prepare(self) -> Prepared | ToolOutcome:
        """Check the arguments, resolve values and run ``setup``; return the call with the permission it needs."""
        name, view = self._definition.name, self._view
        self._ctx.refused = self.refused
        try:
            view.use_arguments(lenient(view.args, self._definition.parameters))
            problems = problems_of(view.args, self._definition.parameters)
            if problems:
                return failure(f"Invalid arguments for `{name}`: {'; '.join(problems)}")
            await self._resolve_values()
            await self._set_up()
            self._steps = self._entries.read(view.cmds)
            permission = await self._permission()
            guard = await self._guard()
        except HandlerError as error:
            return self._handler_failure(error)
        except ConfigError as error:
            problem = str(error).removeprefix(f"{self._owner}: ")
            return failure(f"The tool `{name}` cannot be run: {problem}")
        return Prepared(permission, self.run, self.refused, guard)

    async def _resolve_values(self) -> None:
        definition, view, owner = self._definition, self._view, self._owner
        if callable(definition.env):
            given = await self._handlers.call("env", definition.env, schema=view.request, request=view.request)
            if given is not None and not isinstance(given, Mapping):
                log.error("%s: env: expected a mapping, got %s", owner, type(given).__name__)
                raise HandlerError("env", "no mapping")
            env = EnvValues(owner, dict(cast("Mapping[str, Any]", given or {})))
        else:
            env = await self._services.resolver.resolve(owner, definition.env, view.lookup, view)
        named = (as_text(value) for name, value in env.values.items() if SECRET_NAME.search(name))
        self._services.secrets.add(value for value in named if len(value.strip()) >= MIN_LENGTH)
        view.env = env.table()
        values = self._handlers.values = values_of_call(env, view.args, definition.parameters)
        steps = (read_step(owner, cmd) for cmd in definition.cmds)
        view.cmds = [
            self._entries.plain(fill(step, values, env.values)) if isinstance(step, Command) else step
            for step in steps
        ]
        if definition.cwd is not None:
            self._cwd = _inside(self._ctx.cwd, values.text(definition.cwd))

    async def _set_up(self) -> None:
        """Run ``setup``, unless this call continues the previous one of the same tool."""
        definition, view = self._definition, self._view
        owed = self._line.unfinished
        if owed is not None:
            self._line.unfinished = None
            name, before, leave = owed
            if name == definition.name and isinstance(before, ToolView):
                view.take_over(before)
                self._continues = self._is_set_up = True
                return
            await leave()
        self._is_set_up = True
        if definition.build_cmd is not None:
            view.cmds = [await self._handlers.call("build_cmd", definition.build_cmd)]
        await self._handlers.handle("setup")

    async def _permission(self) -> PermissionRequest | None:
        self._is_asked = self._always_ask or await self._needs_approval()
        if any(isinstance(step, Filled) for step in self._steps):
            await self._ctx.shells.probe()
        if "approved" in self._definition.handlers:
            self._asks_each = self._is_asked
            return None
        if self._runs_commands_only:
            placement = self._placement_of(self._steps)
            self._is_asked = self._is_asked or await self._concerns_rules(self._steps, placement)
            if self._is_asked or self._must_ask(placement):
                self._place = placement
        if not self._is_asked and self._place.leaves is None:
            return None
        question = await self._handlers.text_of("prompt")
        return request_for(self._view, self._steps, question, self._place)

    @property
    def _runs_commands_only(self) -> bool:
        """Return whether one request shows everything that the call runs."""
        return "approved" not in self._definition.handlers and all(isinstance(step, Filled) for step in self._steps)

    def _placement_of(self, steps: Sequence[Filled | Handler]) -> Placement:
        """Return where commands run once they are approved."""
        shells = self._ctx.shells
        return place(
            line_of([step.shown for step in steps if isinstance(step, Filled)]),
            confines=shells.confines(),
            may_leave=shells.may_leave,
            unsandboxed=self._definition.unsandboxed,
            counts=shells.sandbox_counts,
        )

    def _must_ask(self, placement: Placement) -> bool:
        """Return whether commands leave the sandbox, which nothing but an answer or an approval can allow."""
        return placement.leaves is not None and (self._is_asked or placement.requested)

    async def _concerns_rules(self, steps: Sequence[Filled | Handler], placement: Placement) -> bool:
        """Return whether rules forbid commands, or want a person to decide: a tool cannot waive that."""
        request = request_for(self._view, steps, None, placement)
        return isinstance(request, ShellPermission) and await self._ctx.concerns(request)

    async def _guard(self) -> ApprovalLimits:
        opts = self._definition.opts
        scope = None
        if opts.require_cmd_approval:
            scope = await self._handlers.text_of("cmd_string")
            if scope is None:
                scope = canonical_json(self._view.args)
        return ApprovalLimits(needs_person=not opts.allowed_in_yolo_mode, scope=scope)

    async def _needs_approval(self) -> bool:
        approval, call = self._definition.opts.approval, self._handlers.call
        condition = self._definition.handlers.get("prompt_condition")
        if callable(approval):
            approval = await call("requires_approval", cast("Handler", approval))
        # Unset, or a function without a result: asking is safe.
        if approval is not None and not approval:
            return False
        return condition is None or bool(await call("prompt_condition", condition))

    # --- running --------------------------------------------------------------------------------------------------

    async def run(self) -> ToolOutcome:
        """Run all commands and functions, and the handlers around them."""
        if self._ctx.confined_only:
            self._place = replace(self._place, approved=False, hosts=())
        outcome = await self._run_steps()
        outcome.sandboxed = self._sandboxed
        await self._leave()
        return self._handlers.finish(outcome, self._untold)

    async def cancelled(self, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome of a call that was cancelled before it was prepared."""
        await self._add_refusal("cancelled", outcome)
        return self._handlers.finish(outcome)

    async def refused(self, outcome: ToolOutcome, *, cancelled: bool) -> ToolOutcome:
        """Return the outcome of a call that was not allowed or was aborted, with the tool's own text if any."""
        await self._add_refusal("cancelled" if cancelled else "rejected", outcome)
        await self._exit()
        return self._handlers.finish(outcome)

    async def _add_refusal(self, kind: str, outcome: ToolOutcome) -> None:
        outcome.error = outcome.error or outcome.text
        cmd = self._handlers.cmd_of(self._steps[0] if self._steps else None)
        await self._handlers.try_to_add_output(kind, reason=outcome.text, cmd=cmd)

    async def _run_steps(self) -> ToolOutcome:
        refusal: ToolOutcome | None = None
        for number, step in enumerate(self._steps):
            refused, stops = await self._refusal_of(step)
            if refused is not None:
                refusal = refused
                if stops:
                    break
                continue
            done = await self._step(number, step)
            self._line.last = done.given
            failed = await self._after(step, done, is_last=number + 1 == len(self._steps))
            if failed is not None:
                return failed
        text = self._combined_output()
        if refusal is not None:
            refusal.text = text
            return refusal
        if self._handlers.in_messages:
            return ToolOutcome(
                f"The tool `{self._view.name}` ran. Its output is in a message.", detail=text or None
            )
        return ToolOutcome(text or f"The tool `{self._view.name}` ran and gave no output.")

    async def _refusal_of(self, step: Filled | Handler) -> tuple[ToolOutcome | None, bool]:
        """Ask whether a step may run, if the tool has the handler ``approved`` or the step leaves the sandbox.

        Return the outcome of a refusal, and whether the remaining steps do not run either.
        """
        handlers = self._handlers
        approved = self._definition.handlers.get("approved")
        if self._runs_commands_only:
            return None, False
        self._place = Placement()
        cmd = handlers.cmd_of(step)
        try:
            answer = approved is None or await handlers.call("approved", approved, cmd=cmd)
        except HandlerError:
            answer = False
        if isinstance(answer, Mapping):
            answer = cast("Mapping[str, Any]", answer).get("status") == "success"
        verdict = REJECTED
        if answer:
            placement = self._placement_of([step]) if isinstance(step, Filled) else Placement()
            needs_answer = self._asks_each or self._must_ask(placement)
            if not needs_answer and not await self._concerns_rules([step], placement):
                return None, False
            question = await handlers.text_of("prompt")
            request = request_for(self._view, [step], question, placement)
            verdict = await self._ctx.approve(request, await self._guard())
            if verdict.status == "allowed" and verdict.arguments is None:
                inside = verdict.confined_only
                self._place = replace(placement, approved=False, hosts=()) if inside else placement
                return None, False
            if verdict.status == "allowed":
                verdict = UNCHANGEABLE
        told = verdict.message.replace("this tool call", "this command")
        report = f"$ {step.shown}\n{told}" if isinstance(step, Filled) else told
        self._reports.append(report)
        if not await handlers.try_to_add_output(
            "cancelled" if verdict.cancelled else "rejected", cmd=cmd, reason=told
        ):
            self._untold.append(report)
        ends_turn = verdict.status == "rejected"
        status = "rejected" if ends_turn else "denied"
        outcome = ToolOutcome(report, status, error=verdict.message, ends_turn=ends_turn)
        # Tools of 2024 go on with their next command.
        return outcome, ends_turn or verdict.cancelled or approved is None

    async def _after(self, step: Filled | Handler, done: _Done, *, is_last: bool) -> ToolOutcome | None:
        """Call ``success`` or ``error`` after a step; return the outcome of the call if it has failed."""
        handlers, tools, legacy = self._handlers, self._view.tools, self._definition.legacy
        more: dict[str, Any] = {"cmd": handlers.cmd_of(step)}
        if done.ok:
            tools.stdout.append(done.data)
            if legacy:
                more["stdout"] = done.data
                if not isinstance(step, Filled) and not is_last:
                    # In 2024 the last function alone had an output.
                    return None
            try:
                await handlers.add_output("success", **more)
            except HandlerError:
                return failure(f"The tool `{self._view.name}` failed.", error=FAILED)
            return None
        tools.stderr.append(done.data)
        if legacy:
            more["stderr"] = done.data
        report = done.report or f"The tool `{self._view.name}` failed."
        if not await handlers.try_to_add_output("error", **more):
            self._untold.append(report)
        elif done.refusals:
            self._untold.append(done.refusals)
        return ToolOutcome(self._combined_output() or report, done.status, error=done.error)

    def _combined_output(self) -> str:
        return "\n\n".join(filter(None, (*self._reports, self._last)))

    async def _step(self, number: int, step: Filled | Handler) -> _Done:
        if isinstance(step, Filled):
            done = await self._run_command(step)
            self._reports.append(done.report)
            return done
        try:
            done = await self._run_function(number, step)
        except HandlerError as error:
            fault = self._handler_failure(error)
            done = _Done(
                "timeout" if error.timed_out else "failure", fault.text, fault.text, fault.text, fault.error
            )
        self._last = done.report
        return done

    async def _run_function(self, number: int, function: Handler) -> _Done:
        view, definition = self._view, self._definition
        values = {
            "tool": view.tools if definition.legacy else view,
            "tools": view.tools,
            "chat": self._chat,
            "args": view.args,
            "request": view.request,
            "input": self._line.last,
        }
        place = f"{self._owner}: cmds[{number}]"
        answer = await run_function(
            place, function, values, timeout_s=definition.timeout_s, legacy=definition.legacy
        )
        view.results.append({"status": "success" if answer.ok else "error", "data": answer.data})
        return _Done("success" if answer.ok else "failure", answer.data, answer.given, as_text(answer.data))

    async def _run_command(self, step: Filled) -> _Done:
        ctx, view = self._ctx, self._view
        limit_s = step.command.timeout_s or self._definition.timeout_s
        try:
            ended = await self._services.commands.run(
                step.argv,
                cwd=_inside(self._cwd, step.command.cwd),
                environ={**ctx.environ(), **step.variables},
                stdin=step.command.stdin,
                timeout_s=limit_s,
                show=ctx.partial,
                placement=self._place,
                temporary=_shared_files(step, canonical_json(view.args), self._services.since),
                call_id=ctx.call_id,
            )
        except SandboxUnavailableError as error:
            ended = CommandResult(127, "", f"{error}.", 0)
        except OSError as error:
            ended = CommandResult(
                127, "", f"The command could not be started: {describe(error)} ({error.filename}).", 0
            )
        except ValueError:
            ended = CommandResult(127, "", "The command contains a NUL character.", 0)
        if step.command.flag is not None:
            view.tools.flags[step.command.flag] = ended.exit_code == 0
        if ended.sandboxed is not None:
            self._sandboxed = ended.sandboxed and self._sandboxed is not False
        ok = ended.exit_code == 0
        data = ended.stdout.splitlines() if ok else [*ended.stderr.splitlines(), *ended.stdout.splitlines()]
        result = {
            "status": "success" if ok else "error",
            "data": data,
            "exit_code": ended.exit_code,
            "stdout": ended.stdout,
            "stderr": ended.stderr,
            "duration_s": ended.duration_s,
        }
        view.results.append(result)
        status = "timeout" if ended.timed_out else "success" if ok else "failure"
        refusals = "\n".join([*(f"<the sandbox refused {what}>" for what in ended.refusals), OUTSIDE])
        report = _report(step, ended, limit_s, alone=len(self._steps) == 1)
        if not ended.refusals:
            return _Done(status, data, result, report)
        return _Done(status, data, result, f"{report}\n{refusals}", refusals=refusals)

    async def _leave(self) -> None:
        """Run ``on_exit``, or leave it to the next call if both share their handlers."""
        if self._definition.opts.use_handlers_once and self._line.following == self._definition.name:
            self._line.unfinished = (self._definition.name, self._view, self._exit)
        else:
            await self._exit()

    async def _exit(self) -> None:
        if self._is_set_up and not self._has_exited:
            self._has_exited = True
            # The call has its result even if this fails.
            with suppress(HandlerError):
                await self._handlers.handle("on_exit")

    def _handler_failure(self, error: HandlerError) -> ToolOutcome:
        if error.timed_out:
            text = f"The tool `{self._view.name}` gave no result within {self._definition.timeout_s:g} s."
            return ToolOutcome(text, "timeout", error=text)
        return failure(f"The tool `{self._view.name}` failed.", error=FAILED)


def _inside(folder: Path, path: str | None) -> Path:
    # Not Path.expanduser, which raises for an unknown user.
    return folder / os.path.expanduser(path or "")


def _shared_files(step: Filled, arguments: str, since: float) -> list[Path]:
    """Return the temporary files and folders that functions of the tool made for a command, which names them.

    A path that the model has given, in ``arguments``, is none of them.
    """
    # Only POSIX has users, and sandboxes.
    if sys.platform == "win32":
        return []
    found: list[Path] = []
    for word in (*step.argv, *step.variables.values()):
        for match in _TEMPORARY.finditer(word):
            path = Path(os.path.realpath(match[0]))
            # A command may create a file in a folder that a function has made.
            path = next((path for path in (path, *path.parents) if os.path.lexists(path)), path)
            if match[0] in arguments or not any(folder in path.parents for folder in _temp_folders()):
                continue
            with suppress(OSError):
                status = os.lstat(path)
                is_file = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
                if is_file and status.st_uid == os.getuid() and status.st_ctime >= since - CLOCK_S:
                    found.append(path)
    return found


def _temp_folders() -> set[Path]:
    return {Path(os.path.realpath(folder)) for folder in (*TEMP_FOLDERS, tempfile.gettempdir())}


def _report(step: Filled, ended: CommandResult, limit_s: float, *, alone: bool) -> str:
    """Describe the result of a command for the model: both streams separately, and the exit code."""
    lines = [] if alone else [f"$ {step.shown}"]
    if ended.stdout:
        lines.append(ended.stdout)
    if ended.stderr:
        lines.append(f"<stderr>\n{ended.stderr}\n</stderr>")
    if ended.timed_out:
        lines.append(f"<timed out after {limit_s:g} s>")
    # Short times are left out, so that equal runs give equal texts.
    time = f" after {ended.duration_s:.0f} s" if ended.duration_s >= 1 and not ended.timed_out else ""
    lines.append(f"<exited with exit code {ended.exit_code}{time}>")
    return "\n".join(lines)
