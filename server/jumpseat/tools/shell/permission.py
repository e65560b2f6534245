"""The permission request for a shell command, whichever tool runs it."""

from __future__ import annotations

from jumpseat.agent.shell.syntax import parse_shell
from jumpseat_protocol.permissions import CommandSegment, PossibleUrl, ShellCommand, ShellPermission


def shell_permission(command: str, intention: str) -> ShellPermission:
    """Return the request for ``command``, with the programs, paths and URLs that its text mentions."""
    line = parse_shell(command)
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
    )
