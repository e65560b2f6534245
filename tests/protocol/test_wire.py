"""The two bases of wire types."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from enum import Enum
from typing import Any, get_args

import pytest
from msgspec import field
from pydantic import Field, Strict, ValidationError

import jumpseat_protocol
from jumpseat_protocol.blocks import Message, TextBlock
from jumpseat_protocol.sessions import HostedToolConfig
from jumpseat_protocol.wire import WireModel, WireStruct, to_wire


class Inner(WireModel):
    some_name: str = "default"
    any_value: Any = None


class Outer(WireModel):
    first_id: str
    inner_value: Inner | None = None
    inner_list: list[Inner] = Field(default_factory=list[Inner])
    free_form: dict[str, Any] | None = None
    is_set: bool = False


class Part(WireStruct, kw_only=True):
    part_name: str
    part_size: int | None = None


class Whole(WireStruct, kw_only=True):
    first_part: Part
    more_parts: list[Part] = field(default_factory=list[Part])
    free_form: Any = None


class Colour(Enum):
    RED = "red"


def test_models_are_camel_case_on_the_wire() -> None:
    outer = Outer(first_id="1", inner_value=Inner(some_name="x"), is_set=True)

    assert outer.wire() == {
        "firstId": "1",
        "innerValue": {"someName": "x"},
        "innerList": [],
        "isSet": True,
    }
    assert Outer.model_validate(outer.wire()) == outer


def test_models_ignore_unknown_fields_at_every_level() -> None:
    values: dict[str, Any] = {
        "firstId": "1",
        "new": 1,
        "innerValue": {"new": [], "someName": "x"},
        "innerList": [{"new": {}}],
    }

    assert Outer.model_validate(values) == Outer(
        first_id="1", inner_value=Inner(some_name="x"), inner_list=[Inner()]
    )


def test_null_means_absent_at_every_level() -> None:
    nulls = {
        "firstId": "1",
        "innerValue": {"someName": None, "anyValue": None},
        "innerList": None,
        "freeForm": None,
        "isSet": None,
    }

    assert Outer.model_validate(nulls) == Outer(first_id="1", inner_value=Inner())


def test_null_in_a_required_field_counts_as_missing() -> None:
    with pytest.raises(ValidationError, match=r"firstId\n  Field required"):
        Outer.model_validate({"firstId": None})


def test_nulls_inside_free_form_json_are_kept() -> None:
    values = {"firstId": "1", "freeForm": {"a": None, "b": [None]}, "innerValue": {"anyValue": {"c": None}}}
    outer = Outer.model_validate(values)

    assert outer.free_form == {"a": None, "b": [None]}
    assert outer.wire() == {**values, "innerValue": {"someName": "default", "anyValue": {"c": None}}} | {
        "innerList": [],
        "isSet": False,
    }


@pytest.mark.parametrize("value", [[], "text", 1])
def test_a_value_that_is_not_an_object_is_rejected(value: Any) -> None:
    with pytest.raises(ValidationError):
        Outer.model_validate(value)


def test_models_are_built_at_first_use() -> None:
    class Late(WireModel):
        some_name: str

    assert not Late.__pydantic_complete__
    assert Late.model_validate({"someName": "x"}).wire() == {"someName": "x"}
    assert Late.__pydantic_complete__


def test_structs_are_camel_case_without_unset_fields() -> None:
    whole = Whole(
        first_part=Part(part_name="a", part_size=0),
        more_parts=[Part(part_name="b")],
        free_form={"snake_key": None, "part": Part(part_name="c"), "list": [1, 2.5, True, None, "x"]},
    )

    assert to_wire(whole) == {
        "firstPart": {"partName": "a", "partSize": 0},
        "moreParts": [{"partName": "b"}],
        "freeForm": {"snake_key": None, "part": {"partName": "c"}, "list": [1, 2.5, True, None, "x"]},
    }


@pytest.mark.parametrize("value", ["text", 1, 1.5, True, None, [], {}])
def test_json_values_are_encoded_unchanged(value: Any) -> None:
    assert to_wire(value) == value


def test_an_enum_is_encoded_as_its_value() -> None:
    assert to_wire([Colour.RED]) == ["red"]


@pytest.mark.parametrize("value", [object(), Part])
def test_a_value_without_a_wire_form_is_rejected(value: Any) -> None:
    with pytest.raises(TypeError, match="has no wire form"):
        to_wire(value)


def models() -> list[type[WireModel]]:
    """Yield every model of the package."""
    for module in pkgutil.iter_modules(jumpseat_protocol.__path__):
        importlib.import_module(f"jumpseat_protocol.{module.name}")
    found: list[type[WireModel]] = []
    waiting = [WireModel]
    while waiting:
        for model in waiting.pop().__subclasses__():
            waiting.append(model)
            if model.__module__.startswith("jumpseat_protocol"):
                found.append(model)
    return found


def test_boolean_fields_accept_booleans_only() -> None:
    lax = [
        f"{model.__name__}.{name}"
        for model in models()
        for name, field_info in model.model_fields.items()
        if (field_info.annotation is bool or bool in get_args(field_info.annotation))
        and not any(isinstance(item, Strict) for item in field_info.metadata)
    ]

    assert lax == []


def test_a_constructor_refuses_unknown_names_and_received_values_may_have_them() -> None:
    with pytest.raises(TypeError, match=r"^Message: contents: unknown, did you mean 'content'\?$"):
        Message(role="user", contents="a")  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="Message: text: unknown, expected one of blocks, content, role"):
        Message(role="user", text="a")  # pyright: ignore[reportCallIssue]
    newer = {"role": "assistant", "blocks": [{"type": "text", "text": "a", "colour": "red"}], "mood": "good"}
    received = Message.model_validate(newer)
    assert received == Message(role="assistant", blocks=[TextBlock(text="a")])
    assert (copy.deepcopy(received), pickle.loads(pickle.dumps(received))) == (received, received)
    assert HostedToolConfig(name="web_search", max_uses=1).options() == {"max_uses": 1}  # pyright: ignore[reportCallIssue]
