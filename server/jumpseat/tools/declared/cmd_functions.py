"""Run the functions in ``cmds`` of a declared tool, each of which returns its result or calls back with it.

The first result counts; later ones, from any thread, are ignored. A function that takes ``output_cb`` (or ``opts``,
which contains it) and returns ``None`` is expected to call back within its time-out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token
from msgspec import Struct

from jumpseat.declared.calling import HandlerError, call, log_failure, source_of
from jumpseat.tools.declared.calling_conventions import FUNCTION_ORDERS, FUNCTION_ORDERS_2024, bind
from jumpseat.tools.declared.definition import Handler
from jumpseat_protocol.members import misspelt

log = logging.getLogger(__name__)

_STATUSES: Final = ("success", "error")


class Answer(Struct, frozen=True):
    """The result of one function. ``given`` is its original result, the ``input`` of the next function."""

    ok: bool
    data: Any = None
    given: Any = None


class _FirstAnswer:
    """The callback: keeps the first result and ignores all others."""

    def __init__(self) -> None:
        self.value: Any = None
        self._taken = False
        self._lock = threading.Lock()
        self._ready = anyio.Event()
        self._token = current_token()
        self._loop_thread = threading.get_ident()

    def __call__(self, result: Any = None) -> None:
        with self._lock:
            if self._taken:
                return
            self._taken, self.value = True, result
        if threading.get_ident() == self._loop_thread:
            self._ready.set()
        else:
            # The event loop may have been closed in the meantime.
            with suppress(RuntimeError):
                anyio.from_thread.run_sync(self._ready.set, token=self._token)

    def close(self) -> None:
        with self._lock:
            self._taken = True

    async def wait(self) -> None:
        await self._ready.wait()


async def run_function(
    place: str, function: Handler, values: Mapping[str, Any], *, timeout_s: float, legacy: bool
) -> Answer:
    """Run ``function``; its parameters may name ``values``: ``tool``, ``tools``, ``args``, ``input``.

    Raises:
        HandlerError: the function failed, or had no result within ``timeout_s`` seconds.
    """
    answer = _FirstAnswer()
    jobs: list[Any] = []
    opts = {"input": values["input"], "output_cb": answer, "register_job": jobs.append}
    available = {**values, "output_cb": answer, "register_job": jobs.append, "opts": opts}
    bound = bind(function, available, FUNCTION_ORDERS_2024 if legacy else FUNCTION_ORDERS)
    may_call_back = not bound.given.isdisjoint(("output_cb", "opts"))
    try:
        with anyio.move_on_after(timeout_s):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    returned = await call(place, bound, timeout_s)
                    if returned is not None or not may_call_back:
                        answer(returned)

                tasks.start_soon(run)
                await answer.wait()
                tasks.cancel_scope.cancel()
            problem = _problem_of(answer.value)
            if problem is not None:
                source = source_of(function)
                log.error("%s: its result cannot be used: %s (%s)", place, problem, source)
                raise HandlerError(place, "unusable result", source)
            return _answer_of(answer.value)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        answer.close()
        for job in jobs:
            _end(place, job)
    raise HandlerError(place, f"no result within {timeout_s:g} s", timed_out=True)


def _answer_of(value: Any) -> Answer:
    """Read ``{status, data}``, or ``{status, msg}`` as in 2024; any other value is the data of a success."""
    if isinstance(value, Mapping) and (table := cast("Mapping[str, Any]", value)).get("status") in _STATUSES:
        return Answer(table["status"] == "success", table.get("data", table.get("msg")), value)
    return Answer(ok=True, data=value, given=value)


def _problem_of(value: Any) -> str | None:
    """Return the problem of a result that can only be a mistake, ``None`` if it may be meant."""
    if not isinstance(value, Mapping):
        return None
    table = cast("Mapping[Any, Any]", value)
    status = table.get("status")
    if isinstance(status, str) and misspelt(status, _STATUSES) is not None:
        return f"the status is {status!r}, expected 'success' or 'error'"
    if status is None and ("data" in table or "msg" in table):
        for key in table:
            if isinstance(key, str) and misspelt(key, ("status",)) is not None:
                return f"the key {key!r} is unknown, did you mean 'status'?"
    return None


def _end(place: str, job: Any) -> None:
    """Terminate a process that the function has registered, if it still runs."""
    try:
        if getattr(job, "returncode", None) is None and hasattr(job, "terminate"):
            job.terminate()
    except Exception as error:
        log_failure(place, error)
