"""A client that answers requests of the server: hooks, questions to its user, sections to rewrite.

::

    async with answering(wire, {"preToolUse": [{"permissionDecision": "deny"}]}) as client:
        await wire.prompt(session)
    assert client.hook_inputs("preToolUse")[0]["toolName"] == "view"

Answers are keyed by the type of the hook or the name of the method, and each is used once, in order. A hook without
an answer returns null; any other request without one fails. Besides JSON, an answer may be :data:`THROWS`,
:data:`SILENT`, or :class:`Whole`, which replaces the whole response.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio

from tests.support.server import JsonObject, Wire, frame


@dataclass(frozen=True)
class Special:
    """A marker in place of an answer."""

    name: str


@dataclass(frozen=True)
class Whole:
    """A complete response: these fields, and the id of the request."""

    fields: JsonObject


THROWS: Final = Special("throws")
SILENT: Final = Special("silent")

Answers = Mapping[str, Sequence[Any]]


class AnsweringClient:
    """A client that records the ``requests`` of the server, in order: hook type or method, and input."""

    def __init__(self, wire: Wire, answers: Answers) -> None:
        self.requests: list[tuple[str, JsonObject]] = []
        self._wire = wire
        self._answers = {name: list(of_name) for name, of_name in answers.items()}

    def names(self) -> list[str]:
        """Return the hook types and methods of the requests so far, in order."""
        return [name for name, _ in self.requests]

    def inputs(self, name: str) -> list[JsonObject]:
        """Return the inputs of the requests with one name."""
        return [given for request, given in self.requests if request == name]

    async def run(self) -> None:
        """Answer every request; runs as a task beside the test."""
        position = 0
        while True:
            await self._wire.wait_for_message_at(position)
            message = self._wire.messages[position]
            position += 1
            if "method" in message and "id" in message:
                await self._answer(message)

    async def _answer(self, message: JsonObject) -> None:
        params = message["params"]
        is_hook = message["method"] == "hooks.invoke"
        name: str = params["hookType"] if is_hook else message["method"]
        self.requests.append((name, params["input"] if is_hook else params))
        left = self._answers.get(name, [])
        answer = left.pop(0) if left else None if is_hook else THROWS
        if answer is SILENT:
            return
        fields: JsonObject
        if isinstance(answer, Whole):
            fields = answer.fields
        elif answer is THROWS:
            fields = {"error": {"code": -32603, "message": "it threw"}}
        else:
            fields = {"result": {"output": answer} if is_hook else answer}
        await self._wire.send(frame({"jsonrpc": "2.0", "id": message["id"], **fields}))


@asynccontextmanager
async def answering(wire: Wire, answers: Answers | None = None) -> AsyncGenerator[AnsweringClient]:
    """Answer the requests of the server over ``wire`` for the duration of the block."""
    client = AnsweringClient(wire, answers or {})
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.run)
        try:
            yield client
        except Exception as error:
            # Raised below, or the task group would wrap it.
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def server_request(wire: Wire, name: str, *, since: int = 0) -> JsonObject:
    """Wait for the request of the server for a hook type or a method."""

    def fits(message: JsonObject) -> bool:
        return "id" in message and (
            message.get("method") == name
            or (message.get("method") == "hooks.invoke" and message["params"]["hookType"] == name)
        )

    return await wire.until(fits, since=since, what=f"request {name}")
