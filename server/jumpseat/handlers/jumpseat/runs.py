"""``jumpseat.runs.*``: the time and the usage of the runs of a session."""

from __future__ import annotations

from contextlib import suppress

import anyio.to_thread
import msgspec
from pydantic import ValidationError

from jumpseat.agent.interfaces import RunUsage
from jumpseat.agent.session.session import Session
from jumpseat.errors import SessionInUseError, SessionNotFoundError
from jumpseat.sessions.context import Context
from jumpseat_protocol.runs import RunOfSession, RunsResult
from jumpseat_protocol.sessions import SessionParams


async def list_(ctx: Context, params: SessionParams) -> RunsResult:
    """Return the runs of a session, also of one that is not open, and the one that goes on.

    Raises:
        SessionNotFoundError: there is no such session.
    """
    session: Session | None = None
    try:
        session = ctx.registry.live(params.session_id)
        storage = ctx.registry.storage(session)
    except (SessionNotFoundError, SessionInUseError):
        storage = ctx.registry.store.get_existing(params.session_id)
    runs: list[RunOfSession] = []
    for run in await anyio.to_thread.run_sync(storage.read_runs):
        with suppress(ValidationError):
            runs.append(_of(run))
    if session is not None and (running := session.run_clock.running()) is not None:
        run, phase = running
        runs.append(_of(run).model_copy(update={"phase": phase}))
    return RunsResult(runs=runs)


def _of(run: RunUsage) -> RunOfSession:
    values = msgspec.to_builtins(run)
    return RunOfSession.model_validate({**values, "ended_at": run.ended_at or None})
