"""``session.options.update``: change the options of a live session."""

from __future__ import annotations

from dataclasses import replace

from jumpseat.agent.model_calls.tool_choice import check_choice
from jumpseat.sessions.changes import allow_additional_folders
from jumpseat.sessions.context import Context
from jumpseat.sessions.models import check_allowed
from jumpseat.sessions.options import (
    apply_options,
    check_agent,
    limit_tracking,
    refresh_found_agents,
    requests_tokens,
)
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import OptionsUpdateParams


def update(ctx: Context, params: OptionsUpdateParams) -> SuccessResult:
    """Change options of a live session, from the next model call on: all of them, or none if one is invalid.

    Raises:
        InvalidRequestError: an option is invalid.
    """
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    if params.enable_streaming is not None:
        params.streaming = params.enable_streaming
    if params.model_capabilities_overrides is not None:
        params.model_capabilities = params.model_capabilities_overrides
    login = ctx.models.copilot.login_with_token(params.git_hub_token) if params.git_hub_token else None
    changed = replace(settings)
    apply_options(changed, params)
    check_agent(ctx, changed, params)
    ctx.models.check(changed)
    if params.model is not None:
        check_allowed(changed, params.model)
    check_choice(params.tool_choice, lambda: session.tools.names(changed))
    if changed.model is not None and (settings.model, settings.reasoning_effort) != (
        changed.model,
        changed.reasoning_effort,
    ):
        session.use_model(changed.model, "sdk", reasoning_effort=params.reasoning_effort)
    agent, cwd = settings.agent, settings.cwd
    # Not the checked copy: `use_model` may have removed adapter settings that the new model does not take.
    was_tracked = settings.file_tracking
    apply_options(settings, params)
    limit_tracking(settings, was_on=was_tracked, has_prompts=session.history.latest_message_id is not None)
    settings.found_agents = changed.found_agents
    if settings.cwd != cwd:
        refresh_found_agents(ctx, settings)
    if params.additional_directories is not None:
        allow_additional_folders(session)
    session.announce_agent(agent)
    # Token providers are registered when a session is opened, not here.
    settings.login = login or settings.login
    if requests_tokens(params):
        session.clients.set_provides_tokens(ctx.connection)
    attachment = session.clients.get(ctx.connection)
    if attachment is not None and params.system_message is not None:
        attachment.has_transforms = params.system_message.has_transforms()
    ctx.registry.store_options(session)
    ctx.mcp.begin(session)
    return SuccessResult()
