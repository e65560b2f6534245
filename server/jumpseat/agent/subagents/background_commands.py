"""The shell commands that the main agent has left running: the model is told about the end of each.

``session.idle`` waits for them, for a limited time. The tools start and end them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.agent.interfaces import BackgroundCommand
from jumpseat.agent.subagents import texts
from jumpseat.agent.subagents.lost_commands import LostCommand
from jumpseat_protocol import events


class _Left(Struct, eq=False):
    """A command that was left running; ``awaited`` while ``session.idle`` waits for it."""

    command: BackgroundCommand
    awaited: bool = True


class BackgroundCommands:
    """The commands of one session, until the model knows their ends.

    ``on_change`` is called when a command is added or has ended, and when the wait for it is over. ``wait_s``
    limits that wait.
    """

    def __init__(self, tasks: TaskGroup, on_change: Callable[[], object], wait_s: float) -> None:
        self._tasks = tasks
        self._on_change = on_change
        self._wait_s = wait_s
        self._left: list[_Left] = []
        # Commands of an earlier process, of which the model does not know that they are gone.
        self._lost: list[LostCommand] = []

    @property
    def awaited(self) -> bool:
        """Return whether the session waits for a command."""
        running = (left for left in self._left if not left.command.finished)
        return any(left.awaited and not left.command.interactive for left in running)

    def watch(self, command: BackgroundCommand) -> None:
        """Tell the model about the end of a command that runs in the background from now on."""
        left = _Left(command)
        self._left.append(left)
        self._tasks.start_soon(self._follow, left)
        self._on_change()

    async def _follow(self, left: _Left) -> None:
        with anyio.move_on_after(self._wait_s):
            await left.command.wait()
        left.awaited = False
        self._on_change()
        if not left.command.finished:
            await left.command.wait()
            self._on_change()

    def take_untold(self) -> list[events.SystemNotification]:
        """Return the messages about the commands whose ends the model does not know yet."""
        lost, self._lost = self._lost, []
        ended = [left for left in self._left if left.command.finished]
        self._left = [left for left in self._left if not left.command.finished]
        untold = [texts.command_notification(left.command) for left in ended if not left.command.reported]
        return [*map(texts.lost_notification, lost), *untold]

    def report_lost(self, commands: Iterable[LostCommand]) -> None:
        """Tell the model, before its next prompt, that commands of an earlier process are gone."""
        self._lost += commands

    def forget(self) -> None:
        """Wait for no command any more, and tell the model about none."""
        self._left.clear()
        self._lost.clear()
