"""Each method of the protocol has a handler where its name says, and no handler is left over."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from importlib import import_module
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from jumpseat import handlers
from jumpseat.rpc.routes import ALIASES, handler_of, load_route
from jumpseat.sessions.context import Context
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.wire import Encoded


@pytest.mark.parametrize(
    ("method", "place"),
    [
        ("ping", ("server", "ping")),
        ("plugins.marketplaces.add", ("plugins", "marketplaces_add")),
        ("session.sendAndWait", ("session.session", "send_and_wait")),
        ("session.mcp.list", ("session.mcp", "list_")),
        ("session.mcp.oauth.login", ("session.mcp", "oauth_login")),
        ("session.destroy", ("session.session", "detach")),
    ],
)
def test_the_name_of_a_method_says_where_its_handler_is(method: str, place: tuple[str, str]) -> None:
    assert handler_of(method) == place


def test_every_function_with_the_parameters_of_a_handler_serves_one_method() -> None:
    folder = Path(handlers.__path__[0])
    found = [
        (name, function.__name__)
        for path in folder.rglob("[!_]*.py")
        for name in [".".join(path.relative_to(folder).with_suffix("").parts)]
        for function in vars(import_module(f"jumpseat.handlers.{name}")).values()
        if isinstance(function, FunctionType)
        and function.__module__ == f"jumpseat.handlers.{name}"
        and not function.__name__.startswith("_")
        and [*inspect.signature(function).parameters] == ["ctx", "params"]
    ]
    assert sorted(found) == sorted(handler_of(method) for method in CLIENT_REQUESTS if method not in ALIASES)


def test_the_annotations_of_a_handler_are_the_types_of_the_protocol() -> None:
    wrong: dict[str, Any] = {}
    for method, row in CLIENT_REQUESTS.items():
        handler = load_route(method).handler
        hints = get_type_hints(handler)
        found = (
            [*inspect.signature(handler).parameters],
            hints["ctx"],
            hints["params"],
            result_type(hints["return"]),
        )
        expected = ["ctx", "params"], Context, row.params, row.result or NoneType
        if found != expected:
            wrong[method] = f"expected {expected}, found {found}"
    assert wrong == {}


def result_type(annotation: Any) -> Any:
    """Return the type of a handler's result after it was awaited."""
    members = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    kinds = {get_args(member)[0] if get_origin(member) in (Awaitable, Encoded) else member for member in members}
    if len(kinds) > 1:
        return annotation
    kind = kinds.pop()
    return get_origin(kind) if get_origin(kind) is dict else kind
