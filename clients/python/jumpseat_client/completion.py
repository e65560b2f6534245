"""Model calls without a session: ``Client.complete`` and ``Client.stream``."""

from __future__ import annotations

import math
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from pydantic import ValidationError

from jumpseat_client.connection import Connection
from jumpseat_client.errors import JumpseatClientError
from jumpseat_protocol.complete import AnswerStream, CompleteEvent, CompleteParams, CompleteResult, options_problem

METHOD: Final = "jumpseat.complete"


async def complete(
    connection: Connection, params: CompleteParams | None, options: Mapping[str, Any]
) -> CompleteResult:
    """Call a model once; see ``Client.complete``."""
    return _result(await connection.request(METHOD, _to_wire(params, options)))


@asynccontextmanager
async def stream(
    connection: Connection,
    receivers: dict[str, Callable[[dict[str, Any]], None]],
    params: CompleteParams | None,
    options: Mapping[str, Any],
) -> AsyncGenerator[AnswerStream]:
    """Call a model once and stream its answer; see ``Client.stream``. Events arrive through ``receivers``."""
    stream_id = str(uuid.uuid4())
    request = {**_to_wire(params, options), "stream": True, "streamId": stream_id}
    send, receive = anyio.create_memory_object_stream[CompleteEvent | CompleteResult | Exception](math.inf)

    async def ask() -> None:
        with send:
            try:
                await send.send(_result(await connection.request(METHOD, request)))
            except JumpseatClientError as error:
                # Raised where the answer is read.
                await send.send(error)

    async def pieces() -> AsyncGenerator[CompleteEvent | CompleteResult]:
        async for piece in receive:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def handle(event: dict[str, Any]) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            send.send_nowait(CompleteEvent.model_validate(event))

    receivers[stream_id] = handle
    failure: Exception | None = None
    try:
        with receive:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                try:
                    yield AnswerStream(pieces())
                except Exception as error:
                    # Raised below, or the task group would wrap it.
                    failure = error
                tasks.cancel_scope.cancel()
    finally:
        del receivers[stream_id]
    if failure is not None:
        raise failure


def _to_wire(params: CompleteParams | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of a request.

    Raises:
        JumpseatClientError: an option is unknown or invalid.
    """
    if (problem := options_problem(params, options)) is not None:
        raise JumpseatClientError(f"invalid options of {METHOD}: {problem}")
    try:
        given = CompleteParams.model_validate(dict(options), by_name=True)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise JumpseatClientError(f"invalid options of {METHOD}: {'; '.join(problems)}") from None
    wire = given.model_dump(mode="json", by_alias=True, exclude_none=True, include=given.model_fields_set)
    return {**(params.wire() if params is not None else {}), **wire}


def _result(answer: Any) -> CompleteResult:
    try:
        return CompleteResult.model_validate(answer)
    except ValidationError as error:
        raise JumpseatClientError(f"invalid response to {METHOD}: {error}") from error
