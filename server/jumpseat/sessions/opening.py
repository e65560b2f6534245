"""Open a session for a client: create it, join it while it is live, or load it from the disk."""

from __future__ import annotations

import logging
import platform
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import anyio.to_thread

from jumpseat.agent.client import Attachment, ProvidedTool
from jumpseat.agent.clock import utc_now
from jumpseat.agent.observation import trace_of
from jumpseat.agent.session.limits import limits_of
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import HostPolicy, Login, SessionSettings
from jumpseat.errors import ClientCallError, InvalidRequestError, JumpseatError, UnsupportedError
from jumpseat.sessions.changes import allow_additional_folders, check_new_name, set_session_name
from jumpseat.sessions.context import Context
from jumpseat.sessions.options import (
    allow_models,
    allowed_instead,
    apply_options,
    changed_settings,
    check_agent,
    check_options,
    requests_tokens,
)
from jumpseat.sessions.session_fs import (
    announce_failures,
    initial_cwd,
    new_storage,
    store_opening,
    stored_session,
    take_over,
)
from jumpseat.store.project.project_rules import location
from jumpseat.store.session.options import read_options
from jumpseat.system.git import working_directory_context
from jumpseat.system.log_fields import fields
from jumpseat_protocol.callbacks import GitHubTokenParams, GitHubTokenResult
from jumpseat_protocol.events import SessionResume, SessionSkillsLoaded
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.sessions import (
    CanvasDeclaration,
    ClientCommand,
    ClientTool,
    SessionCreateParams,
    SessionOptions,
    SessionResumeParams,
)
from jumpseat_protocol.unserved import REFUSED
from jumpseat_protocol.version import __version__

if TYPE_CHECKING:
    from jumpseat.store.session_fs.storage import ClientStorage

log = logging.getLogger(__name__)

ATTENDED: Final[Mapping[str, bool]] = {
    "streaming": True,
    "keepInterruptedAnswers": True,
    "projectBrief": True,
    "checkReminder": True,
    "requestPermission": True,
    "requestUserInput": True,
    "requestExitPlanMode": True,
    "requestAutoModeSwitch": True,
    "requestElicitation": True,
}
"""The options of sessions whose clients show answers as they come and can be asked all questions."""


def forward_opening(ctx: Context, session: Session, options: SessionOptions, kind: str) -> None:
    """Send the client an event of type ``kind`` about a session that it has opened, if it wants such events."""
    if options.enable_git_hub_telemetry_forwarding is not None:
        ctx.connection.wants_telemetry = options.enable_git_hub_telemetry_forwarding
    if not ctx.connection.wants_telemetry:
        return
    # Imported here, because few clients want them.
    from jumpseat_protocol.telemetry import (
        EVENT,
        GitHubTelemetryClient,
        GitHubTelemetryEvent,
        GitHubTelemetryParams,
    )

    settings = session.settings
    properties = {
        "mode": settings.mode,
        "model": settings.options.model,
        "reasoning_effort": settings.options.reasoning_effort,
    }
    event = GitHubTelemetryEvent(
        kind=kind,
        properties={name: value for name, value in properties.items() if value},
        metrics={"events": session.history.event_count},
        session_id=session.id,
        created_at=utc_now(),
        client=GitHubTelemetryClient(
            cli_version=__version__,
            node_version="",
            os_platform=platform.system().lower(),
            os_version=platform.release(),
            os_arch=platform.machine(),
            client_name=settings.options.client_name,
        ),
    )
    params = GitHubTelemetryParams(session_id=session.id, restricted=False, event=event)
    ctx.connection.notify(EVENT, params.wire())


def login_of_options(ctx: Context, options: SessionOptions, session_id: str) -> Login | None:
    """Return the login that ``options`` specify; ``None`` if they specify none.

    Raises:
        InvalidRequestError: ``options`` specify both a token and a token provider.
    """
    registration = options.git_hub_token_provider_registration_id
    if registration is None:
        token = options.git_hub_token
        return ctx.models.copilot.login_with_token(token) if token is not None else None
    if options.git_hub_token is not None:
        raise InvalidRequestError("gitHubToken and gitHubTokenProviderRegistrationId are mutually exclusive")
    return ctx.models.copilot.login_by_asking(partial(_request_token, ctx, registration, session_id))


