"""Tools that run in a client: send the calls, read the results.

A call goes to all attached clients as an event; the client that has the tool answers by the request id. There is no
time limit unless the operator sets one, because handlers may wait for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, cast

import anyio
import orjson
from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from jumpseat.agent.blocks import ImageBlock, JsonObject, ToolUseBlock
from jumpseat.agent.client import ProvidedTool
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.observation import Question
from jumpseat.agent.session.session import Session
from jumpseat.tools.filters import SourceName
from jumpseat.tools.schema_check import argument_problems, missing_defaults
from jumpseat.tools.tool import TOOL_SEARCH, Ordering, Prepared, ToolContext, ToolOutcome, failure
from jumpseat_protocol import events
from jumpseat_protocol.permissions import CustomToolPermission
from jumpseat_protocol.tools import HandlePendingToolCallParams, ToolResultObject
from jumpseat_protocol.wire import to_wire


class ClientTools:
    """The source of the tools of all attached clients. ``limit_s`` is the time limit of a call, in seconds."""

    def __init__(self, session: Session, limit_s: float | None = None) -> None:
        self._session = session
        self._limit_s = limit_s
        self._provided: Mapping[str, ProvidedTool] = {}
        self._tools: Mapping[str, ClientSideTool] = {}

    def tools(self) -> Mapping[str, ClientSideTool]:
        provided = self._session.clients.tools()
        if provided is not self._provided:
            self._provided = provided
            self._tools = {
                name: ClientSideTool(self._session, tool, self._limit_s) for name, tool in provided.items()
            }
        return self._tools

    async def ready(self) -> None:
        """Return at once."""

    async def close(self, grace_s: float) -> None:
        """Do nothing: an open call is withdrawn with the turn that made it."""


class ClientSideTool(Struct, frozen=True):
    """A tool of a client."""

    session: Session
    definition: ProvidedTool
    limit_s: float | None = None

    @property
    def name(self) -> str:
        return self.definition.spec.name

    @property
    def source(self) -> SourceName:
        return "custom"

    @property
    def ordering(self) -> Ordering:
        """Return ``independent``: the handler of one call may wait for another call in the same client."""
        return "independent"

    @property
    def spec(self) -> ToolSpec:
        return self.definition.spec

    @property
    def changes_nothing(self) -> bool:
        return self.definition.read_only

    @property
    def defer(self) -> Literal["auto", "never"] | None:
        return self.definition.defer

    def summary(self, arguments: JsonObject) -> str | None:
        """Return ``None``: clients send no summaries."""
        return None

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        tool, spec = self.definition, self.definition.spec
        parameters = spec.parameters
        if defaults := missing_defaults(call.arguments or {}, parameters):
            call = replace(call, arguments={**(call.arguments or {}), **defaults})
        if problems := argument_problems(call.arguments or {}, parameters):
            return failure(f"Invalid arguments for `{spec.name}`: {'; '.join(problems)}")
        permission = None
        if not tool.skip_permission:
            permission = CustomToolPermission(
                tool_name=spec.name, tool_description=spec.description, args=call.arguments
            )
        return Prepared(permission, partial(run_client_tool, self.session, tool, call, self.limit_s))


async def run_client_tool(
    session: Session, tool: ProvidedTool, call: ToolUseBlock, limit_s: float | None = None
) -> ToolOutcome:
    """Ask the clients to run ``call`` and wait for the result, for ``limit_s`` seconds or without limit."""
    record = Question(session_id=session.id, asks_for="tool", call_id=call.id, kind="tool", tool=call.name)
    with session.services.observers.watch(record):
        answer = await _ask_clients(session, call, limit_s)
        record.result = "timeout" if answer is None else "answered"
    if answer is None:
        return ToolOutcome(f"The tool `{tool.spec.name}` gave no result within {limit_s:g} s.", "timeout")
    outcome = outcome_of(call, answer)
    outcome.ends_turn = outcome.ends_turn or (tool.is_terminal and outcome.ok)
    return outcome


async def _ask_clients(
    session: Session, call: ToolUseBlock, limit_s: float | None
) -> HandlePendingToolCallParams | None:
    pending = session.clients.external_calls.ask(call)
    try:
        session.emit(session.tool_question(pending.id, call))
        answer = None
        with anyio.move_on_after(limit_s):
            answer = await pending.answer()
    finally:
        session.clients.external_calls.close(pending)
    session.emit(events.ExternalToolCompleted(request_id=pending.id))
    return answer


def outcome_of(call: ToolUseBlock, answer: HandlePendingToolCallParams) -> ToolOutcome:
    """Convert a client's answer; the message of an exception in its handler is not shown to the model."""
    if answer.error is not None:
        arguments = canonical_json(call.arguments or {})
        return ToolOutcome(
            text=(
                f"Failed to execute `{call.name}` tool with arguments: {arguments}"
                " due to error: Error: Tool execution failed"
            ),
            status="failure",
            error="Tool execution failed",
        )
    result: Any = answer.result
    if isinstance(result, str):
        result = _result_object(result) or result
    if isinstance(result, dict) and "textResultForLlm" in result:
        try:
            return outcome_of_object(call, _read_result(cast("JsonObject", result)))
        except ValidationError:
            return ToolOutcome(
                text=f"The result of the tool `{call.name}` is malformed.",
                status="failure",
                error="Malformed tool result",
            )
    if result is None:
        return ToolOutcome(text="")
    return ToolOutcome(text=result if isinstance(result, str) else canonical_json(result))


