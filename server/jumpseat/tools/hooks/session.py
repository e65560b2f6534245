"""The hook commands of one session, which are looked for before the first hook.

Only a session that has any loads the modules that read their files and run them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.session.hooks import FoundHooks, HookAnswer, HookCommand, HookLibrary
from jumpseat.agent.session.session import Session
from jumpseat.sandbox.session import Sandboxes
from jumpseat_protocol import events

if TYPE_CHECKING:
    from jumpseat.tools.hooks.running import Runner

log = logging.getLogger(__name__)

NONE: Final = FoundHooks()


class SessionHookCommands:
    """The hook commands of one session. ``environ`` returns the environment of child processes."""

    def __init__(
        self,
        session: Session,
        library: HookLibrary,
        environ: Callable[[], Mapping[str, str]],
        sandboxes: Sandboxes | None,
    ) -> None:
        self._session = session
        self._library = library
        self._environ = environ
        self._sandboxes = sandboxes
        self._found: FoundHooks | None = None
        self._told: set[str] | None = None
        self._runner: Runner | None = None

    async def matching(self, hook_type: str, tool_name: str | None = None) -> Sequence[HookCommand]:
        if self._found is None:
            await self.reload()
        found = self._found or NONE
        if not found.commands:
            return ()
        from jumpseat.tools.hooks.matching import matches

        return [
            command
            for command in found.commands
            if command.hook_type == hook_type and (tool_name is None or matches(command, tool_name))
        ]

    async def reload(self, *, project: bool = True) -> int:
        settings = self._session.settings
        if not self._library.may_exist(settings):
            self._found = NONE
            return 0
        found = await anyio.to_thread.run_sync(
            lambda: self._library.find(settings, project=project), abandon_on_cancel=True
        )
        self._found = found
        self._tell(found.problems)
        return len(found.commands)

    def _tell(self, problems: Sequence[str]) -> None:
        """Show the user what is wrong with the files, each problem once."""
        told = self._told = set() if self._told is None else self._told
        for problem in problems:
            if problem not in told:
                told.add(problem)
                log.warning("session %s: %s", self._session.id, problem)
                self._session.emit(events.SessionWarning(warning_type="hooks", message=problem))

    async def run(self, command: HookCommand, hook_input: JsonObject) -> HookAnswer:
        if self._runner is None:
            from jumpseat.tools.hooks.running import Runner

            self._runner = Runner(self._session, self._environ, self._sandboxes)
        return await self._runner.run(command, hook_input)

    async def close(self, grace_s: float | None) -> None:
        if self._runner is not None:
            await self._runner.close(grace_s)
