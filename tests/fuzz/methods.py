"""Target for the methods of the Copilot SDK protocol: params made from their types, in a server in this process."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin

import anyio
from anyio.from_thread import start_blocking_portal
from pydantic import BaseModel

from jumpseat.app import App
from jumpseat.rpc.routes import load_route
from jumpseat_protocol.methods import CLIENT_REQUESTS
from tests.fuzz.target import Check, Choices, silenced
from tests.soak.memory import MemoryClient, running_app

SESSION: Final = "the-session"
PATIENCE_S: Final = 0.05
"""Seconds that a request gets before it is cancelled: those that wait for a client never end."""
ANSWER_S: Final = 20.0
"""Seconds after which a request without a response counts as a hang."""
INPUTS_PER_SERVER: Final = 200
"""Inputs create sessions; a new server forgets them."""

METHODS: Final = tuple(name for name in CLIENT_REQUESTS if name != "runtime.shutdown")
"""All methods but the one that ends the server."""

_CONFIGURATION: Final = """
default_model = "scripted/fake"
[adapters.scripted]
script = "script.json"
models = ["fake"]
"""
_SCRIPT: Final = '{"turns": [{"text": "hello"}], "repeat": true}'

Message: TypeAlias = dict[str, Any]


@contextmanager
def open_methods() -> Generator[Check]:
    """Methods: each request gets one response, a result or a typed error, and the server still answers ping.

    The first line of an input names the method; the other bytes choose the params from their type. Requests that
    wait for something are cancelled.
    """
    count = 0
    with (
        silenced(),
        tempfile.TemporaryDirectory(prefix="fuzz-") as folder,
        start_blocking_portal() as portal,
        ExitStack() as running,
    ):
        client: _Client | None = None

        def check(data: bytes) -> None:
            nonlocal client, count
            if client is None or count % INPUTS_PER_SERVER == 0:
                running.close()
                place = Path(folder).resolve() / str(count)
                client = running.enter_context(portal.wrap_async_context_manager(_client(place)))
            count += 1
            portal.call(client.check, data)

        yield check


@asynccontextmanager
async def _client(folder: Path) -> AsyncGenerator[_Client]:
    """Run a server with its files in ``folder``, and yield a client of it."""
    home, project = folder / "home", folder / "project"
    for path in (home, project, folder / "empty"):
        path.mkdir(parents=True)
    (home / "config.toml").write_text(_CONFIGURATION)
    (home / "script.json").write_text(_SCRIPT)
    # No program can be found, whatever the params name.
    async with running_app({"COPILOT_HOME": str(home), "HOME": str(folder), "PATH": str(folder / "empty")}) as app:
        client = _Client(app, str(project))
        assert "result" in await client.request("connect", {})
        yield client


class _Client:
    """A client of a server in this process."""

    def __init__(self, app: App, project: str) -> None:
        self._project = project
        self._client = MemoryClient(app, asyncio.get_running_loop(), self._take)
        self._responses: dict[int, list[Message]] = {}
        self._news = anyio.Event()

    async def check(self, data: bytes) -> None:
        """Send the request that ``data`` describes, and check the response."""
        await self.request("session.create", {"sessionId": SESSION, "workingDirectory": self._project})
        line, _, rest = data.partition(b"\n")
        name = line.decode("utf-8", "replace")
        method = name if name in METHODS else METHODS[sum(line) % len(METHODS)]
        params = _Params(Choices(rest), self._project).of(load_route(method).params)
        response = await self.request(method, params)
        assert ("result" in response) != ("error" in response), response
        if "error" in response:
            error = response["error"]
            assert isinstance(error["code"], int), response
            assert error["message"] not in ("", "Internal error"), f"{method} {params!r}: {response}"
            assert "Traceback" not in error["message"], response

    async def request(self, method: str, params: Any) -> Message:
        """Send a request and a ping, and return the response; a request that waits is cancelled."""
        self._responses.clear()
        number = self._client.request(method, params)
        ping = self._client.request("ping", {})
        assert "result" in await self._response(ping), f"no ping after {method} {params!r}"
        with anyio.move_on_after(PATIENCE_S) as patience:
            await self._response(number)
        if patience.cancelled_caught:
            self._client.send({"method": "$/cancelRequest", "params": {"id": number}})
        response = await self._response(number)
        assert len(self._responses[number]) == 1, self._responses
        return response

    def _take(self, message: Message) -> None:
        if "method" not in message:
            self._responses.setdefault(message["id"], []).append(message)
            self._news.set()
            self._news = anyio.Event()

    async def _response(self, number: int) -> Message:
        with anyio.fail_after(ANSWER_S):
            while number not in self._responses:
                await self._news.wait()
        return self._responses[number][0]


class _Params:
    """Makes values of types: mostly valid ones, so that inputs come past the validation."""

    def __init__(self, choices: Choices, project: str) -> None:
        self._choices = choices
        self._project = project

    def of(self, kind: Any, depth: int = 5) -> Any:
        """Return a JSON value for a type."""
        choices = self._choices
        if choices.below(24) == 23:
            return choices.json()
        origin, args = get_origin(kind), get_args(kind)
        if origin is Literal:
            return choices.pick(args)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self._model(kind, depth)
        if origin is Union or (origin is not None and origin.__name__ == "UnionType"):
            return self.of(choices.pick(args), depth)
        if origin is not None and origin.__name__ == "Annotated":
            return self.of(args[0], depth)
        if origin in (list, tuple, set, frozenset):
            return [self.of(args[0], depth - 1) for _ in range(choices.below(3))] if depth else []
        if origin is not None and args and len(args) == 2:
            return {choices.text(): self.of(args[1], depth - 1) for _ in range(choices.below(3))} if depth else {}
        return self._scalar(kind)

    def _model(self, kind: type[BaseModel], depth: int) -> Any:
        made: Message = {}
        for name, known in kind.model_fields.items():
            key = known.alias or name
            if key == "sessionId" and self._choices.below(16) < 15:
                made[key] = SESSION
            elif key in ("workingDirectory", "cwd") and self._choices.below(8) < 7:
                made[key] = self._project
            elif (known.is_required() or self._choices.below(3) == 2) and depth:
                made[key] = self.of(known.annotation, depth - 1)
        return made

    def _scalar(self, kind: Any) -> Any:
        choices = self._choices
        if kind is bool:
            return choices.below(2) == 1
        if kind is int:
            return choices.pick((0, 1, 2, -1, 100, 2**31, 2**53, 2**63))
        if kind is float:
            return choices.pick((0, 0.5, 1, -1, 1e9, 1e308))
        if kind is type(None):
            return None
        return choices.text() if kind is str else choices.json()


def method_seeds() -> Iterator[bytes]:
    """Yield inputs for each method."""
    for method in METHODS:
        for tail in (b"", bytes(range(2, 26)), b"the quick brown fox jumps over the lazy dog" * 2):
            yield method.encode() + b"\n" + tail