def _read_result(result: JsonObject) -> ToolResultObject:
    """Read a result object without its invalid binary results, for which a text is added.

    Raises:
        ValidationError: another member is invalid.
    """
    try:
        return ToolResultObject.model_validate(result)
    except ValidationError as error:
        wrong = {problem["loc"][1:2] for problem in error.errors() if problem["loc"][0] == "binaryResultsForLlm"}
        binary = result.get("binaryResultsForLlm")
        if not wrong or not isinstance(result["textResultForLlm"], str):
            raise
        items = cast("list[Any]", binary) if isinstance(binary, list) else []
        kept = [item for number, item in enumerate(items) if (number,) not in wrong]
        text = f"{result['textResultForLlm']}\n[{len(wrong)} invalid binary result(s) left out]"
        return ToolResultObject.model_validate({**result, "textResultForLlm": text, "binaryResultsForLlm": kept})


def _result_object(text: str) -> JsonObject | None:
    """Return the result object that ``text`` is the JSON of; ``None`` for any other text.

    The SDK for Node sends a result object without ``resultType`` as text.
    """
    if not text.startswith('{"textResultForLlm":'):
        return None
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    known = {field.alias or name for name, field in ToolResultObject.model_fields.items()}
    found = cast("JsonObject", value) if isinstance(value, dict) else {}
    return found if found and known.issuperset(found) else None


def object_of_outcome(outcome: ToolOutcome) -> JsonObject:
    """Convert an outcome to a result object, as hooks and clients receive it."""
    binary = [
        {"type": "image", "data": image.data, "mimeType": image.mime_type, "description": image.label}
        for image in outcome.images
    ] + [to_wire(resource) for resource in outcome.resources]
    result = {
        "textResultForLlm": outcome.text,
        "resultType": outcome.status,
        "error": outcome.error,
        "binaryResultsForLlm": binary or None,
        "sessionLog": outcome.session_log,
        "toolTelemetry": outcome.telemetry,
    }
    return {name: value for name, value in result.items() if value is not None}


def outcome_of_object(call: ToolUseBlock, result: ToolResultObject) -> ToolOutcome:
    """Convert a result object of a client or a hook."""
    outcome = ToolOutcome(
        text=result.text_result_for_llm,
        telemetry=result.tool_telemetry or None,
        session_log=result.session_log,
    )
    if call.name == TOOL_SEARCH:
        outcome.references = result.tool_references or []
    for item in result.binary_results_for_llm:
        if item.type == "image" and item.mime_type.startswith("image/"):
            label = item.description or f"Image from tool {call.name}"
            outcome.images.append(ImageBlock(item.data, item.mime_type, label=label))
        else:
            outcome.resources.append(
                events.BinaryResult(
                    data=item.data, mime_type=item.mime_type, description=item.description, type="resource"
                )
            )
    match result.result_type:
        case "success":
            pass
        case "rejected":
            outcome.status, outcome.error, outcome.ends_turn = "rejected", result.text_result_for_llm, True
        case "denied":
            outcome.status, outcome.error = "denied", result.text_result_for_llm
        case "timeout":
            outcome.status, outcome.error = "timeout", result.error or result.text_result_for_llm
        case _:
            # `failure`, and any value that a client may invent.
            outcome.status, outcome.error = "failure", result.error or result.text_result_for_llm
    return outcome
