"""The permission request for a shell command, whichever tool runs it."""

from __future__ import annotations

from jumpseat.agent.shell.syntax import parse_shell
from jumpseat_protocol.permissions import CommandSegment, PossibleUrl, ShellCommand, ShellPermission


def shell_permission(
    command: str, intention: str, *, sandboxed: bool | None = None, outside: str | None = None
) -> ShellPermission:
    """Return the request for ``command``, with the programs, paths and URLs that its text mentions.

    ``sandboxed``: whether the command is confined; ``None`` if the sandbox is off. ``outside`` is the reason for
    running a command outside of a sandbox that would confine it.
    """
    line = parse_shell(command)
    leaves = bool(sandboxed) and outside is not None
    return ShellPermission(
        full_command_text=command,
        intention=intention,
        commands=[
            ShellCommand(identifier=command.identifier, read_only=command.read_only) for command in line.commands
        ],
        possible_paths=list(line.possible_paths),
        possible_urls=[PossibleUrl(url=url) for url in line.possible_urls],
        has_write_file_redirection=line.has_write_file_redirection,
        can_offer_session_approval=line.can_offer_session_approval,
        command_segments=[
            CommandSegment(identifier=segment.command.identifier, full_command_text=segment.text)
            for segment in line.segments
        ]
        if len(line.segments) > 1
        else None,
        sandboxed=sandboxed and outside is None,
        request_sandbox_bypass=leaves or None,
        request_sandbox_bypass_reason=outside if leaves else None,
        warning=f"The command is to run outside of the sandbox: {outside}" if leaves else None,
    )
