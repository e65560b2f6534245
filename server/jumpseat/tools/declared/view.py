"""What the functions of a declared tool get to see: the tool, what surrounds it, and the conversation.

All of it belongs to one call, so that functions may keep what they like on it; only ``flags`` outlives the call.
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
    """The conversation, as far as functions may change it: output of the tool, and messages after the results.

    Nothing of it counts any more once the call has its result.
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
        """Add to the result of the call. ``for_user`` is what a person is shown instead; empty shows nothing."""
        if not self.closed:
            self.outputs.append((as_text(for_llm), None if for_user is None else as_text(for_user)))

    def add_message(self, data: Mapping[str, Any], opts: Any = None) -> None:
        """Tell the model something beside the result: ``{role, content}``. It stands behind the results."""
        if self.closed:
            return
        content = as_text(data.get("content"))
        if data.get("role") not in ("user", "system"):
            log.warning("add_message: the role %r is taken as 'user'", data.get("role"))
        if content:
            self.messages.append(content)


class Registry:
    """``flags`` tell of commands with a flag whether they ended well when they last ran in this session."""

    def __init__(self, flags: dict[str, bool]) -> None:
        self.flags = flags


class ToolView:
    """One call of a tool. ``cmds`` may be changed by ``setup``; anything may be kept on it.

    ``args`` are the arguments, ``request`` the same in the form of 2024 (``request.parameters`` where the schema
    was an example, else beside the name), ``env`` the values of ``env``, ``results`` what each
    command and function came to, ``function_call`` the call as the model made it.
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
        """Go on with what the functions of the call before have kept; its ``setup`` was for this one, too."""
        for name, value in vars(before).items():
            if name not in vars(self):
                setattr(self, name, value)
        self.cmds = self.cmds or before.cmds

    def lookup(self, path: str) -> Any:
        """What a dotted path leads to, ``None`` where to nothing."""
        return follow(self, path)


class ToolsView:
    """What surrounds a call."""

    def __init__(self, tool: ToolView, chat: ChatView) -> None:
        self.tool = tool
        self.chat = chat
        self.flags = chat.tool_registry.flags


def schema_of(definition: Definition) -> JsonObject:
    """The function schema of a tool that was declared without one."""
    return {
        "type": "function",
        "function": {
            "name": definition.name,
            "description": definition.description,
            "parameters": definition.parameters,
        },
    }


def as_text(value: Any) -> str:
    """Any value as a text that can be sent: to the model, and to clients."""
    if value is None:
        return ""
    if not isinstance(value, str):
        try:
            return canonical_json(value)
        except (TypeError, ValueError):
            value = _shown(value)
    # No JSON can carry half a surrogate pair.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _shown(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:
        log.error("a %s cannot be shown: %s", type(value).__name__, type(error).__name__)
        return f"<{type(value).__name__}>"
