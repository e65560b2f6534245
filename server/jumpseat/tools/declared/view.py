"""The objects that functions of a declared tool receive: the tool, its surroundings and the conversation.

They belong to one call, and functions may set attributes on them; only ``flags`` outlives the call.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio.from_thread
from anyio.lowlevel import current_token

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.declared.paths import follow
from jumpseat.tools.declared.definition import Definition
from jumpseat.tools.tool import Notify, Severity

log = logging.getLogger(__name__)


class ChatView:
    """The part of the conversation that functions may change: the tool's output, and messages after the results.

    Changes are ignored once the call has its result.
    """

    def __init__(
        self, session_id: str, cwd: Path, flags: dict[str, bool], adapter: str | None, notify: Notify
    ) -> None:
        self.id = session_id
        self.cwd = str(cwd)
        self.adapter = adapter
        self.tool_registry = Registry(flags)
        self.outputs: list[tuple[str, str | None]] = []
        self.messages: list[str] = []
        self.closed = False
        self._notify = notify
        self._token = current_token()
        self._loop_thread = threading.get_ident()

    def notify(self, text: Any, level: Any = "info", opts: Any = None) -> None:
        """Show ``text`` to the user, not to the model. ``level`` is ``info``, ``warn`` or ``error``, or its number.

        May be called in any thread, during the call.
        """
        show = partial(self._show, as_text(text), _severity(level))
        if threading.get_ident() == self._loop_thread:
            show()
        else:
            # The event loop may have been closed in the meantime.
            with suppress(RuntimeError):
                anyio.from_thread.run_sync(show, token=self._token)

    def _show(self, text: str, severity: Severity) -> None:
        if not self.closed and text:
            self._notify(text, severity)

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

    def add_buf_message(self, data: Mapping[str, Any], opts: Any = None) -> None:
        """Do the same as ``add_message``, under its name of 2024."""
        self.add_message(data, opts)


class Registry:
    """``flags`` record, for commands with a flag, whether the last run in this session succeeded."""

    def __init__(self, flags: dict[str, bool]) -> None:
        self.flags = flags


class ToolView:
    """The view of a call that functions get. ``setup`` may change ``cmds``; functions may set any attribute.

    ``args`` are the arguments, ``request`` the same in the form of 2024 (in ``parameters``, and beside the name),
    ``env`` the values of ``env``, ``results`` those of the commands and functions so far, ``function_call`` the
    call as the model made it, ``tool`` the declaration of the tool as it was written.
    """

    def __init__(self, definition: Definition, call: ToolUseBlock, chat: ChatView) -> None:
        self.name = definition.name
        self.description = definition.description
        self.schema = definition.schema if definition.schema is not None else schema_of(definition)
        self.opts: JsonObject = definition.opts.model_dump(exclude_none=True)
        self.tool = Declared(definition.declared, self)
        self.cmds: list[Any] = list(definition.cmds)
        self.args: JsonObject = {}
        self.request: JsonObject = {}
        self.use_arguments(dict(call.arguments or {}))
        self.function_call: JsonObject = {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_json},
        }
        self.env: JsonObject = {}
        self.results: list[JsonObject] = []
        self.chat = chat
        self.notify = chat.notify
        self.tools = ToolsOf2024(self, chat) if definition.legacy else ToolsView(self, chat)

    def use_arguments(self, arguments: JsonObject) -> None:
        """Set the arguments of the call."""
        self.args = arguments
        self.request = {**arguments, "name": self.name, "parameters": arguments}

    def take_over(self, before: ToolView) -> None:
        """Copy the attributes that functions set in the previous call, whose ``setup`` serves this call, too."""
        for name, value in vars(before).items():
            if name not in vars(self):
                setattr(self, name, value)
        self.cmds = self.cmds or before.cmds

    def lookup(self, path: str) -> Any:
        """Return the value at a dotted path, ``None`` if there is none."""
        return follow(self, path)


class Declared(dict[str, Any]):
    """The declaration of a tool as it was written. Its attributes are those of the call's view of the tool.

    Functions of 2024 read and change ``self.tool.cmds``, functions of 2025 read ``self.tool["description"]``.
    """

    def __init__(self, declared: Mapping[str, Any], view: ToolView) -> None:
        super().__init__(declared)
        vars(self)["_view"] = view

    def __getattr__(self, name: str) -> Any:
        # A copy has no view.
        return getattr(vars(self).get("_view"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_view"], name, value)


class ToolsView:
    """The surroundings of a call. ``stdout`` and ``stderr`` are the data of its commands and functions so far."""

    def __init__(self, tool: ToolView, chat: ChatView) -> None:
        self.tool = tool
        self.chat = chat
        self.notify = chat.notify
        self.flags = chat.tool_registry.flags
        self.stdout: list[Any] = []
        self.stderr: list[Any] = []


class ToolsOf2024(ToolsView):
    """The parameter ``self`` of functions of 2024. The tool is its attribute ``tool``; both have its attributes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self).get("tool"), name)


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


def _severity(level: Any) -> Severity:
    """Convert a level, or its number in Neovim (3 is a warning, 4 an error)."""
    name = level.lower() if isinstance(level, str) else {3: "warn", 4: "error"}.get(level, "info")
    return "warning" if name in ("warn", "warning") else "error" if name == "error" else "info"
