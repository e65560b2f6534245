"""The tools of one session as the agent sees them: what it offers to the model, and how it runs calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.client import ProvidedTool
from jumpseat.agent.conversation.conversation import INTERRUPTED, canonical_json
from jumpseat.agent.interfaces import BackgroundCommand, BuiltinToolInfo, ToolsResult, ToolTexts
from jumpseat.agent.model import ToolOrigin, ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.client_tools import object_of_outcome
from jumpseat.tools.orchestrator.calls import ToolCalls, shell_info
from jumpseat.tools.orchestrator.change_recorder import ChangeRecorder
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.orchestrator.execution import CallExecution
from jumpseat.tools.orchestrator.offered_tools import OfferedTools
from jumpseat.tools.session_sandbox import session_sandbox
from jumpseat.tools.shell.process import GRACE_S
from jumpseat.tools.shell.shells import Shells
from jumpseat.tools.tool import BuiltinTool, failure
from jumpseat_protocol import events

if TYPE_CHECKING:
    from jumpseat.tools.orchestrator.user_commands import UserCommands


class ToolOrchestrator:
    """Implements :class:`jumpseat.agent.interfaces.ToolRunner`.

    Outputs that are too large for the model go to the storage of the session.
    """

    def __init__(self, session: Session, environment: Environment) -> None:
        sandboxes = environment.sandboxes
        self._shells = Shells(
            session.services.tasks,
            session.clients.terminals,
            None if sandboxes is None else partial(session_sandbox, session, sandboxes),
            # Sub-agents end without waiting for commands.
            self._watch_command if session.identity is None else None,
        )
        session.permissions.path_scope.movers.append(self._shells.may_move)
        session.permissions.path_scope.environ = partial(environment.child_environ, session.id)
        if sandboxes is not None:
            session.permissions.path_scope.opened = lambda: sandboxes.opened
        self._tools = OfferedTools(session, environment, self._has_commands)
        folder = next((folder.parent for folder in session.storage.own_folders), None)
        self._changes = ChangeRecorder(session, environment, folder, self._shells)
        execution = CallExecution(session, environment, self._tools, self._shells, self._changes)
        self._session = session
        self._environment = environment
        self._user_commands: UserCommands | None = None
        self._session_id = session.id
        # The calls that clients have asked for beside the conversation.
        self._beside: dict[anyio.CancelScope, anyio.Event] = {}
        # What a sub-agent leaves behind ends with the session.
        self._descendants = environment.descendants if session.identity is None else None
        self._calls = ToolCalls(session, self._tools, execution, environment.calls_per_answer, environment.repeats)

    async def discover(self, prompt: str) -> None:
        self._calls.begin_prompt()
        await self._tools.discover(prompt)

    def expand_mentions(self, prompt: str) -> str:
        return self._tools.expand_mentions(prompt)

    def in_system_message(self) -> ToolTexts:
        return self._tools.in_system_message()

    def specs(self, needed: str | None = None, *, small: bool = False) -> list[ToolSpec]:
        return self._tools.specs(needed, small=small)

    def shortens(self) -> bool:
        return not self._tools.is_chosen

    async def unknown_names(self, offered: Collection[str]) -> dict[str, str | None]:
        return await self._tools.unknown_names(offered)

    def deferred_specs(self) -> list[ToolSpec]:
        return self._tools.deferred_specs()

    def unlisted_specs(self) -> list[ToolSpec]:
        return self._tools.unlisted_specs()

    def names(self, settings: SessionSettings | None = None) -> list[str]:
        return list(self._tools.offered(settings))

    def check(self, tools: Mapping[str, ProvidedTool]) -> None:
        self._tools.check(tools)

    async def ready(self) -> None:
        await self._tools.ready()

    def described(self, calls: Sequence[ToolUseBlock]) -> list[tuple[ToolOrigin | None, str | None]]:
        tools = self._tools.find_all({call.name for call in calls})
        return [
            (None, None)
            if (tool := tools.get(call.name)) is None
            else (tool.spec.origin, None if call.arguments is None else tool.summary(call.arguments))
            for call in calls
        ]

    def shell_info(self, call: ToolUseBlock) -> events.ShellToolInfo | None:
        return shell_info(call)

    async def run(self, calls: list[ToolUseBlock], turn_id: str) -> ToolsResult:
        return await self._calls.run(calls, turn_id)

    async def run_beside(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        call = ToolUseBlock(call_id, name, canonical_json(arguments), arguments)
        outcome, ended = failure(INTERRUPTED), anyio.Event()
        with anyio.CancelScope() as scope:
            self._beside[scope] = ended
            try:
                outcome = await self._calls.run_beside(call)
            finally:
                del self._beside[scope]
                ended.set()
        return object_of_outcome(outcome)

    def builtin_tools(self) -> list[BuiltinToolInfo]:
        return [
            BuiltinToolInfo(tool.spec, runs_commands=isinstance(tool, BuiltinTool) and tool.runs_commands)
            for tool in self._tools.offered().values()
            if tool.source == "builtin"
        ]

    def commands(self) -> list[BackgroundCommand]:
        return list(self._shells)

    def move_commands_to_background(self) -> None:
        for shell in self._shells:
            if not shell.finished and not shell.in_background:
                shell.move_to_background()

    def _has_commands(self) -> bool:
        return any(shell.in_background for shell in self._shells)

    def _watch_command(self, command: BackgroundCommand) -> None:
        # Imported with the first command in the background.
        from jumpseat.agent.subagents.subagents import sub_agents

        sub_agents(self._session).commands.watch(command)

    async def settle(self) -> None:
        await self._shells.settle()
        await self._changes.settle()

    @property
    def user_commands(self) -> UserCommands:
        if self._user_commands is None:
            # Imported here, because few sessions have any.
            from jumpseat.tools.orchestrator.user_commands import UserCommands

            environ = partial(self._environment.child_environ, self._session_id)
            self._user_commands = UserCommands(self._session, environ, self._shells.sandbox)
        return self._user_commands

    async def close(self, grace_s: float | None = None) -> None:
        grace_s = GRACE_S if grace_s is None else grace_s
        # No turn that ends with the session has them.
        for scope, ended in list(self._beside.items()):
            scope.cancel()
            await ended.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._shells.close, grace_s)
            if self._user_commands is not None:
                tasks.start_soon(self._user_commands.close, grace_s)
            for source in self._tools.sources:
                tasks.start_soon(source.close, grace_s)
        if self._descendants is not None:
            await self._descendants.end(self._session_id, grace_s)
        self._session.permissions.path_scope.movers.remove(self._shells.may_move)
        self._changes.close()
