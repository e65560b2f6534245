"""What users can set of a declared adapter, and where it goes."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.adapters.declared.schema import (
    Choice,
    SchemaEntry,
    check_value,
    choices_of,
    ordered,
    values_of,
    write_value,
)
from jumpseat.errors import ConfigError, InvalidRequestError


def entry(**fields: Any) -> SchemaEntry:
    return SchemaEntry.model_validate(fields)


def test_a_form_shows_entries_by_order_then_required_ones_then_by_name() -> None:
    schema = {
        "zeta": entry(),
        "alpha": entry(optional=True),
        "beta": entry(),
        "second": entry(order=2),
        "first": entry(order=1, optional=True),
    }

    assert ordered(schema) == ["first", "second", "beta", "zeta", "alpha"]


def test_dotted_keys_and_mappings_become_nested_tables() -> None:
    containers: dict[str, Any] = {"parameters": {"reasoning": {"summary": "auto"}}, "body": {}}

    write_value(containers, "parameters", "reasoning.effort", "high")
    write_value(containers, "body.generationConfig.thinkingConfig", "thinkingLevel", "low")
    write_value(containers, "parameters.options", "num_ctx", 8192)

    assert containers == {
        "parameters": {"reasoning": {"summary": "auto", "effort": "high"}, "options": {"num_ctx": 8192}},
        "body": {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}},
    }


def test_a_mapping_through_a_value_that_is_not_a_table_is_named() -> None:
    with pytest.raises(ConfigError, match="passes through 'text', which is not a table"):
        write_value({"parameters": {"text": "x"}}, "parameters.text", "verbosity", "low")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", "x", None),
        ("number", 0.5, "0.5"),
        ("integer", 3.0, 3.5),
        ("boolean", True, 1),
        ("list", [1], {"a": 1}),
        ("map", {}, []),
    ],
)
def test_each_type_accepts_its_own_values_only(kind: str, good: Any, bad: Any) -> None:
    check_value("it", entry(type=kind), good, None)
    with pytest.raises(InvalidRequestError, match="'it'"):
        check_value("it", entry(type=kind), bad, None)


def test_a_boolean_is_not_a_number() -> None:
    with pytest.raises(InvalidRequestError, match="expected an integer, got a boolean"):
        check_value("it", entry(type="integer"), True, None)


def worked_out(view: str) -> list[str]:
    return [view, "b"]


CHOICES = [
    pytest.param(["a", "b"], id="list"),
    pytest.param({"a": {"opts": {"can_reason": True}}, "b": {}}, id="table"),
    pytest.param(["a", {"b": {"meta": {"context_window": 5}}}], id="mixed"),
    pytest.param([{"id": "a"}, {"id": "b", "formatted_name": "B"}], id="tables with an id"),
    pytest.param({"a": {"opts": {}}, 1: "b"}, id="table with positions"),
    pytest.param(worked_out, id="function"),
]


@pytest.mark.parametrize("choices", CHOICES)
def test_values_are_checked_against_choices_of_every_form(choices: Any) -> None:
    enum = entry(type="enum", choices=choices)

    assert [choice.id for choice in choices_of("it", enum, "a")] == ["a", "b"]
    check_value("it", enum, "b", "a")
    with pytest.raises(InvalidRequestError, match="expected one of a, b"):
        check_value("it", enum, "c", "a")


def test_the_fields_of_a_choice_are_kept() -> None:
    enum = entry(
        type="enum", choices={"o3": {"formatted_name": "O3", "meta": {"context_window": 9}, "opts": {"x": 1}}}
    )

    assert choices_of("model", enum, None) == [
        Choice(id="o3", formatted_name="O3", meta={"context_window": 9}, opts={"x": 1})
    ]


def test_invalid_choices_are_named() -> None:
    with pytest.raises(ConfigError, match=r"model\.choices: expected a list or a table, got a string"):
        choices_of("model", entry(choices="a"), None)


def test_an_unlisted_model_is_accepted() -> None:
    check_value("model", entry(type="enum", choices=["a"]), "brand-new", None)


@pytest.mark.parametrize("name", ["enabled", "condition"])
def test_a_disabled_entry_is_not_sent_and_cannot_be_set(name: str) -> None:
    schema = {"effort": entry(**{name: lambda view: view == "reasons", "default": "high"})}  # pyright: ignore[reportUnknownLambdaType]

    assert values_of(schema, "reasons", {}) == {"effort": "high"}
    assert values_of(schema, "does not", {}) == {}
    with pytest.raises(InvalidRequestError, match="'effort' is not available for this model"):
        values_of(schema, "does not", {"effort": "low"})


def test_a_given_value_overrides_the_default_which_can_be_a_function() -> None:
    schema = {"a": entry(default=lambda view: view), "b": entry(default=1), "c": entry(), "_d": entry(default=4)}  # pyright: ignore[reportUnknownLambdaType]

    assert values_of(schema, "view", {"b": 2}) == {"a": "view", "b": 2}


def test_the_error_has_the_reason_given_by_validate() -> None:
    temperature = entry(type="number", validate=lambda n: (0 <= n <= 2, "Must be between 0 and 2"))  # pyright: ignore[reportUnknownLambdaType]

    check_value("temperature", temperature, 2, None)
    with pytest.raises(InvalidRequestError, match="setting 'temperature': Must be between 0 and 2"):
        check_value("temperature", temperature, 3, None)


def test_minimum_and_maximum_are_checked_without_a_function() -> None:
    bounded = entry(type="number", minimum=0, maximum=2)

    for wrong in (-0.1, 2.1):
        with pytest.raises(InvalidRequestError, match="expected at"):
            check_value("t", bounded, wrong, None)


def test_null_is_accepted_for_optional_entries_only() -> None:
    schema = {"stop": entry(optional=True, default="x"), "model": entry()}

    assert values_of(schema, None, {"stop": None}) == {}
    with pytest.raises(InvalidRequestError, match="'model' needs a value"):
        values_of(schema, None, {"model": None})


def test_an_unknown_setting_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(InvalidRequestError, match="unknown setting 'temprature', did you mean 'temperature'"):
        values_of({"temperature": entry()}, None, {"temprature": 1})
