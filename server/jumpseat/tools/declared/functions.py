"""Running the functions of a declared tool: one result each, whether it is returned or called back.

Whichever comes first counts; what comes later, from any thread, is ignored. A function that asked for ``output_cb``
(or ``opts``, which holds it) and returns nothing has promised to call back, and is waited for as long as its
time-out allows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from jumpseat.tools.declared.calling import HandlerError, bind, call, tell
from jumpseat.tools.declared.definition import Handler

ORDERS: Final[Mapping[int, tuple[str, ...]]] = {
    0: (),
    1: ("args",),
    2: ("tools", "args"),
    3: ("tools", "args", "opts"),
    4: ("tool", "args", "input", "output_cb"),
}
ORDERS_2024: Final[Mapping[int, tuple[str, ...]]] = {0: (), 1: ("tool",), 2: ("tool", "input")}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one function. ``data`` is anything; ``given`` is what it gave, which the next function gets."""

    ok: bool
    data: Any = None
    given: Any = None


class _OneAnswer:
    """Takes the first answer and no other."""

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
            # The loop may have ended in the meantime.
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
    """What ``function`` comes to. ``values`` has what it may ask for: ``tool``, ``tools``, ``args``, ``input``.

    Raises:
        HandlerError: it failed, or gave no answer in time.
    """
    answer = _OneAnswer()
    jobs: list[Any] = []
    opts = {"input": values["input"], "output_cb": answer, "register_job": jobs.append}
    everything = {**values, "output_cb": answer, "register_job": jobs.append, "opts": opts}
    bound = bind(function, everything, ORDERS_2024 if legacy else ORDERS)
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
            return _answer_of(answer.value)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        answer.close()
        for job in jobs:
            _end(place, job)
    raise HandlerError(place, timed_out=True)


def _answer_of(value: Any) -> Answer:
    """``{status, data}``, or ``{status, msg}`` as in 2024; anything else is the data of a success."""
    if isinstance(value, Mapping) and (table := cast("Mapping[str, Any]", value)).get("status") in (
        "success",
        "error",
    ):
        return Answer(table["status"] == "success", table.get("data", table.get("msg")), value)
    return Answer(ok=True, data=value, given=value)


def _end(place: str, job: Any) -> None:
    """End a process that a function has told of, where it still runs."""
    try:
        if getattr(job, "returncode", None) is None and hasattr(job, "terminate"):
            job.terminate()
    except Exception as error:
        tell(place, error)