async def _request_token(
    ctx: Context, registration: str, session_id: str, host: str, reason: Literal["initial", "refresh"]
) -> GitHubTokenResult:
    return await ctx.connection.github_token(
        GitHubTokenParams(registration_id=registration, host=host, session_id=session_id, reason=reason)
    )


async def create_session(ctx: Context, params: SessionCreateParams) -> Session:
    """Create a session and attach the calling connection. Emits ``session.created`` and ``session.start``.

    Raises:
        InvalidRequestError: the id is taken, or an option is invalid.
        UnsupportedError: the client sets a policy that cannot be enforced.
        ProviderAuthError: the login that the client brings is not accepted.
        StoreError: the folder of the session cannot be made.
    """
    refuse_unenforceable("session.create", params)
    if params.name is not None:
        check_new_name(params.name)
    check_options(params)
    session_id = params.session_id or str(uuid.uuid4())
    defaults = SessionSettings(cwd=initial_cwd(ctx) or Path.cwd(), login=login_of_options(ctx, params, session_id))
    ctx.process.user_settings.apply(defaults)
    settings = apply_options(defaults, params)
    settings.host_policies = _host_policies(ctx, params, settings.cwd)
    if settings.options.agent is not None:
        # A project may have hundreds of agents, on a slow disk.
        await anyio.to_thread.run_sync(check_agent, ctx, settings, params, abandon_on_cancel=True)
    disabled = [*ctx.process.user_settings.disabled_skills(), *settings.options.disabled_skills]
    settings.set_options(disabled_skills=list(dict.fromkeys(disabled)))
    await ctx.models.copilot.authenticate(settings)
    await ctx.process.declarations.read(settings.cwd)
    if params.allowed_models is not None:
        if (other := await allowed_instead(ctx, settings, params.allowed_models)) is not None:
            if params.model is not None:
                raise InvalidRequestError(f"allowedModels: expected the model {params.model!r} among them")
            settings.set_options(model=other)
        settings.allowed_models = params.allowed_models
    skills = await ctx.process.skills.find(settings)
    ctx.process.skills.prepare(skills)
    _check_connected(ctx)
    storage = await new_storage(ctx, session_id)
    session = ctx.registry.create(session_id, settings, _attachment(ctx, params), storage)
    if storage is not None:
        announce_failures(session, storage)
    session.opened_in = trace_of(params.traceparent, params.tracestate)
    session.permissions.follow_host_policy()
    session.announce_agent(None)
    allow_additional_folders(session)
    ctx.registry.store_options(session)
    if loaded := skills.to_wire():
        session.emit(SessionSkillsLoaded(skills=loaded))
    if params.name is not None:
        set_session_name(ctx, session, params.name, by_user=True)
    ctx.mcp.begin(session)
    if storage is not None:
        await store_opening(ctx, session, storage)
    forward_opening(ctx, session, params, "session_start")
    _log_opening(ctx, session, "session created")
    return session


