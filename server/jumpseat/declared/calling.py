"""Bind the functions of declared adapters and tools to the values that their parameters name, and call them.

A function takes as many of the values as it likes, in any order: a parameter gets the value of its name
(``parse_chat(data)``, ``parse_chat(self, data)``), or of the name for which it is a synonym. Leading underscores
are ignored. Parameters with unknown names (``parse_chat(adapter, chunk)``) are bound by position.

Synchronous functions run in a thread, asynchronous ones in the task of the caller.
"""

from __future__ import annotations

import inspect
import logging
import math
import traceback
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping, Sequence
from pathlib import PurePath
from types import coroutine
from typing import Any, Final, TypeAlias

import anyio
import anyio.to_thread
from msgspec import Struct

log = logging.getLogger(__name__)

Orders: TypeAlias = Mapping[int, tuple[str, ...]]
"""The names of the values by position, for each number of parameters."""

Mask: TypeAlias = Callable[[str], str]
"""Removes secrets from the message of an exception before it is logged."""

_NO_SYNONYMS: Final[Mapping[str, str]] = {}


class HandlerError(Exception):
    """A function failed or timed out; the log has its message.

    ``place`` names the function. ``reason`` is the class of its exception or its time limit, and ``source`` the
    place in the code (``work.py:12``); neither quotes values, which may be secret. ``cause`` is the exception.
    """

    def __init__(
        self,
        place: str,
        reason: str,
        source: str = "",
        *,
        cause: BaseException | None = None,
        timed_out: bool = False,
    ) -> None:
        super().__init__(f"{place}: {reason}{f' at {source}' if source else ''}")
        self.place = place
        self.reason = reason
        self.source = source
        self.cause = cause
        self.timed_out = timed_out


class Bound(Struct, frozen=True):
    """A function with its arguments. ``given`` are the names of the values that it gets."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    given: frozenset[str]


class Signature(Struct, frozen=True):
    """The values that a function takes: those by position, and by keyword."""

    function: Callable[..., Any]
    positional: tuple[str, ...]
    keywords: Mapping[str, str]

    def bind(self, values: Mapping[str, Any]) -> Bound:
        """Bind the function to ``values``, which have the names that it was read with."""
        return Bound(
            self.function,
            tuple(values[name] for name in self.positional),
            {parameter: values[name] for parameter, name in self.keywords.items()},
            frozenset([*self.positional, *self.keywords.values()]),
        )


def bind(
    function: Callable[..., Any],
    values: Mapping[str, Any],
    orders: Orders,
    synonyms: Mapping[str, str] = _NO_SYNONYMS,
) -> Bound:
    """Bind ``function`` to the ``values`` that its parameters name, or else by position."""
    return signature_of(function, values, orders, synonyms).bind(values)


def signature_of(
    function: Callable[..., Any],
    names: Collection[str],
    orders: Orders,
    synonyms: Mapping[str, str] = _NO_SYNONYMS,
) -> Signature:
    """Decide which values ``function`` takes.

    Args:
        function: any callable; it may have fewer parameters than there are values, or keyword-only ones.
        names: the names of the values.
        orders: the positions of the values, for parameters with unknown names.
        synonyms: other names of parameters, each with the name of its value.
    """
    parameters = _parameters(function)
    if parameters is None or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return Signature(function, orders[max(orders)], {})

    def value_name(parameter: inspect.Parameter) -> str | None:
        plain = parameter.name.strip("_")
        name = synonyms.get(plain, plain)
        return name if name in names else None

    positional: list[str | None] = []
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            continue
        name = value_name(parameter)
        if name is None and parameter.default is not parameter.empty:
            # All following parameters have defaults, too.
            break
        positional.append(name)
    keywords = {
        parameter.name: name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and (name := value_name(parameter)) is not None
    }
    return Signature(function, tuple(_fill(positional, orders)), keywords)


def _fill(names: Sequence[str | None], orders: Orders) -> list[str]:
    """Return ``names`` with a value for each parameter without a known name.

    The order with as many values as there are parameters applies, if the known names have the same positions in it.
    Otherwise, the unknown parameters get the other values of the shortest order that has enough of them.
    """
    order = orders.get(len(names))
    if order is not None and all(name in (None, usual) for name, usual in zip(names, order, strict=True)):
        return list(order)
    unknown = sum(name is None for name in names)
    others: list[str] = []
    for count in sorted(orders):
        others = [name for name in orders[count] if name not in names]
        if len(others) >= unknown:
            break
    rest = iter(others)
    found = (next(rest, None) if name is None else name for name in names)
    # If there are too few values, the call fails with the usual error about a missing argument.
    return [name for name in found if name is not None]


async def call(place: str, bound: Bound, timeout_s: float, mask: Mask = str) -> Any:
    """Call the function, in a thread unless it is asynchronous, and return its result.

    Raises:
        HandlerError: the function failed or timed out; the log has the details.
    """
    is_async = inspect.iscoroutinefunction(bound.function)
    try:
        with anyio.move_on_after(timeout_s) as scope:
            if is_async:
                return await _on_loop(bound.function(*bound.args, **bound.kwargs))
            found = await anyio.to_thread.run_sync(_run, bound, abandon_on_cancel=True)
            if inspect.iscoroutine(found):
                return await _on_loop(found)
            return await found if inspect.isawaitable(found) else found
    except anyio.get_cancelled_exc_class() as error:
        if anyio.current_effective_deadline() == -math.inf:
            raise
        # The call was not cancelled: the function itself raised this.
        raise failure(place, error, bound.function, mask) from None
    except GeneratorExit:
        # The call itself is closed. A function that raises this has failed like any other.
        raise
    except BaseException as error:
        raise failure(place, error, bound.function, mask) from None
    assert scope.cancelled_caught
    raise timeout(place, bound.function, timeout_s)


@coroutine
def _on_loop(awaited: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run a coroutine of the user.

    Raises:
        _FatalError: the coroutine has raised ``GeneratorExit``, as only the end of the call itself should.
    """
    resume: Callable[[Any], Any] = awaited.send
    value: Any = None
    while True:
        try:
            waiting = resume(value)
        except StopIteration as stop:
            return stop.value
        except GeneratorExit as error:
            raise _FatalError("GeneratorExit").with_traceback(error.__traceback__) from error
        try:
            resume, value = awaited.send, (yield waiting)
        except GeneratorExit:
            awaited.close()
            raise
        except BaseException as error:
            resume, value = awaited.throw, error


