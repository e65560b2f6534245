"""The permission request for a shell command, whichever tool runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from jumpseat_protocol.permissions import CommandSegment, PossibleUrl, ShellCommand, ShellPermission

MAX_COMMAND_BYTES: Final = 128 * 1024 - 1
"""Largest argument of a program on Linux; longer commands cannot be run."""


class Placement(Struct, frozen=True):
    """Where a command is to run.

    ``confined``: whether it is in a sandbox; ``None`` if the sandbox is off. ``hosts`` are those that it reaches
    from there. ``leaves`` is the reason for running it outside of a sandbox that works; ``by_model`` says that the
    model gave that reason.
    """

    confined: bool | None = None
    hosts: Sequence[str] = ()
    leaves: str | None = None
    by_model: bool = False


def shell_permission(command: str, intention: str, placement: Placement | None = None) -> ShellPermission:
    """Return the request for ``command``, with the programs, paths and URLs that its text mentions."""
    placement = placement or Placement()
    # Imported with the first command.
    from jumpseat.agent.shell.syntax import parse_shell

    line = parse_shell(command)
    asks_to_leave = placement.by_model and placement.leaves is not None
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
        sandboxed=placement.confined,
        sandbox_hosts=list(placement.hosts) if placement.confined and placement.hosts else None,
        request_sandbox_bypass=asks_to_leave or None,
        request_sandbox_bypass_reason=placement.leaves if asks_to_leave else None,
        warning=_warning(placement),
    )


def _warning(placement: Placement) -> str | None:
    if placement.leaves is None:
        return None
    return f"The command is to run outside of the sandbox: {placement.leaves}"
