"""Options of a session that outlive its process: ``options.json`` in the session's folder.

A client that resumes need not say again how the session was set up; what it says wins. Only options without
secrets are kept: no provider, no token, no header.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import orjson
from pydantic import ValidationError

from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol.sessions import MemoryOptions, SessionOptions

log = logging.getLogger(__name__)

FILE: Final = "options.json"


def write_options(folder: Path, settings: SessionSettings) -> None:
    """Keep the options of a session; a disk that refuses costs the options, not the session."""
    options = SessionOptions(
        client_name=settings.client_name,
        system_message=settings.system_message,
        available_tools=settings.available_tools,
        excluded_tools=settings.excluded_tools,
        tool_choice=settings.tool_choice,
        response_format=settings.response_format,
        hosted_tools=settings.hosted_tools,
        large_output=settings.large_output,
        tool_search=settings.tool_search,
        session_limits=settings.session_limits,
        reasoning_summary=settings.reasoning_summary,
        model_capabilities=settings.model_capabilities,
        adapter_settings=settings.adapter_settings or None,
        skip_custom_instructions=settings.skip_custom_instructions,
        instruction_directories=settings.instruction_directories,
        organization_custom_instructions=settings.organization_instructions,
        enable_host_git_operations=settings.host_git,
        enable_config_discovery=settings.config_discovery,
        enable_skills=settings.skills,
        skill_directories=settings.skill_directories,
        disabled_skills=settings.disabled_skills,
        memory=MemoryOptions(enabled=settings.memory) if settings.memory is not None else None,
    )
    draft = folder / f"{FILE}.tmp"
    try:
        draft.write_bytes(orjson.dumps(options.wire()))
        draft.replace(folder / FILE)
    except OSError:
        log.exception("%s cannot be written", folder / FILE)


def read_options(folder: Path) -> SessionOptions:
    """The options that were kept; none where the file is missing or not ours."""
    try:
        return SessionOptions.model_validate(orjson.loads((folder / FILE).read_bytes()))
    except (OSError, ValueError, ValidationError):
        return SessionOptions()
