"""Whether a call of a declared tool is asked about, and what the user is asked.

Commands are shown as what they are, so that the rules for shells hold for them; everything else is a custom tool.
The user is asked unless the tool says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from jumpseat.tools.declared.definition import Handler
from jumpseat.tools.declared.filling import Filled
from jumpseat.tools.declared.view import ToolView
from jumpseat.tools.shell_syntax import parse_shell
from jumpseat_protocol.permissions import (
    CommandSegment,
    CustomToolPermission,
    PossibleUrl,
    ShellCommand,
    ShellPermission,
)


def request_for(
    view: ToolView, steps: Sequence[Filled | Handler], question: str | None
) -> CustomToolPermission | ShellPermission:
    """What the user is asked. ``question`` is the tool's own wording."""
    commands = [step.shown for step in steps if isinstance(step, Filled)]
    if not commands or len(commands) < len(steps):
        return CustomToolPermission(
            tool_name=view.name, tool_description=question or view.description, args=view.args
        )
    line = " && ".join(commands)
    parsed = parse_shell(line)
    return ShellPermission(
        full_command_text=line,
        intention=question or view.description or f"Run the tool {view.name}",
        commands=[ShellCommand(identifier=one.identifier, read_only=one.read_only) for one in parsed.commands],
        possible_paths=list(parsed.possible_paths),
        possible_urls=[PossibleUrl(url=url) for url in parsed.possible_urls],
        has_write_file_redirection=parsed.has_write_file_redirection,
        can_offer_session_approval=parsed.can_offer_session_approval,
        command_segments=[
            CommandSegment(identifier=one.command.identifier, full_command_text=one.text) for one in parsed.segments
        ]
        if len(parsed.segments) > 1
        else None,
    )
