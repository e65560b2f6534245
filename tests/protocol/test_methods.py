"""The table of methods: every type survives the wire, and none shows a secret."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import orjson
import pytest
from pydantic import TypeAdapter, ValidationError

import jumpseat_protocol
from jumpseat_protocol.events import EventPayload
from jumpseat_protocol.methods import CLIENT_REQUESTS, MODULES, PROTOCOL_VERSION
from jumpseat_protocol.permissions import HandlePendingPermissionRequestParams, PermissionDecision
from jumpseat_protocol.sdk_events import UNMADE_REQUESTS, UNSENT_EVENTS
from jumpseat_protocol.server_requests import SERVER_REQUESTS
from jumpseat_protocol.sessions import (
    ModelCapabilities,
    ModelLimits,
    ModelSupports,
    ProviderConfig,
    SessionCreateParams,
    SessionSendParams,
)
from jumpseat_protocol.unsupported import REASONS, UNSUPPORTED_REQUESTS
from jumpseat_protocol.wire import WireModel, WireStruct, to_wire
from tests.protocol.samples import VARIANTS, sample
from tests.support.cases import check_each

# Each type once, however many methods use it; without the params of `session.create`, whose id must match a pattern
# that samples do not know.
MODELS = {
    model.__name__: model
    for name, method in CLIENT_REQUESTS.items()
    for part, model in (("params", method.params), ("result", method.result))
    if isinstance(model, type) and issubclass(model, WireModel) and (name, part) != ("session.create", "params")
}
SENT = {
    method.result.__name__: method.result
    for method in CLIENT_REQUESTS.values()
    if isinstance(method.result, type) and issubclass(method.result, WireStruct)
}
SECRET = "sk-very-secret"


def create(**params: Any) -> SessionCreateParams:
    return SessionCreateParams.model_validate(params)


def test_the_protocol_version_is_3() -> None:
    assert PROTOCOL_VERSION == 3


def test_no_served_method_is_unsupported() -> None:
    assert CLIENT_REQUESTS.keys().isdisjoint(UNSUPPORTED_REQUESTS)


def test_no_event_or_request_that_is_sent_is_listed_as_never_sent() -> None:
    events = [name for names in UNSENT_EVENTS.values() for name in names]
    requests = [name for names in UNMADE_REQUESTS.values() for name in names]
    assert len({*events, *(payload.type for payload in get_args(EventPayload))}) == len(events) + len(
        get_args(EventPayload)
    )
    assert len({*requests, *SERVER_REQUESTS}) == len(requests) + len(SERVER_REQUESTS)


def test_a_method_is_unsupported_for_one_reason() -> None:
    assert sum(len(names) for names in REASONS.values()) == len(UNSUPPORTED_REQUESTS)


def test_every_module_with_a_table_is_listed() -> None:
    modules = Path(jumpseat_protocol.__file__).parent.glob("*.py")
    tables = {path.stem for path in modules if "\nMETHODS: " in path.read_text()}
    assert tables == set(MODULES)


def test_no_method_is_in_two_tables() -> None:
    rows = [name for module in MODULES for name in import_module(f"jumpseat_protocol.{module}").METHODS]
    assert sorted(rows) == sorted(CLIENT_REQUESTS)


def test_every_method_names_its_types() -> None:
    def is_named(result: Any) -> bool:
        if get_origin(result) is list or isinstance(result, UnionType):
            return all(part is NoneType or is_named(part) for part in get_args(result))
        return result in (None, bool, dict, int, str) or (
            isinstance(result, type) and issubclass(result, WireModel | WireStruct)
        )

    assert [name for name, method in CLIENT_REQUESTS.items() if not issubclass(method.params, WireModel)] == []
    assert [name for name, method in CLIENT_REQUESTS.items() if not is_named(method.result)] == []


@pytest.mark.thorough
def test_every_type_of_the_table_survives_the_wire() -> None:
    def check(model: type[WireModel | WireStruct]) -> None:
        for variant in range(VARIANTS):
            for optional in (True, False):
                value = sample(model, variant, optional=optional)
                assert TypeAdapter(model).validate_python(orjson.loads(orjson.dumps(to_wire(value)))) == value

    check_each({**MODELS, **SENT}, check)


def test_every_type_of_the_table_treats_null_as_absent_and_ignores_or_refuses_unknown_fields() -> None:
    def check(model: type[WireModel]) -> None:
        bare = sample(model, optional=False)
        aliases = [field.alias or name for name, field in model.model_fields.items() if not field.is_required()]

        nulls = {**dict.fromkeys(aliases), **bare.wire()}
        if model.model_config.get("extra") == "forbid":
            # A parameter that is ignored would change the answer of the model.
            with pytest.raises(ValidationError, match="ofTomorrow"):
                model.model_validate({**nulls, "ofTomorrow": 1})
        else:
            nulls["ofTomorrow"] = 1
        assert model.model_validate(nulls) == model.model_validate({**bare.wire(), **model.taken_back})

    check_each(MODELS, check)


@pytest.mark.parametrize("session_id", ["a", "7", "0f8e-1", "a.b_c-D", "x" * 128])
def test_an_id_of_a_new_session_may_have_letters_digits_dots_and_dashes(session_id: str) -> None:
    assert create(sessionId=session_id).session_id == session_id


@pytest.mark.parametrize(
    "session_id", ["", ".", "..", "../x", "a/b", "-a", "_a", ".a", "a b", "a\n", "a\0", "é", "x" * 129, 7]
)
def test_an_id_that_could_be_a_path_or_a_line_is_rejected(session_id: Any) -> None:
    with pytest.raises(ValidationError, match="sessionId"):
        create(sessionId=session_id)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"tools": "notalist"}, "tools"),
        ({"tools": [{"description": "no name"}]}, "tools.0.name"),
        ({"tools": [{"name": ""}]}, "tools.0.name"),
        ({"streaming": "sometimes"}, "streaming"),
        ({"systemMessage": {"mode": "shout"}}, "systemMessage.mode"),
        ({"systemMessage": {"sections": {"tone": {"action": "burn"}}}}, "systemMessage.sections.tone.action"),
        ({"largeOutput": {"maxSizeBytes": 0}}, "largeOutput.maxSizeBytes"),
        ({"provider": {"wireApi": "telepathy"}}, "provider.wireApi"),
    ],
)
def test_the_error_about_a_wrong_type_names_the_field(params: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        create(**params)

    assert [".".join(str(part) for part in error["loc"]) for error in caught.value.errors()] == [field]


def test_limits_of_models_have_the_snake_case_names_of_the_model_list() -> None:
    capabilities = {
        "supports": {"vision": False, "reasoningEffort": True},
        "limits": {"max_prompt_tokens": 1, "max_output_tokens": 2, "max_context_window_tokens": 3},
    }

    assert create(modelCapabilities=capabilities).model_capabilities == ModelCapabilities(
        supports=ModelSupports(vision=False, reasoning_effort=True),
        limits=ModelLimits(max_prompt_tokens=1, max_output_tokens=2, max_context_window_tokens=3),
    )
    assert ModelCapabilities.model_validate(capabilities).wire() == capabilities


def test_the_attribution_of_a_decision_is_ignored() -> None:
    params = HandlePendingPermissionRequestParams.model_validate(
        {
            "sessionId": "s",
            "requestId": "r",
            "result": {"kind": "approve-once", "approvedInteractively": True},
            "decisionContext": {"outcome": "prompted_user", "source": "human_response", "surface": "sdk"},
        }
    )

    assert params == HandlePendingPermissionRequestParams(
        session_id="s", request_id="r", result=PermissionDecision(kind="approve-once")
    )


def test_fields_with_secrets_are_not_in_the_repr() -> None:
    shown = [
        f"{model.__name__}.{name}"
        for model in MODELS.values()
        for name, field in model.model_fields.items()
        if name.endswith(("token", "api_key", "headers")) and field.repr
    ]
    assert shown == []


def test_no_secret_is_in_the_repr_of_params() -> None:
    provider = {"apiKey": SECRET, "bearerToken": SECRET, "headers": {"Authorization": SECRET}}
    created = create(provider=provider, gitHubToken=SECRET)
    sent = SessionSendParams.model_validate({"sessionId": "s", "prompt": "p", "requestHeaders": {"X": SECRET}})

    assert created.provider == ProviderConfig(
        api_key=SECRET, bearer_token=SECRET, headers={"Authorization": SECRET}
    )
    assert SECRET not in repr(created) + str(created) + repr(sent) + str(sent)
