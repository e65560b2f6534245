"""Fields with paths and keys have the types that limit them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError, create_model

from jumpseat.acp.v1_routes import REQUESTS
from jumpseat.tools.builtin import builtin_tools, session_tools
from jumpseat_protocol.attachments import KINDS
from jumpseat_protocol.limits import MAX_KEY_CHARS, MAX_PATH_CHARS, MAX_PATH_FOLDERS, MOST_PATHS, PathText
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.sessions import SessionCreateParams
from tests.support.cases import all_cases

PATH: Final = re.compile(r"(^|_)(path|paths|dir|dirs|directory|directories|folder|folders|cwd|root)$")
KEY: Final = re.compile(r"(^|_)(token|api_key|secret|password)$")
ELSEWHERE: Final[Mapping[str, str]] = {}
"""Fields with such names and other limits, and the reasons."""


def models_of(kind: Any, seen: set[Any]) -> Iterator[type[BaseModel]]:
    """Yield the models in a type."""
    if isinstance(kind, type) and not get_args(kind):
        if issubclass(kind, BaseModel) and kind not in seen:
            seen.add(kind)
            yield kind
            for field in kind.model_fields.values():
                yield from models_of(field.annotation, seen)
    elif get_origin(kind) is not Literal:
        for arg in get_args(kind):
            yield from models_of(arg, seen)


def takes_strings(kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return False
    return kind is str or any(takes_strings(arg) for arg in get_args(kind) if arg is not Ellipsis)


def test_each_path_and_each_key_of_a_request_has_the_type_that_limits_it() -> None:
    seen: set[Any] = set()
    roots = [
        *(method.params for method in CLIENT_REQUESTS.values()),
        *(route.params for route in REQUESTS.values()),
        *KINDS.values(),
        *(tool.args for tool in (*builtin_tools(), *session_tools())),
    ]
    checked = 0
    with all_cases() as case:
        for model in (model for root in roots for model in models_of(root, seen)):
            for name, field in model.model_fields.items():
                most = MAX_PATH_CHARS if PATH.search(name) else MAX_KEY_CHARS if KEY.search(name) else None
                place = f"{model.__name__}.{name}"
                if most is None or not takes_strings(field.annotation) or place in ELSEWHERE:
                    continue
                checked += 1
                with case(place):
                    kind: Any = field.annotation
                    adapter = TypeAdapter(create_model("Model", field=(kind, field)))
                    for value in ("a" * (most + 1), ["a" * (most + 1)]):
                        with pytest.raises(ValidationError):
                            adapter.validate_python({field.alias or "field": value})
    assert checked > 60


def test_a_path_has_few_folders_and_a_list_few_paths() -> None:
    adapter = TypeAdapter[str](PathText)
    assert adapter.validate_python("a/" * MAX_PATH_FOLDERS)
    for long in ("a/" * (MAX_PATH_FOLDERS + 1), "..\\" * (MAX_PATH_FOLDERS + 1), "a" * (MAX_PATH_CHARS + 1)):
        with pytest.raises(ValidationError):
            adapter.validate_python(long)
        # Values are made without pydantic at first: the same limits count.
        with pytest.raises(ValidationError, match="workingDirectory"):
            SessionCreateParams.model_validate({"workingDirectory": long})
        with pytest.raises(ValidationError, match="skillDirectories"):
            SessionCreateParams.model_validate({"skillDirectories": [long]})
    with pytest.raises(ValidationError, match="skillDirectories"):
        SessionCreateParams.model_validate({"skillDirectories": ["a"] * (MOST_PATHS + 1)})
    assert SessionCreateParams.model_validate({"skillDirectories": ["a"] * MOST_PATHS}).skill_directories
