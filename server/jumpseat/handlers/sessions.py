"""``sessions.*``: opening, copying and maintaining the sessions on the disk."""

from __future__ import annotations

import logging
from contextlib import suppress

import anyio.to_thread
from pydantic import ValidationError

from jumpseat.agent.client import Attachment
from jumpseat.errors import InvalidRequestError, JumpseatError, SessionNotFoundError, UnsupportedError
from jumpseat.sessions.changes import set_session_name
from jumpseat.sessions.context import Context
from jumpseat.sessions.ending import shut_down_session
from jumpseat.sessions.opening import create_session, resume_session
from jumpseat_protocol.maintenance import (
    BulkDeleteResult,
    EnrichMetadataParams,
    EnrichMetadataResult,
    EventFilePathResult,
    FindByPrefixParams,
    InUseResult,
    KnownMetadata,
    LastForContextParams,
    NonEmptyIdsParams,
    OpenOptions,
    PruneOldParams,
    PruneOldResult,
    SessionIdsParams,
    SessionIdsResult,
    SessionsListParams,
    SessionsOpenParams,
    SessionsOpenResult,
    SizesResult,
)
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.sessions import (
    SessionCreateParams,
    SessionIdResult,
    SessionListResult,
    SessionMetadata,
    SessionParams,
    SessionResumeParams,
)
from jumpseat_protocol.state import (
    EmptyResult,
    ForkParams,
    ForkResult,
)

log = logging.getLogger(__name__)

DAY_S = 24 * 60 * 60

NOT_FOUND = SessionsOpenResult(status="not_found")


async def open_session(ctx: Context, params: SessionsOpenParams) -> SessionsOpenResult:
    """Open it for this connection, which gets its events from then on."""
    match params.kind:
        case "create":
            return await _create(ctx, params)
        case "resume":
            return await _resume(ctx, params, ctx.registry.store.find(_named(params)))
        case "resumeLast":
            return await _resume(ctx, params, ctx.registry.store.best_for(params.context))
        case "attach":
            return _attach(ctx, _named(params))
        case "remote" | "cloud" | "handoff":
            raise UnsupportedError(f"sessions.open of kind {params.kind!r}")


async def _create(ctx: Context, params: SessionsOpenParams) -> SessionsOpenResult:
    if not params.emit_start:
        raise UnsupportedError("sessions.open without session.start")
    try:
        wanted = SessionCreateParams.model_validate(_given(params.options))
    except ValidationError:
        raise InvalidRequestError(f"{params.options.session_id!r} cannot be the id of a session") from None
    session = await create_session(ctx, wanted)
    if params.options.name:
        set_session_name(ctx, session, params.options.name, by_user=True)
    return SessionsOpenResult(status="created", session_id=session.id, startup_prompts=[])


async def _resume(ctx: Context, params: SessionsOpenParams, session_id: str | None) -> SessionsOpenResult:
    if session_id is None:
        return NOT_FOUND
    given = {**_given(params.options), "session_id": session_id, "disable_resume": not params.resume}
    try:
        await resume_session(ctx, SessionResumeParams.model_validate(given))
    except SessionNotFoundError:
        return NOT_FOUND
    return SessionsOpenResult(status="resumed", session_id=session_id, startup_prompts=[])


def _attach(ctx: Context, session_id: str) -> SessionsOpenResult:
    try:
        session = ctx.registry.live(session_id)
    except SessionNotFoundError:
        return NOT_FOUND
    if ctx.connection not in session.clients:
        session.attach(Attachment(ctx.connection, protocol=ctx.connection.protocol or PROTOCOL_VERSION))
    return SessionsOpenResult(status="resumed", session_id=session_id, startup_prompts=[])


def _named(params: SessionsOpenParams) -> str:
    if not params.session_id:
        raise InvalidRequestError(f"sessions.open of kind {params.kind!r} needs a sessionId")
    return params.session_id


def _given(options: OpenOptions) -> dict[str, object]:
    return {name: value for name, value in options if value is not None}


def fork(ctx: Context, params: ForkParams) -> ForkResult:
    """Copy a session up to an event; the copy is resumed like any stored session."""
    name = (params.name or "").strip() or None
    return ForkResult(session_id=ctx.registry.fork(params.session_id, params.to_event_id, name), name=name)


def list_sessions(ctx: Context, params: SessionsListParams) -> SessionListResult:
    """As ``session.list``, with less told of the older ones where that is enough."""
    found = ctx.registry.list(params.filter) if params.source != "remote" else []
    whole = len(found) if params.metadata_limit is None else params.metadata_limit
    return SessionListResult(sessions=found[:whole] + [_bare(one) for one in found[whole:]])


def find_by_prefix(ctx: Context, params: FindByPrefixParams) -> SessionIdResult:
    """The one session whose id begins so."""
    return SessionIdResult(session_id=ctx.registry.store.find(params.prefix))


