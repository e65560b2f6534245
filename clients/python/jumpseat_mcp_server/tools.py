"""The tools that other agents see: start a session, go on with it, read and list sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import mcp.types as types
from pydantic import BaseModel, ConfigDict, Field, ValidationError

PROMPT: Final = "What the agent shall do, with everything that it has to know"


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StartArguments(Arguments):
    prompt: str = Field(description=PROMPT, min_length=1)
    folder: str | None = Field(default=None, description="Absolute path of the folder to work in")
    model: str | None = Field(default=None, description="The model; by default that of the configuration")


class ContinueArguments(Arguments):
    session_id: str = Field(description="The id that start_session has returned", min_length=1)
    prompt: str = Field(description=PROMPT, min_length=1)


class ReadArguments(Arguments):
    session_id: str = Field(description="The id of the session", min_length=1)
    most: int = Field(default=20, ge=1, le=200, description="How many of the last messages to return")


class ListArguments(Arguments):
    most: int = Field(default=20, ge=1, le=200, description="How many of the last sessions to return")


ARGUMENTS: Final[dict[str, type[Arguments]]] = {
    "start_session": StartArguments,
    "continue_session": ContinueArguments,
    "read_session": ReadArguments,
    "list_sessions": ListArguments,
}
_TEXTS: Final = {
    "start_session": "Let a coding agent work on a task in a folder, and wait for its answer.",
    "continue_session": "Send another prompt to a session of the coding agent, and wait for its answer.",
    "read_session": "Return the last prompts and answers of a session.",
    "list_sessions": "List the sessions, the last modified first.",
}
_READING: Final = ("read_session", "list_sessions")
_RESULT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "session_id": {"type": "string"},
        "status": {"type": "string", "enum": ["completed", "failed", "cancelled"]},
        "answer": {"type": "string"},
    },
    "required": ["session_id", "status", "answer"],
}


def all_tools() -> list[types.Tool]:
    """Return the definitions of all tools."""
    return [
        types.Tool(
            name=name,
            description=_TEXTS[name],
            input_schema=arguments.model_json_schema(),
            output_schema=None if name in _READING else _RESULT,
            annotations=types.ToolAnnotations(
                read_only_hint=name in _READING, destructive_hint=name not in _READING, open_world_hint=True
            ),
        )
        for name, arguments in ARGUMENTS.items()
    ]


class InvalidArgumentsError(Exception):
    """The arguments of a call do not fit; the text says why."""


def parse_arguments(name: str, given: dict[str, Any] | None) -> Arguments:
    """Validate the arguments of a call.

    Raises:
        InvalidArgumentsError: the tool is unknown, or an argument is wrong.
    """
    model = ARGUMENTS.get(name)
    if model is None:
        raise InvalidArgumentsError(f"unknown tool {name[:100]!r}: expected one of {', '.join(ARGUMENTS)}")
    try:
        arguments = model.model_validate(given or {})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "arguments"
        raise InvalidArgumentsError(f"{where}: {first['msg']}") from None
    if isinstance(arguments, StartArguments) and arguments.folder is not None:
        folder = Path(arguments.folder)
        if not (folder.is_absolute() and folder.is_dir()):
            raise InvalidArgumentsError("folder: expected the absolute path of an existing folder")
    return arguments
