"""Structured output: asking for an answer of a certain form, and judging what comes.

A provider with a field for it is asked there. To any other the answer is a tool, the only way for the model to end
its run: :class:`FinalToolModel` adds it, forces it, and makes text of its call again, so that nobody else knows.
Whoever promised what, every answer is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from jumpseat.agent import json_schema
from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, JsonObject, TextBlock, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.json_schema import NotASchemaError, UnusableSchemaError, shortened
from jumpseat.agent.model import (
    Completed,
    ModelEvent,
    ModelRequest,
    ResponseFormat,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
    ToolSpec,
)
from jumpseat.agent.rewriting import Rewriter, RewritingModel
from jumpseat.agent.session.queue import Prompt
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError, ResponseFormatError
from jumpseat_protocol.sessions import JsonSchemaFormat, ResponseFormatConfig

RESPONSE_FORMAT: Final = "response_format"
"""Where a message comes from that tells the model what is wrong with the form of its answer."""

_WRAPPED: Final = "answer"


# --- what is asked for --------------------------------------------------------------------------------------------


def check_format(config: ResponseFormatConfig | None) -> None:
    """Judge a form before anything is done for it.

    Raises:
        InvalidRequestError: its schema is not a JSON Schema.
    """
    if not isinstance(config, JsonSchemaFormat):
        return
    try:
        json_schema.check_schema(config.json_schema.schema_)
    except NotASchemaError as error:
        place = error.place("responseFormat.jsonSchema.schema")
        raise InvalidRequestError(f"{place} is not a JSON Schema: {error}") from None


def format_for_call(settings: SessionSettings, prompt: Prompt) -> ResponseFormat | None:
    """The form of the answers to ``prompt``: its own, else that of the session."""
    return format_of(prompt.response_format or settings.response_format)


def format_of(config: ResponseFormatConfig | None) -> ResponseFormat | None:
    """The form that a client asks for."""
    if not isinstance(config, JsonSchemaFormat):
        return None
    wanted = config.json_schema
    return ResponseFormat(wanted.name, wanted.schema_, wanted.description, wanted.strict)


# --- what has come ------------------------------------------------------------------------------------------------


def problems_of(text: str, schema: JsonObject) -> list[str]:
    """What is wrong with an answer, each with its place as a JSON pointer; empty where nothing is.

    Raises:
        ResponseFormatError: the schema itself cannot be worked with.
    """
    try:
        value: Any = orjson.loads(text)
    except ValueError as error:
        return [f"the answer is not JSON: {shortened(str(error))}" if text.strip() else "the answer is empty"]
    try:
        return [f"{one.pointer or 'the answer'}: {one.text}" for one in json_schema.problems_of(value, schema)]
    except UnusableSchemaError as error:
        raise ResponseFormatError(str(error)) from None


def repair_request(problems: list[str]) -> str:
    """What the model is told of them."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    return (
        f"The last answer does not fit the JSON Schema that was asked for:\n{listed}\n"
        "Give the whole answer again, as JSON that fits it, and nothing else."
    )


# --- providers without a field for it -----------------------------------------------------------------------------


def able_to_answer(resolved: ResolvedModel, request: ModelRequest) -> ResolvedModel:
    """The model as it can be asked for the form of ``request``, if that has one."""
    if request.response_format is None:
        return resolved
    has_field = resolved.model.capabilities(resolved.wire_name).structured_output
    if has_field == "always" or (has_field == "without_tools" and not (request.tools or request.hosted_tools)):
        return resolved
    return replace(resolved, model=FinalToolModel(resolved.model))


class FinalToolModel(RewritingModel):
    """A model that gives its last answer as the call of a tool, which is text to everybody else."""

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        tool = _FinalTool.of(request)
        return request if tool is None else tool.rewrite_request(request)

    def rewriter_for(self, request: ModelRequest) -> _AsText | None:
        tool = _FinalTool.of(request)
        return None if tool is None else _AsText(tool, streamed=request.stream)


@dataclass(frozen=True, slots=True)
class _FinalTool:
    """The tool that ends a run. Arguments are an object: another answer is ``wrapped`` in one."""

    spec: ToolSpec
    wrapped: bool

    @classmethod
    def of(cls, request: ModelRequest) -> _FinalTool | None:
        """That for the form of ``request``, if it has one."""
        wanted = request.response_format
        if wanted is None:
            return None
        name, taken = "final_answer", {spec.name for spec in request.tools}
        while name in taken:
            name += "_"
        schema, wrapped = wanted.schema, wanted.schema.get("type") != "object"
        if wrapped:
            # Definitions are referred to from the root.
            shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
            inner = {key: value for key, value in schema.items() if key not in shared}
            schema = {"type": "object", "properties": {_WRAPPED: inner}, "required": [_WRAPPED], **shared}
        about = f": {wanted.description}" if wanted.description else ""
        text = f"Give the final answer{about}. Call it once, alone, when everything else is done."
        return cls(ToolSpec(name, text, schema), wrapped)

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        """``request`` with the tool in place of the form."""
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
        """The answer without the tool, and the text that stands for its call, if that is the answer."""
        blocks = completed.message.blocks
        finals = [one for one in blocks if isinstance(one, ToolUseBlock) and one.name == self.spec.name]
        if not finals:
            return completed, None
        left: list[AssistantBlock] = [one for one in blocks if one not in finals]
        if any(isinstance(one, ToolUseBlock) for one in left):
            # It wants to know more before it answers; what it has guessed meanwhile is not the answer.
            return replace(completed, message=AssistantMessage(left)), None
        arguments = finals[0].arguments
        text = finals[0].arguments_json
        if self.wrapped and arguments is not None and _WRAPPED in arguments:
            text = canonical_json(arguments[_WRAPPED])
        # Whatever is said around it would spoil it.
        left = [one for one in left if not isinstance(one, TextBlock)]
        message = AssistantMessage([*left, TextBlock(text)])
        return replace(completed, message=message, stop_reason="end_turn"), text


class _AsText(Rewriter):
    """The events of an answer, with text for the call of the final tool."""

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
