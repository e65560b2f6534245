"""``tools.list``: the built-in tools."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.tools import ToolsListParams, ToolsListResult


def list_(ctx: Context, params: ToolsListParams) -> ToolsListResult:
    """Return the built-in tools, which are the same for all models. A session may offer only some of them."""
    return ToolsListResult(
        tools=[
            {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
            for spec in ctx.registry.builtin_tools()
        ]
    )
