"""The way of a door to the owners of sessions, for the clients with the same rights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import anyio

from jumpseat.ahp.live.errors import AhpError
from jumpseat.ahp.states.values import JsonObject
from jumpseat.errors import (
    JumpseatError,
    OutcomeUnknownError,
    SessionElsewhereError,
    SessionNotFoundError,
    StoreUnavailableError,
)
from jumpseat.rpc.json_rpc_peer import Later
from jumpseat.sessions.access import Access
from jumpseat_protocol.envelope import ErrorObject


class Connected(Protocol):
    """See :class:`jumpseat.cluster.relay.door_links.DoorLink`."""

    def find(self, method: str, /) -> Callable[[Any], Any] | None: ...

    def forget(self, session_id: str, /) -> None: ...


class Cluster(Protocol):
    """The parts of a cluster that a door needs. See :class:`jumpseat.cluster.cluster.Cluster`."""

    def connect_door(self, access: Access, name: str, take: Callable[[bytes], None]) -> Connected: ...

    async def catch_up(self) -> None: ...

    def is_on_this_host(self, session_id: str) -> bool: ...


class Link:
    """Sends requests about sessions to their owners, this replica or others. ``connected`` is the connection."""

    def __init__(self, access: Access, connected: Connected) -> None:
        self.access = access
        self._connected = connected

    def send(self, method: str, session_id: str, **params: Any) -> Any:
        """Send a request, in the order of the calls about one session; return what :meth:`result` waits for."""
        serve = self._connected.find(method)
        assert serve is not None, "a method of owners"
        return serve({"sessionId": session_id, **params})

    async def ask(self, method: str, session_id: str, **params: Any) -> JsonObject:
        """Send a request and return its result.

        Raises:
            JumpseatError: the request has failed.
        """
        return await self.result(self.send(method, session_id, **params), method, session_id)

    async def result(self, answer: Any, method: str, session_id: str) -> JsonObject:
        """Wait for the result of a request.

        Raises:
            JumpseatError: the request has failed.
        """
        if not isinstance(answer, Later):
            return await answer if inspect.isawaitable(answer) else answer
        done = anyio.Event()
        answer.add_done_callback(lambda _: done.set())
        await done.wait()
        if (error := answer.error) is not None:
            raise _exception_of(error, method, session_id)
        return answer.result()

    def forget(self, session_id: str) -> None:
        """End the interest in a session: it is not opened again when it moves."""
        self._connected.forget(session_id)


def result_of(answer: JsonObject) -> Any:
    """Return the result in the answer of an owner.

    Raises:
        AhpError: the answer is an error.
    """
    if (error := answer.get("error")) is not None:
        raise AhpError(error["code"], error["message"], error.get("data"))
    return answer.get("result")


def _exception_of(error: ErrorObject, method: str, session_id: str) -> JumpseatError:
    match error.data:
        case {"code": "session_elsewhere", "host": str(host)}:
            return SessionElsewhereError(session_id, host)
        case {"code": "store_unavailable"}:
            return StoreUnavailableError()
        case {"code": "outcome_unknown"}:
            return OutcomeUnknownError(method)
        case _ if error.message == str(SessionNotFoundError(session_id)):
            return SessionNotFoundError(session_id)
        case _:
            return AhpError(error.code, error.message, error.data)
