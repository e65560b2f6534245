"""Hooks that are commands in files: what a session knows about them, and how it runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.settings import SessionSettings

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
    """The answer of a hook, and why it failed, if it did. A failed guard answers with a denial."""

    output: JsonObject
    problem: str | None = None


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
