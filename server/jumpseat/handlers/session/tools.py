"""``session.tools.*``: answers to client tool calls, and the tools that a session offers."""

from __future__ import annotations

import uuid
from typing import Any

from msgspec.structs import replace

from jumpseat.agent.model import ToolSpec
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat.sessions.opening import provided_tools
from jumpseat_protocol.autopilot import TaskCompleteData, TaskCompleteDataParams
from jumpseat_protocol.server import EmptyResult, SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.tools import (
    BuiltinDescriptorsResult,
    BuiltinToolDescriptor,
    ExecuteToolParams,
    HandlePendingToolCallParams,
    PendingToolRequest,
    PendingToolRequests,
    SetToolsParams,
    SubagentSettingsResult,
    ToolResultObject,
    ToolsMetadataResult,
    UpdateSubagentSettingsParams,
)


def handle_pending_tool_call(ctx: Context, params: HandlePendingToolCallParams) -> SuccessResult:
    """Answer a client tool call. Only the first answer counts; others get ``success: false``."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.external_calls.answer(params.request_id, params))


def list_pending_requests(ctx: Context, params: SessionParams) -> PendingToolRequests:
    """Return the calls of client tools that no client has answered yet."""
    calls = ctx.registry.live(params.session_id).clients.external_calls.open()
    return PendingToolRequests(
        items=[
            PendingToolRequest(
                request_id=call.id,
                tool_call_id=call.question.id,
                tool_name=call.question.name,
                arguments=call.question.arguments,
            )
            for call in calls
        ]
    )


def set_(ctx: Context, params: SetToolsParams) -> EmptyResult:
    """Replace the tools of the calling client in a session; the next model request offers the new ones.

    Raises:
        InvalidRequestError: the client is not attached to the session, or two tools have the same name.
    """
    session = ctx.registry.live(params.session_id)
    attachment = session.clients.get(ctx.connection)
    if attachment is None:
        raise InvalidRequestError("this client is not attached to the session: resume it first")
    session.attach(replace(attachment, tools=provided_tools(params.tools)))
    return EmptyResult()


async def execute(ctx: Context, params: ExecuteToolParams) -> ToolResultObject:
    """Run a tool that the session offers, with its hooks and permissions, beside the conversation.

    Raises:
        InvalidRequestError: the session does not offer such a tool.
    """
    session = ctx.registry.live(params.session_id)
    if params.name not in session.tools.names():
        raise InvalidRequestError(f"the session offers no tool {params.name!r}")
    call_id = params.tool_call_id or f"call_{uuid.uuid4().hex}"
    return ToolResultObject.model_validate(await session.tools.run_beside(call_id, params.name, params.arguments))


def get_builtin_descriptors(ctx: Context, params: SessionParams) -> BuiltinDescriptorsResult:
    """Return the built-in tools that a session offers. The vendor's options for their texts have no effect."""
    tools = ctx.registry.live(params.session_id).tools
    return BuiltinDescriptorsResult(
        tools=[
            BuiltinToolDescriptor(
                name=spec.name,
                description=spec.description,
                input_schema=spec.parameters,
                is_terminal=runs_commands,
            )
            for spec, runs_commands in tools.builtin_tools()
        ]
    )


def initialize_and_validate(ctx: Context, params: SessionParams) -> EmptyResult:
    ctx.registry.live(params.session_id)
    return EmptyResult()


def get_current_metadata(ctx: Context, params: SessionParams) -> ToolsMetadataResult:
    tools = ctx.registry.live(params.session_id).tools
    return ToolsMetadataResult(
        tools=[
            *(_metadata(spec) for spec in tools.specs()),
            *({**_metadata(spec), "deferLoading": True} for spec in tools.deferred_specs()),
        ]
    )


def update_subagent_settings(ctx: Context, params: UpdateSubagentSettingsParams) -> EmptyResult:
    """Replace the user's settings for sub-agents, which apply to agents that start from now on, and are stored."""
    session = ctx.registry.live(params.session_id)
    session.settings.sub_agent_settings = params.subagents
    ctx.registry.store_options(session)
    return EmptyResult()


def get_subagent_settings(ctx: Context, params: SessionParams) -> SubagentSettingsResult:
    return SubagentSettingsResult(subagents=ctx.registry.live(params.session_id).settings.sub_agent_settings)


def _metadata(spec: ToolSpec) -> dict[str, Any]:
    origin = {"mcpServerName": spec.origin.server, "mcpToolName": spec.origin.tool} if spec.origin else {}
    return {"name": spec.name, "description": spec.description, "input_schema": spec.parameters, **origin}


def task_complete_event_data(ctx: Context, params: TaskCompleteDataParams) -> TaskCompleteData:
    """Return the data of ``session.task_complete`` for a call of ``task_complete``."""
    ctx.registry.live(params.session_id)
    summary = params.tool_args.get("summary")
    success = params.final_result.get("resultType", "success") == "success"
    return TaskCompleteData(summary=summary if isinstance(summary, str) else "", success=success)
