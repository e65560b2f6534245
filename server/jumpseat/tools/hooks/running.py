"""Run hook commands in the sandbox of their session."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.session.hooks import HookAnswer, HookCommand
from jumpseat.agent.session.session import Session
from jumpseat.sandbox.session import Sandboxes
from jumpseat.sandbox.view import TEMP_FOLDERS
from jumpseat.system.regular_files import repository_root
from jumpseat.tools.hooks.payloads import answer_of, encode_input, failed
from jumpseat.tools.session_sandbox import session_sandbox
from jumpseat.tools.shell.captured_commands import Commands
from jumpseat.tools.shell.process import GRACE_S

_PATH: Final = re.compile(r"[/~][^\s\"'`$;&|<>()]*")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def _files_of(command: HookCommand) -> list[Path]:
    """Return the files that a command names, and their folders: scripts may be where a sandbox shows nothing.

    A project names files among the temporary ones only: it may be somebody else's.
    """
    found: list[Path] = []
    temp_folders = {Path(os.path.realpath(folder)) for folder in (*TEMP_FOLDERS, tempfile.gettempdir())}
    for word in command.argv:
        for match in _PATH.finditer(word):
            path = Path(os.path.realpath(os.path.expanduser(match[0])))
            of_project = command.source == "project"
            if not path.is_file() or (of_project and temp_folders.isdisjoint(path.parents)):
                continue
            folder = path.parent
            is_broad = folder in temp_folders or folder in (Path.home(), *Path.home().parents)
            found.append(path if of_project or is_broad else folder)
    return found


class Runner:
    """Runs the hook commands of one session. ``environ`` returns the environment of child processes."""

    def __init__(
        self, session: Session, environ: Callable[[], Mapping[str, str]], sandboxes: Sandboxes | None
    ) -> None:
        self._settings = session.settings
        self._environ = environ
        self._commands = Commands(session_sandbox(session, sandboxes) if sandboxes is not None else None)

    async def run(self, command: HookCommand, hook_input: JsonObject) -> HookAnswer:
        """Run a command in the root of the project, or in its own folder there."""
        root = await anyio.to_thread.run_sync(repository_root, self._settings.cwd)
        try:
            result = await self._commands.run(
                command.argv,
                cwd=root / command.cwd if command.cwd is not None else root,
                environ=self._variables(command, root),
                stdin=encode_input(command, hook_input),
                timeout_s=command.timeout_s,
                show=lambda _text: None,
                shown=await anyio.to_thread.run_sync(_files_of, command),
            )
        except (OSError, ValueError) as error:
            return failed(command, "cannot be started", str(error))
        return answer_of(command, result)

    def _variables(self, command: HookCommand, root: Path) -> dict[str, str]:
        # Plugins that were written for another agent find their files by these names.
        variables = {**self._environ(), "CLAUDE_PROJECT_DIR": str(root)}
        if command.plugin is not None:
            variables["CLAUDE_PLUGIN_ROOT"] = variables["PLUGIN_ROOT"] = str(command.plugin)
        given = {
            name: _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), value)
            for name, value in command.env.items()
        }
        return variables | given

    async def close(self, grace_s: float | None) -> None:
        """End what runs, and delete the temporary files of the sandbox. Not cancellable, but bounded."""
        await self._commands.close(GRACE_S if grace_s is None else grace_s)
