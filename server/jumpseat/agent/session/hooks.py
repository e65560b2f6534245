"""Hooks: calls to a client and to commands in files at fixed points of a session.

The client is asked first; the commands follow one after the other, each with the changes of those before it. A
denial, or the answer that a run must continue, ends the series.

A hook that fails, times out or answers with an invalid value has no effect: it never stops a session, and never
allows a call that would not run without it. An invalid field does not affect the others: a denial with an invalid
reason is still a denial. Commands that guard something are the exception: one that fails before a tool call denies
it, and one that answers with a decision which cannot be understood refuses. The user is warned of commands that
fail, and of members of answers that have no effect. Without hooks, no event is published.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import anyio
from msgspec import Struct, field
from pydantic import ValidationError

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.clock import new_id
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ClientCallError, HookStopError, PromptBlockedError, StoreError
from jumpseat_protocol import callbacks, events

if TYPE_CHECKING:
    from jumpseat.agent.client import Client
    from jumpseat.agent.settings import SessionSettings

log = logging.getLogger(__name__)

HookSource: TypeAlias = Literal["client", "user", "project", "plugin"]
"""The place of a hook file; ``client`` is a folder that the client names."""

COMMAND_TIMEOUT_S: Final = 30.0
"""The default time limit of one command."""


class HookCommand(Struct, frozen=True):
    """A command that runs at a hook.

    ``hook_type`` is the name of the hook on the wire. ``pascal_case`` is set if the file names it in the form of
    other agents (``PreToolUse``): matchers, input and the names of tools then have the form of those, too.
    ``matcher`` is a pattern for the tools it runs for, ``None`` for all. ``argv`` is started in ``cwd``, which is
    relative to the project; ``plugin`` is the folder of the plugin that it belongs to.
    """

    hook_type: str
    source: HookSource
    file: Path
    argv: tuple[str, ...]
    shown: str
    pascal_case: bool = False
    matcher: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout_s: float = COMMAND_TIMEOUT_S
    plugin: Path | None = None


class FoundHooks(NamedTuple):
    """The hook commands in files, in the order in which they run, and what is wrong with the files."""

    commands: Sequence[HookCommand] = ()
    problems: Sequence[str] = ()


class HookLibrary(Protocol):
    """The hook files of clients, of the user, of projects and of plugins."""

    def may_exist(self, settings: SessionSettings) -> bool:
        """Return whether a session may have hook files; looks for folders, and reads nothing."""
        ...

    def find(self, settings: SessionSettings, *, project: bool = True) -> FoundHooks:
        """Read the hook files of a session; without ``project``, those of its project are left out."""
        ...


class HookAnswer(NamedTuple):
    """The answer of a hook, and why it failed, if it did. A failed guard answers with a denial.

    The user is not warned of a ``harmless`` problem, such as text that is never read.
    """

    output: JsonObject
    problem: str | None = None
    harmless: bool = False


class HookCommands(Protocol):
    """The hook commands of one session."""

    async def matching(self, hook_type: str, tool_name: str | None = None) -> Sequence[HookCommand]:
        """Return the commands for a hook, in the order in which they run; ``tool_name`` is that of the call."""
        ...

    async def run(self, command: HookCommand, hook_input: JsonObject) -> HookAnswer:
        """Run a command with its input; never raises."""
        ...

    async def reload(self, *, project: bool = True) -> int:
        """Read the files again and return the number of commands; without ``project``, as :class:`HookLibrary`."""
        ...

    async def close(self, grace_s: float | None) -> None:
        """End what runs. Not cancellable, but bounded."""
        ...


class NoHookCommands:
    """The hook commands of a session that has none."""

    async def matching(self, hook_type: str, tool_name: str | None = None) -> Sequence[HookCommand]:
        return ()

    async def run(self, command: HookCommand, hook_input: JsonObject) -> HookAnswer:
        return HookAnswer({})

    async def reload(self, *, project: bool = True) -> int:
        return 0

    async def close(self, grace_s: float | None) -> None:
        pass


HOOK_TIMEOUT_S: Final = 60.0
"""The default time limit of one hook."""

WARNING: Final = "hooks"
"""The type of ``session.warning`` about hooks, and of theirs."""
MOST_REMEMBERED: Final = 50
"""Limit on the warnings of a session that are not repeated."""

_AROUND_CALLS: Final = ("preToolUse", "postToolUse", "postToolUseFailure")
_STRICTNESS: Final = {None: 0, "allow": 1, "ask": 2, "deny": 3}

EndReason: TypeAlias = Literal["complete", "error", "abort", "timeout", "user_exit"]

O = TypeVar("O", bound=callbacks.HookOutput)  # noqa: E741 - the usual letter for an output


class Hooks:
    """The hooks of one session. ``find_client`` returns the client that has hooks, if any.

    ``commands`` are the hooks in files. ``agent`` is the sub-agent whose session it is, by the members ``agentId``,
    ``agentType`` and ``parentAgentId``: hooks see its id in place of the session's.
    """

    def __init__(
        self,
        session_id: str,
        settings: SessionSettings,
        emit: Callable[[events.EventPayload], object],
        find_client: Callable[[], Client | None],
        commands: HookCommands,
        timeout_s: float = HOOK_TIMEOUT_S,
        agent: JsonObject | None = None,
    ) -> None:
        self._session_id = session_id
        self._agent = agent or {}
        self._settings = settings
        self._emit = emit
        self._find_client = find_client
        self.commands = commands
        self._begun = False
        self._warned: tuple[str, ...] = ()
        self.timeout_s = timeout_s

    async def surround(self, tool_name: str) -> bool:
        """Return whether there are hooks around the calls of a tool."""
        if self._find_client() is not None:
            return True
        for hook_type in _AROUND_CALLS:
            if await self.commands.matching(hook_type, tool_name):
                return True
        return False

    async def session_start(self, source: str, initial_prompt: str) -> callbacks.SessionStartOutput:
        """Report the first prompt since the session was opened; the hook may add context.

        Raises:
            HookStopError: the hook ends the run.
        """
        self._begun = True
        return _unless_stopped(
            await self._ask(
                callbacks.SessionStartOutput, "sessionStart", source=source, initialPrompt=initial_prompt
            )
        )

    async def user_prompt_submitted(self, prompt: str) -> callbacks.UserPromptSubmittedOutput:
        """Report a prompt; the hook may replace it or add context.

        Raises:
            PromptBlockedError: the hook blocks the prompt.
            HookStopError: the hook ends the run.
        """
        answer = _unless_stopped(
            await self._ask(callbacks.UserPromptSubmittedOutput, "userPromptSubmitted", prompt=prompt)
        )
        if answer.decision == "block":
            raise PromptBlockedError(answer.reason)
        return answer

    async def user_prompt_transformed(self, prompt: str, transformed: str) -> callbacks.UserPromptTransformedOutput:
        """Report a prompt with the text that the model gets; the hook may replace that text.

        Raises:
            HookStopError: the hook ends the run.
        """
        return _unless_stopped(
            await self._ask(
                callbacks.UserPromptTransformedOutput,
                "userPromptTransformed",
                prompt=prompt,
                transformedPrompt=transformed,
            )
        )

    async def pre_tool_use(self, tool_name: str, args: JsonObject) -> callbacks.PreToolUseOutput:
        """Report a tool call before it runs; the hook may deny it or change its arguments."""
        return await self._ask(callbacks.PreToolUseOutput, "preToolUse", toolName=tool_name, toolArgs=args)

    async def permission_request(self, tool_name: str, args: JsonObject) -> callbacks.PermissionRequestOutput:
        """Report that a call needs permission; a command may give it, or deny the call. Clients are not asked."""
        fields: JsonObject = {"toolName": tool_name, "toolInput": args}
        return await self._ask_commands(callbacks.PermissionRequestOutput(), "permissionRequest", fields)

    async def post_tool_use(
        self, tool_name: str, args: JsonObject, result: JsonObject
    ) -> callbacks.PostToolUseOutput:
        """Report a tool result, in the form of ``ToolResultObject``."""
        return await self._ask(
            callbacks.PostToolUseOutput, "postToolUse", toolName=tool_name, toolArgs=args, toolResult=result
        )

    async def post_tool_use_failure(
        self, tool_name: str, args: JsonObject, error: str
    ) -> callbacks.PostToolUseFailureOutput:
        """Report a failed tool call; the hook may add context."""
        return await self._ask(
            callbacks.PostToolUseFailureOutput, "postToolUseFailure", toolName=tool_name, toolArgs=args, error=error
        )

    async def pre_mcp_tool_call(
        self, server_name: str, tool_name: str, args: JsonObject, call_id: str
    ) -> callbacks.PreMcpToolCallOutput:
        """Report a call to an MCP server before it is sent; the hook may change its metadata."""
        return await self._ask(
            callbacks.PreMcpToolCallOutput,
            "preMcpToolCall",
            serverName=server_name,
            toolName=tool_name,
            arguments=args,
            toolCallId=call_id,
        )

    async def agent_stop(self, transcript_path: str, *, again: bool) -> callbacks.AgentStopOutput:
        """Ask whether the run may end. ``again`` means that a hook has already made this run continue."""
        return await self._ask(
            callbacks.AgentStopOutput,
            "agentStop",
            stopReason="end_turn",
            transcriptPath=transcript_path,
            stop_hook_active=again,
        )

    async def subagent_start(self, transcript_path: str, agent: JsonObject) -> callbacks.SubagentStartOutput:
        """Report a sub-agent before its first prompt, by the members ``agentId``, ``agentName`` and so on.

        Raises:
            HookStopError: the hook ends the run of the sub-agent.
        """
        return _unless_stopped(
            await self._ask(callbacks.SubagentStartOutput, "subagentStart", transcriptPath=transcript_path, **agent)
        )

    async def subagent_stop(
        self, transcript_path: str, agent: JsonObject, response: str, *, again: bool
    ) -> callbacks.SubagentStopOutput:
        """Ask whether a sub-agent has done its work with an answer; the hook may replace the answer.

        ``again`` is as for :meth:`agent_stop`.
        """
        return await self._ask(
            callbacks.SubagentStopOutput,
            "subagentStop",
            stopReason="end_turn",
            transcriptPath=transcript_path,
            response=response,
            stop_hook_active=again,
            **agent,
        )

    async def error_occurred(self, error: str, *, recoverable: bool) -> callbacks.ErrorOccurredOutput:
        """Report a failed model call; the hook may ask for a retry."""
        return await self._ask(
            callbacks.ErrorOccurredOutput,
            "errorOccurred",
            error=error,
            errorContext="model_call",
            recoverable=recoverable,
        )

    async def session_end(self, reason: EndReason, client: Client | None = None, *, is_last: bool = True) -> None:
        """Report the end of the session, or that ``client`` leaves it. Store errors are logged, not raised.

        Commands are told when the last client leaves, and only of sessions whose start they were told.
        """
        try:
            fields: JsonObject = {"reason": reason}
            if client := client or self._find_client():
                await self._ask_client(callbacks.SessionEndOutput, "sessionEnd", client, fields)
            if is_last and self._begun:
                self._begun = False
                await self._ask_commands(callbacks.SessionEndOutput(), "sessionEnd", fields)
        except StoreError as error:
            log.error("session %s: cannot write the end of the session to the log: %s", self._session_id, error)

    async def _ask(self, output: type[O], hook_type: str, **fields: Any) -> O:
        client = self._find_client()
        answer = (
            cast("O", _no_answer(output))
            if client is None
            else await self._ask_client(output, hook_type, client, fields)
        )
        return await self._ask_commands(answer, hook_type, fields)

    async def _ask_client(self, output: type[O], hook_type: str, client: Client, fields: JsonObject) -> O:
        async def ask(hook_input: JsonObject) -> HookAnswer:
            try:
                with anyio.fail_after(self.timeout_s):
                    return HookAnswer(await client.invoke_hook(self._session_id, hook_type, hook_input) or {})
            except TimeoutError:
                return HookAnswer({}, "the hook timed out")
            except ClientCallError:
                return HookAnswer({}, "the hook failed")

        return await self._report(output, hook_type, fields, ask)

    async def _ask_commands(self, answer: O, hook_type: str, fields: JsonObject) -> O:
        """Run the commands of a hook, and return ``answer`` with what they have added."""
        for command in await self.commands.matching(hook_type, fields.get("toolName") or fields.get("agentName")):
            if _is_final(answer):
                break
            fields |= _changed_fields(answer)
            then = await self._report(type(answer), hook_type, fields, partial(self.commands.run, command), command)
            answer = _merge(answer, then)
        return answer

    async def _report(
        self,
        output: type[O],
        hook_type: str,
        fields: JsonObject,
        ask: Callable[[JsonObject], Awaitable[HookAnswer]],
        command: HookCommand | None = None,
    ) -> O:
        """Ask one hook, a ``command`` or that of a client, and publish the events about it."""
        # Imported with the first hook.
        from jumpseat.agent.session.hook_answers import (
            GUARDS,
            in_common_form,
            is_decisive,
            refusal,
            without_effect,
        )

        invocation = new_id()
        self._emit(events.HookStart(hook_invocation_id=invocation, hook_type=hook_type))
        hook_input = {
            "sessionId": self._agent.get("agentId", self._session_id),
            "timestamp": int(time.time() * 1000),
            "cwd": str(self._settings.cwd),
            **self._agent,
            **fields,
        }
        try:
            answer, problem, harmless = await ask(hook_input)
        except anyio.get_cancelled_exc_class():
            with contextlib.suppress(StoreError):
                self._end(invocation, hook_type, "the hook was cancelled")
            raise
        answer = in_common_form(hook_type, answer)
        parsed, invalid = _parse_output(output, answer)
        useless = without_effect(answer, parsed, invalid)
        if useless:
            problem, harmless = f"the hook answered with fields that have no effect: {', '.join(useless)}", False
        if invalid:
            problem = f"the hook answered with invalid fields: {', '.join(invalid)}"
        if command is not None and hook_type in GUARDS and is_decisive(invalid + useless):
            parsed = output.model_validate(refusal(hook_type, f"hook errored: {problem}"))
        if problem is not None:
            log.warning("session %s: %s hook: %s", self._session_id, hook_type, problem)
            if not harmless and (command is not None or useless):
                self._warn(f"The hook {hook_type}{_place(command)}: {problem}")
        self._end(invocation, hook_type, problem)
        if parsed.system_message:
            self._emit(events.SessionWarning(warning_type=WARNING, message=parsed.system_message))
        return parsed

    def _warn(self, text: str) -> None:
        """Warn the user, once of each thing."""
        if text not in self._warned:
            self._warned = (*self._warned, text)[-MOST_REMEMBERED:]
            self._emit(events.SessionWarning(warning_type=WARNING, message=text))

    def _end(self, invocation: str, hook_type: str, problem: str | None) -> None:
        error = events.HookError(message=problem) if problem is not None else None
        self._emit(
            events.HookEnd(hook_invocation_id=invocation, hook_type=hook_type, success=problem is None, error=error)
        )


def _parse_output(output: type[O], answer: JsonObject) -> tuple[O, list[str]]:
    """Parse the answer of a hook without its invalid fields; also returns the names of these."""
    try:
        return output.model_validate(answer), []
    except ValidationError as error:
        invalid = sorted({str(problem["loc"][0]) for problem in error.errors() if problem["loc"]})
    try:
        valid = {name: value for name, value in answer.items() if name not in invalid}
        return output.model_validate(valid), invalid
    except ValidationError:
        return output(), invalid


@cache
def _no_answer(output: type[callbacks.HookOutput]) -> callbacks.HookOutput:
    """Return the answer of a session without hooks: the same object for all, which nothing changes."""
    return output.model_construct()


def _place(command: HookCommand | None) -> str:
    return " of a client" if command is None else f" in {command.file}"


def stop_of(answer: callbacks.HookOutput) -> HookStopError | None:
    """Return the error that ends the run, if an answer says so."""
    return HookStopError(answer.stop_reason) if answer.continue_ is False else None


def _unless_stopped(answer: O) -> O:
    """Return an answer.

    Raises:
        HookStopError: it ends the run.
    """
    if (error := stop_of(answer)) is not None:
        raise error
    return answer


def _is_final(answer: callbacks.HookOutput) -> bool:
    """Return whether no other hook can change an answer: something is denied, or a run ends or must continue."""
    if answer.continue_ is False:
        return True
    match answer:
        case callbacks.PreToolUseOutput():
            return answer.permission_decision == "deny"
        case callbacks.PermissionRequestOutput():
            return answer.behavior == "deny"
        case callbacks.UserPromptSubmittedOutput() | callbacks.AgentStopOutput():
            return answer.decision == "block"
        case _:
            return False


def _changed_fields(answer: callbacks.HookOutput) -> JsonObject:
    """Return the fields of the input that an answer changes for the hooks after it."""
    changed: JsonObject = {}
    match answer:
        case callbacks.UserPromptSubmittedOutput():
            changed["prompt"] = answer.modified_prompt
        case callbacks.UserPromptTransformedOutput():
            changed["transformedPrompt"] = answer.modified_transformed_prompt
        case callbacks.PreToolUseOutput():
            changed["toolArgs"] = answer.modified_args
        case callbacks.PermissionRequestOutput():
            changed["toolInput"] = answer.updated_input
        case callbacks.SubagentStopOutput():
            changed["response"] = answer.modified_response
        case callbacks.PostToolUseOutput() if answer.modified_result is not None:
            changed["toolResult"] = answer.modified_result.model_dump(mode="json", by_alias=True, exclude_none=True)
        case _:
            pass
    return {name: value for name, value in changed.items() if value is not None}


def _merge(first: O, then: O) -> O:
    """Combine the answers of two hooks: contexts are joined, the stricter decision holds, later changes win."""
    values = {name: value for name in then.model_fields_set if (value := getattr(then, name)) is not None}
    decisions = [getattr(answer, "permission_decision", None) for answer in (first, then)]
    if _STRICTNESS[decisions[0]] > _STRICTNESS[decisions[1]]:
        values.pop("permission_decision", None)
        values.pop("permission_decision_reason", None)
    contexts = [getattr(answer, "additional_context", None) for answer in (first, then)]
    if all(contexts):
        values["additional_context"] = "\n\n".join(map(str, contexts))
    return first.model_copy(update=values)