async def resume_session(ctx: Context, params: SessionResumeParams) -> Session:
    """Attach the calling connection to a session, live or stored. Options in ``params`` replace the session's.

    Raises:
        SessionNotFoundError: there is no such session.
        SessionInUseError: another process has the session open and does not give it up.
        InvalidRequestError: an option is invalid.
        ProviderAuthError: the login that the client brings is not accepted.
        StoreError: the log of the session cannot be read or repaired.
        UnsupportedError: the client sets a policy that cannot be enforced.
    """
    refuse_unenforceable("session.resume", params)
    attachment = _attachment(ctx, params)
    check_options(params)
    alone = SessionSettings(cwd=Path.cwd(), login=login_of_options(ctx, params, params.session_id))
    alone = apply_options(alone, params)
    ctx.models.check(alone)
    await ctx.models.copilot.authenticate(alone)
    storage = await stored_session(ctx, params.session_id)
    cwd = alone.cwd if params.working_directory else await _current_directory(ctx, params, storage)
    policies = _host_policies(ctx, params, cwd)
    await ctx.process.declarations.read(cwd)
    if storage is None:
        await ctx.registry.take(params.session_id, abort=params.take_over)
    try:
        live = await _live_session(ctx, params)
        _check_connected(ctx)
        # Nothing waits from here to the attachment: otherwise two clients could load the same session twice.
        was_active = live is not None and live.working and len(live.clients) > 0
        session = live or _load(ctx, params, storage)
        agent = session.settings.options.agent
        try:
            _join(ctx, session, attachment, params)
            if policies:
                # The options of other clients of the open session remain in force.
                others = session.settings.host_policies if live is not None else []
                kept = [policy for policy in others if policy.client != ctx.connection.label]
                session.settings.host_policies = kept + policies
            if live is None:
                _end_interrupted(ctx, session, params)
        except BaseException:
            if live is None:
                ctx.registry.discard(session)
            raise
    except BaseException:
        ctx.registry.release(params.session_id)
        raise
    if live is not None and ctx.connection.session_fs is not None:
        take_over(ctx, session)
    elif live is None and storage is not None:
        announce_failures(session, storage)
    session.settings.login = alone.login or session.settings.login
    if params.allowed_models is not None:
        try:
            await allow_models(ctx, session, params.allowed_models)
        except JumpseatError:
            await ctx.registry.detach_and_close(session.id, ctx.connection)
            raise
    session.opened_in = trace_of(params.traceparent, params.tracestate)
    ctx.registry.store_options(session)
    _announce_resume(ctx, session, params, was_active=was_active)
    session.permissions.follow_host_policy()
    if params.additional_directories:
        allow_additional_folders(session)
    if live is None:
        session.canvases.announce()
    if params.model is not None:
        # The stored settings were those of the model before.
        session.drop_unsupported_settings()
    session.announce_agent(agent)
    ctx.connection.catch_up(session.id, session.open_questions())
    ctx.mcp.begin(session)
    session.schedules.start()
    if attachment.canvases:
        session.services.tasks.start_soon(session.canvases.restore, ctx.connection)
    forward_opening(ctx, session, params, "session_resume")
    _log_opening(ctx, session, "session joined" if live is not None else "session resumed")
    return session


def refuse_unenforceable(method: str, options: SessionOptions, *, is_opening: bool = True) -> None:
    """Refuse a policy that would not be enforced: a host that sends one must not believe that it is.

    Raises:
        UnsupportedError: ``options`` have such a policy, or any if they are not those of a session that is opened.
    """
    given = options.managed_settings
    permissions = given.permissions if given is not None else None
    if given is not None and not is_opening:
        raise UnsupportedError(f"{method} with managedSettings", "a policy is set when a session is opened")
    for member, refused in (
        ("enableManagedSettings", options.enable_managed_settings),
        ("managedSettings.permissions.limitTo", permissions is not None and permissions.limit_to is not None),
    ):
        if refused:
            raise UnsupportedError(f"{method} with {member}", REFUSED[member])


def _host_policies(ctx: Context, options: SessionOptions, cwd: Path) -> list[HostPolicy]:
    """Return the policy that a client sets for a session, if it sets one.

    Raises:
        InvalidRequestError: a rule of the policy is invalid.
    """
    if options.managed_settings is None:
        return []
    from jumpseat.agent.permissions.host_policy import rules_of

    policy = HostPolicy(
        settings=options.managed_settings, root=location(cwd), cwd=str(cwd), client=ctx.connection.label
    )
    rules_of(policy)
    return [policy]


