"""The tools of a client, as a session keeps them."""

from __future__ import annotations

from functools import reduce

import pytest

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.opening import provided_tools
from jumpseat_protocol.sessions import ClientTool


def test_a_tool_is_kept_with_the_text_of_its_schema_and_none_of_its_objects() -> None:
    parameters = {"type": "object", "properties": {"größe": {"type": "number", "maximum": 1.5}}}
    tools = [ClientTool(name="a", parameters=parameters), ClientTool(name="b", description="B", defer="never")]

    kept = provided_tools(tools)

    assert kept["a"].spec.schema.json == (
        '{"type":"object","properties":{"größe":{"type":"number","maximum":1.5}}}'.encode()
    )
    assert kept["a"].spec.parameters == parameters
    assert kept["b"].spec.parameters == {"type": "object", "properties": {}}
    assert kept["b"].spec.description == "B"
    assert kept["b"].defer == "never"


def test_a_schema_that_cannot_be_written_as_json_is_refused() -> None:
    nested = reduce(lambda inner, _: [inner], range(1010), list[object]())
    with pytest.raises(InvalidRequestError, match="tool 'x': parameters: the schema is nested too deeply"):
        provided_tools([ClientTool(name="x", parameters={"default": nested})])
