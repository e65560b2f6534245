"""The tools that an agent offers a model, sorted by their abilities, whatever their names are.

The simulated model knows no agent. It sorts the tools by the names of their arguments, as a model does that was
trained on several agents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from jumpseat.adapters.wire import as_list, as_object

PATHS: Final = ("path", "file_path", "filePath", "filepath", "filename", "file", "target_file")
OLDS: Final = ("old_str", "old_string", "oldString", "oldText", "old_text", "before", "search")
NEWS: Final = ("new_str", "new_string", "newString", "newText", "new_text", "after", "replace")
TEXTS: Final = ("file_text", "content", "contents", "text")
COMMANDS: Final = ("command", "cmd", "script")
PATTERNS: Final = ("pattern", "query", "regex")
_VIEW: Final = re.compile(r"view|read|open|cat", re.IGNORECASE)
_CREATE: Final = re.compile(r"create|write|save", re.IGNORECASE)
_SEARCH: Final = re.compile(r"grep|search|\brg\b", re.IGNORECASE)
_SHELL: Final = re.compile(r"bash|shell|exec|terminal|run", re.IGNORECASE)


class Tool(Struct, frozen=True):
    name: str
    schema: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        return self.schema.get("properties") or {}

    @property
    def required(self) -> Sequence[str]:
        return self.schema.get("required") or ()

    def one_of(self, names: Sequence[str]) -> str | None:
        """Return the first of some names that an argument has."""
        return next((name for name in names if name in self.properties), None)


class Call(Struct, frozen=True):
    name: str
    arguments: dict[str, Any]


class Offer:
    """Writes calls of the offered tools; a missing tool is replaced by a command of the shell."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tools

    def view(self, path: str) -> Call | None:
        if (tool := self._named(_VIEW, PATHS)) is not None:
            return self._call(tool, {tool.one_of(PATHS): path}, "view")
        return self.run(f"cat '{path}'")

    def search(self, text: str, path: str) -> Call | None:
        if (tool := self._named(_SEARCH, PATTERNS)) is not None:
            where = {"path": path} if "path" in tool.properties and path != "." else {}
            content = {"output_mode": "content"} if "output_mode" in tool.properties else {}
            return self._call(tool, {tool.one_of(PATTERNS): text} | where | content, "search")
        return self.run(f"grep -rn '{text}' '{path}'")

    def edit(self, path: str, old: str, new: str) -> Call | None:
        for tool in self.tools:
            where, before, after = tool.one_of(PATHS), tool.one_of(OLDS), tool.one_of(NEWS)
            if where is not None and before is not None and after is not None:
                return self._call(tool, {where: path, before: old, after: new}, "str_replace")
            if where is not None and (item := _item(tool.properties.get("edits"))) is not None:
                before, after = item.one_of(OLDS), item.one_of(NEWS)
                if before is not None and after is not None:
                    return self._call(tool, {where: path, "edits": [{before: old, after: new}]}, "str_replace")
        program = f"p = {path!r}; t = open(p).read(); assert t.count({old!r}) == 1, 'the text was not found'"
        return self.run(f"python3 - <<'END'\n{program}; open(p, 'w').write(t.replace({old!r}, {new!r}))\nEND")

    def create(self, path: str, text: str) -> Call | None:
        tool = self._named(_CREATE, PATHS, TEXTS) or self._commanded("create", "write")
        if tool is not None:
            return self._call(tool, {tool.one_of(PATHS): path, tool.one_of(TEXTS): text}, "create")
        return self.run(f"cat > '{path}' <<'END'\n{text}END")

    def run(self, command: str) -> Call | None:
        if (tool := self._named(_SHELL, COMMANDS)) is not None:
            return self._call(tool, {tool.one_of(COMMANDS): command}, "run")
        return None

    def _named(self, pattern: re.Pattern[str], *needed: Sequence[str]) -> Tool | None:
        for tool in self.tools:
            if pattern.search(tool.name) and all(tool.one_of(names) is not None for names in needed):
                return tool
        return self._commanded("view", "read") if pattern is _VIEW else None

    def _commanded(self, *values: str) -> Tool | None:
        """Return the tool that edits, views and creates, depending on an argument ``command``."""
        for tool in self.tools:
            choices = as_list(as_object(tool.properties.get("command")).get("enum"))
            if tool.one_of(PATHS) is not None and set(values) & set(choices):
                return tool
        return None

    def _call(self, tool: Tool, arguments: Mapping[str | None, Any], command: str) -> Call:
        """Fill in the other required arguments as a model does."""
        filled = {name: value for name, value in arguments.items() if name is not None}
        choices = as_list(as_object(tool.properties.get("command")).get("enum"))
        if choices and "command" not in filled:
            alike = {
                "view": ("view", "read"),
                "create": ("create", "write"),
                "str_replace": ("str_replace", "edit"),
            }
            filled["command"] = next((each for each in alike.get(command, ()) if each in choices), command)
        for name in tool.required:
            if name not in filled:
                filled[name] = _filler(tool.properties.get(name) or {})
        return Call(tool.name, filled)


def _item(schema: Any) -> Tool | None:
    item = as_object(as_object(schema).get("items"))
    return Tool("", item) if item else None


def _filler(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return max(schema.get("minimum", 0), min(schema.get("maximum", 60), 60))
        case "boolean":
            return False
        case "array":
            return []
        case "object":
            return {}
        case _:
            return "next step"
