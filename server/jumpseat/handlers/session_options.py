"""``session.options.update``, and how options of any method reach a session's settings."""

from __future__ import annotations

from pathlib import Path

from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.context import Context
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import OptionsUpdateParams, SessionOptions


def options_update(ctx: Context, params: OptionsUpdateParams) -> SuccessResult:
    """Change settings of a live session; they count from the next model call on."""
    session = ctx.registry.live(params.session_id)
    if params.enable_streaming is not None:
        params.streaming = params.enable_streaming
    apply_options(session.settings, params)
    attachment = session.attachments.get(ctx.connection)
    if attachment is not None and params.system_message is not None:
        attachment.has_transforms = params.system_message.has_transforms()
    ctx.registry.keep_options(session)
    return SuccessResult()


def apply_options(settings: SessionSettings, options: SessionOptions) -> None:
    """Take over what ``options`` sets; what is unset stays as it is.

    Raises:
        InvalidRequestError: the working directory does not exist.
    """
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
        "client_name",
        "provider",
        "providers",
        "available_tools",
        "system_message",
        "streaming",
        "large_output",
        "skip_custom_instructions",
        "instruction_directories",
    ):
        value = getattr(options, name)
        if value is not None:
            setattr(settings, name, value)
    if options.models is not None:
        settings.provider_models = options.models
    if options.git_hub_token:
        settings.github_token = options.git_hub_token
    if options.excluded_tools is not None or options.default_agent is not None:
        agent = options.default_agent.excluded_tools if options.default_agent else []
        settings.excluded_tools = [*(options.excluded_tools or []), *agent]
    if options.organization_custom_instructions is not None:
        settings.organization_instructions = options.organization_custom_instructions
    if options.enable_host_git_operations is not None:
        settings.host_git = options.enable_host_git_operations
