"""Tools made of functions: the schema, the validated arguments and the result on the wire."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field

from jumpseat_client import AnyTool, Session, Tool, ToolContext, ToolResultObject, tool

CTX = ToolContext(cast(Session, None), "call-1", "a_tool")


class Address(BaseModel):
    """A destination."""

    street: str
    number: int | None = None


@dataclass
class Parcel:
    weight_kg: float
    to: Address


async def run(of: AnyTool, arguments: Any) -> str | dict[str, Any]:
    return await of.run(arguments, CTX)


def test_schema_comes_from_the_signature_and_description_from_the_docstring() -> None:
    @tool
    async def send(
        to: Annotated[str, Field(description="Name of the receiver")],
        speed: Literal["slow", "fast"] = "slow",
        copies: Annotated[int, Field(ge=1)] = 1,
    ) -> str:
        """Send a letter.

        Costs money.
        """
        return to + speed + str(copies)

    assert send.definition() == {
        "name": "send",
        "description": "Send a letter.\n\nCosts money.",
        "parameters": {
            "type": "object",
            "properties": {
                "to": {"type": "string", "description": "Name of the receiver"},
                "speed": {"type": "string", "enum": ["slow", "fast"], "default": "slow"},
                "copies": {"type": "integer", "minimum": 1, "default": 1},
            },
            "required": ["to"],
        },
        "overridesBuiltInTool": False,
        "skipPermission": False,
        "isTerminal": False,
    }


def test_decorator_options_reach_the_definition() -> None:
    @tool(name="view", description="Show it", skip_permission=True, overrides_builtin=True, is_terminal=True)
    def show() -> None: ...

    assert show.definition() == {
        "name": "view",
        "description": "Show it",
        "parameters": {"type": "object", "properties": {}},
        "overridesBuiltInTool": True,
        "skipPermission": True,
        "isTerminal": True,
    }


def test_nested_models_have_no_titles_in_the_schema() -> None:
    @tool
    def send(address: Address) -> None: ...

    assert send.parameters == {
        "type": "object",
        "properties": {"address": {"$ref": "#/$defs/Address"}},
        "required": ["address"],
        "$defs": {
            "Address": {
                "type": "object",
                "description": "A destination.",
                "properties": {
                    "street": {"type": "string"},
                    "number": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                },
                "required": ["street"],
            }
        },
    }


def test_context_parameter_is_not_in_the_schema() -> None:
    @tool
    def where(ctx: ToolContext, path: str) -> None: ...

    assert list(where.parameters["properties"]) == ["path"]


def test_parameter_may_have_the_name_of_a_model_method() -> None:
    @tool
    def act(copy: bool, schema: str, json: str = "") -> None: ...

    assert list(act.parameters["properties"]) == ["copy", "schema", "json"]


def test_parameters_that_are_unannotated_or_not_passable_by_name_are_refused() -> None:
    def bare(x): ...  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - under test

    def starred(*names: str) -> None: ...
    def positional(x: int, /) -> None: ...

    with pytest.raises(TypeError, match="parameter 'x' of tool 'bare' needs an annotation"):
        tool(bare)  # pyright: ignore[reportUnknownArgumentType]
    with pytest.raises(TypeError, match="parameter 'names' of tool 'starred' must be passable by name"):
        tool(starred)
    with pytest.raises(TypeError, match="parameter 'x' of tool 'positional' must be passable by name"):
        tool(positional)


def test_tool_called_from_python_is_the_plain_function() -> None:
    @tool
    def double(x: int) -> int:
        return 2 * x

    assert isinstance(double, Tool)
    assert double(4) == 8


@pytest.mark.anyio
async def test_arguments_arrive_as_the_annotated_types() -> None:
    @tool
    async def send(parcel: Parcel, notes: list[str] = [], *, tries: int = 3) -> dict[str, Any]:  # noqa: B006
        notes.append("sent")
        return {"street": parcel.to.street, "weight": parcel.weight_kg, "notes": notes, "tries": tries}

    arguments = {"parcel": {"weight_kg": 2, "to": {"street": "Elm"}}, "unknown": 1}
    expected = '{"street":"Elm","weight":2.0,"notes":["sent"],"tries":3}'
    assert await run(send, arguments) == expected
    # Calls do not share a mutable default.
    assert await run(send, arguments) == expected


@pytest.mark.anyio
async def test_invalid_arguments_give_a_failure_that_names_each_field() -> None:
    @tool
    def send(parcel: Parcel, copies: int) -> None: ...

    result = await run(send, {"parcel": {"weight_kg": "heavy", "to": {}}})
    assert isinstance(result, dict)
    assert result["resultType"] == "failure"
    text: str = result["textResultForLlm"]
    assert result["error"] == text
    assert text.startswith("Invalid arguments for tool 'send': ")
    assert "parcel.weight_kg: Input should be a valid number" in text
    assert "parcel.to.street: Field required" in text
    assert "copies: Field required" in text


@pytest.mark.anyio
async def test_arguments_that_are_not_an_object_give_a_failure() -> None:
    @tool
    def send(to: str = "me") -> str:
        return to

    assert await run(send, None) == "me"
    result = await run(send, ["x"])
    assert isinstance(result, dict)
    assert result["resultType"] == "failure"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ("text", "text"),
        (None, ""),
        (3, "3"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (Address(street="Elm"), '{"street":"Elm","number":null}'),
        (
            ToolResultObject(text_result_for_llm="no", result_type="denied", session_log="said no"),
            {"textResultForLlm": "no", "resultType": "denied", "sessionLog": "said no", "binaryResultsForLlm": []},
        ),
    ],
)
async def test_results_are_converted_to_their_wire_form(value: Any, wire: Any) -> None:
    @tool
    def give() -> Any:
        return value

    assert await run(give, {}) == wire


@pytest.mark.anyio
async def test_plain_functions_run_in_a_worker_thread() -> None:
    @tool
    def which(ctx: ToolContext) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return ctx.tool_call_id

    assert await run(which, {}) == "call-1"
