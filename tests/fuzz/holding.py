"""Measure for how long one message of a mebibyte holds up the event loop, for each place in each message.

::

    make fuzz ARGS='--holding'                           # everything, for half an hour
    make fuzz ARGS='--holding models.list tool:'         # by parts of titles

A server in this process gets each message, and a prompt after it, because what a message leaves behind may hold up
the next turn. What counts is the processor time that one turn of the event loop takes, in which no other client is
served. Other programs on the machine do not change it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import selectors
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, TypeAlias, cast

import anyio
import anyio.lowlevel
import orjson

from jumpseat.app import App
from jumpseat.parsing.json_text import read_json
from jumpseat.parsing.message_size import MOST_ENTRIES
from jumpseat.rpc.routes import load_route
from jumpseat.tools.builtin import builtin_tools, session_tools
from tests.fuzz.hostile import MIB, Maker
from tests.fuzz.methods import METHODS, SESSION
from tests.fuzz.target import silenced
from tests.soak.memory import MemoryClient, running_app

HELD_S: Final = 0.1
MOST_UNITS: Final = 2.5
"""The limit as a multiple of the time for reading a large message, which takes 0.04 s on an idle machine: on a busy
one, all processor times are longer."""
ANSWER_S: Final = 120.0
"""Seconds after which a message without a response counts as a hang."""
PATIENCE_S: Final = 0.1
"""Seconds after which a request is cancelled: those that wait for a client never end."""
TURN_S: Final = 5.0
"""Seconds after which a turn is aborted."""
MESSAGES_PER_SERVER: Final = 50
UNKNOWN_IN: Final = frozenset({"ping", "session.create", "session.send", "jumpseat.complete", "bash"})
"""The methods and tools that get unknown members: the same code reads those of all."""
SAMPLE_S: Final = 0.005
SHOWN_S: Final = 0.06
PROJECT: Final = "PROJECT"
"""Stands for the folder of the project."""
CONFIGURATION: Final = "[permissions]\nallow_unasked = true\n"

Message: TypeAlias = dict[str, Any]


class Case(NamedTuple):
    """A request of a client; if it has ``answer``, the deltas of the model's answer to it."""

    title: str
    method: str
    params: Message
    answer: Sequence[Message] = ()


class Held(NamedTuple):
    """The longest time for which a message held up the event loop, in seconds, and where that was.

    ``unit`` is the time for reading a large message, before or after.
    """

    seconds: float
    unit: float
    place: str

    @property
    def is_shown(self) -> bool:
        return self.seconds > SHOWN_S

    @property
    def too_long(self) -> bool:
        return self.seconds > HELD_S and self.seconds > MOST_UNITS * self.unit


_LARGE: Final = orjson.dumps({f"k{number}": number for number in range(75_000)})


def unit() -> float:
    """Return the processor time for reading a large message, in seconds."""
    began = time.thread_time()
    read_json(_LARGE)
    return time.thread_time() - began


# --- messages -----------------------------------------------------------------------------------------------------


