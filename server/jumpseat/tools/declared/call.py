"""A call of a declared tool, from its arguments to its result.

::

    arguments -> env -> setup -> asked for permission -> cmd 1 -> success -> cmd 2 -> success -> on_exit
                                       |                   |
                                       |                   error -> on_exit
                                       rejected  (and no on_exit)
                                       cancelled -> on_exit

``success`` is called after every command or function, ``error`` once. Whatever the functions do, the call has a
result: the text that they have added, else the output of the commands. Exceptions of functions go to the log only.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import anyio

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.permissions.permissions import ApprovalLimits
from jumpseat.agent.secrets import MIN_LENGTH, Secrets
from jumpseat.declared.env import SECRET_NAME, EnvResolver, EnvValues, MissingValueError
from jumpseat.errors import ConfigError
from jumpseat.tools.declared.approval import request_for
from jumpseat.tools.declared.calling import HandlerError, bind, call, log_failure
from jumpseat.tools.declared.commands import CommandResult, Commands
from jumpseat.tools.declared.definition import Command, Definition, Handler, read_step
from jumpseat.tools.declared.filling import Filled, fill, values_of_call, without_filling
from jumpseat.tools.declared.functions import run_function
from jumpseat.tools.declared.schema import problems_of
from jumpseat.tools.declared.view import ChatView, ToolView, as_text
from jumpseat.tools.files import describe
from jumpseat.tools.tool import Prepared, SequentialCalls, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import PermissionRequest

log = logging.getLogger(__name__)

FAILED: Final = "Tool execution failed"

LEAVE_WITHIN_S: Final = 1.0
"""Time for the functions that are called when a call is aborted."""

_ORDERS: Final[Mapping[str, Mapping[int, tuple[str, ...]]]] = {
    "env": {0: (), 1: ("tool",)},
    "build_cmd": {0: (), 1: ("args",)},
    "setup": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "on_exit": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "prompt_condition": {0: (), 1: ("tool",), 2: ("tool", "tools"), 3: ("tool", "tools", "config")},
    "requires_approval": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "approved": {0: (), 1: ("tool",), 2: ("tool", "cmd")},
    "prompt": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "cmd_string": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "success": {
        0: (),
        1: ("stdout",),
        2: ("tool", "stdout"),
        3: ("tool", "stdout", "opts"),
        4: ("tool", "tools", "cmd", "stdout"),
    },
    "error": {
        0: (),
        1: ("stderr",),
        2: ("tool", "stderr"),
        3: ("tool", "stderr", "opts"),
        4: ("tool", "tools", "cmd", "stderr"),
        5: ("tool", "tools", "cmd", "stderr", "stdout"),
    },
    "rejected": {0: (), 1: ("tool",), 2: ("tool", "opts"), 3: ("tool", "tools", "cmd")},
    "cancelled": {0: (), 1: ("tool",), 2: ("tool", "opts"), 3: ("tool", "tools", "cmd")},
}
"""Parameters of each function by their number: in the current order, unless only older versions have that many."""


@dataclass(slots=True)
class Services:
    """Shared by the calls of one session. ``flags`` record whether commands with a flag succeeded."""

    session_id: str
    commands: Commands
    resolver: EnvResolver
    secrets: Secrets
    flags: dict[str, bool]
    adapter: str | None = None


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
        self._chat = ChatView(services.session_id, ctx.cwd, services.flags, services.adapter)
        self._view = ToolView(definition, use, self._chat)
        owner = f"tool {definition.name!r}"
        self._values = values_of_call(EnvValues(owner, {}), self._view.args, definition.parameters)
        self._cwd = ctx.cwd
        self._steps: Sequence[Filled | Handler] = ()
        self._continues = False
        self._timed_out = False
        self._stdout: list[Any] = []
        self._stderr: list[Any] = []
        # The reports of the commands, and the result of the last function.
        self._reports: list[str] = []
        self._last = ""

    # --- before ---------------------------------------------------------------------------------------------------

    async def prepare(self) -> Prepared | ToolOutcome:
        """Check the arguments, resolve values and run ``setup``; return the call with the permission it needs."""
        name = self._definition.name
        if self._line.cancelled:
            await self._add_output("cancelled")
            return self._with_outputs(ToolOutcome("The user cancelled this tool call.", status="denied"))
        try:
            problems = problems_of(self._view.args, self._definition.parameters)
            if problems:
                return failure(f"Invalid arguments for `{name}`: {'; '.join(problems)}")
            await self._resolve_values()
            await self._set_up()
            self._steps = self._ready(self._view.cmds)
            permission = await self._permission()
            guard = await self._guard()
        except HandlerError as error:
            return self._handler_failure(error)
        except ConfigError as error:
            return failure(f"The tool `{name}` cannot be run: {error}")
        return Prepared(permission, self.run, self.refused, guard)

    async def _resolve_values(self) -> None:
        definition, view = self._definition, self._view
        owner = f"tool {definition.name!r}"
        if callable(definition.env):
            given = await self._call("env", definition.env, schema=view.request, request=view.request)
            if given is not None and not isinstance(given, Mapping):
                log.error("%s: env: expected a mapping, got %s", owner, type(given).__name__)
                raise HandlerError("env")
            env = EnvValues(owner, dict(cast("Mapping[str, Any]", given or {})))
        else:
            env = await self._services.resolver.resolve(owner, definition.env, view.lookup, view)
        named = (as_text(value) for name, value in env.values.items() if SECRET_NAME.search(name))
        self._services.secrets.add(value for value in named if len(value.strip()) >= MIN_LENGTH)
        view.env = dict(env.values)
        values = values_of_call(env, view.args, definition.parameters)
        view.cmds = [
            fill(step, values, env.values) if isinstance(step, Command) else step
            for step in (read_step(owner, cmd) for cmd in definition.cmds)
        ]
        self._values = values
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
                self._continues = True
                return
            await leave()
        if definition.build_cmd is not None:
            view.cmds = [await self._call("build_cmd", definition.build_cmd)]
        if (setup := definition.handlers.get("setup")) is not None:
            await self._call("setup", setup)

    def _ready(self, cmds: Sequence[Any]) -> list[Filled | Handler]:
        steps: list[Filled | Handler] = []
        for number, cmd in enumerate(cmds):
            step = cmd if isinstance(cmd, Filled) else read_step(f"cmds[{number}]", cmd)
            steps.append(without_filling(step) if isinstance(step, Command) else step)
        if not steps:
            raise ConfigError("setup removed all cmds")
        return steps

    async def _permission(self) -> PermissionRequest | None:
        if not self._always_ask and not await self._needs_approval():
            return None
        question = await self._text_of("prompt")
        return request_for(self._view, self._steps, question)

    async def _guard(self) -> ApprovalLimits:
        opts = self._definition.opts
        scope = None
        if opts.require_cmd_approval:
            scope = await self._text_of("cmd_string")
            if scope is None:
                scope = canonical_json(self._view.args)
        return ApprovalLimits(needs_person=not opts.allowed_in_yolo_mode, scope=scope)

    async def _needs_approval(self) -> bool:
        approval = self._definition.opts.approval
        condition = self._definition.handlers.get("prompt_condition")
        if callable(approval):
            approval = await self._call("requires_approval", cast("Handler", approval))
        if isinstance(approval, bool):
            return approval
        if approval is None:
            # Unset, or a function without a result: asking is safe.
            return True if condition is None else bool(await self._call("prompt_condition", condition))
        return bool(approval) and (condition is None or bool(await self._call("prompt_condition", condition)))

    # --- running --------------------------------------------------------------------------------------------------

    async def run(self) -> ToolOutcome:
        """Run all commands and functions, and the handlers around them."""
        try:
            outcome = await self._run_steps()
            await self._leave()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_WITHIN_S):
                await self.refused(failure(""), cancelled=True)
            raise
        return self._with_messages(outcome)

    async def refused(self, outcome: ToolOutcome, *, cancelled: bool) -> ToolOutcome:
        """Return the outcome of a call that was not allowed, with the tool's own text if it has one."""
        kind = "cancelled" if cancelled else "rejected"
        output_count = len(self._chat.outputs)
        try:
            text = await self._text_of(kind, reason=outcome.text)
            if text and len(self._chat.outputs) == output_count:
                self._chat.add_tool_output(self._view, text)
        except HandlerError:
            # The error is in the log; the outcome stands.
            pass
        if cancelled:
            self._line.cancelled = True
        if cancelled or self._continues:
            await self._exit()
        outcome.error = outcome.error or outcome.text
        return self._with_messages(self._with_outputs(outcome))

    async def _run_steps(self) -> ToolOutcome:
        previous: Any = self._line.last
        ran, fault = 0, None
        for number, step in enumerate(self._steps):
            if not await self._is_step_approved(step):
                continue
            ran += 1
            try:
                ok, data, previous = await self._step(number, step, previous)
            except HandlerError as error:
                ok, fault = False, self._handler_failure(error)
                data = previous = fault.text
            self._line.last = previous
            if not ok:
                self._stderr.append(data)
                await self._add_output("error")
                text = self._combined_output() or as_text(data) or f"The tool `{self._view.name}` failed."
                status = "timeout" if self._timed_out else "failure"
                return self._with_outputs(ToolOutcome(text, status, error=fault.error if fault else None))
            self._stdout.append(data)
            if not await self._add_output("success"):
                return self._with_outputs(failure(f"The tool `{self._view.name}` failed.", error=FAILED))
        if not ran:
            return self._with_outputs(ToolOutcome("The user rejected this tool call.", status="denied"))
        return self._with_outputs(
            ToolOutcome(self._combined_output() or f"The tool `{self._view.name}` ran and gave no output.")
        )

    def _combined_output(self) -> str:
        return "\n\n".join(filter(None, (*self._reports, self._last)))

    async def _step(self, number: int, step: Filled | Handler, previous: Any) -> tuple[bool, Any, Any]:
        """Run one step; return whether it succeeded, its data, and the input of the next step."""
        view, definition = self._view, self._definition
        if isinstance(step, Filled):
            return await self._run_command(step)
        place = f"tool {view.name!r}: cmds[{number}]"
        values = {"tool": view, "tools": view.tools, "args": view.args, "request": view.request, "input": previous}
        answer = await run_function(
            place, step, {**values, "chat": self._chat}, timeout_s=definition.timeout_s, legacy=definition.legacy
        )
        view.results.append({"status": "success" if answer.ok else "error", "data": answer.data})
        self._last = as_text(answer.data)
        return answer.ok, answer.data, answer.given

    async def _run_command(self, step: Filled) -> tuple[bool, Any, Any]:
        ctx, view = self._ctx, self._view
        limit_s = step.timeout_s or self._definition.timeout_s
        try:
            ended = await self._services.commands.run(
                step.line,
                cwd=_inside(self._cwd, step.cwd),
                environ={**ctx.environ, **step.variables},
                stdin=step.stdin,
                timeout_s=limit_s,
                show=ctx.partial,
            )
        except OSError as error:
            ended = CommandResult(
                127, "", f"The command could not be started: {describe(error)} ({error.filename}).", 0
            )
        except ValueError:
            ended = CommandResult(127, "", "The command contains a NUL character.", 0)
        if step.flag is not None:
            view.tools.flags[step.flag] = ended.exit_code == 0
        ok, self._timed_out = ended.exit_code == 0, ended.timed_out
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
        self._reports.append(_report(step, ended, limit_s, alone=len(self._steps) == 1))
        return ok, data, result

    async def _is_step_approved(self, step: Filled | Handler) -> bool:
        """Call the handler ``approved`` (of 2024) for a step; if it refuses, call ``rejected``."""
        approved = self._definition.handlers.get("approved")
        if approved is None:
            return True
        cmd = step.line if isinstance(step, Filled) else None
        try:
            answer = await self._call("approved", approved, cmd=cmd)
        except HandlerError:
            answer = False
        if isinstance(answer, Mapping):
            answer = cast("Mapping[str, Any]", answer).get("status") == "success"
        if not answer:
            await self._add_output("rejected", cmd=cmd)
        return bool(answer)

    async def _leave(self) -> None:
        """Run ``on_exit``, or leave it to the next call if both share their handlers."""
        if self._definition.opts.use_handlers_once and self._line.following == self._definition.name:
            self._line.unfinished = (self._definition.name, self._view, self._exit)
        else:
            await self._exit()

    async def _exit(self) -> None:
        if (on_exit := self._definition.handlers.get("on_exit")) is not None:
            # The call has its result even if this fails.
            with suppress(HandlerError):
                await self._call("on_exit", on_exit)

    # --- the functions of the tool --------------------------------------------------------------------------------

    async def _add_output(self, kind: str, **more: Any) -> bool:
        """Add the text of an output function to the result; return false if the function failed."""
        output_count = len(self._chat.outputs)
        try:
            text = await self._text_of(kind, **more)
        except HandlerError:
            return False
        if text and len(self._chat.outputs) == output_count:
            self._chat.add_tool_output(self._view, text)
        return True

    async def _text_of(self, kind: str, *, reason: str | None = None, cmd: Any = None) -> str | None:
        """Return the text of an output template or function, ``None`` if it has none."""
        output = self._definition.output.get(kind)
        if output is None:
            return None
        if isinstance(output, str):
            return self._fill(output)
        result = await self._call(kind, output, cmd=cmd, reason=reason)
        return as_text(result) if isinstance(result, str) else None

    def _fill(self, template: str) -> str:
        try:
            return self._values.text(template) or template
        except MissingValueError as error:
            log_failure(f"tool {self._view.name!r}", error)
            return template

    async def _call(self, kind: str, function: Handler, **more: Any) -> Any:
        view = self._view
        cmd = more.pop("cmd", None) if self._definition.legacy else view.args
        more.pop("cmd", None)
        opts = {"tools": view.tools, "cmd": cmd, "opts": {"reason": more.get("reason")}}
        values = {
            "tool": view,
            "tools": view.tools,
            "chat": self._chat,
            "args": view.args,
            "request": view.request,
            "config": view.opts,
            "schema": view.schema,
            "cmd": cmd,
            "stdout": list(self._stdout) or None,
            "stderr": list(self._stderr) or None,
            "opts": opts,
            **more,
        }
        place = f"tool {view.name!r}: {kind}"
        return await call(place, bind(function, values, _ORDERS[kind]), self._definition.timeout_s)

    # --- the result -----------------------------------------------------------------------------------------------

    def _handler_failure(self, error: HandlerError) -> ToolOutcome:
        if error.timed_out:
            self._timed_out = True
            text = f"The tool `{self._view.name}` gave no result within {self._definition.timeout_s:g} s."
            return ToolOutcome(text, "timeout", error=text)
        return failure(f"The tool `{self._view.name}` failed.", error=FAILED)

    def _with_outputs(self, outcome: ToolOutcome) -> ToolOutcome:
        """Replace the text of ``outcome`` by the outputs that the tool has added, if any."""
        outputs = self._chat.outputs
        if outputs:
            outcome.text = "\n\n".join(for_llm for for_llm, _ in outputs if for_llm)
            if any(for_user is not None for _, for_user in outputs):
                shown = (for_llm if for_user is None else for_user for for_llm, for_user in outputs)
                outcome.detail = "\n\n".join(filter(None, shown))
        return outcome

    def _with_messages(self, outcome: ToolOutcome) -> ToolOutcome:
        self._chat.closed = True
        outcome.contexts += self._chat.messages
        return outcome


def _inside(folder: Path, path: str | None) -> Path:
    # Not Path.expanduser, which raises for an unknown user.
    return folder / os.path.expanduser(path or "")


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
