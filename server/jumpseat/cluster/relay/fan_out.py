"""Requests about many sessions, split into one request per session; each goes to the session's owner.

A request that names a single session is routed as all requests about a session.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, cast

import anyio

from jumpseat.cluster.relay.session_calls import DELETING, OF_MANY, sessions_of_call
from jumpseat.cluster.sessions.replica import Replica
from jumpseat.errors import JumpseatError
from jumpseat.rpc.json_rpc_peer import Later, ResponseError
from jumpseat.sessions.context import Context
from jumpseat_protocol.wire import to_wire

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
"""The number of sessions for which a request is carried out at the same time."""

Handler: TypeAlias = Callable[[Any], Any]


class FanOut:
    """The requests of a client about many sessions.

    ``find_here`` returns the handler of a method in this process. ``serve_one`` serves a request about one session,
    wherever the session is.
    """

    def __init__(
        self,
        replica: Replica,
        ctx: Context,
        find_here: Callable[[str], Handler],
        serve_one: Callable[[str, Handler, Any], Any],
    ) -> None:
        self._replica = replica
        self._ctx = ctx
        self._find_here = find_here
        self._serve_one = serve_one

    def find(self, method: str, params: Any) -> Callable[[Handler], Awaitable[Any]] | None:
        """Return the function that serves a request with what serves it here; ``None`` for other requests."""
        if not isinstance(params, dict):
            return None
        given = cast("dict[str, Any]", params)
        if method == "sessions.pruneOld":
            return lambda serve: self._prune(serve, given)
        if method == "sessions.open" and given.get("kind") in ("resume", "resumeLast", "attach"):
            is_known = (named := self._named(given)) is not None and named == given["sessionId"]
            return None if is_known else lambda serve: self._open(serve, given)
        sessions = sessions_of_call(method, given)
        if sessions is None or len(sessions) == 1:
            return None
        return lambda serve: self._split(method, serve, given, sessions)

    async def _split(self, method: str, serve: Handler, params: dict[str, Any], sessions: list[str]) -> Any:
        """Carry a request out for each of the sessions, and join the results in their order."""
        member, most = OF_MANY[method]
        if not sessions or (most is not None and len(sessions) > most):
            return await _awaited(serve(params))
        results: dict[str, Any] = dict.fromkeys(sessions)
        limit = anyio.CapacityLimiter(AT_ONCE)

        async def carry_out(session_id: str) -> None:
            async with limit:
                one = {**params, "sessionIds": [session_id]}
                try:
                    results[session_id] = to_wire(await _awaited(self._serve_one(method, serve, one)))
                except (JumpseatError, ResponseError) as error:
                    if method != DELETING:
                        raise
                    log.error("session %s was not deleted: %s", session_id, error)

        try:
            async with anyio.create_task_group() as tasks:
                for session_id in results:
                    tasks.start_soon(carry_out, session_id)
        except* (JumpseatError, ResponseError) as group:
            raise group.exceptions[0] from None
        return _joined(member, [result for result in results.values() if result is not None])

    async def _prune(self, serve: Handler, params: dict[str, Any]) -> Any:
        await self._catch_up()
        found = to_wire(await _awaited(serve({**params, "dryRun": True})))
        if params.get("dryRun") is True:
            return found
        candidates = cast("list[str]", found["candidates"])
        delete = self._find_here(DELETING)
        freed: dict[str, int] = {}
        if candidates:
            freed = (await self._split(DELETING, delete, {}, candidates))["freedBytes"]
        skipped = [*found["skipped"], *(session_id for session_id in candidates if session_id not in freed)]
        return {
            "deleted": list(freed),
            "candidates": [],
            "skipped": skipped,
            "freedBytes": sum(freed.values()),
            "dryRun": False,
        }

    async def _open(self, serve: Handler, params: dict[str, Any]) -> Any:
        """Open the session that a client names by the beginning of its id, or by where it works."""
        await self._catch_up()
        session_id = self._named(params)
        if params["kind"] == "resumeLast" and params.get("context") is not None:
            last = self._find_here("sessions.getLastForContext")
            session_id = to_wire(last({"context": params["context"]})).get("sessionId")
        if session_id is None:
            return await _awaited(serve(params))
        kind = "attach" if params["kind"] == "attach" else "resume"
        return await _awaited(
            self._serve_one("sessions.open", serve, {**params, "kind": kind, "sessionId": session_id})
        )

    def _named(self, params: dict[str, Any]) -> str | None:
        """Return the session that ``sessions.open`` names, as far as this replica knows."""
        given = params.get("sessionId")
        if not isinstance(given, str) or not given or params["kind"] == "resumeLast":
            return None
        if params["kind"] == "attach":
            return given if self._replica.index.get(given) is not None else None
        return self._ctx.registry.store.find(given)

    async def _catch_up(self) -> None:
        await self._replica.wait_until_known()
        await self._replica.index.catch_up()


def _joined(member: str, results: list[Any]) -> Any:
    """Join the results for one session each. ``member`` has the part of each; an array without a name."""
    parts = [result[member] if member else result for result in results]
    joined: Any = {}
    if not parts or isinstance(parts[0], dict):
        for part in parts:
            joined.update(part)
    else:
        joined = [item for part in parts for item in part]
    return {member: joined} if member else joined


async def _awaited(result: Any) -> Any:
    """Return what a handler has returned, in whatever form it responds."""
    if isinstance(result, Later):
        done = anyio.Event()
        result.add_done_callback(lambda _: done.set())
        try:
            await done.wait()
        except BaseException:
            result.on_cancel()
            raise
        return result.result()
    return await result if inspect.isawaitable(result) else result
