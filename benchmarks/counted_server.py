"""A jumpseat that counts what its event loop does; run by ``counts.py`` with the arguments of ``jumpseat``.

At each SIGUSR1, the counts since the start are written to the file named by ``COUNTS_FILE``.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final, cast

import orjson

BACKEND: Final = "anyio._backends._asyncio"

# The name of a count, and the functions whose calls are counted.
COUNTED: Final = {
    "turns of the event loop": ("asyncio.base_events:BaseEventLoop._run_once",),
    "callbacks run by it": ("asyncio.events:Handle._run",),
    "tasks": ("asyncio.base_events:BaseEventLoop.create_task",),
    "task groups": (f"{BACKEND}:TaskGroup.__aenter__",),
    "cancel scopes": (f"{BACKEND}:CancelScope.__enter__",),
    "timers": ("asyncio.base_events:BaseEventLoop.call_at",),
    "locks": ("asyncio.locks:Lock.acquire", f"{BACKEND}:Lock.acquire", "anyio:Lock.acquire"),
    "waits for events": (f"{BACKEND}:Event.wait", "asyncio.locks:Event.wait"),
    "thread hops": (f"{BACKEND}:AsyncIOBackend.run_sync_in_worker_thread",),
}


def count_calls(counts: Counter[str]) -> None:
    """Replace the functions in :data:`COUNTED` by ones that count their calls."""
    replaced: set[Any] = set()
    for name, places in COUNTED.items():
        for place in places:
            module, _, path = place.partition(":")
            *outer, last = path.split(".")
            owner = reduce(getattr, outer, cast("Any", importlib.import_module(module)))
            # Methods that a class inherits are counted where they are defined; versions of anyio differ.
            found = cast("dict[str, Any]", vars(owner)).get(last)
            if found is None or found in replaced:
                continue
            replaced.add(_counting(owner, last, found, counts, name))


def _counting(owner: Any, last: str, found: Any, counts: Counter[str], name: str) -> Any:
    is_classmethod = isinstance(found, classmethod)
    inner: Callable[..., Any] = cast("Any", found).__func__ if is_classmethod else found

    def counted(*args: Any, **kwargs: Any) -> Any:
        counts[name] += 1
        return inner(*args, **kwargs)

    setattr(owner, last, classmethod(counted) if is_classmethod else counted)
    return cast("dict[str, Any]", vars(owner))[last]


def main() -> None:
    counts: Counter[str] = Counter()
    count_calls(counts)
    target = Path(os.environ["COUNTS_FILE"])

    def write(_number: int, _frame: object) -> None:
        part = target.with_suffix(".part")
        part.write_bytes(orjson.dumps(dict(counts)))
        part.rename(target)

    signal.signal(signal.SIGUSR1, write)
    from jumpseat.__main__ import main as run

    run()


if __name__ == "__main__":
    sys.exit(main())
