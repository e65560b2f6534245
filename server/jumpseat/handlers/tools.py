"""``tools.list``: the built-in tools."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.tools import ToolsListParams, ToolsListResult


def list_(ctx: Context, params: ToolsListParams) -> ToolsListResult:
    """Return the built-in tools, for a model without those of other families. A session may offer fewer of them."""
    return ToolsListResult(
        tools=[
            {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
            for spec in ctx.registry.builtin_tools(params.model)
        ]
    )
