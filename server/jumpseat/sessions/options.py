"""Apply the options of ``session.create``, ``session.resume`` and ``session.options.update``, and change the model.

The table of options is ``SessionOptions`` in ``jumpseat_protocol/sessions.py``. A given option replaces the value
that the session had; this module has the options that need more than that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from jumpseat.agent.model import ModelInfo
from jumpseat.agent.model_calls.requests import check_choice
from jumpseat.agent.model_calls.structured import check_format
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ConfigError, InvalidRequestError, ProviderError
from jumpseat.sessions.context import Context, Parts
from jumpseat.system.file_trees import existing_folder
from jumpseat_protocol.sessions import (
    AutopilotOptions,
    CapiOptions,
    CustomAgentConfig,
    SessionOptions,
    StoredOptions,
)


async def session_models(ctx: Parts, settings: SessionSettings, *, refresh: bool = False) -> list[ModelInfo]:
    """Return the models of the session's own providers, and those of the server if it has no default provider.

    Models that the session may not use are left out.

    ``refresh`` bypasses the cached lists of the server's providers.

    Raises:
        ConfigError: there are no models.
        ProviderError: the models cannot be listed.
    """
    return [info for info in await _all_models(ctx, settings, refresh) if settings.allows(info.id)]


def check_allowed(settings: SessionSettings, model: str) -> None:
    """Check that a session may switch to ``model``.

    Raises:
        InvalidRequestError: it may not.
    """
    if not settings.allows(model):
        allowed = ", ".join(map(repr, settings.allowed_models or ()))
        raise InvalidRequestError(f"the session may not use the model {model!r}; its allowed models: {allowed}")


async def allow_models(ctx: Parts, session: Session, allowed: list[str]) -> None:
    """Limit a live session to ``allowed`` models; it switches to the first available one if it uses another.

    Raises:
        InvalidRequestError: no model is allowed, or the session would have to switch and none is available.
        ConfigError: there are no models to switch to.
        ProviderError: the models cannot be listed.
    """
    if (other := await allowed_instead(ctx, session.settings, allowed)) is not None:
        session.use_model(other, "sdk", cause="allowed_models")
    session.settings.allowed_models = allowed


async def allowed_instead(ctx: Parts, settings: SessionSettings, allowed: list[str]) -> str | None:
    """Return the first available of the ``allowed`` models, if that of the session is none of them.

    Raises:
        InvalidRequestError: no model is allowed, or none that is allowed is available.
        ConfigError: there are no models.
        ProviderError: the models cannot be listed.
    """
    if not allowed:
        raise InvalidRequestError("allowedModels: expected at least one model; null lifts the limit")
    if (settings.options.model or await ctx.models.default_name(settings)) in allowed:
        return None
    available = {info.id for info in await session_models(ctx, replace(settings, allowed_models=None))}
    other = next((model for model in allowed if model in available), None)
    if other is None:
        raise InvalidRequestError("allowedModels: the session has none of these models")
    return other


async def _all_models(ctx: Parts, settings: SessionSettings, refresh: bool) -> list[ModelInfo]:
    own = await ctx.models.of_session(settings)
    if settings.options.provider is not None:
        return own
    try:
        return own + await ctx.models.catalogue.list(settings.login, refresh=refresh)
    except (ConfigError, ProviderError):
        if not own:
            raise
        return own


_FOLDERS: Final = ("additional_directories", "agent_directories", "hook_directories")
"""Folders that stay the same if the working directory changes."""


def check_options(options: StoredOptions) -> None:
    """Check the values that are given, by themselves.

    Raises:
        InvalidRequestError: two custom agents have the same name, the configuration of an MCP server is invalid, or
            the schema of the response format is not supported.
    """
    check_format(options.response_format)
    _check_agents(options.custom_agents)
    _check_servers(options.mcp_servers)


def apply_options(
    settings: SessionSettings, options: StoredOptions, *, has_prompts: bool = False
) -> SessionSettings:
    """Return ``settings`` with the options that are given, which :func:`check_options` has checked.

    The login is not an option in this sense: see ``login.py``. With ``has_prompts``, files are not tracked unless
    they were: a rewind would restore a part of them.

    Raises:
        InvalidRequestError: the working directory does not exist.
    """
    given = _given(options, vars(settings.options))
    changed = replace(settings)
    if isinstance(options, SessionOptions) and options.working_directory is not None:
        changed.cwd = existing_folder("workingDirectory", options.working_directory)
    for name in given.keys() & _FOLDERS:
        given[name] = [str(changed.cwd / os.path.expanduser(folder)) for folder in given[name]]
    if has_prompts and not settings.options.enable_file_change_tracking:
        given.pop("enable_file_change_tracking", None)
    changed.set_options(**given)
    if not given.keys().isdisjoint(("additional_directories", "agent_directories")):
        # Searched again when they are needed.
        changed.found_agents = ()
    if "mcp_servers" in given:
        changed.lost_mcp_servers = {}
    if "custom_agents" in given:
        changed.lost_agent_servers = {}
    return changed


def _given(options: StoredOptions, current: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options that a session keeps; of some, a member that is absent does not change, either."""
    given: dict[str, Any] = {}
    for name in options.model_fields_set & current.keys():
        value = getattr(options, name)
        if isinstance(value, AutopilotOptions | CapiOptions):
            members = {member: getattr(value, member) for member in value.model_fields_set}
            value = current[name].model_copy(update=members)
        if value is not None:
            given[name] = value
    return given


def changed_settings(
    ctx: Context,
    settings: SessionSettings,
    options: SessionOptions,
    tools: Callable[[SessionSettings], Collection[str]],
    *,
    has_prompts: bool,
) -> SessionSettings:
    """Return the settings of an open session with the options of a client, once all are known to fit.

    ``tools`` are the names of the tools that the session has with some settings.

    Raises:
        InvalidRequestError: an option is invalid in this session.
    """
    changed = apply_options(settings, options, has_prompts=has_prompts)
    check_agent(ctx, changed, options)
    if options.model is not None:
        check_allowed(changed, options.model)
    check_choice(options.tool_choice, lambda: tools(changed))
    return changed


def requests_tokens(options: SessionOptions) -> bool:
    """Return whether the client that sent ``options`` provides bearer tokens for a provider on request."""
    providers = (options.provider, *options.providers)
    return any(provider.has_bearer_token_provider for provider in providers if provider is not None)


def check_agent(ctx: Context, settings: SessionSettings, options: SessionOptions) -> None:
    """Check that the selected agent exists, in the settings or in a file.

    Searches the files for agents if the settings do not have it, and stores the result in ``settings``.

    Raises:
        InvalidRequestError: ``options``, which were applied to ``settings``, select an unknown agent.
    """
    if settings.options.agent is None or settings.custom_agent is not None:
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


def _check_agents(agents: Sequence[CustomAgentConfig]) -> None:
    names = [agent.name for agent in agents]
    if len(set(names)) < len(names):
        raise InvalidRequestError("customAgents: two agents have the same name")
    for agent in agents:
        try:
            _check_servers(agent.mcp_servers)
        except InvalidRequestError as error:
            raise InvalidRequestError(f"customAgents.{agent.name[:100]}.{error}") from None


def _check_servers(servers: Mapping[str, Any] | None) -> None:
    if servers:
        # Loaded late: most sessions have no servers, though some clients always send an object.
        from jumpseat.mcp.catalogue import check_servers

        check_servers(servers)
