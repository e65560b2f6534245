"""``tools.list`` and what a session tells of its tools."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.model import ToolSpec
from jumpseat.handlers.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import EmptyResult, ToolsListParams, ToolsListResult, ToolsMetadataResult


def tools_list(ctx: Context, params: ToolsListParams) -> ToolsListResult:
    """The built-in tools, which are the same for all models; not all of them are offered in each session."""
    return ToolsListResult(
        tools=[
            {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
            for spec in ctx.registry.builtin_tools()
        ]
    )


def initialize_and_validate(ctx: Context, params: SessionParams) -> EmptyResult:
    """Tools are checked when a client brings them: there is nothing left to do."""
    ctx.registry.live(params.session_id)
    return EmptyResult()


def get_current_metadata(ctx: Context, params: SessionParams) -> ToolsMetadataResult:
    """What the model would be offered now, and what it has yet to look for."""
    tools = ctx.registry.live(params.session_id).tools
    return ToolsMetadataResult(
        tools=[
            *(_metadata(spec) for spec in tools.specs()),
            *({**_metadata(spec), "deferLoading": True} for spec in tools.deferred()),
        ]
    )


def _metadata(spec: ToolSpec) -> dict[str, Any]:
    origin = {"mcpServerName": spec.origin.server, "mcpToolName": spec.origin.tool} if spec.origin else {}
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters, **origin}
