"""``session.metadata.*``: state, working directory and context usage of a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from jumpseat.agent.blocks import AssistantMessage, Message, ToolMessage
from jumpseat.agent.clock import iso_time
from jumpseat.agent.session.context_usage import compaction_threshold, context_limits, measure_context
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions import changes
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionContextChanged, WorkingDirectoryContext
from jumpseat_protocol.metadata import (
    ActivityResult,
    ClientMetadataUpdateParams,
    ContextAttributionResult,
    ContextChangeParams,
    ContextInfoParams,
    ContextInfoResult,
    ContextTokensParams,
    ContextTokensResult,
    HeaviestMessagesParams,
    HeaviestMessagesResult,
    MetadataSnapshotResult,
    ProcessingResult,
    WorkingDirectoryParams,
    WorkingDirectoryResult,
)
from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.sessions import SessionParams

HEAVIEST_MESSAGES: Final = 10
"""The number of messages that ``getContextHeaviestMessages`` returns by default."""


def snapshot(ctx: Context, params: SessionParams) -> MetadataSnapshotResult:
    """Return the state of a session that lists and headers of user interfaces show."""
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    storage = ctx.registry.storage(session)
    workspace = storage.workspace
    changed_s = storage.log.changed_s()
    return MetadataSnapshotResult(
        session_id=session.id,
        start_time=session.started_at,
        # File systems tell the time of a change by a clock that is some milliseconds behind.
        modified_time=max(session.started_at, iso_time(changed_s)) if changed_s is not None else session.started_at,
        already_in_use=storage.in_use(),
        workspace_path=storage.shown_path,
        working_directory=str(settings.cwd),
        current_mode=settings.mode,
        client_name=settings.options.client_name,
        selected_model=settings.options.model,
        summary=(workspace.name or workspace.summary) if workspace else None,
        workspace=workspace.wire() if workspace else None,
        session_limits=settings.options.session_limits.wire() if settings.options.session_limits else None,
    )


def get_client_metadata(ctx: Context, params: SessionParams) -> dict[str, str]:
    return ctx.registry.storage(ctx.registry.live(params.session_id)).client_metadata.read()


async def update_client_metadata(ctx: Context, params: ClientMetadataUpdateParams) -> dict[str, str]:
    """Change the strings that clients keep with the session, all or none, and return them.

    Raises:
        InvalidRequestError: a key or value is invalid, or there are too many.
    """
    metadata = ctx.registry.storage(ctx.registry.live(params.session_id)).client_metadata
    return await metadata.update(clear=params.clear, remove=params.remove, entries=params.set)


def is_processing(ctx: Context, params: SessionParams) -> ProcessingResult:
    return ProcessingResult(processing=ctx.registry.live(params.session_id).queue.running)


def activity(ctx: Context, params: SessionParams) -> ActivityResult:
    """Return whether the session has active work, and whether that can be aborted."""
    running = ctx.registry.live(params.session_id).queue.running
    return ActivityResult(has_active_work=running, abortable=running)


def set_working_directory(ctx: Context, params: WorkingDirectoryParams) -> WorkingDirectoryResult:
    """Change the working directory from the next call on. The change is stored for resume.

    Raises:
        InvalidRequestError: the path is not the absolute path of a directory.
    """
    session = ctx.registry.live(params.session_id)
    cwd = Path(params.working_directory)
    if not cwd.is_absolute() or not os.path.isdir(cwd):
        raise InvalidRequestError(
            f"workingDirectory {params.working_directory!r} is not the absolute path of a directory"
        )
    changes.set_working_directory(ctx, session, cwd)
    return WorkingDirectoryResult(working_directory=str(cwd))


def record_context_change(ctx: Context, params: ContextChangeParams) -> EmptyResult:
    """Store the git state of the working directory as the client reports it, and emit it to all clients.

    A report about another directory is ignored: this method does not change the working directory.
    """
    session = ctx.registry.live(params.session_id)
    context = params.context
    if os.path.normpath(context.cwd) != os.path.normpath(session.settings.cwd):
        return EmptyResult()
    ctx.registry.storage(session).move(
        WorkingDirectoryContext(
            cwd=str(session.settings.cwd),
            git_root=context.git_root,
            branch=context.branch,
            repository=context.repository,
        )
    )
    session.emit(SessionContextChanged(**context.model_dump()))
    return EmptyResult()


def context_info(ctx: Context, params: ContextInfoParams) -> ContextInfoResult:
    """Compare the parts of the context with limits that the client gives; ``null`` before the first prompt."""
    session = ctx.registry.live(params.session_id)
    if not len(session.conversation):
        return ContextInfoResult()
    usage = measure_context(session)
    return ContextInfoResult(
        context_info={
            "modelName": params.selected_model or session.settings.options.model or "",
            "systemTokens": usage.system,
            "conversationTokens": usage.all_messages,
            "toolDefinitionsTokens": usage.all_tools,
            "mcpToolsTokens": usage.mcp_tools,
            "totalTokens": usage.total,
            "promptTokenLimit": params.prompt_token_limit,
            "compactionThreshold": compaction_threshold(session, params.prompt_token_limit),
            "limit": params.prompt_token_limit + params.output_token_limit,
            "bufferTokens": params.output_token_limit,
        }
    )


def recompute_context_tokens(ctx: Context, params: ContextTokensParams) -> ContextTokensResult:
    """Count the system message and the conversation again. The estimate is the same for all models."""
    usage = measure_context(ctx.registry.live(params.session_id))
    return ContextTokensResult(
        total_tokens=usage.system + usage.all_messages,
        messages_token_count=usage.all_messages,
        system_token_count=usage.system,
    )


async def get_context_attribution(ctx: Context, params: SessionParams) -> ContextAttributionResult:
    """Return how many tokens each part of the context uses; ``null`` before the first prompt."""
    session = ctx.registry.live(params.session_id)
    if not len(session.conversation):
        return ContextAttributionResult()
    limits = await context_limits(session)
    usage = measure_context(session)
    entries = [_entry("system", "system-prompt", "System prompt", usage.system - usage.instructions)]
    if usage.instructions:
        entries.append(_entry("instructions", "custom-instructions", "Custom instructions", usage.instructions))
    entries += [_entry("tool", f"tool-{name}", name, size) for name, size in usage.tools.items()]
    entries.append(_entry("messages", "messages", "Messages", usage.all_messages))
    return ContextAttributionResult(
        context_attribution={
            "totalTokens": usage.total,
            "modelId": limits.model,
            "modelSource": "selected" if session.settings.options.model else "default",
            "promptTokenLimit": limits.prompt,
            "limit": limits.window,
            "bufferTokens": limits.output,
            "compactionThreshold": compaction_threshold(session, limits.prompt),
            "categories": {
                "systemPrompt": usage.system - usage.instructions,
                "customInstructions": usage.instructions,
                "systemTools": usage.all_tools - usage.mcp_tools,
                "mcpTools": usage.mcp_tools,
                "messages": usage.all_messages,
                "freeSpace": max(0, limits.prompt - usage.total),
                "buffer": limits.output,
            },
            "entries": entries,
            "compactions": {"count": session.conversation.compactions},
        }
    )


def get_context_heaviest_messages(ctx: Context, params: HeaviestMessagesParams) -> HeaviestMessagesResult:
    """Return the largest messages, largest first. An id is a message's index, valid until the next message."""
    usage = measure_context(ctx.registry.live(params.session_id))
    by_size = sorted(enumerate(usage.messages), key=lambda item: item[1][1], reverse=True)
    messages = [
        {"id": f"message-{index}", "label": _label(message), "role": _role(message), "tokens": size}
        for index, (message, size) in by_size[: params.limit or HEAVIEST_MESSAGES]
    ]
    return HeaviestMessagesResult(total_tokens=usage.all_messages, messages=messages)


def _entry(kind: str, entry_id: str, label: str, size: int) -> dict[str, Any]:
    return {"kind": kind, "id": entry_id, "label": label, "tokens": max(0, size)}


def _role(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return "tool"
    return "assistant" if isinstance(message, AssistantMessage) else "user"


def _label(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return "tool: " + ", ".join(result.tool_name for result in message.results)
    return _role(message)
