"""The tools that a written call may mean, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.model_calls.written_calls.repair import bare_name, offered_name
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall, read_calls
from jumpseat.agent.model_calls.xml_tools.reader import Element
from jumpseat.agent.model_calls.xml_tools.schemas import as_schema

Translate: TypeAlias = Callable[[ToolUseBlock, str, Mapping[str, ToolSpec]], ToolUseBlock]
"""Converts a call in the terms of another agent to one of an offered tool; see ``dialects.py``."""

_NAMESPACES: Final = ("", "function.", "functions.", "tool.", "tools.", "default_api.")
_DEFINES: Final = frozenset({"type", "properties"})


class Offered:
    """The tools of a request. ``translate`` finds those that a call means in the terms of another agent."""

    def __init__(self, tools: Sequence[ToolSpec], translate: Translate | None = None) -> None:
        self.specs = {tool.name: tool for tool in tools}
        self._schemas: dict[str, JsonObject] = {}
        self._translate = translate

    def schema(self, name: str) -> JsonObject:
        if name not in self._schemas:
            self._schemas[name] = self.specs[name].parameters
        return self._schemas[name]

    def schemas(self) -> dict[str, JsonObject]:
        return {name: self.schema(name) for name in self.specs}

    def name_of(self, written: str) -> str | None:
        """Return the name of the tool that is written with noise around it; ``None`` if no tool has the name."""
        return offered_name(written, self.specs)

    def may_become_name(self, beginning: str) -> bool:
        """Return whether the name of a tool may begin with ``beginning``."""
        names = (f"{space}{name}.call".casefold() for space in _NAMESPACES for name in self.specs)
        return any(name.startswith(beginning.casefold()) for name in names)

    def call(self, written: str, arguments: JsonObject) -> WrittenCall | None:
        """Return the call of an offered tool, possibly in the terms of another agent."""
        name = self.name_of(written)
        if name is not None:
            return WrittenCall(name, arguments)
        if self._translate is None:
            return None
        block = self._translate(ToolUseBlock("", written, "", arguments), bare_name(written), self.specs)
        return WrittenCall(block.name, block.arguments) if block.name in self.specs else None

    def plain_call(self, written: str, arguments: JsonObject) -> WrittenCall | None:
        """Return the call in a form that is not certain to be one: its arguments must be known to the tool."""
        call = self.call(written, arguments) if self.name_of(written) is not None else None
        if call is None:
            return None
        properties = as_schema(self.schema(call.name).get("properties"))
        if arguments.keys() >= _DEFINES and not properties.keys() >= _DEFINES:
            return None
        if not arguments:
            return None if self.schema(call.name).get("required") else call
        return call if arguments.keys() & properties.keys() or self._fits(call) else None

    def _fits(self, call: WrittenCall) -> bool:
        """Return whether a call has all required arguments, at least in the terms of another agent."""
        if self._translate is None or call.arguments is None:
            return False
        block = self._translate(ToolUseBlock("", call.name, "", call.arguments), call.name, self.specs)
        required: Any = self.schema(call.name).get("required") or ()
        return bool(required) and (block.arguments or {}).keys() >= {*required}

    def typed_call(self, written: str, parameters: Sequence[tuple[str, str]]) -> WrittenCall | None:
        """Return a call with texts as arguments; the schema of the tool decides about their types."""
        name = self.name_of(written)
        schema = self.schema(name) if name is not None else {}
        children = [Element(key, "value", key, parts=[text], marked=True) for key, text in parameters]
        tool = Element("tool", "tool", name or written, schema=schema, root=schema, children=children)
        (call,) = read_calls(tool)
        if call.problem is not None:
            return call if name is not None else None
        return self.call(written, call.arguments or {})
