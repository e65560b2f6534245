"""The permission request of a declared tool.

A call that consists of commands is a ``shell`` request, so that shell rules apply to it; any other call is a
``custom-tool`` request.
"""

from __future__ import annotations

from collections.abc import Sequence

from jumpseat.tools.declared.definition import Handler
from jumpseat.tools.declared.substitution import Filled
from jumpseat.tools.declared.view import ToolView
from jumpseat.tools.shell.sandbox_needs import Placement, shell_permission
from jumpseat_protocol.permissions import CustomToolPermission, ShellPermission


def request_for(
    view: ToolView, steps: Sequence[Filled | Handler], question: str | None, placement: Placement
) -> CustomToolPermission | ShellPermission:
    """Return the request for a call with these ``steps``; ``question`` is the tool's own text for it.

    ``placement`` is that of the commands, if all steps are commands.
    """
    commands = [step.shown for step in steps if isinstance(step, Filled)]
    if not commands or len(commands) < len(steps):
        return CustomToolPermission(
            tool_name=view.name, tool_description=question or view.description, args=view.args
        )
    intention = question or view.description or f"Run the tool {view.name}"
    return shell_permission(line_of(commands), intention, placement)


def line_of(commands: Sequence[str]) -> str:
    """Return the line of the shell that stands for several commands."""
    return " && ".join(commands)
