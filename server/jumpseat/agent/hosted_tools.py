"""The tools that a model's provider runs itself, as a session or a message asks for them.

They have one name here whatever a provider calls them. A model that has not got one goes without it: the client is
told once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import HostedTool, ToolSpec
from jumpseat.agent.session import Prompt, Session
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


def hosted_for_call(
    session: Session, prompt: Prompt, resolved: ResolvedModel, tools: list[ToolSpec]
) -> list[HostedTool]:
    """The hosted tools for the next model call. ``tools`` are those of ours that are on offer."""
    asked = session.settings.hosted_tools if prompt.hosted_tools is None else prompt.hosted_tools
    if not asked:
        return []
    can = resolved.model.capabilities(resolved.wire_name).hosted_tools
    ours = {tool.name for tool in tools} - session.client_tools().keys()
    found: dict[str, HostedTool] = {}
    missing: list[str] = []
    for one in asked:
        name, options = (one, {}) if isinstance(one, str) else (one.name, one.options())
        neutral = ALIASES.get(name, name)
        if neutral in can and ours.issuperset(RUN_HERE.get(neutral, ())):
            found[neutral] = HostedTool(neutral, options)
        else:
            missing.append(name)
    if missing and missing != session.hosted_tools_missing:
        text = f"{resolved.info.id} has to go without hosted tools: {', '.join(missing)}."
        session.emit(SessionWarning(warning_type="hosted_tool", message=text))
    session.hosted_tools_missing = missing
    return list(found.values())
