"""``session.create``: a new session for this connection."""

from __future__ import annotations

import uuid
from pathlib import Path

from jumpseat.agent.client import Attachment
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError, UnsupportedError
from jumpseat.handlers.context import Context
from jumpseat.handlers.session_login import login_of_options
from jumpseat.handlers.session_options import apply_options, check_agent, gives_tokens
from jumpseat_protocol.events import SessionSkillsLoaded
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.sessions import (
    Capabilities,
    ClientCommand,
    SessionCreateParams,
    SessionOpenedResult,
    SessionOptions,
    UiCapabilities,
)


async def session_create(ctx: Context, params: SessionCreateParams) -> SessionOpenedResult:
    """Start a session. ``session.created`` and ``session.start`` go out before the answer."""
    if params.cloud is not None:
        raise UnsupportedError("session.create with cloud")
    session_id = params.session_id or str(uuid.uuid4())
    settings = SessionSettings(cwd=Path.cwd(), login=login_of_options(ctx, params, session_id))
    ctx.process.user_settings.apply(settings)
    apply_options(settings, params)
    check_agent(ctx, settings, params)
    off = [*ctx.process.user_settings.disabled_skills(), *settings.disabled_skills]
    settings.disabled_skills = list(dict.fromkeys(off))
    await ctx.models.copilot.authenticate(settings)
    await ctx.process.declarations.read(settings.cwd)
    session = ctx.registry.create(session_id, settings, attachment_of(ctx, params))
    session.agent_changed(None)
    ctx.registry.keep_options(session)
    if skills := ctx.process.skills.of(session).listed():
        session.emit(SessionSkillsLoaded(skills=skills))
    ctx.mcp.begin(session)
    return opened(ctx, session)


def attachment_of(ctx: Context, params: SessionOptions) -> Attachment:
    """What this connection brings to a session.

    Raises:
        InvalidRequestError: it brings two tools of one name, or a command without one.
    """
    tools = params.tools or []
    by_name = {tool.name: tool for tool in tools}
    if len(by_name) < len(tools):
        raise InvalidRequestError("two tools have the same name")
    return Attachment(
        ctx.connection,
        handles_permissions=params.request_permission or False,
        handles_elicitation=params.request_elicitation or False,
        handles_user_input=params.request_user_input or False,
        handles_plans=params.request_exit_plan_mode or False,
        handles_auto_mode_switch=params.request_auto_mode_switch or False,
        has_hooks=params.hooks or False,
        has_transforms=params.system_message is not None and params.system_message.has_transforms(),
        has_tokens=gives_tokens(params),
        protocol=ctx.connection.protocol or PROTOCOL_VERSION,
        tools=by_name,
        commands={command.name: command for command in map(_without_slash, params.commands or [])},
    )


def _without_slash(command: ClientCommand) -> ClientCommand:
    name = command.name.strip().removeprefix("/")
    if not name:
        raise InvalidRequestError(f"{command.name!r} cannot be the name of a command")
    return command.model_copy(update={"name": name})


def opened(ctx: Context, session: Session) -> SessionOpenedResult:
    """The answer of create and resume."""
    return SessionOpenedResult(
        session_id=session.id,
        workspace_path=str(ctx.registry.folder(session).path),
        start_time=session.started_at,
        mode=session.settings.mode,
        capabilities=Capabilities(
            ui=UiCapabilities(elicitation=session.clients.can_elicit(), mcp_apps=session.settings.mcp_apps)
        ),
    )