def _log_opening(ctx: Context, session: Session, message: str) -> None:
    settings = session.settings
    log.info(
        message,
        extra=fields(
            session=session.id,
            client=ctx.connection.label,
            client_name=settings.options.client_name,
            model=settings.options.model,
            cwd=str(settings.cwd),
            events=session.history.event_count,
            mode=session.permissions.mode,
        ),
    )


async def _live_session(ctx: Context, params: SessionResumeParams) -> Session | None:
    """Return the session if it is live, after stopping a run that waits for a client that has left.

    The run continues if the client asks for it. Clients of protocol 2 cannot ask, so theirs always continues.
    """
    session = await ctx.registry.find_live(params.session_id)
    if session is None or not session.waits_for_absent_client():
        return session
    if params.continue_pending_work or ctx.connection.protocol == 2:
        return session
    # The calls end with the text for interrupted ones, and no model is called.
    await session.abort("user_initiated")
    return await ctx.registry.find_live(params.session_id)


def _load(ctx: Context, params: SessionResumeParams, storage: ClientStorage | None) -> Session:
    """Load a session from its storage, by default from the disk.

    The settings come from the log, then from the stored options.
    """
    registry = ctx.registry
    cwd = _stored_cwd(ctx, params.session_id, storage)
    session = registry.load(params.session_id, SessionSettings(cwd), storage)
    try:
        options, own = read_options(registry.storage(session).state)
        check_options(options)
        settings = apply_options(session.settings, options)
    except BaseException:
        registry.discard(session)
        raise
    settings.lost_mcp_servers = own.lost_mcp_servers
    settings.lost_agent_servers = own.lost_agent_servers
    settings.sub_agent_settings = own.sub_agent_settings
    settings.host_policies = own.host_policies
    session.settings.adopt(settings)
    return session


def _join(ctx: Context, session: Session, attachment: Attachment, params: SessionResumeParams) -> None:
    """Attach a client to a session and apply its options. The session stays unchanged if an option is invalid."""
    changed = changed_settings(
        ctx,
        session.settings,
        params,
        lambda settings: {*session.tools.names(settings), *attachment.tools},
        has_prompts=session.history.latest_message_id is not None,
    )
    session.attach(attachment)
    session.settings.adopt(changed)
    if attachment.has_hooks:
        session.start_source = "resume"


def _end_interrupted(ctx: Context, session: Session, params: SessionResumeParams) -> None:
    """End the sub-agents that an earlier process left, and its tool calls unless the client continues them."""
    if session.agents is not None:
        from jumpseat.agent.subagents.subagents import sub_agents

        sub_agents(session).end_interrupted()
    if not params.continue_pending_work:
        ctx.registry.close_open_calls(session)
    elif any(call.id in session.history.mcp_tasks for call in session.conversation.open_calls()):
        # Imported here: few servers have tasks.
        from jumpseat.sessions.mcp_tasks import follow_tasks

        follow_tasks(session)


def _announce_resume(ctx: Context, session: Session, params: SessionResumeParams, *, was_active: bool) -> None:
    """Emit ``session.resume``, or only the change of the model if the client suppresses that event."""
    settings = session.settings
    if params.disable_resume:
        if params.model is not None:
            session.use_model(params.model, "sdk", reasoning_effort=params.reasoning_effort)
        return
    session.emit(
        SessionResume(
            resume_time=utc_now(),
            event_count=session.history.event_count,
            events_file_size_bytes=ctx.registry.storage(session).log.size_bytes(),
            continue_pending_work=params.continue_pending_work,
            session_was_active=was_active,
            selected_model=settings.options.model,
            reasoning_effort=settings.options.reasoning_effort,
            session_limits=limits_of(settings),
            context=working_directory_context(settings.cwd, host_git=settings.options.enable_host_git_operations),
        )
    )


def _check_connected(ctx: Context) -> None:
    """Check that the client still has a connection: nothing would detach a client that hung up before.

    Raises:
        ClientCallError: the client has disconnected.
    """
    if not ctx.connection.connected:
        raise ClientCallError("the client has disconnected")


