"""An editor that speaks ACP with the real server, and validates every message with the protocol's schemas.

::

    async with running_editor(tmp_path, schemas, script) as (server, editor):
        session = await editor.new(tmp_path)
        answer = await editor.say(session, "hi")
        assert editor.answer_text(session) == "hello"

Requests of the server are answered from ``editor.answers``: per method a result, or a function from params to
result. The test answers other requests itself, or not at all. Both directions are validated, except bytes sent with
:meth:`Wire.send`. A ``null`` fails, because editors in Lua take it for a value.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from jsonschema import Draft202012Validator

from tests.support.server import JsonObject, RunningServer, Wire, request, running_server

CONFIG: Final = """
[adapters.fake]
type = "scripted"
script = "script.json"
models = ["one", "two"]
"""


class Schemas:
    """The schemas of a version of ACP: the stable one, and the one with unstable additions."""

    def __init__(self, package: Path, version: int = 1) -> None:
        self.version = version
        self._validators: dict[tuple[str, int], Draft202012Validator] = {}
        # The definitions of a method, with their schemas: the stable one first.
        self._found: dict[tuple[str, str], list[tuple[str, JsonObject]]] = {}
        for name in ("schema.json", "schema.unstable.json"):
            root: JsonObject = json.loads((package / "schema" / f"v{version}" / name).read_text())
            for definition, schema in root["$defs"].items():
                kind = next(
                    (suffix for suffix in ("Request", "Response", "Notification") if definition.endswith(suffix)),
                    "",
                )
                if (method := schema.get("x-method")) is not None:
                    self._found.setdefault((method, kind), []).append((definition, root))

    def knows(self, method: str) -> bool:
        return any(method == known for known, _ in self._found)

    def check(self, method: str, kind: str, value: Any, *, unstable: bool = False) -> None:
        """Validate ``value`` as the request, response or notification of a method; fails if it is invalid.

        ``unstable``: additions of the unstable schema to a stable one are valid, too.
        """
        found = self._found.get((method, kind))
        assert found is not None, f"{method} has no {kind} in the protocol"
        problems = [
            [
                f"{'/'.join(map(str, error.path))}: {error.message[:300]}"
                for error in self._validator(*one).iter_errors(value)  # pyright: ignore[reportUnknownMemberType]
            ]
            for one in (found if unstable else found[:1])
        ]
        assert not all(problems), f"{method} {kind}: {problems[0]}"

    def check_conversation(self, messages: Sequence[JsonObject], *, unstable: bool = False) -> None:
        """Validate what an agent has sent. ``messages`` are those of both sides, with ``from`` (client, agent)."""
        assert len(messages) > 10
        asked: dict[Any, str] = {}
        for one in messages:
            message = one["message"]
            method = message.get("method")
            if one["from"] == "client":
                if method is not None and "id" in message:
                    asked[message["id"]] = method
            elif method is not None:
                kind = "Request" if "id" in message else "Notification"
                self.check(method, kind, message["params"], unstable=unstable)
            else:
                assert ("result" in message) != ("error" in message), message
                method = asked.pop(message["id"])
                if "result" in message:
                    self.check(method, "Response", message["result"], unstable=unstable)

    def _validator(self, definition: str, root: JsonObject) -> Draft202012Validator:
        key = definition, id(root)
        if key not in self._validators:
            schema = {**root, "$ref": f"#/$defs/{definition}"}
            for other in ("anyOf", "oneOf", "title"):
                schema.pop(other, None)
            self._validators[key] = Draft202012Validator(schema)
        return self._validators[key]


class Editor(Wire):
    """The client of a server that speaks ACP."""

    def __init__(self, stream: ByteStream, schemas: Schemas) -> None:
        super().__init__(stream)
        self.answers: dict[str, Any] = {}
        self.unstable = False
        """True for an editor with unstable capabilities."""
        self._schemas = schemas
        self._asked: dict[Any, str] = {}
        self._to_answer: list[JsonObject] = []
        self._question = anyio.Event()

    # --- the wire -----------------------------------------------------------------------------------------------

    def encode(self, message: JsonObject) -> bytes:
        method = message.get("method")
        if method is not None and "id" in message:
            self._asked[message["id"]] = method
        return json.dumps(message).encode() + b"\n"

    async def receive(self, stream: BufferedByteReceiveStream) -> bytes:
        return await stream.receive_until(b"\n", 1 << 26)

    def check(self, message: JsonObject) -> None:
        assert not _has_null({name: value for name, value in message.items() if name != "id"}), message
        method = message.get("method")
        if method is not None:
            kind = "Request" if "id" in message else "Notification"
            self._schemas.check(method, kind, message["params"], unstable=self.unstable)
            if "id" in message and method in self.answers:
                self._to_answer.append(message)
                self._question.set()
        elif "result" in message:
            asked_method = self._asked[message["id"]]
            if self._schemas.knows(asked_method):
                self._schemas.check(asked_method, "Response", message["result"])

    async def answer_questions(self) -> None:
        """Answer the requests that ``answers`` covers; runs as a task beside the test."""
        while True:
            await self._question.wait()
            self._question = anyio.Event()
            questions, self._to_answer = self._to_answer, []
            for question in questions:
                answer = self.answers[question["method"]]
                result = answer(question["params"]) if callable(answer) else answer
                if isinstance(result, Exception):
                    error = {"code": -32603, "message": str(result)}
                    await self.send(self.encode({"jsonrpc": "2.0", "id": question["id"], "error": error}))
                else:
                    self._schemas.check(question["method"], "Response", result)
                    await self.answer(question, result)

    async def notify(self, method: str, params: JsonObject) -> None:
        self._schemas.check(method, "Notification", params)
        await self.send(self.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, method: str, params: Any = None) -> int:
        request_id = self.new_id()
        await self.send(self.encode(request(request_id, method, {} if params is None else params)))
        return request_id

    # --- requests ----------------------------------------------------------------------------------------------

    async def initialize(self, capabilities: JsonObject | None = None) -> JsonObject:
        params: JsonObject = {"protocolVersion": 1, "clientCapabilities": capabilities or {}}
        if self._schemas.version > 1:
            info = {"name": "tests", "version": "1"}
            params = {"protocolVersion": self._schemas.version, "capabilities": capabilities or {}, "info": info}
        self._schemas.check("initialize", "Request", params, unstable=True)
        return await self.call("initialize", params)

    async def new(self, cwd: Path, **more: Any) -> str:
        """Create a session; returns its id."""
        params: JsonObject = {"cwd": str(cwd), "mcpServers": [], **more}
        self._schemas.check("session/new", "Request", params, unstable=True)
        return (await self.call("session/new", params))["sessionId"]

    async def begin(self, session: str, text: str) -> int:
        """Send a prompt without waiting; returns the id of the request, for :meth:`response`."""
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        self._schemas.check("session/prompt", "Request", params)
        return await self.ask("session/prompt", params)

    async def say(self, session: str, text: str) -> JsonObject:
        """Send a prompt and wait for the end of its turn; in version 2, return the state at the end."""
        since = len(self.messages)
        answer = await self.response(await self.begin(session, text))
        assert "error" not in answer, answer["error"]
        if self._schemas.version == 1:
            return answer["result"]
        return await self.update("state_update", since=since, state="idle")

    async def cancel(self, session: str) -> None:
        await self.notify("session/cancel", {"sessionId": session})

    async def question(self, method: str, *, since: int = 0) -> JsonObject:
        """Wait for the first request of the server for ``method``."""
        return await self.until(
            lambda message: message.get("method") == method and "id" in message,
            since=since,
            what=f"question {method}",
        )

    async def update(self, kind: str, *, since: int = 0, **values: Any) -> JsonObject:
        """Wait for the first update of a kind with these values (camelCase names)."""

        def fits(message: JsonObject) -> bool:
            if message.get("method") != "session/update":
                return False
            update = message["params"]["update"]
            return update["sessionUpdate"] == kind and all(
                update.get(name) == value for name, value in values.items()
            )

        notification = await self.until(fits, since=since, what=f"update {kind} {values or ''}")
        return notification["params"]["update"]

    def updates(self, session: str, kind: str | None = None, *, since: int = 0) -> list[JsonObject]:
        """Return the updates of a session so far, all or those of one kind."""
        found = [
            message["params"]["update"]
            for message in self.messages[since:]
            if message.get("method") == "session/update" and message["params"]["sessionId"] == session
        ]
        return [update for update in found if kind in (None, update["sessionUpdate"])]

    def answer_text(self, session: str, *, since: int = 0) -> str:
        """Return the text of the agent so far."""
        return "".join(
            update["content"]["text"] for update in self.updates(session, "agent_message_chunk", since=since)
        )


def failing(text: str) -> Callable[[JsonObject], Exception]:
    """Return an answer that is an error."""
    return lambda _params: RuntimeError(text)


def option(choice: str) -> JsonObject:
    """Return the answer to a permission request that selects an option."""
    return {"outcome": {"outcome": "selected", "optionId": choice}}


def value_of(options: Sequence[JsonObject], config_id: str) -> Any:
    """Return the value of a session option."""
    return next(choice["currentValue"] for choice in options if choice["id"] == config_id)


@asynccontextmanager
async def running_editor(
    folder: Path,
    schemas: Schemas,
    *turns: JsonObject,
    prompts: Sequence[JsonObject] = (),
    capabilities: JsonObject | None = None,
    config: str = CONFIG,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    answers: Mapping[str, JsonObject | Callable[[JsonObject], Any]] | None = None,
    initialize: bool = True,
) -> AsyncGenerator[tuple[RunningServer, Editor]]:
    """Start a server and an editor. The model is scripted by ``turns``, or by ``prompts`` (turns by prompt)."""
    (folder / "home").mkdir(parents=True, exist_ok=True)
    script = {"prompts": list(prompts)} if prompts else {"turns": list(turns) or [{"text": "ok"}]}
    (folder / "home" / "script.json").write_text(json.dumps({**script, "after_last": "repeat"}))
    async with running_server(
        folder,
        args=["--acp", *args],
        config=config,
        env=env,
        handshake=False,
        wire=lambda stream: Editor(stream, schemas),
    ) as server:
        editor = server.wire
        assert isinstance(editor, Editor)
        editor.answers.update(answers or {})
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(editor.answer_questions)
            try:
                if initialize:
                    await editor.initialize(capabilities)
                yield server, editor
            except Exception as error:
                # Raised below, or the task group would wrap it.
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        assert editor.problem is None, editor.problem


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    if isinstance(value, list):
        return any(map(_has_null, value))  # pyright: ignore[reportUnknownArgumentType]
    return value is None
