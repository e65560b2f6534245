"""Run a script whose calls of tools go to the server: the program of the confined interpreter.

The server passes the text of this module to the interpreter, which reads a JSON object from its standard input: the
``script``, and the names of the ``tools`` with those of their arguments. Calls go to standard output, and their
results come back on standard input, one JSON object a line; what the script prints goes to standard error.
Imports nothing of the server, because the interpreter cannot read it.
"""

from __future__ import annotations

import json
import linecache
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

AT_ONCE = 8
MEMORY_BYTES = 1 << 30
PROCESSOR_S = 60
FILE_BYTES = 64 << 20
MAX_FILES = 256
MAX_THREADS = 64


class ToolError(Exception):
    """The error of a call; its text is that for the model."""


class _Channel:
    """The pipes to the server. Programs that the script starts do not get them."""

    def __init__(self) -> None:
        self._replies = os.fdopen(os.dup(0), encoding="utf-8")
        self._requests = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[threading.Event, list[dict[str, Any]]]] = {}
        self._count = 0

    def first(self) -> dict[str, Any]:
        start = json.loads(self._replies.readline())
        threading.Thread(target=self._receive, daemon=True).start()
        return start

    def ask(self, **request: Any) -> str:
        done, found = threading.Event(), list[dict[str, Any]]()
        with self._lock:
            self._count += 1
            number = self._count
            self._waiting[number] = (done, found)
            text = json.dumps({"id": number, **request})
            self._requests.write(text + "\n")
            self._requests.flush()
        done.wait()
        if not found:
            raise ToolError("The server has closed the connection")
        if "error" in found[0]:
            raise ToolError(found[0]["error"])
        return str(found[0]["text"])

    def _receive(self) -> None:
        for line in self._replies:
            reply = json.loads(line)
            done, found = self._waiting.pop(reply["id"])
            found.append(reply)
            done.set()
        for done, _ in list(self._waiting.values()):
            done.set()


def _names(channel: _Channel, tools: dict[str, list[str]]) -> dict[str, Any]:
    """Return the names that the script has besides those of Python."""

    def call(name: str, /, *values: Any, **arguments: Any) -> str:
        known = tools.get(name, [])
        if len(values) > len(known):
            raise TypeError(f"{name}() takes the arguments {', '.join(known)}; name the others")
        given = dict(zip(known, values))  # noqa: B905 - there may be fewer values
        if both := given.keys() & arguments.keys():
            raise TypeError(f"{name}() got the argument {min(both)!r} twice")
        return channel.ask(call=name, arguments={**given, **arguments})

    def parallel(function: Callable[..., str], items: Iterable[Any]) -> list[str]:
        def one(item: Any) -> str:
            if isinstance(item, dict):
                return function(**item)
            return function(*item) if isinstance(item, tuple) else function(item)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(one, items))

    def help(tool: Any = None) -> None:  # noqa: A001 - as in Python
        name = getattr(tool, "tool", tool)
        is_ours = name is None or isinstance(name, str)
        print(channel.ask(help=name) if is_ours else tool.__doc__)  # noqa: T201

    def function_of(name: str) -> Callable[..., str]:
        def function(*values: Any, **arguments: Any) -> str:
            return call(name, *values, **arguments)

        function.__name__ = name
        function.tool = name  # type: ignore[attr-defined]
        return function

    functions = {re.sub(r"\W", "_", name): function_of(name) for name in tools}
    return {**functions, "call": call, "parallel": parallel, "help": help, "ToolError": ToolError}


def _limit(*, alone: bool) -> None:
    """Limit what each process of the script takes of the machine; it cannot raise the limits.

    ``alone``, it has a user namespace of its own, in which no other threads are counted.
    """
    if sys.platform == "win32":
        return
    import resource

    os.nice(5)
    limits = {
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_CPU: PROCESSOR_S,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        # Pipes and pairs of sockets take memory of the kernel.
        resource.RLIMIT_NOFILE: MAX_FILES,
        # The limit at which no program gets a dump either.
        resource.RLIMIT_CORE: 1,
    }
    if alone:
        limits[resource.RLIMIT_NPROC] = MAX_THREADS
    for kind, limit in limits.items():
        _, hardest = resource.getrlimit(kind)
        limit = limit if hardest == resource.RLIM_INFINITY else min(limit, hardest)
        # Some systems do not limit addresses.
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (limit, limit))


def main() -> None:
    channel = _Channel()
    start = channel.first()
    _limit(alone=start["alone"])
    sys.argv = ["script"]
    names = {"__name__": "__main__", **_names(channel, start["tools"])}
    lines = [f"{line}\n" for line in start["script"].splitlines()]
    # For the lines in tracebacks.
    linecache.cache["script"] = (len(start["script"]), None, lines, "script")
    code = 0
    try:
        exec(compile(start["script"], "script", "exec"), names)  # noqa: S102 - the purpose of this program
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if isinstance(error.code, str):
            print(error.code)  # noqa: T201
    except BaseException as error:
        # Without the lines of this program.
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "script"]
        shown = "".join(traceback.format_list(frames) + traceback.format_exception_only(type(error), error))
        print(shown, end="")  # noqa: T201
        code = 1
    sys.stdout.flush()
    # Threads that wait for calls are left behind.
    os._exit(code)


if __name__ == "__main__":
    main()
