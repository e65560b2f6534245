"""A server in this process with three clients, driven one step at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import anyio
import anyio.to_thread
import sniffio
from anyio import CapacityLimiter

from jumpseat.agent.session.session import Session
from jumpseat.agent.subagents.subagents import sub_agents
from jumpseat.app import App
from jumpseat.errors import SessionNotFoundError
from jumpseat.store.session.event_log import read_log
from tests.soak.memory import JsonObject, MemoryClient, environ_of, running_app
from tests.soak.prompts import CLIENTS, PROVIDER, tools_of
from tests.soak.views import View, problem_of_agents, problem_of_calls, problem_of_log, problem_of_parents

SETTLE_S: Final = 60.0
"""Seconds until a server that does not come to rest counts as hanging."""

CHECKS: Final = 3
"""Number of checks that have to find a problem before it counts."""

MCP_SERVER: Final = {"command": sys.executable, "args": ["-S", "-E", str(Path(__file__).with_name("mcp_tool.py"))]}


@dataclass
class Client:
    """A connected client, and what the server has told it."""

    number: int
    memory: MemoryClient
    views: dict[str, View] = field(default_factory=dict[str, View])
    asked: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    """The requests without an answer: method and session."""
    requests: list[JsonObject] = field(default_factory=list[JsonObject])
    """The requests of the server that the client has not answered."""


class World:
    """The server, its clients, and the rules. Use :meth:`close` at the end."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[str] = []
        self.failed = False
        self.sessions: list[str] = []
        self.clients: dict[int, Client] = {}
        # Truncating a history may remove the results of calls that stay; `continuePendingWork` leaves calls open.
        self._left_open: set[str] = set()
        self._home = folder / "home"
        self._project = folder / "project"
        self._project.mkdir(parents=True)
        (self._project / "notes.txt").write_text("notes")
        self._environ = environ_of(folder)
        # Callbacks of the loop run outside of tasks: anyio has to be told the library, as `anyio.run` does.
        self._library = sniffio.current_async_library_cvar.set("asyncio")
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._note_exception)
        self._log = _Log(self.problems)
        logging.getLogger("jumpseat").addHandler(self._log)
        # Python warns about coroutines that were never awaited, but goes on.
        self._catching = warnings.catch_warnings(record=True)
        self._warned = self._catching.__enter__()
        warnings.simplefilter("always", RuntimeWarning)
        self._app: App | None = None
        self._stop = asyncio.Event()
        self._life: asyncio.Task[None]
        self._threads: CapacityLimiter
        self._children = _children()
        self._start()

    # --- the life of the server -----------------------------------------------------------------------------------

    @property
    def app(self) -> App:
        assert self._app is not None
        return self._app

    def _start(self) -> None:
        started = asyncio.Event()

        async def live() -> None:
            self._stop = asyncio.Event()
            self._threads = anyio.to_thread.current_default_thread_limiter()
            async with running_app(self._environ) as self._app:
                started.set()
                await self._stop.wait()

        self._life = self._loop.create_task(live())
        self._loop.run_until_complete(started.wait())

    def restart(self, *, orderly: bool) -> None:
        """End the server, as SIGTERM does if ``orderly``, else as SIGKILL does, and start another one."""
        self._end(orderly=orderly)
        # As the end of a process does: a session that was created during the end is still open.
        for number, name in _open_files().items():
            if name.startswith(str(self._home)):
                os.close(number)
        self._start()

    def _end(self, *, orderly: bool) -> None:
        for client in [] if orderly else list(self.clients.values()):
            client.memory.hang_up()
        if orderly:
            self._loop.run_until_complete(self.app.close())
        self.clients.clear()
        self._stop.set()
        self._loop.run_until_complete(self._life)
        left = asyncio.all_tasks(self._loop)
        if left:
            self.problems.append(f"tasks are left: {left}")

    def close(self) -> None:
        """End all work; nothing may be left."""
        try:
            if not self.failed:
                self._finish()
        finally:
            logging.getLogger("jumpseat").removeHandler(self._log)
            self._end(orderly=True)
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            sniffio.current_async_library_cvar.reset(self._library)
            self._catching.__exit__(None, None, None)
        if self.failed:
            return
        self.assert_no_problem()
        until = time.monotonic() + SETTLE_S
        while (files := self._left_files()) and time.monotonic() < until:
            # A thread may still write one to the disk.
            time.sleep(0.01)
        assert not files, f"files are left open: {files}"
        while (children := _children() - self._children) and time.monotonic() < until:
            time.sleep(0.01)
        assert not children, f"processes are left: {children}"

    def _left_files(self) -> list[str]:
        return [name for name in _open_files().values() if name.startswith(str(self._home))]

    def _finish(self) -> None:
        for number in range(CLIENTS):
            self.hang_up(number)
        client = self.connect(0)
        for session in list(self.sessions):
            self.ask(client, "session.resume", session, provider=PROVIDER)
            self.settle()
            self.ask(client, "session.abort", session)
        self.settle()
        for session in list(self.sessions):
            live = self.live(session)
            if live is not None and live.working:
                self.fail(f"an abort did not end the run of {session}")
            ended = session not in self._left_open
            for rule in (problem_of_calls, problem_of_agents) if live is not None else ():
                if (problem := rule(self.log_of(session), ended=ended)) is not None:
                    self.problems.append(problem)
            self.ask(client, "session.destroy", session)
        self.settle()
        live_sessions = [session for session in self.sessions if self.live(session) is not None]
        if live_sessions:
            self.fail(f"sessions are live, although all clients have left: {live_sessions}")

    # --- clients --------------------------------------------------------------------------------------------------

    def connect(self, number: int) -> Client:
        """Return a client; connect it if it is not connected."""
        client = self.clients.get(number)
        if client is None or not client.memory.connected:
            client = Client(
                number, MemoryClient(self.app, self._loop, lambda message: self._receive(client_of(), message))
            )
            made = client

            def client_of() -> Client:
                return made

            self.clients[number] = client
            client.asked[client.memory.request("connect", {})] = ("connect", "")
        return client

    def hang_up(self, number: int) -> None:
        """End the connection of a client."""
        client = self.clients.pop(number, None)
        if client is not None:
            client.memory.hang_up()

    def ask(self, client: Client, method: str, session: str, **params: Any) -> None:
        """Send a request about a session."""
        if method in ("session.create", "session.resume") and not self._is_attached(client, session):
            client.views[session] = View()
        if method == "session.history.truncate" or params.get("continuePendingWork"):
            self._left_open.add(session)
        request_id = client.memory.request(method, {"sessionId": session, **params})
        client.asked[request_id] = (method, session)

    def options(self, client: Client, *, tools: bool, permissions: bool, mcp: bool) -> JsonObject:
        """Return options of ``session.create`` and ``session.resume``."""
        return {
            "provider": PROVIDER,
            "workingDirectory": str(self._project),
            "tools": tools_of(client.number % CLIENTS) if tools else [],
            "requestPermission": permissions,
            "requestUserInput": permissions,
            "hooks": tools and client.number == CLIENTS - 1,
            **({"mcpServers": {"tools": {**MCP_SERVER, "tools": ["*"]}}} if mcp else {}),
        }

    def _receive(self, client: Client, message: JsonObject) -> None:
        if message.get("method") == "session.event":
            params = message["params"]
            view = client.views.get(params["sessionId"])
            if view is None:
                # Between the request to leave a session and its response.
                return
            if problem := view.take(params["event"]):
                self.problems.append(f"session {params['sessionId']}: {problem}")
        elif message.get("method") == "session.lifecycle":
            if message["params"]["type"] == "session.deleted":
                client.views.pop(message["params"]["sessionId"], None)
        elif message.get("method") == "$/cancelRequest":
            client.requests[:] = [one for one in client.requests if one["id"] != message["params"]["id"]]
        elif "method" in message:
            client.requests.append(message)
        elif (asked := client.asked.pop(message["id"], None)) is None:
            self.problems.append(f"a response without a request, or a second one: {message}")
        else:
            self._take_response(client, *asked, message)

    def attached(self, session: str) -> list[Client]:
        """Return the clients of a session."""
        return [client for client in self.clients.values() if self._is_attached(client, session)]

    def _is_attached(self, client: Client, session: str) -> bool:
        live = self.live(session)
        return live is not None and any(client.memory is _memory_of(other) for other in live.clients)

    def _take_response(self, client: Client, method: str, session: str, message: JsonObject) -> None:
        error = message.get("error")
        if error is not None and error["message"] == "Internal error":
            self.problems.append(f"{method}: {error}")
        if method in ("session.create", "session.resume"):
            if error is None:
                # Another request to leave the session may have ended the view.
                client.views.setdefault(session, View())
            elif not self._is_attached(client, session):
                client.views.pop(session, None)
        if error is not None and error["message"] == f"Session not found: {session}" and method == "session.resume":
            # A session that was never prompted leaves nothing behind.
            self.sessions[:] = [other for other in self.sessions if other != session]
        if method == "session.create" and error is None:
            self.sessions.append(session)
        if method == "session.getMessages" and error is None and self.live(session) is not None:
            logged = self.log_of(session)
            told = message["result"]["events"]
            if told != logged[: len(told)]:
                self.problems.append(f"session.getMessages of {session} differs from the log")
        if method == "session.destroy":
            client.views.pop(session, None)
        if method == "sessions.fork" and error is None:
            fork = message["result"]["sessionId"]
            self.sessions.append(fork)
            self._left_open |= {fork} if session in self._left_open else set()

    # --- time -----------------------------------------------------------------------------------------------------

    def spin(self, times: int) -> None:
        """Run the event loop for some of its turns."""

        async def turn() -> None:
            for _ in range(times):
                await asyncio.sleep(0)

        self._loop.run_until_complete(turn())

    def settle(self) -> None:
        """Run the event loop until nothing moves without a client, and check all rules.

        Raises:
            AssertionError: a rule is broken, or the server does not come to rest.
        """

        async def rest() -> None:
            until = time.monotonic() + SETTLE_S
            quiet = 0
            while quiet < 3:
                await asyncio.sleep(0 if quiet or not self._threads_work() else 0.0002)
                quiet = quiet + 1 if self._is_quiet() else 0
                if time.monotonic() > until:
                    self.fail("the server does not come to rest")
                if not quiet and not _ready(self._loop):
                    await asyncio.sleep(0.0005)

        self._loop.run_until_complete(rest())
        self.check()

    def _threads_work(self) -> bool:
        return self._threads.borrowed_tokens > 0

    def _is_quiet(self) -> bool:
        if _ready(self._loop) > 1 or self._threads_work():
            return False
        for session in self.sessions:
            live = self.live(session)
            if live is not None and live.working and not self._waits(session):
                return False
        for client in self.clients.values():
            for method, session in client.asked.values():
                if method in ("session.abort", "session.getMessages") or not self._waits(session):
                    return False
        return True

    def _waits(self, session: str) -> bool:
        """Return whether a session waits for a client, or for a model or command that never ends."""
        for client in self.clients.values():
            if any(request["params"].get("sessionId") == session for request in client.requests):
                return True
        live = self.live(session)
        if live is None:
            return False
        if live.open_questions():
            return True
        # The prompt that the model answers: the one that runs, or one that has steered it.
        prompt = live.queue.prompt
        asked = [prompt.text if prompt is not None else "", *live.history.latest_prompts]
        agents = sub_agents(live) if live.agents is not None else ()
        tasks = [agent.exchanges[-1].message for agent in agents if agent.status == "running"]
        return live.working and any(text.startswith("hang") for text in (asked[0], asked[-1], *tasks))

    def live(self, session: str) -> Session | None:
        """Return a session if it is live."""
        try:
            return self.app.registry.live(session)
        except SessionNotFoundError:
            return None

    # --- rules ----------------------------------------------------------------------------------------------------

    def log_of(self, session: str) -> list[JsonObject]:
        """Return the events in the log of a session."""
        return list(read_log(self._home / "session-state" / session / "events.jsonl").records)

    def check(self) -> None:
        """Check the rules for a server at rest."""
        problems = self._problems()
        for _ in range(CHECKS - 1):
            if not problems:
                break
            # A session may work on while it waits for a client, and its last event may not have been sent yet.
            self.spin(10)
            problems = self._problems()
        self.problems += problems
        self.assert_no_problem()

    def _problems(self) -> list[str]:
        problems: list[str] = []
        for session in self.sessions:
            log = self.log_of(session)
            live = self.live(session)
            running = live is not None and live.working
            found = [
                problem_of_parents(log),
                problem_of_calls(log, ended=False),
                problem_of_agents(log, ended=False),
            ]
            for client in self.clients.values():
                view = client.views.get(session)
                if view is None:
                    continue
                if not self._is_attached(client, session):
                    # The session was closed, and others may change it from now on.
                    del client.views[session]
                    continue
                found.append(problem_of_log(log, view))
                if view.working and not running:
                    found.append("the run has ended without session.idle")
            problems += [f"session {session}, client: {problem}" for problem in found if problem is not None]
        return problems

    def assert_no_problem(self) -> None:
        """Raise ``AssertionError`` for the problems so far."""
        self.problems += [f"warning: {one.message}" for one in self._warned or ()]
        if self.problems:
            self.fail("\n".join(self.problems))

    def fail(self, problem: str) -> NoReturn:
        """Raise ``AssertionError``; nothing is checked afterwards."""
        self.failed = True
        raise AssertionError(f"{problem}\n{self.describe()}")

    def describe(self) -> str:
        """Return the state of all sessions and clients, for a message."""
        lines: list[str] = []
        for session in self.sessions:
            live = self.live(session)
            if live is not None:
                prompt = live.queue.prompt
                log = [event["type"] for event in self.log_of(session)][-6:]
                lines.append(f"{session}: running={live.working} prompt={prompt and prompt.text} log={log}")
                lines.append(f"  attached: {[_memory_of(client) for client in live.clients]}")
        for client in self.clients.values():
            lines.append(f"client {client.number} {client.memory}: asked={client.asked} requests={client.requests}")
        return "\n".join([*lines, f"ready={_ready(self._loop)} threads={self._threads_work()}"])

    def _note_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.problems.append(f"unhandled: {context}")


class _Log(logging.Handler):
    """Notes the unexpected errors that the server logs."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._problems = problems
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            self._problems.append(self.format(record))


def _ready(loop: asyncio.AbstractEventLoop) -> int:
    """Return the number of callbacks that wait for the next turn of the loop."""
    return len(getattr(loop, "_ready"))  # noqa: B009 - no public name


def _memory_of(client: object) -> object:
    wire = getattr(client, "wire", None)
    return getattr(wire, "_out", None)


def _open_files() -> dict[int, str]:
    """Return the open files of this process by descriptor."""
    names: dict[int, str] = {}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            names[int(link.name)] = str(link.readlink())
    return names


def _children() -> set[int]:
    """Return the ids of this process's children."""
    pids: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            pids |= {int(pid) for pid in (task / "children").read_text().split()}
        except OSError:
            continue
    return pids
