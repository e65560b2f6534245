"""The tools that a model's provider runs itself, as a session or a message asks for them.

They have one name here whatever a provider calls them. A model that has not got one goes without it: the client is
told once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import HostedTool, ToolSpec
from jumpseat.agent.session.queue import Prompt
from jumpseat.agent.session.session import Session
from jumpseat_protocol.events import SessionWarning

ALIASES: Final[Mapping[str, str]] = {
    "search": "web_search",
    "google_search": "web_search",
    "web_fetch": "url_context",
    "fetch_webpage": "url_context",
    "code_exec": "code_execution",
    "code_interpreter": "code_execution",
    "file_edit": "text_editor",
}

RUN_HERE: Final[Mapping[str, tuple[str, ...]]] = {"bash": ("bash",), "text_editor": ("view", "create", "edit")}
"""Tools that a model was trained on, and those of ours that do their work: no permission is left out."""

DONE_THERE: Final[Mapping[str, str]] = {"web_search": "web_search", "url_context": "web_fetch"}
"""Hosted tools, and those of ours that are not needed beside them."""


def hosted_for_call(
    session: Session, prompt: Prompt, resolved: ResolvedModel, tools: list[ToolSpec]
) -> list[HostedTool]:
    """The hosted tools for the next model call that the model has; ``tools`` are ours that are on offer."""
    asked = _asked(session, prompt)
    if not asked:
        return []
    can = resolved.model.capabilities(resolved.wire_name).hosted_tools
    ours = {tool.name for tool in tools} - session.clients.tools().keys()
    return [
        HostedTool(name, options)
        for name, options in asked.items()
        if name in can and ours.issuperset(RUN_HERE.get(name, ()))
    ]


def beside_hosted(session: Session, tools: list[ToolSpec], hosted: list[HostedTool]) -> list[ToolSpec]:
    """``tools`` without those of ours that a hosted one does the work of: some providers refuse two of one name."""
    replaced = {
        DONE_THERE[tool.name] for tool in hosted if tool.name in DONE_THERE
    } - session.clients.tools().keys()
    return [tool for tool in tools if tool.name not in replaced] if replaced else tools


def tell_missing(session: Session, prompt: Prompt, resolved: ResolvedModel, found: list[HostedTool]) -> None:
    """Tell the client which hosted tools the model has to go without, where that is new."""
    missing = sorted(_asked(session, prompt).keys() - {tool.name for tool in found})
    if missing and missing != session.hosted_tools_missing:
        text = f"{resolved.info.id} has to go without hosted tools: {', '.join(missing)}."
        session.emit(SessionWarning(warning_type="hosted_tool", message=text))
    session.hosted_tools_missing = missing


def _asked(session: Session, prompt: Prompt) -> dict[str, JsonObject]:
    """The tools that are asked for, by our names for them, with their options."""
    asked = session.settings.hosted_tools if prompt.hosted_tools is None else prompt.hosted_tools
    named: list[tuple[str, JsonObject]] = [
        (one, {}) if isinstance(one, str) else (one.name, one.options()) for one in asked
    ]
    return {ALIASES.get(name, name): options for name, options in named}
