"""Structured output: request answers that match a JSON Schema, and validate them.

Providers with a field for the schema get it there. For others, :class:`FinalToolModel` adds a tool for the final
answer, forces its use, and converts the call back to text. Every answer is validated here, whatever the provider
guarantees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent import json_schema
from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, JsonObject, TextBlock, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.json_schema import NotASchemaError, UnusableSchemaError, truncate
from jumpseat.agent.model import (
    Completed,
    ModelEvent,
    ModelRequest,
    ResponseFormat,
    Rewriter,
    RewritingModel,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
    ToolSchema,
    ToolSpec,
)
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError, ResponseFormatError
from jumpseat_protocol.sessions import JsonSchemaFormat, ResponseFormatConfig

RESPONSE_FORMAT: Final = "response_format"
"""The source of messages that tell the model about violations of the schema."""

_WRAPPED: Final = "answer"


# --- the requested format -----------------------------------------------------------------------------------------


def check_format(config: ResponseFormatConfig | None) -> None:
    """Validate a requested response format.

    Raises:
        InvalidRequestError: the format's schema is not a JSON Schema.
    """
    if not isinstance(config, JsonSchemaFormat):
        return
    try:
        json_schema.check_schema(config.json_schema.schema_)
    except NotASchemaError as error:
        place = error.place("responseFormat.jsonSchema.schema")
        raise InvalidRequestError(f"{place} is not a JSON Schema: {error}") from None


def format_for_call(settings: SessionSettings, prompt: Prompt) -> ResponseFormat | None:
    """Return the format for answers to ``prompt``: its own or else the session's."""
    return format_of(prompt.response_format or settings.options.response_format)


def format_of(config: ResponseFormatConfig | None) -> ResponseFormat | None:
    """Convert a response format from its wire form; ``None`` if it does not require a schema."""
    if not isinstance(config, JsonSchemaFormat):
        return None
    wanted = config.json_schema
    return ResponseFormat(wanted.name, wanted.schema_, wanted.description, wanted.strict)


# --- validation ---------------------------------------------------------------------------------------------------


def problems_of(text: str, schema: JsonObject) -> list[str]:
    """Validate an answer and return the problems, each as ``"/json/pointer: message"``.

    Raises:
        ResponseFormatError: the schema itself is unusable.
    """
    try:
        value: Any = orjson.loads(text)
    except ValueError as error:
        return [f"the answer is not JSON: {truncate(str(error))}" if text.strip() else "the answer is empty"]
    try:
        return [
            f"{problem.pointer or 'the answer'}: {problem.text}"
            for problem in json_schema.problems_of(value, schema)
        ]
    except UnusableSchemaError as error:
        raise ResponseFormatError(str(error)) from None


def repair_request(problems: list[str]) -> str:
    """Return the message that asks the model to correct its answer."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return (
        f"The last answer does not match the requested JSON Schema:\n{listed}\n"
        "Send the whole answer again as JSON that matches the schema, without any other text."
    )


# --- providers without a field for schemas ------------------------------------------------------------------------


def with_response_format(resolved: ResolvedModel, request: ModelRequest) -> ResolvedModel:
    """Wrap the model in a :class:`FinalToolModel` if it cannot take the response format of ``request`` itself."""
    if request.response_format is None:
        return resolved
    has_field = resolved.model.capabilities(resolved.wire_name).structured_output
    if has_field == "always" or (has_field == "without_tools" and not (request.tools or request.hosted_tools)):
        return resolved
    return replace(resolved, model=FinalToolModel(resolved.model))


class FinalToolModel(RewritingModel):
    """A model that gives its final answer by calling a tool; the call is converted to text."""

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        tool = _FinalTool.for_request(request)
        return request if tool is None else tool.rewrite_request(request)

    def rewriter_for(self, request: ModelRequest) -> _AsText | None:
        tool = _FinalTool.for_request(request)
        return None if tool is None else _AsText(tool, streamed=request.stream)


class _FinalTool(Struct, frozen=True):
    """The tool for the final answer. Arguments are an object, so any other answer is ``wrapped`` in one."""

    spec: ToolSpec
    wrapped: bool

    @classmethod
    def for_request(cls, request: ModelRequest) -> _FinalTool | None:
        """Return the tool for the response format of ``request``, if it has one."""
        wanted = request.response_format
        if wanted is None:
            return None
        name, taken = "final_answer", {spec.name for spec in request.tools}
        while name in taken:
            name += "_"
        schema, wrapped = wanted.schema, wanted.schema.get("type") != "object"
        if wrapped:
            # References to definitions start from the root.
            shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
            inner = {key: value for key, value in schema.items() if key not in shared}
            schema = {"type": "object", "properties": {_WRAPPED: inner}, "required": [_WRAPPED], **shared}
        about = f": {wanted.description}" if wanted.description else ""
        text = f"Give the final answer{about}. Call it once, alone, when everything else is done."
        return cls(ToolSpec(name, text, ToolSchema.of(schema)), wrapped)

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        """Return ``request`` with the tool in place of the response format."""
        choice = request.tool_choice or ToolChoice()
        tools = [] if choice.mode == "none" else request.tools
        hosted = [] if choice.mode == "none" else request.hosted_tools
        if choice.mode in ("auto", "none"):
            free = bool(tools or hosted)
            choice = ToolChoice(
                "required" if free else "specific", None if free else self.spec.name, choice.parallel
            )
        return replace(
            request, tools=[*tools, self.spec], hosted_tools=hosted, tool_choice=choice, response_format=None
        )

    def as_text(self, completed: Completed) -> tuple[Completed, str | None]:
        """Convert a call of the tool to text; return the new answer, and the text if there is one."""
        blocks = completed.message.blocks
        finals = [block for block in blocks if isinstance(block, ToolUseBlock) and block.name == self.spec.name]
        if not finals:
            return completed, None
        left: list[AssistantBlock] = [block for block in blocks if block not in finals]
        if any(isinstance(block, ToolUseBlock) for block in left):
            # The model calls other tools first, so that its answer is premature.
            return replace(completed, message=AssistantMessage(left)), None
        arguments = finals[0].arguments
        text = finals[0].arguments_json
        if self.wrapped and arguments is not None and _WRAPPED in arguments:
            text = canonical_json(arguments[_WRAPPED])
        # Text beside the call would invalidate the JSON.
        left = [block for block in left if not isinstance(block, TextBlock)]
        message = AssistantMessage([*left, TextBlock(text)])
        return replace(completed, message=message, stop_reason="end_turn"), text


class _AsText(Rewriter):
    """Replaces the call of the final tool by text in the events of an answer."""

    def __init__(self, tool: _FinalTool, *, streamed: bool) -> None:
        self._tool = tool
        self._streamed = streamed

    def events_for(self, event: ModelEvent) -> Iterator[ModelEvent]:
        match event:
            case ToolCallDelta() if event.name == self._tool.spec.name:
                pass
            case Completed():
                completed, text = self._tool.as_text(event)
                if self._streamed and text:
                    yield TextDelta(text)
                yield completed
            case _:
                yield event
