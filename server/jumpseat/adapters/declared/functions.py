"""Call the functions of a declared adapter: its handlers, and functions in place of values.

Each takes as many of its values as it likes, by their names (``parse_chat(data)``) or by position, as described
in ``declared/calling.py``. A handler that fails, takes too long, or returns a result of the wrong form ends the
request with an :class:`AdapterError` that names the handler and its line, and is logged with its message.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import anyio
import anyio.to_thread

from jumpseat.adapters.failures import provider_error
from jumpseat.agent.blocks import JsonObject
from jumpseat.declared import calling
from jumpseat.declared.calling import (
    Bound,
    HandlerError,
    Mask,
    Orders,
    Signature,
    short_source,
    source_of,
    without_message,
)
from jumpseat.errors import AdapterError, ConfigError, JumpseatError

T = TypeVar("T")

TIMEOUT_S: Final = 20.0
"""The time limit of a handler, unless ``opts.timeouts.handler`` is set."""

SELF: Final = "self"
SYNONYMS: Final[Mapping[str, str]] = {"adapter": SELF, "parameters": "params", "call": "tool_call", "value": "n"}
"""Other names of parameters, besides those below."""

_ONLY_SELF: Final[Orders] = {0: (), 1: (SELF,)}
_OF_DATA: Final[Orders] = {0: (), 1: ("data",), 2: (SELF, "data")}
_OF_MESSAGES: Final[Orders] = {0: (), 1: ("messages",), 2: (SELF, "messages")}
_OF_TOOLS: Final[Orders] = {0: (), 1: ("tools",), 2: (SELF, "tools")}

ORDERS: Final[Mapping[str, Orders]] = {
    "resolve": _ONLY_SELF,
    "setup": _ONLY_SELF,
    "on_exit": _OF_DATA,
    "teardown": _ONLY_SELF,
    "build_parameters": {0: (), 1: ("params",), 2: (SELF, "params"), 3: (SELF, "params", "messages")},
    "build_messages": _OF_MESSAGES,
    "build_tools": _OF_TOOLS,
    "build_structured_output": {0: (), 1: ("schema",), 2: (SELF, "schema")},
    "build_reasoning": _OF_MESSAGES,
    "build_body": _OF_DATA,
    "parse_chat": {0: (), 1: ("data",), 2: (SELF, "data"), 3: (SELF, "data", "tools")},
    "parse_inline": {0: (), 1: ("data",), 2: (SELF, "data"), 3: (SELF, "data", "context")},
    "parse_tokens": _OF_DATA,
    "parse_meta": _OF_DATA,
    "format_calls": _OF_TOOLS,
    "format_response": {0: (), 1: ("output",), 2: ("tool_call", "output"), 3: (SELF, "tool_call", "output")},
}
"""The parameters of each handler: their names, and their positions by the number of parameters."""

_PYTHON: Final = sys.stdlib_module_names | {"jumpseat"}

VALIDATE: Final[Orders] = {0: (), 1: ("n",), 2: ("n", SELF)}
CHOICES: Final[Orders] = {0: (), 1: (SELF,), 2: (SELF, "opts")}
"""The parameters of functions that validate a value, and of those that list choices, whose ``opts`` are empty."""


class Functions:
    """The functions of a declared adapter, for one request.

    ``view`` is the first argument of handlers, ``handlers`` are those that are declared, by their current names.
    """

    def __init__(self, view: Any, handlers: Mapping[str, Callable[..., Any]], timeout_s: float = TIMEOUT_S) -> None:
        self.view = view
        self.mask: Mask = str
        self._handlers = handlers
        self._timeout_s = timeout_s
        self._signatures: dict[str, Signature] = {}
        # The function that runs now, for the error if it takes too long.
        self._running: tuple[str, Callable[..., Any]] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._handlers

    def takes(self, name: str, value: str) -> bool:
        """Return whether a handler takes the value of this name."""
        signature = self._signature(name)
        return value in signature.positional or value in signature.keywords.values()

    def place_of(self, name: str) -> str:
        """Return the file and line of a handler (``work.py:12``)."""
        return short_source(source_of(self._handlers[name]))

    # --- handlers -------------------------------------------------------------------------------------------------

    def run(self, name: str, **values: Any) -> Any:
        """Run a handler in this thread and return its result.

        Raises:
            AdapterError: the handler failed.
        """
        return self._run(f"handler {name}", self._bound(name, values))

    async def call(self, name: str, *, limit_s: float = math.inf, **values: Any) -> Any:
        """Run a handler, in a thread unless it is asynchronous, and return its result.

        ``limit_s`` is a time limit in seconds that is shorter than the usual one.

        Raises:
            AdapterError: the handler failed or took too long.
        """
        bound, what = self._bound(name, values), f"handler {name}"
        try:
            return await calling.call(self._place(what), bound, min(limit_s, self._timeout_s), self.mask)
        except HandlerError as error:
            raise self._error(what, error) from None

    async def table(self, name: str, example: str, **values: Any) -> JsonObject:
        """Run a handler that returns a table, or nothing for an empty one. ``example`` is shown in errors.

        Raises:
            AdapterError: the handler failed, took too long, or returned something else.
        """
        found = await self.call(name, **values)
        if found is None or isinstance(found, Mapping):
            return dict(cast("JsonObject", found or {}))
        raise self.unusable(name, f"return a table such as {example}", found)

    def unusable(self, name: str, wanted: str, found: Any) -> AdapterError:
        """Return the error for a result of a handler that has the wrong form: it must ``wanted``."""
        source, got = source_of(self._handlers[name]), describe(found)
        if inspect.iscoroutine(found):
            found.close()
            got = "a coroutine, because it is asynchronous"
        calling.log.error("%s: must %s, got %s (%s)", self._place(f"handler {name}"), wanted, got, source)
        text = f"adapter {self.view.name!r}: its handler {name} must {wanted}, got {got} ({short_source(source)})"
        return AdapterError(text, name, short_source(source))

    async def in_thread(self, function: Callable[[], T], what: str = "functions") -> T:
        """Run ``function``, which calls functions of the adapter, in a thread and within their time limit.

        Raises:
            AdapterError: a function of the adapter failed, or took too long.
        """
        self._running = None
        with anyio.move_on_after(self._timeout_s):
            return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)
        what, running = self._running or (what, None)
        raise self._error(what, calling.timeout(self._place(what), running, self._timeout_s))

    # --- parts ----------------------------------------------------------------------------------------------------

    def _signature(self, name: str) -> Signature:
        if name not in self._signatures:
            names = ORDERS[name][max(ORDERS[name])]
            self._signatures[name] = calling.signature_of(self._handlers[name], names, ORDERS[name], SYNONYMS)
        return self._signatures[name]

    def _bound(self, name: str, values: Mapping[str, Any]) -> Bound:
        return self._signature(name).bind({SELF: self.view, **values})

    def _run(self, what: str, bound: Bound) -> Any:
        self._running = (what, bound.function)
        try:
            return bound.function(*bound.args, **bound.kwargs)
        except JumpseatError:
            raise
        except BaseException as error:
            failure = calling.failure(self._place(what), error, bound.function, self.mask)
            raise self._error(what, failure) from None

    def _place(self, what: str) -> str:
        return f"adapter {self.view.name!r}: {what}"

    def _error(self, what: str, error: HandlerError) -> Exception:
        if isinstance(error.cause, JumpseatError):
            # Raised on purpose.
            return error.cause
        text = "" if error.cause is None else self.mask(str(error.cause))
        if text and _is_deliberate(error.cause, what):
            return provider_error(text)
        at = f" at {error.source}" if error.source else ""
        said = f"gave {error.reason}{at}" if error.timed_out else f"failed ({error.reason}{at})"
        return AdapterError(
            f"adapter {self.view.name!r}: its {what} {said}",
            what.removeprefix("handler "),
            error.source,
            "" if error.cause is None else str(error.cause),
        )


def _is_deliberate(error: BaseException | None, what: str) -> bool:
    """Return whether an exception reports an error of the provider; those that Python itself raises are bugs."""
    kind = type(error)
    if kind is ValueError:
        # A parser raises it by mistake, reading what is no number or no JSON.
        return what == "handler on_exit"
    return kind in (Exception, RuntimeError) or kind.__module__.partition(".")[0] not in _PYTHON


# --- functions in place of values ---------------------------------------------------------------------------------


def value_from(
    view: Any,
    what: str,
    function: Callable[..., Any],
    orders: Orders = _ONLY_SELF,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return the result of a function in place of a value, such as a header or a default.

    Its parameters may name ``more`` values than the adapter; ``orders`` are their positions.

    Raises:
        ConfigError: the function failed.
    """
    bound = calling.bind(function, {SELF: view, **more}, orders, SYNONYMS)
    try:
        return bound.function(*bound.args, **bound.kwargs)
    except JumpseatError:
        raise
    except BaseException as error:
        # The message may contain a secret.
        failed = calling.failure(f"adapter {view.name!r}: {what}", error, function, without_message)
        at = f" at {failed.source}" if failed.source else ""
        raise ConfigError(f"adapter {view.name!r}: {what}: its function failed ({failed.reason}{at})") from None


def describe(value: Any) -> str:
    """Name the type of a value in the terms of declarations, for errors."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        keys = ", ".join(map(str, islice(cast("Mapping[Any, Any]", value), 5)))
        return f"a table with {keys}" if keys else "an empty table"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return "a string" if isinstance(value, str) else type(value).__name__
