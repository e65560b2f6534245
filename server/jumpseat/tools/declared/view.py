"""The objects that functions of a declared tool receive: the tool, its surroundings and the conversation.

They belong to one call, and functions may set attributes on them; only ``flags`` outlives the call.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.declared.paths import follow
from jumpseat.tools.declared.definition import Definition

log = logging.getLogger(__name__)


class ChatView:
    """The part of the conversation that functions may change: the tool's output, and messages after the results.

    Changes are ignored once the call has its result.
    """

    def __init__(self, session_id: str, cwd: Path, flags: dict[str, bool], adapter: str | None) -> None:
        self.id = session_id
        self.cwd = str(cwd)
        self.adapter = adapter
        self.tool_registry = Registry(flags)
        self.outputs: list[tuple[str, str | None]] = []
        self.messages: list[str] = []
        self.closed = False

    def add_tool_output(self, tool: Any, for_llm: Any, for_user: Any = None) -> None:
        """Add to the result of the call. The user is shown ``for_user`` instead; an empty string shows nothing."""
        if not self.closed:
            self.outputs.append((as_text(for_llm), None if for_user is None else as_text(for_user)))

    def add_message(self, data: Mapping[str, Any], opts: Any = None) -> None:
        """Add a message ``{role, content}`` for the model after the results."""
        if self.closed:
            return
        content = as_text(data.get("content"))
        if data.get("role") not in ("user", "system"):
            log.warning("add_message: unknown role %r, using 'user'", data.get("role"))
        if content:
            self.messages.append(content)


class Registry:
    """``flags`` record, for commands with a flag, whether the last run in this session succeeded."""

    def __init__(self, flags: dict[str, bool]) -> None:
        self.flags = flags


class ToolView:
    """The view of a call that functions get. ``setup`` may change ``cmds``; functions may set any attribute.

    ``args`` are the arguments, ``request`` the same in the form of 2024 (in ``parameters``, and beside the name),
    ``env`` the values of ``env``, ``results`` those of the commands and functions so far, ``function_call`` the
    call as the model made it.
    """

    def __init__(self, definition: Definition, call: ToolUseBlock, chat: ChatView) -> None:
        self.name = definition.name
        self.description = definition.description
        self.schema = definition.schema if definition.schema is not None else schema_of(definition)
        self.opts: JsonObject = definition.opts.model_dump(exclude_none=True)
        self.cmds: list[Any] = list(definition.cmds)
        self.args: JsonObject = dict(call.arguments or {})
        self.request: JsonObject = {**self.args, "name": definition.name, "parameters": self.args}
        self.function_call: JsonObject = {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_json},
        }
        self.env: JsonObject = {}
        self.results: list[JsonObject] = []
        self.chat = chat
        self.tools = ToolsView(self, chat)

    def take_over(self, before: ToolView) -> None:
        """Copy the attributes that functions set in the previous call, whose ``setup`` serves this call, too."""
        for name, value in vars(before).items():
            if name not in vars(self):
                setattr(self, name, value)
        self.cmds = self.cmds or before.cmds

    def lookup(self, path: str) -> Any:
        """Return the value at a dotted path, ``None`` if there is none."""
        return follow(self, path)


class ToolsView:
    """The surroundings of a call."""

    def __init__(self, tool: ToolView, chat: ChatView) -> None:
        self.tool = tool
        self.chat = chat
        self.flags = chat.tool_registry.flags


def schema_of(definition: Definition) -> JsonObject:
    """Return the function schema of a tool that was declared without one."""
    return {
        "type": "function",
        "function": {
            "name": definition.name,
            "description": definition.description,
            "parameters": definition.parameters,
        },
    }


def as_text(value: Any) -> str:
    """Convert any value to a string that can be sent to the model and to clients."""
    if value is None:
        return ""
    if not isinstance(value, str):
        try:
            return canonical_json(value)
        except (TypeError, ValueError):
            value = _to_text(value)
    # JSON cannot carry half of a surrogate pair.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _to_text(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        log.error("cannot convert a %s to text: %s", type(value).__name__, type(error).__name__)
        return f"<{type(value).__name__}>"
