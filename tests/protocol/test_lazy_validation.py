"""Values validated field by field are those that pydantic accepts, with the same result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from jumpseat.rpc.routes import load_route
from jumpseat_protocol.callbacks import PreToolUseOutput
from jumpseat_protocol.lazy_models import declared_namespaces
from jumpseat_protocol.lazy_validation import (
    DeclaredFields,
    declared_fields,
    has_rules,
    validated,
    wire_name,
)
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.sessions import ClientTool, ProviderConfig, SessionCreateParams, SessionResumeParams
from jumpseat_protocol.wire import WireModel
from tests.protocol.samples import VARIANTS, sample

_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), st.text(max_size=3), st.just("a-valid.name")
)
_JSON = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("name", "type", "x")), inner, max_size=2)
    ),
    max_leaves=6,
)
_TOOL = {"name": "add", "description": "Add numbers", "parameters": {"type": "object"}}
_PROVIDER = {"type": "openai", "baseUrl": "http://localhost/v1", "apiKey": "k"}


def _plain_fields(model: type[WireModel]) -> DeclaredFields | None:
    namespaces = declared_namespaces(model, WireModel)
    return None if any(map(has_rules, namespaces)) else declared_fields(namespaces)


def _objects(model: type[WireModel]) -> st.SearchStrategy[dict[str, Any]]:
    fields = _plain_fields(model)
    assert fields is not None
    names = st.sampled_from([*fields.by_wire_name, *fields.by_name, "unknown"])
    typical = st.sampled_from([[_TOOL], _PROVIDER, ["add"], True, "text", {"enabled": True}])
    required = {fields.by_name[name].wire_name: "id" for name in fields.required}
    return st.dictionaries(names, typical | _JSON, max_size=5).map(lambda value: {**required, **value})


def _by_pydantic(model: type[WireModel], value: Mapping[str, Any]) -> WireModel | None:
    try:
        # The method of pydantic, which the models of the wire override.
        return BaseModel.model_validate.__func__(model, value)  # pyright: ignore
    except ValidationError:
        return None


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model", [SessionCreateParams, SessionResumeParams, ProviderConfig, ClientTool, PreToolUseOutput]
)
def test_pydantic_accepts_the_same_values_with_the_same_result(model: type[WireModel]) -> None:
    fields = _plain_fields(model)
    assert fields is not None

    @given(_objects(model))
    def check(value: dict[str, Any]) -> None:
        present = {name: item for name, item in value.items() if item is not None}
        instance, expected = validated(model, fields, present), _by_pydantic(model, value)
        if instance is None:
            # Pydantic decides, also about two names of one field.
            return
        assert expected is not None
        assert instance == expected
        assert instance.model_fields_set == expected.model_fields_set
        assert instance.wire() == expected.wire()

    check()


@pytest.mark.thorough
def test_the_params_of_every_method_are_the_same_with_all_fields_set() -> None:
    compared = 0
    for method in CLIENT_REQUESTS:
        model = load_route(method).params
        fields = _plain_fields(model)
        if fields is None:
            continue
        for variant in range(VARIANTS):
            try:
                value = sample(model, variant).wire()
            except ValidationError:
                # A field takes more special strings than samples have.
                continue
            instance, expected = validated(model, fields, value), _by_pydantic(model, value)
            assert instance == expected, method
            assert (instance and instance.wire()) == (expected and expected.wire()), method
            compared += instance is not None
    assert compared > 100


def test_names_on_the_wire_are_those_that_pydantic_makes() -> None:
    names = {name for method in CLIENT_REQUESTS for name in load_route(method).params.model_fields}
    names |= {"sha256_sum", "e2e_test", "_private", "double__line", "trailing_", "UPPER_case", "ünï_cödé"}
    assert {name: wire_name(name) for name in names} == {name: to_camel(name) for name in names}