def get_last_for_context(ctx: Context, params: LastForContextParams) -> SessionIdResult:
    """The session to go on with in a directory; where none fits, the last changed of all."""
    return SessionIdResult(session_id=ctx.registry.store.best_for(params.context))


async def get_sizes(ctx: Context, params: EmptyParams) -> SizesResult:
    """What each session takes on the disk."""

    def measure() -> dict[str, int]:
        return {folder.path.name: folder.size_bytes() for folder in ctx.registry.store.stored()}

    return SizesResult(sizes=await anyio.to_thread.run_sync(measure))


def check_in_use(ctx: Context, params: SessionIdsParams) -> InUseResult:
    """Which of them a living process other than this one has marked as its own."""
    in_use: list[str] = []
    for session_id in params.session_ids:
        try:
            if ctx.registry.store.existing(session_id).in_use():
                in_use.append(session_id)
        except SessionNotFoundError:
            continue
    return InUseResult(in_use=in_use)


async def close(ctx: Context, params: SessionParams) -> EmptyResult:
    """As ``session.shutdown``; fine for a session that is not live."""
    session = await ctx.registry.settled(params.session_id)
    if session is not None:
        await shut_down_session(ctx.registry, session, "routine")
    return EmptyResult()


async def save(ctx: Context, params: SessionParams) -> EmptyResult:
    """Bring its log to the disk; what is not live is there already."""
    await ctx.registry.save(params.session_id)
    return EmptyResult()


def release_lock(ctx: Context, params: SessionParams) -> EmptyResult:
    """Take the mark of this process off a session, so that others do not take it for busy."""
    with suppress(SessionNotFoundError):
        ctx.registry.store.existing(params.session_id).release()
    return EmptyResult()


async def delete(ctx: Context, params: SessionParams) -> None:
    """As ``session.delete``, but an unknown session is an error."""
    await ctx.registry.delete(params.session_id)


async def bulk_delete(ctx: Context, params: SessionIdsParams) -> BulkDeleteResult:
    """End sessions and remove them from the disk. One that cannot be removed does not stop the others."""
    freed: dict[str, int] = {}
    for session_id in dict.fromkeys(params.session_ids):
        try:
            freed[session_id] = await _delete(ctx, session_id)
        except JumpseatError as error:
            log.error("session %s was not deleted: %s", session_id, error)
    return BulkDeleteResult(freed_bytes=freed)


async def prune_old(ctx: Context, params: PruneOldParams) -> PruneOldResult:
    """Remove what was not touched for so many days, or only say what that would be."""
    pruned = await ctx.registry.prune(
        params.older_than_days * DAY_S,
        frozenset(params.exclude_session_ids),
        named_too=params.include_named,
        dry_run=params.dry_run,
    )
    old = list(pruned.sizes)
    return PruneOldResult(
        deleted=[] if params.dry_run else old,
        candidates=old if params.dry_run else [],
        skipped=pruned.skipped,
        freed_bytes=sum(pruned.sizes.values()),
        dry_run=params.dry_run,
    )


def enrich_metadata(ctx: Context, params: EnrichMetadataParams) -> EnrichMetadataResult:
    """Fill in what ``metadataLimit`` has left out of a list."""
    enriched = (_enriched(ctx, one) for one in params.sessions)
    return EnrichMetadataResult(sessions=[one for one in enriched if one is not None])


def get_event_file_path(ctx: Context, params: SessionParams) -> EventFilePathResult:
    """Where its log is, or would be."""
    return EventFilePathResult(file_path=str(ctx.registry.store.folder(params.session_id).log.path))


def list_non_empty_session_ids(ctx: Context, params: NonEmptyIdsParams) -> SessionIdsResult:
    """The sessions that were prompted, the last changed first."""
    return SessionIdsResult(session_ids=[one.session_id for one in ctx.registry.list()[: params.limit]])


async def _delete(ctx: Context, session_id: str) -> int:
    try:
        size = await anyio.to_thread.run_sync(ctx.registry.store.folder(session_id).size_bytes)
        await ctx.registry.delete(session_id)
    except SessionNotFoundError:
        return 0
    return size


def _bare(session: SessionMetadata) -> SessionMetadata:
    return SessionMetadata(
        session_id=session.session_id, start_time=session.start_time, modified_time=session.modified_time
    )


def _enriched(ctx: Context, known: KnownMetadata) -> KnownMetadata | None:
    if known.is_remote or (known.summary is not None and known.context is not None):
        return known
    try:
        folder = ctx.registry.store.existing(known.session_id)
    except SessionNotFoundError:
        return known
    workspace = folder.read_workspace()
    if workspace is None:
        return known
    if folder.metadata() is None and known.name is None and workspace.name is None:
        return None
    found = workspace.metadata(known.modified_time)
    known.name = known.name or found.name
    known.summary = known.summary or known.name or found.summary
    known.context = known.context or found.context
    return known
