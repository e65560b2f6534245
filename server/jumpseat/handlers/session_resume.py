"""``session.resume``: join a session that is live, or bring one back from the disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jumpseat.agent.clock import utc_now
from jumpseat.agent.model_calls.tool_choice import check_choice
from jumpseat.agent.session.limits import limits_of
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import SessionNotFoundError
from jumpseat.handlers.context import Context
from jumpseat.handlers.session_create import attachment_of, opened
from jumpseat.handlers.session_login import login_of_options
from jumpseat.handlers.session_options import apply_options, check_agent
from jumpseat.store.git import working_directory_context
from jumpseat.store.options import read_options
from jumpseat_protocol.events import SessionResume
from jumpseat_protocol.sessions import SessionOpenedResult, SessionResumeParams


async def session_resume(ctx: Context, params: SessionResumeParams) -> SessionOpenedResult:
    """Attach this connection to a session. Options given here replace those the session had."""
    registry = ctx.registry
    attachment = attachment_of(ctx, params)
    wanted = SessionSettings(cwd=Path.cwd(), login=login_of_options(ctx, params, params.session_id))
    apply_options(wanted, params)
    ctx.models.check(wanted)
    await ctx.models.copilot.authenticate(wanted)
    await ctx.process.declarations.read(wanted.cwd if params.working_directory else _cwd(ctx, params.session_id))
    session = await registry.settled(params.session_id)
    if session is not None and session.is_stranded() and not _goes_on(ctx, params):
        # Ends its calls with the text for interrupted ones, and asks no model.
        await session.abort("user_initiated")
        session = await registry.settled(params.session_id)
    # From here to the attachment nothing waits, so that two clients cannot bring one session back twice.
    was_active = session is not None and session.queue.running and len(session.clients) > 0
    if session is not None:
        tried = replace(session.settings)
        apply_options(tried, params)
        check_agent(ctx, tried, params)
        check_choice(params.tool_choice, {*session.tools.names(tried), *attachment.tools})
        session.attach(attachment)
        agent = session.settings.agent
        apply_options(session.settings, params)
        if attachment.has_hooks:
            session.start_source = "resume"
    else:
        session = registry.load(
            params.session_id, SessionSettings(cwd=registry.stored_cwd(params.session_id) or Path.cwd())
        )
        agent = session.settings.agent
        try:
            session.attach(attachment)
            # What the session was set up with, then what is asked for here.
            kept = read_options(registry.folder(session).path)
            apply_options(session.settings, kept)
            session.settings.lost_mcp_servers = kept.lost_mcp_servers
            session.settings.lost_agent_servers = kept.lost_agent_servers
            apply_options(session.settings, params)
            check_agent(ctx, session.settings, params)
            check_choice(params.tool_choice, session.tools.names())
            if not params.continue_pending_work:
                registry.close_open_calls(session)
        except BaseException:
            registry.forget(session)
            raise
    session.settings.login = wanted.login or session.settings.login
    registry.keep_options(session)
    if params.disable_resume and params.model is not None:
        session.use_model(params.model, "sdk", reasoning_effort=params.reasoning_effort)
    if not params.disable_resume:
        settings = session.settings
        session.emit(
            SessionResume(
                resume_time=utc_now(),
                event_count=session.event_count,
                events_file_size_bytes=registry.folder(session).log.size_bytes(),
                continue_pending_work=params.continue_pending_work,
                session_was_active=was_active,
                selected_model=settings.model,
                reasoning_effort=settings.reasoning_effort,
                session_limits=limits_of(settings),
                context=working_directory_context(settings.cwd, host_git=settings.host_git),
            )
        )
    if params.model is not None:
        # What was kept was for the model before.
        session.take_back_unfit_settings()
    session.agent_changed(agent)
    ctx.connection.catch_up(session.id, session.open_questions())
    ctx.mcp.begin(session)
    return opened(ctx, session)


def _cwd(ctx: Context, session_id: str) -> Path:
    try:
        return ctx.registry.live(session_id).settings.cwd
    except SessionNotFoundError:
        return ctx.registry.stored_cwd(session_id) or Path.cwd()


def _goes_on(ctx: Context, params: SessionResumeParams) -> bool:
    """Whether what waits for a client that is gone goes on waiting for this one. Old clients cannot say no."""
    return params.continue_pending_work or ctx.connection.protocol == 2
