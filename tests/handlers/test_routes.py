"""The table of methods and their handlers, and the rule for the file of a handler."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Iterable
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from jumpseat.rpc.routes import ROUTES, load_route
from jumpseat.sessions.context import Context
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.wire import Encoded

# Namespaces that are folders: each namespace inside has a file.
FOLDERS = ("session", "jumpseat")
# Methods that share the handler of another method.
ALIASES = {
    "session.auth.getStatus": "session.gitHubAuth.getStatus",
    "session.destroy": "session.detach",
    "session.workspace.createFile": "session.workspaces.createFile",
    "session.workspace.listFiles": "session.workspaces.listFiles",
    "session.workspace.readFile": "session.workspaces.readFile",
    "sessions.getMetadata": "session.getMetadata",
}


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: f"_{match[0]}", name).lower()


def files_for(method: str) -> Iterable[str]:
    """Return the modules that may contain the handler of a method: that of its namespace.

    A method directly in a folder has its own file, named without ``get`` and ``set``, or shares the file of a
    method whose name its own name begins with, as ``sendAndWait`` and ``send``.
    """
    *namespace, name = map(snake_case, method.split("."))
    folder = f"{namespace.pop(0)}." if namespace and namespace[0] in FOLDERS else ""
    if namespace:
        return [folder + "_".join(namespace)]
    words = re.sub("^(get|set)_", "", name).split("_")
    return [folder + "_".join(words[:length]) for length in range(len(words), 0, -1)]


def test_a_handler_is_in_the_module_that_its_method_name_implies() -> None:
    def is_implied(method: str, handler: str) -> bool:
        module, _, function = handler.partition(":")
        name = snake_case(method.rpartition(".")[2])
        # A function that would hide a built-in one has a longer name: `list_tools`.
        return module in files_for(method) and (function == name or function.startswith(f"{name}_"))

    handlers = {method: handler for method, handler in ROUTES.items() if method not in ALIASES}
    assert {method: handler for method, handler in handlers.items() if not is_implied(method, handler)} == {}


def test_an_alias_has_the_handler_of_the_method_it_stands_for() -> None:
    assert {alias: ROUTES[alias] for alias in ALIASES} == {
        alias: ROUTES[method] for alias, method in ALIASES.items()
    }


def test_no_other_method_shares_its_handler() -> None:
    handlers = [handler for method, handler in ROUTES.items() if method not in ALIASES]
    assert len(set(handlers)) == len(handlers)


def test_the_annotations_of_a_handler_are_the_types_of_the_protocol() -> None:
    wrong: dict[str, Any] = {}
    for method in ROUTES:
        handler, params = load_route(method)
        hints = get_type_hints(handler)
        found = [*inspect.signature(handler).parameters], hints["ctx"], params, result_type(hints["return"])
        row = CLIENT_REQUESTS[method]
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
