"""Binding the parameters of functions by name and by position, and reporting their failures."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest

from jumpseat.declared.calling import HandlerError, bind, call
from tests.support.cases import all_cases

pytestmark = pytest.mark.anyio

VALUES = {"self": "SELF", "data": "DATA", "tools": "TOOLS"}
ORDERS = {0: (), 1: ("data",), 2: ("self", "data"), 3: ("self", "data", "tools")}


SIGNATURES = {
    "()": [],
    "(data)": ["DATA"],
    "(tools, self)": ["TOOLS", "SELF"],
    "(_self, data)": ["SELF", "DATA"],
    "(adapter, data)": ["SELF", "DATA"],
    "(chunk)": ["DATA"],
    "(me, chunk)": ["SELF", "DATA"],
    "(me, chunk, calls)": ["SELF", "DATA", "TOOLS"],
    "(self, chunk)": ["SELF", "DATA"],
    "(chunk, tools)": ["DATA", "TOOLS"],
    "(data, cache=None)": ["DATA"],
    "(*args)": ["SELF", "DATA", "TOOLS"],
}


class Parser:
    def parse(self, data: Any) -> Any:
        return data


def test_parameters_are_bound_by_name_and_else_by_position() -> None:
    with all_cases() as case:
        for signature, expected in SIGNATURES.items():
            with case(signature):
                function = eval(f"lambda {signature[1:-1]}: None")
                assert list(bind(function, VALUES, ORDERS, {"adapter": "self"}).args) == expected


def test_methods_and_partial_functions_are_bound_like_functions() -> None:
    def parse(self: Any, data: Any, tools: Any) -> None: ...

    assert bind(Parser().parse, VALUES, ORDERS).args == ("DATA",)
    assert bind(partial(parse, "given"), VALUES, ORDERS).args == ("DATA", "TOOLS")


def test_keyword_only_parameters_are_bound_by_name() -> None:
    def parse(*, data: str, strict: bool = False) -> None: ...

    assert bind(parse, VALUES, ORDERS).kwargs == {"data": "DATA"}


async def test_a_failure_names_the_function_its_exception_and_its_own_line() -> None:
    def parse(data: str) -> Any:
        return json.loads(data)

    with pytest.raises(HandlerError) as caught:
        await call("adapter 'x': parse_chat", bind(parse, {"data": "key-123"}, ORDERS), 5)
    line = parse.__code__.co_firstlineno + 1
    assert str(caught.value) == f"adapter 'x': parse_chat: JSONDecodeError at test_calling.py:{line}"


async def test_a_function_with_too_many_parameters_is_named_with_its_definition() -> None:
    def parse(data: str, one: str, two: str, three: str) -> None: ...

    with pytest.raises(HandlerError) as caught:
        await call("parse_chat", bind(parse, VALUES, ORDERS), 5)
    assert str(caught.value) == f"parse_chat: TypeError at test_calling.py:{parse.__code__.co_firstlineno}"


async def test_an_asynchronous_function_can_be_cancelled_and_timed_out() -> None:
    async def wait() -> None:
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        scope.cancel()
        await call("tool 'x': cmds[0]", bind(wait, {}, ORDERS), 5)
    assert scope.cancelled_caught
    with pytest.raises(HandlerError) as caught:
        await call("setup", bind(wait, {}, ORDERS), 0.25)
    assert caught.value.timed_out


async def test_what_an_asynchronous_function_raises_stays_in_it() -> None:
    async def leave(error: BaseException) -> None:
        raise error

    async def catch_and_go_on() -> str:
        with suppress(ValueError):
            await leave(ValueError())
        return "went on"

    for error in (GeneratorExit(), SystemExit(), KeyboardInterrupt(), StopAsyncIteration()):
        with pytest.raises(HandlerError) as caught:
            await call("setup", bind(leave, {"error": error}, {1: ("error",)}), 5)
        assert caught.value.reason == type(error).__name__
    assert await call("setup", bind(catch_and_go_on, {}, ORDERS), 5) == "went on"
    # A function in a thread may return a coroutine.
    assert await call("setup", bind(lambda: catch_and_go_on(), {}, ORDERS), 5) == "went on"