def _attachment(ctx: Context, options: SessionOptions) -> Attachment:
    """Return the connection's tools, commands and capabilities, as ``options`` declare them.

    Raises:
        InvalidRequestError: two tools or canvases have the same name, or a command has none.
    """
    return Attachment(
        ctx.connection,
        name=options.client_name,
        handles_permissions=options.request_permission,
        handles_elicitation=options.request_elicitation,
        handles_user_input=options.request_user_input,
        handles_plans=options.request_exit_plan_mode,
        handles_auto_mode_switch=options.request_auto_mode_switch,
        stands_in=options.stands_in,
        renders_canvases=options.request_canvas_renderer,
        canvases=_canvases(options),
        canvas_provider=options.canvas_provider.id if options.canvas_provider is not None else "",
        canvas_provider_name=options.canvas_provider.name if options.canvas_provider is not None else None,
        has_hooks=options.hooks,
        has_transforms=options.system_message.has_transforms(),
        has_tokens=requests_tokens(options),
        wants_completions=options.request_completions,
        protocol=ctx.connection.protocol or PROTOCOL_VERSION,
        tools=provided_tools(options.tools),
        commands={command.name: command for command in map(_without_slash, options.commands)},
    )


def provided_tools(tools: Sequence[ClientTool]) -> dict[str, ProvidedTool]:
    """Return the tools of a client by name.

    Raises:
        InvalidRequestError: two tools have the same name, or a name or schema is one that providers would refuse.
    """
    if not tools:
        return {}
    # Imported late: a client waits for the start of the server.
    from jumpseat_protocol.tool_checks import MAX_CLIENT_NAME, name_problem, schema_problem

    by_name: dict[str, ProvidedTool] = {}
    for tool in tools:
        problem = name_problem(tool.name, MAX_CLIENT_NAME)
        if problem is None and tool.parameters and (problem := schema_problem(tool.parameters)):
            problem = f"tool {tool.name!r}: {problem}"
        if problem is not None:
            raise InvalidRequestError(problem)
        try:
            by_name[tool.name] = ProvidedTool.of(tool)
        except RecursionError:
            raise InvalidRequestError(f"tool {tool.name!r}: parameters: the schema is nested too deeply") from None
    if len(by_name) < len(tools):
        raise InvalidRequestError("two tools have the same name")
    return by_name


def _canvases(options: SessionOptions) -> dict[str, CanvasDeclaration]:
    """Return the canvases of a client by id.

    Raises:
        InvalidRequestError: two canvases have the same id, or two actions of a canvas the same name.
    """
    canvases = options.canvases
    by_id = {canvas.id: canvas for canvas in canvases}
    if len(by_id) < len(canvases):
        raise InvalidRequestError("two canvases have the same id")
    for canvas in canvases:
        actions = [action.name for action in canvas.actions or ()]
        if len(set(actions)) < len(actions):
            raise InvalidRequestError(f"two actions of canvas {canvas.id!r} have the same name")
    return by_id


def _without_slash(command: ClientCommand) -> ClientCommand:
    name = command.name.strip().removeprefix("/")
    if not name:
        raise InvalidRequestError(f"command name {command.name!r} is empty")
    return command.model_copy(update={"name": name})


async def _current_directory(ctx: Context, params: SessionResumeParams, storage: ClientStorage | None) -> Path:
    """Return the working directory of a session, live or stored; that of the process if the folder is gone."""
    live = await ctx.registry.find_live(params.session_id)
    return live.settings.cwd if live is not None else _stored_cwd(ctx, params.session_id, storage)


def _stored_cwd(ctx: Context, session_id: str, storage: ClientStorage | None) -> Path:
    if storage is None:
        return ctx.registry.stored_cwd(session_id) or Path.cwd()
    workspace = storage.read_workspace()
    # The folder may exist for the client only.
    return Path(workspace.cwd) if workspace is not None and workspace.cwd else initial_cwd(ctx) or Path.cwd()
