"""Apply the options of ``session.create``, ``session.resume`` and ``session.options.update`` to settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

from jumpseat.agent.model_calls.structured import check_format
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context, Parts
from jumpseat.system.working_directory import existing_folder
from jumpseat_protocol.sessions import CustomAgentConfig, SessionOptions

T = TypeVar("T")


def apply_options(settings: SessionSettings, options: SessionOptions) -> None:
    """Copy the options that are set into ``settings``; unset options change nothing.

    The login is not an option in this sense: see ``login.py``. The agent's name is copied, and checked by
    :func:`check_agent`.

    Raises:
        InvalidRequestError: the working directory does not exist, two custom agents have the same name, the
            configuration of an MCP server is invalid, or the schema of the response format is not supported.
            ``settings`` may then hold a part of the options.
    """
    check_format(options.response_format)
    _apply_working_directory(settings, options)
    _apply_model_options(settings, options)
    _apply_tool_options(settings, options)
    _apply_agent_options(settings, options)
    _apply_mcp_options(settings, options)
    _apply_prompt_options(settings, options)


def _apply_working_directory(settings: SessionSettings, options: SessionOptions) -> None:
    if options.working_directory is not None:
        settings.cwd = existing_folder("workingDirectory", options.working_directory)
    if options.additional_directories is not None:
        settings.additional_directories = _absolute(settings, options.additional_directories)
        # Searched again when they are needed.
        settings.found_agents = []
    settings.host_git = _value_or_current(options.enable_host_git_operations, settings.host_git)
    settings.file_hooks = _value_or_current(options.enable_file_hooks, settings.file_hooks)
    if options.hook_directories is not None:
        settings.hook_directories = _absolute(settings, options.hook_directories)


def _apply_model_options(settings: SessionSettings, options: SessionOptions) -> None:
    settings.model = _value_or_current(options.model, settings.model)
    settings.reasoning_effort = _value_or_current(options.reasoning_effort, settings.reasoning_effort)
    settings.reasoning_summary = _value_or_current(options.reasoning_summary, settings.reasoning_summary)
    settings.model_capabilities = _value_or_current(options.model_capabilities, settings.model_capabilities)
    settings.adapter_settings = _value_or_current(options.adapter_settings, settings.adapter_settings)
    settings.client_name = _value_or_current(options.client_name, settings.client_name)
    settings.provider = _value_or_current(options.provider, settings.provider)
    settings.providers = _value_or_current(options.providers, settings.providers)
    settings.provider_models = _value_or_current(options.models, settings.provider_models)
    if options.capi is not None:
        settings.web_sockets = _value_or_current(options.capi.enable_web_socket_responses, settings.web_sockets)
    settings.session_limits = _value_or_current(options.session_limits, settings.session_limits)
    settings.continue_on_auto_mode = _value_or_current(
        options.continue_on_auto_mode, settings.continue_on_auto_mode
    )
    settings.response_format = _value_or_current(options.response_format, settings.response_format)
    settings.streaming = _value_or_current(options.streaming, settings.streaming)
    settings.infinite_sessions = _value_or_current(options.infinite_sessions, settings.infinite_sessions)
    settings.keep_interrupted_answers = _value_or_current(
        options.keep_interrupted_answers, settings.keep_interrupted_answers
    )
    settings.one_off = _value_or_current(options.one_off, settings.one_off)
    if (autopilot := options.autopilot) is not None:
        settings.autopilot_continuation = _value_or_current(
            autopilot.continuation_enabled, settings.autopilot_continuation
        )
        settings.autopilot_continues = _value_or_current(autopilot.max_continues, settings.autopilot_continues)
    settings.file_tracking = _value_or_current(options.enable_file_change_tracking, settings.file_tracking)


def _apply_tool_options(settings: SessionSettings, options: SessionOptions) -> None:
    settings.available_tools = _value_or_current(options.available_tools, settings.available_tools)
    settings.excluded_tools = _value_or_current(options.excluded_tools, settings.excluded_tools)
    settings.ask_user_disabled = _value_or_current(options.ask_user_disabled, settings.ask_user_disabled)
    settings.tool_choice = _value_or_current(options.tool_choice, settings.tool_choice)
    settings.hosted_tools = _value_or_current(options.hosted_tools, settings.hosted_tools)
    settings.tool_search = _value_or_current(options.tool_search, settings.tool_search)
    settings.sandbox = _value_or_current(options.sandbox_config, settings.sandbox)
    settings.large_output = _value_or_current(options.large_output, settings.large_output)
    if options.memory is not None:
        settings.memory = options.memory.enabled


def _apply_agent_options(settings: SessionSettings, options: SessionOptions) -> None:
    if options.custom_agents is not None:
        _check_agents(options.custom_agents)
        settings.custom_agents = options.custom_agents
        settings.lost_agent_servers = {}
    if options.agent_directories is not None:
        settings.agent_directories = _absolute(settings, options.agent_directories)
        # Searched again when they are needed.
        settings.found_agents = []
    settings.agent = _value_or_current(options.agent, settings.agent)
    if options.default_agent is not None:
        settings.default_excluded_tools = options.default_agent.excluded_tools
    settings.excluded_builtin_agents = _value_or_current(
        options.excluded_builtin_agents, settings.excluded_builtin_agents
    )
    settings.included_builtin_agents = _value_or_current(
        options.included_builtin_agents, settings.included_builtin_agents
    )
    settings.sub_agent_deltas = _value_or_current(
        options.include_sub_agent_streaming_events, settings.sub_agent_deltas
    )


def _apply_mcp_options(settings: SessionSettings, options: SessionOptions) -> None:
    if options.mcp_servers is not None:
        settings.mcp_servers = {}
        settings.lost_mcp_servers = {}
    if options.mcp_servers:
        # Loaded late: most sessions have no servers, though some clients always send an object.
        from jumpseat.mcp.catalogue import check_servers

        settings.mcp_servers = check_servers(options.mcp_servers)
    settings.disabled_mcp_servers = _value_or_current(options.disabled_mcp_servers, settings.disabled_mcp_servers)
    settings.github_mcp = options.github_mcp_tool_config or settings.github_mcp
    if (storage := options.mcp_o_auth_token_storage) is not None:
        settings.stored_mcp_logins = storage == "persistent"
    settings.mcp_apps = _value_or_current(options.request_mcp_apps, settings.mcp_apps)
    settings.mcp_instructions = _value_or_current(
        options.allow_all_mcp_server_instructions, settings.mcp_instructions
    )


def _apply_prompt_options(settings: SessionSettings, options: SessionOptions) -> None:
    settings.system_message = _value_or_current(options.system_message, settings.system_message)
    settings.skip_custom_instructions = _value_or_current(
        options.skip_custom_instructions, settings.skip_custom_instructions
    )
    settings.instruction_directories = _value_or_current(
        options.instruction_directories, settings.instruction_directories
    )
    settings.organization_instructions = _value_or_current(
        options.organization_custom_instructions, settings.organization_instructions
    )
    settings.config_discovery = _value_or_current(options.enable_config_discovery, settings.config_discovery)
    settings.plugin_directories = _value_or_current(options.plugin_directories, settings.plugin_directories)
    settings.skills = _value_or_current(options.enable_skills, settings.skills)
    settings.skill_directories = _value_or_current(options.skill_directories, settings.skill_directories)
    settings.disabled_skills = _value_or_current(options.disabled_skills, settings.disabled_skills)


def _absolute(settings: SessionSettings, folders: Sequence[str]) -> list[str]:
    """Return folders with their paths as they are now: they stay the same if the working directory changes."""
    return [str(settings.cwd / os.path.expanduser(folder)) for folder in folders]


def limit_tracking(settings: SessionSettings, *, was_on: bool, has_prompts: bool) -> None:
    """Leave the tracking of files off if the session has had prompts without it: a rewind would be partial."""
    if has_prompts and not was_on:
        settings.file_tracking = False


def _value_or_current(option: T | None, current: T) -> T:
    """Return the option if it is set, the current setting otherwise."""
    return current if option is None else option


def adopt(settings: SessionSettings, changed: SessionSettings) -> None:
    """Copy all fields of ``changed`` into ``settings``, the object that the parts of a live session share."""
    for field in fields(SessionSettings):
        setattr(settings, field.name, getattr(changed, field.name))


def requests_tokens(options: SessionOptions) -> bool:
    """Return whether the client that sent ``options`` provides bearer tokens for a provider on request."""
    providers = (options.provider, *(options.providers or []))
    return any(provider.has_bearer_token_provider for provider in providers if provider is not None)


def check_agent(ctx: Context, settings: SessionSettings, options: SessionOptions) -> None:
    """Check that the selected agent exists, in the settings or in a file.

    Searches the files for agents if the settings do not have it, and stores the result in ``settings``.

    Raises:
        InvalidRequestError: ``options``, which were applied to ``settings``, select an unknown agent.
    """
    if settings.agent is None or settings.custom_agent is not None:
        return
    settings.found_agents = ctx.process.agents.find(settings)
    if options.agent is not None and settings.custom_agent is None:
        known = ", ".join(repr(agent.name) for agent in settings.agents) or "none"
        raise InvalidRequestError(
            f"agent: unknown agent {options.agent!r}; the agents in customAgents and in files: {known}"
        )


def refresh_found_agents(ctx: Parts, settings: SessionSettings) -> None:
    """Search the files for agents again, after the working directory has changed.

    Does nothing if the session has not searched before: the first request for its agents will.
    """
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
