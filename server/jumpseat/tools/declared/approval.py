"""Whether a call of a declared tool is asked about, and what the user is asked.

Commands are shown as what they are, so that the rules for shells hold for them; everything else is a custom tool.
The user is asked unless the tool says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from jumpseat.tools.declared.definition import Handler
from jumpseat.tools.declared.filling import Filled
from jumpseat.tools.declared.view import ToolView
from jumpseat.tools.shell.permission import shell_permission
from jumpseat_protocol.permissions import CustomToolPermission, ShellPermission


def request_for(
    view: ToolView, steps: Sequence[Filled | Handler], question: str | None
) -> CustomToolPermission | ShellPermission:
    """What the user is asked. ``question`` is the tool's own wording."""
    commands = [step.shown for step in steps if isinstance(step, Filled)]
    if not commands or len(commands) < len(steps):
        return CustomToolPermission(
            tool_name=view.name, tool_description=question or view.description, args=view.args
        )
    return shell_permission(" && ".join(commands), question or view.description or f"Run the tool {view.name}")
