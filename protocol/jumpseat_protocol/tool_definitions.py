"""Tools in the form of OpenAI's function calling, and functions that create them."""

from __future__ import annotations

import copy
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, StrictBool

from jumpseat_protocol.blocks import ExecutionSide
from jumpseat_protocol.tool_checks import json_problem, name_problem, schema_problem
from jumpseat_protocol.wire import WireModel

BuiltInToolName: TypeAlias = Literal[
    "web_search", "url_context", "code_execution", "file_search", "bash", "text_editor"
]
"""The built-in tools: the provider runs all of them but ``bash`` and ``text_editor``."""

RUN_BY_CALLER: Final = frozenset({"bash", "text_editor"})
"""Built-in tools that some models were trained on and that the caller runs."""


class FunctionDetails(WireModel):
    """``parameters`` is a JSON Schema of type object; without it, the function has no arguments.

    ``strict`` asks for arguments that follow the schema exactly, from providers that have such a mode.
    """

    name: str = Field(min_length=1)
    """The name of the function."""
    description: str = ""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of its arguments."""
    strict: StrictBool | None = None
    """Whether the provider is asked to enforce the schema."""


class Tool(WireModel):
    """A tool for a model. With ``built_in``, the function is the built-in tool of that name.

    ``options`` are the provider's own options of a built-in tool, such as ``max_uses`` of Anthropic's web search.
    """

    type: Literal["function"] = "function"
    function: FunctionDetails
    """What the model may call."""
    built_in: StrictBool = False
    """Whether it is the server's own tool of that name."""
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The provider's own options."""

    @property
    def execution_side(self) -> ExecutionSide:
        """The side that runs the tool."""
        return "provider" if self.built_in and self.function.name not in RUN_BY_CALLER else "client"

    def is_portable(self) -> bool:
        """Return whether every provider reads the results: those of tools that the caller runs are plain text."""
        return self.execution_side == "client"


# --- factories ----------------------------------------------------------------------------------------------------


def new_search_tool(**options: Any) -> Tool:
    """Return the web search of the model's provider, with the provider's own ``options``."""
    return _built_in("web_search", "Search the web.", options)


def new_bash_tool() -> Tool:
    """Return the tool ``bash``, which the caller runs: ``{command}`` or ``{restart: true}``."""
    return _built_in("bash", BASH_DESCRIPTION, {}, BASH_PARAMETERS)


def new_text_editor_tool() -> Tool:
    """Return the tool ``text_editor``, which the caller runs: ``{command, path, ...}``, see its parameters."""
    return _built_in("text_editor", EDITOR_DESCRIPTION, {}, EDITOR_PARAMETERS)


def new_custom_tool(
    name: str, description: str, parameters: dict[str, Any] | None = None, *, strict: bool | None = None
) -> Tool:
    """Return a tool that the caller runs.

    Args:
        name: 1 to 64 letters, digits, ``_`` and ``-``.
        description: what the tool does, for the model.
        parameters: a JSON Schema of type object; by default the tool has no arguments.
        strict: whether arguments must follow the schema exactly; by default the provider decides.

    Raises:
        ValueError: the name, the description or the schema is invalid; the message names the place.
    """
    problem = name_problem(name)
    if problem is None and not (_is_text(description) and description.strip()):
        problem = f"tool {name!r}: expected a description"
    if problem is None and parameters is not None:
        problem = schema_problem(parameters) or json_problem(parameters)
        problem = problem and f"tool {name!r}: {problem}"
    if problem is not None:
        raise ValueError(problem)
    function = FunctionDetails(name=name, description=description, parameters=parameters, strict=strict)
    return Tool(function=function)


def _is_text(value: Any) -> bool:
    # Programs without a type checker pass anything.
    return isinstance(value, str)


def _built_in(
    name: BuiltInToolName, description: str, options: dict[str, Any], parameters: dict[str, Any] | None = None
) -> Tool:
    function = FunctionDetails(name=name, description=description, parameters=copy.deepcopy(parameters))
    return Tool(function=function, built_in=True, options=options)


def portable_function(name: str) -> FunctionDetails | None:
    """Return the function that stands for a built-in tool run by the caller; ``None`` for other tools."""
    match name:
        case "bash":
            return new_bash_tool().function
        case "text_editor":
            return new_text_editor_tool().function
        case _:
            return None


BASH_DESCRIPTION: Final = "Run a command in a bash shell, and return its output."
BASH_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "The command to run. Required unless restart is set."},
        "restart": {"type": "boolean", "description": "Start a new shell instead of running a command."},
    },
}
EDITOR_DESCRIPTION: Final = "View, create and edit text files."
EDITOR_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "command": {
            "type": "string",
            "enum": ["view", "create", "str_replace", "insert"],
            "description": "The operation.",
        },
        "path": {"type": "string", "description": "Path of the file, or of the directory to view."},
        "view_range": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "For view: the first and the last line, from 1; -1 is the end of the file.",
        },
        "file_text": {"type": "string", "description": "For create: the content of the file."},
        "old_str": {"type": "string", "description": "For str_replace: the text to replace; it must be unique."},
        "new_str": {"type": "string", "description": "For str_replace: the new text."},
        "insert_line": {
            "type": "integer",
            "description": "For insert: the line after which to insert; 0 is the start.",
        },
        "insert_text": {"type": "string", "description": "For insert: the text."},
    },
    "required": ["command", "path"],
}
