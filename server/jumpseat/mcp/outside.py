"""Start the programs of servers outside of the sandbox: ask first if commands have changed what they load.

A server that ``[sandbox] mcp`` does not confine runs with all rights of the user, also if its program is in the
project, where a confined command can write.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.agent.permissions.permissions import ApprovalLimits
from jumpseat.agent.session.session import Session
from jumpseat.mcp.catalogue import ServerEntry
from jumpseat.mcp.stdio import ServerFailedError, child_environment
from jumpseat.sandbox.reached_files import CommandLine
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.started_programs import Start, StartedPrograms
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.permissions import ShellCommand, ShellPermission

log = logging.getLogger(__name__)

MAX_NAMED: Final = 10
"""Limit of the changed files that a question names."""

TOOL: Final = "bash"
"""The tool that rules take the start of a program for."""

CHANGED: Final = (
    "This MCP server runs outside of the sandbox, and commands or edits of the model have changed what it runs: {}"
)
RUNNING: Final = (
    "This MCP server runs outside of the sandbox, and commands that still run in the sandbox can change what it"
    " runs"
)
REFUSED: Final = (
    "it was not started outside of the sandbox, because commands or edits of the model have changed what it runs"
    " ({}), and nobody has allowed that. Review the changes, then start it with session.mcp.restartServer"
)
BYTECODE: Final = "PYTHONPYCACHEPREFIX"
"""Names the folder in which Python keeps compiled modules. A command could change those in the project."""


class StartRefusedError(ServerFailedError):
    """Nobody has allowed a changed program to run outside of the sandbox."""


class OutsideStarts:
    """The starts of one session's servers outside of the sandbox. ``sandbox`` is that of its servers."""

    def __init__(self, session: Session, sandboxes: Sandboxes, sandbox: SessionSandbox) -> None:
        self._session = session
        self._sandboxes = sandboxes
        self._sandbox = sandbox
        self._programs = StartedPrograms(sandboxes.times)

    async def allow(
        self, entry: ServerEntry, config: McpServerConfig, cwd: Path, environ: Mapping[str, str]
    ) -> McpServerConfig:
        """Return the settings with which a server may be started; asks if commands have changed what it runs.

        ``config`` are its present settings, with variables replaced.

        Raises:
            StartRefusedError: a person has refused, or no client can be asked.
        """
        if not await self._is_outside():
            return config
        line = CommandLine(
            [config.command or "", *(config.args or [])],
            cwd / config.cwd if config.cwd else cwd,
            config.env or {},
            child_environment(environ, config.env or {}).get("PATH", ""),
            _settings_of(entry),
        )
        scope = self._session.permissions.path_scope
        folders = [scope.main_folder, scope.cwd(), *scope.added_folders]
        start = await anyio.to_thread.run_sync(self._programs.look, line, folders)
        while start is not None and (start.changed or self._sandbox.has_running):
            await self._ask(entry.name, line, start)
            now = await anyio.to_thread.run_sync(self._programs.look, line, folders)
            if now is None or now.digest == start.digest:
                break
            # Somebody was asked about other contents.
            start = now
        if start is None:
            return config
        try:
            await anyio.to_thread.run_sync(self._programs.accept, start)
        except Exception as error:
            # The next start asks again.
            log.error("cannot store what the MCP server %s runs: %s", entry.name, error)
        given = {BYTECODE: str(self._sandboxes.home / "command-times" / "bytecode"), **(config.env or {})}
        return config.model_copy(update={"env": given})

    async def _is_outside(self) -> bool:
        """Return whether a server runs unconfined, and commands do not."""
        mechanism = await self._sandboxes.probe() if self._sandbox.mode != "off" else None
        if mechanism is not None:
            return False
        commands = self._sandboxes.defaults.for_session(self._session.settings.options.sandbox_config)
        return commands.mode != "off"

    async def _ask(self, name: str, line: CommandLine, start: Start) -> None:
        more = f" and {len(start.changed) - MAX_NAMED} more" if len(start.changed) > MAX_NAMED else ""
        changed = f"{', '.join(start.changed[:MAX_NAMED])}{more}"
        reason = CHANGED.format(changed) if start.changed else RUNNING
        words = list(line.words)
        request = ShellPermission(
            full_command_text=shlex.join(words),
            intention=f"Start the MCP server {name}",
            commands=[ShellCommand(identifier=os.path.basename(words[0]), read_only=False)],
            possible_paths=[],
            has_write_file_redirection=False,
            can_offer_session_approval=False,
            sandboxed=False,
            request_sandbox_bypass=True,
            request_sandbox_bypass_reason=reason,
            warning=reason,
        )
        verdict = await self._session.permissions.decide(request, TOOL, ApprovalLimits(once=True))
        if verdict.status != "allowed":
            raise StartRefusedError(REFUSED.format(changed or "commands still run"))


def _settings_of(entry: ServerEntry) -> Sequence[Path]:
    """Return the files in which a plugin may have its settings. Commands cannot change those of a project."""
    plugin = entry.variables.get("PLUGIN_ROOT")
    if plugin is None:
        return ()
    return [Path(plugin, *folder, "plugin.json") for folder in ((), (".github",), (".github", "plugin"))]