def timeout(place: str, function: Callable[..., Any] | None, timeout_s: float) -> HandlerError:
    """Log that a function took too long, and return that as an error."""
    source = "" if function is None else source_of(function)
    log.warning("%s: took longer than %g s%s", place, timeout_s, f" ({source})" if source else "")
    return HandlerError(place, f"no result within {timeout_s:g} s", short_source(source), timed_out=True)


def failure(
    place: str, error: BaseException, function: Callable[..., Any] | None = None, mask: Mask = str
) -> HandlerError:
    """Log an exception of a function, and return it as an error without the message, which may quote a secret."""
    log_failure(place, error, function, mask)
    name = type(_original(error)).__name__
    return HandlerError(place, name, short_source(_where(error, function)), cause=error)


def log_failure(
    place: str, error: BaseException, function: Callable[..., Any] | None = None, mask: Mask = str
) -> None:
    """Log an exception of a function with its location, for the author of the adapter or tool."""
    where, original = _where(error, function), _original(error)
    log.error("%s: %s: %s%s", place, type(original).__name__, mask(str(original)), f" ({where})" if where else "")


def source_of(function: Callable[..., Any]) -> str:
    """Return the file and line of a function as ``path:line``, empty if it is not written in Python."""
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def without_message(_message: str) -> str:
    """Return a text instead of the message of an exception; the mask of functions that handle secrets."""
    return "(its message is left out, because it may contain a secret)"


class _FatalError(RuntimeError):
    """An exception that would end the process, from a thread."""


def _original(error: BaseException) -> BaseException:
    """Return the exception of the user's function."""
    return error.__cause__ if isinstance(error, _FatalError) and error.__cause__ is not None else error


def _run(bound: Bound) -> Any:
    try:
        return bound.function(*bound.args, **bound.kwargs)
    except Exception:
        raise
    except BaseException as error:
        # It would end the process even from a thread.
        raise _FatalError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__) from error


def _where(error: BaseException, function: Callable[..., Any] | None) -> str:
    """Return the last line in the function's own file that led to the exception, else the function's definition.

    Without a function, or for one that is not written in Python, return where the exception was raised.
    """
    source = "" if function is None else source_of(function)
    file = source.rpartition(":")[0]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if file in ("", frame.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else source


def short_source(source: str) -> str:
    """Return a location with the file's name instead of its path."""
    path, colon, line = source.rpartition(":")
    return f"{PurePath(path).name}{colon}{line}"


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
