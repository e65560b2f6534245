"""``session.options.update``, and how options of any method reach a session's settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jumpseat.agent.model_calls.structured import check_format
from jumpseat.agent.model_calls.tool_choice import check_choice
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import CustomAgentConfig, OptionsUpdateParams, SessionOptions


def options_update(ctx: Context, params: OptionsUpdateParams) -> SuccessResult:
    """Change settings of a live session; they count from the next model call on.

    Raises:
        InvalidRequestError: one of them cannot work.
    """
    session = ctx.registry.live(params.session_id)
    settings = session.settings
    if params.enable_streaming is not None:
        params.streaming = params.enable_streaming
    if params.model_capabilities_overrides is not None:
        params.model_capabilities = params.model_capabilities_overrides
    # All is taken over, or nothing.
    login = ctx.models.copilot.login_with_token(params.git_hub_token) if params.git_hub_token else None
    wanted = replace(settings)
    apply_options(wanted, params)
    check_agent(ctx, wanted, params)
    ctx.models.check(wanted)
    check_choice(params.tool_choice, session.tools.names(wanted))
    if wanted.model is not None and (settings.model, settings.reasoning_effort) != (
        wanted.model,
        wanted.reasoning_effort,
    ):
        session.use_model(wanted.model, "sdk", reasoning_effort=params.reasoning_effort)
    before, cwd = settings.agent, settings.cwd
    apply_options(settings, params)
    if settings.cwd != cwd:
        agents_elsewhere(ctx, settings)
    session.agent_changed(before)
    # A client that gives logins when asked says so when it opens the session.
    settings.login = login or settings.login
    if gives_tokens(params):
        session.clients.ask_for_tokens(ctx.connection)
    attachment = session.clients.get(ctx.connection)
    if attachment is not None and params.system_message is not None:
        attachment.has_transforms = params.system_message.has_transforms()
    ctx.registry.keep_options(session)
    ctx.mcp.begin(session)
    return SuccessResult()


def gives_tokens(options: SessionOptions) -> bool:
    """Whether a client that sends ``options`` wants to be asked for the bearer token of a provider."""
    providers = (options.provider, *(options.providers or []))
    return any(one.has_bearer_token_provider for one in providers if one is not None)


def check_agent(ctx: Context, settings: SessionSettings, options: SessionOptions) -> None:
    """See that there is the agent that a session is to work as, in its settings or in a file.

    Raises:
        InvalidRequestError: ``options``, which were applied to the settings, ask for one that is not there.
    """
    if settings.agent is None or settings.custom_agent is not None:
        return
    settings.found_agents = ctx.process.agents.find(settings)
    if options.agent is not None and settings.custom_agent is None:
        known = ", ".join(repr(one.name) for one in settings.agents) or "none"
        raise InvalidRequestError(f"agent: {options.agent!r} is not one of customAgents, nor in a file: {known}")


def agents_elsewhere(ctx: Context, settings: SessionSettings) -> None:
    """Look for agents in files anew, where that was done: those of another folder are none of this one."""
    if settings.found_agents:
        settings.found_agents = ctx.process.agents.find(settings)


def _check_agents(agents: list[CustomAgentConfig]) -> None:
    names = [agent.name for agent in agents]
    if len(set(names)) < len(names):
        raise InvalidRequestError("customAgents: two agents have the same name")
    for agent in agents:
        if agent.mcp_servers:
            from jumpseat.mcp.catalogue import check_servers

            try:
                check_servers(agent.mcp_servers)
            except InvalidRequestError as error:
                raise InvalidRequestError(f"customAgents.{agent.name[:100]}.{error}") from None


def apply_options(settings: SessionSettings, options: SessionOptions) -> None:
    """Take over what ``options`` sets; what is unset stays as it is. Who the session is, is not settled here.

    Raises:
        InvalidRequestError: the working directory does not exist, two agents have one name, an MCP server cannot be
            used, or the schema for answers is none. Whether there is such an agent, :func:`check_agent` tells.
    """
    check_format(options.response_format)
    if options.working_directory is not None:
        cwd = Path(options.working_directory)
        if not cwd.is_dir():
            raise InvalidRequestError(f"workingDirectory {options.working_directory!r} is not a directory")
        settings.cwd = cwd.absolute()
    for name in (
        "model",
        "reasoning_effort",
        "reasoning_summary",
        "model_capabilities",
        "adapter_settings",
        "client_name",
        "provider",
        "providers",
        "custom_agents",
        "agent",
        "session_limits",
        "continue_on_auto_mode",
        "disabled_mcp_servers",
        "plugin_directories",
        "available_tools",
        "excluded_tools",
        "tool_choice",
        "hosted_tools",
        "response_format",
        "system_message",
        "streaming",
        "large_output",
        "tool_search",
        "infinite_sessions",
        "skip_custom_instructions",
        "instruction_directories",
        "skill_directories",
        "disabled_skills",
    ):
        value = getattr(options, name)
        if value is not None:
            setattr(settings, name, value)
    if options.custom_agents is not None:
        _check_agents(options.custom_agents)
        settings.lost_agent_servers = {}
    if options.mcp_servers is not None:
        settings.mcp_servers = {}
        settings.lost_mcp_servers = {}
    if options.mcp_servers:
        # Loaded late: most sessions have none, though some clients always send a list.
        from jumpseat.mcp.catalogue import check_servers

        settings.mcp_servers = check_servers(options.mcp_servers)
    if (storage := options.mcp_o_auth_token_storage) is not None:
        settings.stored_mcp_logins = storage == "persistent"
    if options.request_mcp_apps is not None:
        settings.mcp_apps = options.request_mcp_apps
    if options.models is not None:
        settings.provider_models = options.models
    if options.capi is not None and options.capi.enable_web_socket_responses is not None:
        settings.web_sockets = options.capi.enable_web_socket_responses
    if options.default_agent is not None:
        settings.default_excluded_tools = options.default_agent.excluded_tools
    if options.allow_all_mcp_server_instructions is not None:
        settings.mcp_instructions = options.allow_all_mcp_server_instructions
    if options.organization_custom_instructions is not None:
        settings.organization_instructions = options.organization_custom_instructions
    if options.enable_host_git_operations is not None:
        settings.host_git = options.enable_host_git_operations
    if options.enable_config_discovery is not None:
        settings.config_discovery = options.enable_config_discovery
    if options.enable_skills is not None:
        settings.skills = options.enable_skills
    if options.memory is not None:
        settings.memory = options.memory.enabled
