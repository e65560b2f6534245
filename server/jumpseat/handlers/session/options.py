"""``session.options.update``: change the options of a live session."""

from __future__ import annotations

from jumpseat.sessions.changes import allow_additional_folders
from jumpseat.sessions.context import Context
from jumpseat.sessions.opening import refuse_unenforceable
from jumpseat.sessions.options import (
    apply_options,
    changed_settings,
    check_options,
    refresh_found_agents,
    requests_tokens,
)
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import OptionsUpdateParams


def update(ctx: Context, params: OptionsUpdateParams) -> SuccessResult:
    """Change options of a live session, from the next model call on: all of them, or none if one is invalid.

    Raises:
        InvalidRequestError: an option is invalid.
        UnsupportedError: the client sets a policy, which only a client that opens a session can.
    """
    refuse_unenforceable("session.options.update", params, is_opening=False)
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    if params.enable_streaming is not None:
        params.streaming = params.enable_streaming
    if params.model_capabilities_overrides is not None:
        params.model_capabilities = params.model_capabilities_overrides
    login = ctx.models.copilot.login_with_token(params.git_hub_token) if params.git_hub_token else None
    check_options(params)
    has_prompts = session.history.latest_message_id is not None
    changed = changed_settings(ctx, settings, params, session.tools.names, has_prompts=has_prompts)
    ctx.models.check(changed)
    agent, cwd, before, after = settings.options.agent, settings.cwd, settings.options, changed.options
    if after.model is not None and (before.model, before.reasoning_effort) != (after.model, after.reasoning_effort):
        session.use_model(after.model, "sdk", reasoning_effort=params.reasoning_effort)
        # May have removed adapter settings that the new model does not take.
        found = changed.found_agents
        changed = apply_options(settings, params, has_prompts=has_prompts)
        changed.found_agents = found
    settings.adopt(changed)
    if settings.cwd != cwd:
        refresh_found_agents(ctx, settings)
    if params.additional_directories:
        allow_additional_folders(session)
    session.announce_agent(agent)
    # Token providers are registered when a session is opened, not here.
    settings.login = login or settings.login
    if requests_tokens(params):
        session.clients.set_provides_tokens(ctx.connection)
    attachment = session.clients.get(ctx.connection)
    if attachment is not None and "system_message" in params.model_fields_set:
        attachment.has_transforms = params.system_message.has_transforms()
    ctx.registry.store_options(session)
    ctx.mcp.begin(session)
    return SuccessResult()
