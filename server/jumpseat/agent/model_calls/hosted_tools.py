"""Select the hosted tools, run by the provider itself, that a session or a prompt requests.

Each tool has one name here, whatever its provider calls it. The client is warned once of tools that the model does
not support.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import HostedTool, ModelRequest, ToolSpec
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat_protocol.events import SessionWarning

ALIASES: Final[Mapping[str, str]] = {
    "search": "web_search",
    "google_search": "web_search",
    "google_search_web": "web_search",
    "web_fetch": "url_context",
    "fetch_webpage": "url_context",
    "code_exec": "code_execution",
    "code_interpreter": "code_execution",
    "file_edit": "text_editor",
}

RUN_BY_OURS: Final[Mapping[str, tuple[str, ...]]] = {"bash": ("bash",), "text_editor": ("view", "create", "edit")}
"""Tools whose calls are run by our own tools, with their permissions, if all of these are offered."""

REPLACES: Final[Mapping[str, str]] = {"web_search": "web_search", "url_context": "web_fetch"}
"""Hosted tools, each with the tool of ours that it replaces."""


def hosted_for_call(
    session: Session, prompt: Prompt, resolved: ResolvedModel, tools: list[ToolSpec]
) -> list[HostedTool]:
    """Return the requested hosted tools that the model supports; ``tools`` are our own tools on offer."""
    requested = _requested_tools(session, prompt)
    if not requested:
        return []
    can = resolved.model.capabilities(resolved.wire_name).hosted_tools
    ours = {tool.name for tool in tools} - session.clients.tools().keys()
    return [
        HostedTool(name, options)
        for name, options in requested.items()
        if name in can and ours.issuperset(RUN_BY_OURS.get(name, ()))
    ]


def without_replaced(session: Session, tools: list[ToolSpec], hosted: list[HostedTool]) -> list[ToolSpec]:
    """Remove our own tools that hosted ones replace, since some providers reject two tools with one name."""
    replaced = {REPLACES[tool.name] for tool in hosted if tool.name in REPLACES} - session.clients.tools().keys()
    return [tool for tool in tools if tool.name not in replaced] if replaced else tools


def warn_of_missing(session: Session, prompt: Prompt, resolved: ResolvedModel, request: ModelRequest) -> None:
    """Warn the client of requested hosted tools that the model does not support, unless already done.

    A tool that ours replace is not missing: the model is offered our functions instead.
    """
    requested = _requested_tools(session, prompt).keys()
    ours = {tool.name for tool in request.tools}
    replaced = {name for name, functions in RUN_BY_OURS.items() if ours.issuperset(functions)}
    missing = sorted(requested - {tool.name for tool in request.hosted_tools} - replaced)
    if missing and missing != session.warned.hosted_tools:
        text = f"{resolved.info.id} does not support these hosted tools: {', '.join(missing)}."
        session.emit(SessionWarning(warning_type="hosted_tool", message=text))
    session.warned.hosted_tools = missing


def _requested_tools(session: Session, prompt: Prompt) -> dict[str, JsonObject]:
    """Return the options of each requested hosted tool, by our name for it."""
    requested = session.settings.options.hosted_tools if prompt.hosted_tools is None else prompt.hosted_tools
    named: list[tuple[str, JsonObject]] = [
        (tool, {}) if isinstance(tool, str) else (tool.name, tool.options()) for tool in requested
    ]
    return {ALIASES.get(name, name): options for name, options in named}