def cases_of_methods(is_chosen: Callable[[str], bool] = bool, size: int = MIB) -> Iterator[Case]:
    """Yield a request for each large value of each place in the params of each method."""
    maker = Maker({"sessionId": SESSION, "workingDirectory": PROJECT}, size)
    for method in filter(is_chosen, METHODS):
        for title, params in maker.hostile(load_route(method).params):
            yield Case(f"{method} {title}", method, params)
        if method in UNKNOWN_IN:
            for title, value in maker.hostile(Any):
                yield Case(f"{method} (unknown) {title}", method, {"sessionId": SESSION, "unknownMember": value})
            for count in (size // 14, MOST_ENTRIES - 1):
                members = {"sessionId": SESSION, **{f"k{n}": n for n in range(count)}}
                yield Case(f"{method} ({count} unknown members)", method, members)


def cases_of_tools(is_chosen: Callable[[str], bool] = bool, size: int = MIB) -> Iterator[Case]:
    """Yield an answer of a model for each large value of each place in the arguments of each tool."""
    maker = Maker({"path": "f.txt"}, size)
    for tool in (*builtin_tools(), *session_tools()):
        if not is_chosen(f"tool:{tool.name}"):
            continue
        for title, arguments in maker.hostile(tool.args):
            yield call(f"tool:{tool.name} {title}", tool.name, orjson.dumps(arguments).decode())
        if tool.name in UNKNOWN_IN:
            for title, value in maker.hostile(Any):
                text = orjson.dumps({**maker.least(tool.args), "unknown": value}).decode()
                yield call(f"tool:{tool.name} (unknown) {title}", tool.name, text)
            text = orjson.dumps({f"k{n}": n for n in range(size // 14)}).decode()
            yield call(f"tool:{tool.name} (unknown members)", tool.name, text)


def call(title: str, name: str, arguments: str) -> Case:
    """Return the case of an answer that calls a tool."""
    function = {"name": name, "arguments": arguments}
    deltas = [{"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}]
    return Case(title, "session.send", {"sessionId": SESSION, "prompt": "go"}, deltas)


def cases_of_answers(size: int = MIB) -> Iterator[Case]:
    """Yield answers of a model that are no valid calls, or are many."""
    send = {"sessionId": SESSION, "prompt": "go"}
    for name, text in Maker({}, size).texts():
        yield Case(f"answer: text {name}", "session.send", send, [{"content": text}])
        yield Case(f"answer: reasoning {name}", "session.send", send, [{"reasoning_content": text}])
        yield call(f"answer: name {name}", text, "{}")
        yield call(f"answer: malformed arguments {name}", "bash", text)
        tools = [{"index": 0, "id": text, "type": "function", "function": {"name": "list_bash", "arguments": "{}"}}]
        yield Case(f"answer: id {name}", "session.send", send, [{"tool_calls": tools}])
    calls = [
        {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "list_bash", "arguments": "{}"}}
        for n in range(size // 100)
    ]
    yield Case("answer: calls in one delta", "session.send", send, [{"tool_calls": calls}])
    yield Case("answer: empty calls in one delta", "session.send", send, [{"tool_calls": [{}] * (size // 3)}])
    yield Case("answer: calls", "session.send", send, [{"tool_calls": [one]} for one in calls])


# --- measuring ----------------------------------------------------------------------------------------------------


class Meter(selectors.DefaultSelector):
    """The selector of an event loop, which measures the processor time between two waits."""

    def __init__(self) -> None:
        super().__init__()
        self._woken = time.thread_time()
        self.longest = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.longest = max(self.longest, time.thread_time() - self._woken)
        events = super().select(timeout)
        self._woken = time.thread_time()
        return events

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave out the time of the block: it is that of the client."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._woken += time.thread_time() - began


async def measure(cases: Iterable[Case], meter: Meter, folder: Path, report: Callable[[Case, Held], None]) -> None:
    """Report for how long each message holds up the event loop. Those above the limit are measured twice.

    A server gets ``MESSAGES_PER_SERVER`` messages; a new one has forgotten what they left behind.
    """
    waiting = iter(cases)
    with listening_model() as model:
        for number in itertools.count():
            batch = list(itertools.islice(waiting, MESSAGES_PER_SERVER))
            if not batch:
                return
            async with running_client(folder / str(number), model, meter) as client:
                for case in batch:
                    held = await client.held(case)
                    if held.too_long:
                        held = min(held, await client.held(case))
                    report(case, held)


@asynccontextmanager
async def running_client(folder: Path, model: _Model, meter: Meter) -> AsyncGenerator[_Client]:
    """Run a server with its files in ``folder``, and yield a client of it."""
    home, project = folder / "home", folder / "project"
    for path in (home, project, folder / "empty"):
        path.mkdir(parents=True)
    (project / "f.txt").write_text("one\ntwo\n")
    (home / "config.toml").write_text(CONFIGURATION)
    # No program can be found, whatever the params name.
    environ = {"COPILOT_HOME": str(home), "HOME": str(folder), "PATH": str(folder / "empty")}
    async with running_app(environ) as app:
        client = _Client(app, model, meter, project)
        await client.request("connect", {})
        await client.prepare()
        await client.turn("session.send", {"sessionId": SESSION, "prompt": "hi"})
        yield client


class Unmeasured(MemoryClient):
    """A client whose own time is not measured."""

    def __init__(self, app: App, take: Callable[[Message], None], meter: Meter) -> None:
        self._meter = meter
        super().__init__(app, asyncio.get_running_loop(), take)

    def send(self, message: Message) -> None:
        with self._meter.paused():
            super().send(message)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with self._meter.paused():
            super().write(data)


class _Client:
    """A client of a server in this process."""

    def __init__(self, app: App, model: _Model, meter: Meter, project: Path) -> None:
        self.app = app
        self._model = model
        self._meter = meter
        self._project = project
        self._client = Unmeasured(app, self._take, meter)
        self._responses: dict[int, Message] = {}
        self._idle = False
        self._news = anyio.Event()

    async def held(self, case: Case) -> Held:
        """Send a message, then a prompt, and return for how long they held up the event loop."""
        await self.prepare()
        self._model.answers = [case.answer] if case.answer else []
        params = _filled(case.params, self._project)
        before = unit()
        # The time of the unit is not that of the message.
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        self._meter.longest = 0.0
        with sampled() as sampler:
            if case.answer:
                await self.turn(case.method, params)
            else:
                response = await self.request(case.method, params)
                if "result" in response and case.method.startswith("session."):
                    await self.turn("session.send", {"sessionId": SESSION, "prompt": "hi"})
        longest = self._meter.longest
        return Held(longest, max(before, unit()) if longest > HELD_S else before, sampler.place)

    async def prepare(self) -> None:
        """Create the session, unless it exists."""
        provider = {"type": "openai", "baseUrl": self._model.url, "apiKey": "none"}
        params = {"sessionId": SESSION, "workingDirectory": str(self._project), "provider": provider, "model": "m"}
        await self.request("session.create", params)

    async def request(self, method: str, params: Message) -> Message:
        """Send a request, and return the response; a request that waits is cancelled."""
        self._responses.clear()
        number = self._client.request(method, params)
        with anyio.move_on_after(PATIENCE_S) as patience:
            await self._until(lambda: number in self._responses)
        if patience.cancelled_caught:
            self._client.send({"method": "$/cancelRequest", "params": {"id": number}})
            with anyio.fail_after(ANSWER_S):
                await self._until(lambda: number in self._responses)
        return self._responses[number]

    async def turn(self, method: str, params: Message) -> None:
        """Send a request that begins a turn, and wait for the end of the turn."""
        self._idle = False
        if "result" not in await self.request(method, params):
            return
        with anyio.move_on_after(TURN_S) as patience:
            await self._until(lambda: self._idle)
        if patience.cancelled_caught:
            await self.request("session.abort", {"sessionId": SESSION})

    def _take(self, message: Message) -> None:
        if "method" not in message:
            self._responses[message["id"]] = message
        elif message["method"] == "session.event" and message["params"]["event"]["type"] == "session.idle":
            self._idle = True
        self._news.set()
        self._news = anyio.Event()

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()


def _filled(params: Message, project: Path) -> Message:
    """Return params with the folder of the server in place of ``PROJECT``."""
    return {key: str(project) if value == PROJECT else value for key, value in params.items()}


# --- the model ----------------------------------------------------------------------------------------------------


class _Model(ThreadingHTTPServer):
    """A model whose next answers are given: each the deltas of a stream. Other answers are short texts."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.answers: list[Sequence[Message]] = []


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        model = cast("_Model", self.server)
        body = self.rfile.read(int(self.headers["content-length"]))
        # Other requests ask for a title or a summary.
        given = model.answers and b'"tools"' in body
        deltas = model.answers.pop(0) if given else [{"content": "done"}]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        reason = "tool_calls" if "tool_calls" in deltas[0] else "stop"
        choices = [*({"index": 0, "delta": delta} for delta in deltas), {"index": 0, "finish_reason": reason}]
        for choice in choices:
            chunk = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            self.wfile.write(b"data: %b\n\n" % orjson.dumps(chunk))
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        pass


@contextmanager
def listening_model() -> Generator[_Model]:
    with _Model() as model:
        thread = threading.Thread(target=model.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


# --- places -------------------------------------------------------------------------------------------------------


class _Sampler:
    """Looks at the stack of a thread every few milliseconds."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._thread = threading.get_ident()
        self._ended = threading.Event()

    @property
    def place(self) -> str:
        """The functions of the server in which the thread was seen most often, the outermost first."""
        return "; ".join(f"{count} {place}" for place, count in self._seen.most_common(2))

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            frame = sys._current_frames().get(self._thread)  # pyright: ignore[reportPrivateUsage] - as its docs say
            if frame is not None and (place := _place_of(frame)):
                self._seen[place] += 1

    def end(self) -> None:
        self._ended.set()


@contextmanager
def sampled() -> Generator[_Sampler]:
    sampler = _Sampler()
    thread = threading.Thread(target=sampler.run, daemon=True)
    thread.start()
    try:
        yield sampler
    finally:
        sampler.end()
        thread.join()


def _place_of(frame: FrameType | None) -> str:
    names: list[str] = []
    while frame is not None and len(names) < 4:
        name = frame.f_code.co_filename
        if "jumpseat" in name and not name.endswith("__main__.py"):
            names.append(f"{name.rpartition('jumpseat/')[2]}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(names)


def main(parts: Sequence[str]) -> int:
    """Measure the messages to these methods and tools, and print those that hold up the event loop."""
    # It imports this module.
    from tests.fuzz import doors as doors_module

    slow = 0
    count = 0

    def is_chosen(name: str) -> bool:
        return not parts or any(part in name for part in parts)

    def report(title: str, held: Held) -> None:
        nonlocal slow, count
        count += 1
        if held.is_shown:
            slow += held.too_long
            times = f"{held.seconds * 1e3:7.0f} ms {held.seconds / held.unit:5.1f} units"
            print(f"{times}  {title:60}  {held.place}", flush=True)

    meter = Meter()
    # As in a server.
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    with tempfile.TemporaryDirectory(prefix="holding-") as name, silenced():
        folder = Path(name).resolve()
        answers = cases_of_answers() if is_chosen("answer") else ()
        cases = itertools.chain(cases_of_tools(is_chosen), answers, cases_of_methods(is_chosen))
        options = {"loop_factory": lambda: asyncio.SelectorEventLoop(meter)}

        async def measure_all() -> None:
            await measure(cases, meter, folder, lambda case, held: report(case.title, held))
            if chosen := next(doors := doors_module.cases_of_doors(is_chosen), None):
                await doors_module.measure_doors(itertools.chain([chosen], doors), meter, folder / "doors", report)

        anyio.run(measure_all, backend_options=options)
        doors_module.measure_readings(doors_module.readings(is_chosen), report)
    print(f"{count} messages, {slow} of them hold up the event loop for too long")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
