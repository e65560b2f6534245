"""Call the functions of a declared tool in all calling conventions.

A parameter gets the value that its name stands for: ``self`` or ``tool`` is the tool, ``tools`` its surroundings,
then ``args``, ``input``, ``output_cb``, ``opts``, ``cmd``, ``stdout`` and so on; leading underscores are ignored.
That covers all conventions, because their names do not clash. If a name is unknown, the positions decide, by the
number of parameters.

Synchronous functions run in a thread, asynchronous ones in the task of the caller.
"""

from __future__ import annotations

import inspect
import logging
import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
import anyio.to_thread

from jumpseat.declared.files import FATAL_ERRORS

log = logging.getLogger(__name__)

NAMES: Final[Mapping[str, str]] = {
    "self": "tool",
    "agent": "tool",
    "arguments": "args",
    "output_handler": "output_cb",
    "callback": "output_cb",
    "cb": "output_cb",
    "meta": "opts",
    "options": "opts",
    "ctx": "opts",
    "output": "stdout",
    "error": "stderr",
}
"""Synonyms of parameter names."""


class HandlerError(Exception):
    """A function of a tool failed or timed out. The log has its message; ``place`` names the function."""

    def __init__(self, place: str, *, timed_out: bool = False) -> None:
        super().__init__(place)
        self.place = place
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Bound:
    """A function with its arguments. ``given`` are the names of the values that it gets."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    given: frozenset[str]


def bind(function: Callable[..., Any], values: Mapping[str, Any], orders: Mapping[int, tuple[str, ...]]) -> Bound:
    """Bind ``function`` to those of ``values`` that its parameters name.

    ``orders`` gives the values by position, for each number of parameters, if a name is unknown.
    """
    parameters = _parameters(function)
    if parameters is None or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        order = orders[max(orders)]
        return Bound(function, tuple(values[name] for name in order), {}, frozenset(order))
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    needed = [parameter for parameter in positional if parameter.default is parameter.empty]
    kwargs = {
        parameter.name: values[name]
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and (name := _name(parameter.name)) in values
    }
    if all(_name(parameter.name) in values for parameter in needed):
        chosen: list[str] = []
        for parameter in positional:
            if (name := _name(parameter.name)) not in values:
                # All following parameters have defaults, too.
                break
            chosen.append(name)
    else:
        counts = [count for count in orders if count >= len(needed)]
        order = orders[min(counts)] if counts else orders[max(orders)]
        chosen = list(order[: len(needed)])
    given = frozenset([*chosen, *(_name(name) for name in kwargs)])
    return Bound(function, tuple(values[name] for name in chosen), kwargs, given)


async def call(place: str, bound: Bound, timeout_s: float) -> Any:
    """Call the function, in a thread unless it is asynchronous, and return its result.

    Raises:
        HandlerError: the function failed or timed out; the log has the details.
    """
    is_async = inspect.iscoroutinefunction(bound.function)
    try:
        with anyio.move_on_after(timeout_s) as scope:
            if is_async:
                return await bound.function(*bound.args, **bound.kwargs)
            found = await anyio.to_thread.run_sync(_run, bound, abandon_on_cancel=True)
            return await found if inspect.isawaitable(found) else found
    except anyio.get_cancelled_exc_class() as error:
        if anyio.current_effective_deadline() == -math.inf:
            raise
        # The call was not cancelled: the function itself raised this.
        log_failure(place, error)
        raise HandlerError(place) from None
    except (Exception, *FATAL_ERRORS) as error:
        log_failure(place, error)
        raise HandlerError(place) from None
    assert scope.cancelled_caught
    log.warning("%s: took longer than %g s", place, timeout_s)
    raise HandlerError(place, timed_out=True)


def _run(bound: Bound) -> Any:
    try:
        return bound.function(*bound.args, **bound.kwargs)
    except FATAL_ERRORS as error:
        # These would end the process even from a thread.
        raise RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__) from None


def log_failure(place: str, error: BaseException) -> None:
    """Log an exception of a function with its location, for the author of the tool."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    log.error("%s: %s: %s%s", place, type(error).__name__, error, where)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _name(parameter: str) -> str:
    plain = parameter.strip("_")
    return NAMES.get(plain, plain)
