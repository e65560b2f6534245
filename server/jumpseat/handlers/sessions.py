"""``sessions.*``: opening, copying and maintaining the sessions on the disk."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

import anyio.lowlevel
import anyio.to_thread
from pydantic import ValidationError

from jumpseat.agent.client import Attachment
from jumpseat.errors import (
    InvalidRequestError,
    JumpseatError,
    SessionNotFoundError,
    StoreError,
    UnsupportedError,
)
from jumpseat.sessions.context import Context
from jumpseat.sessions.ending import shut_down_session
from jumpseat.sessions.opening import create_session, resume_session
from jumpseat.sessions.pruning import prune
from jumpseat.sessions.session_fs import fork_session
from jumpseat.store.session.client_metadata import CorruptMetadataError, UnknownVersionError, check_keys
from jumpseat.store.session.sessions import SessionStore
from jumpseat_protocol.event_log import EventLogReadResult
from jumpseat_protocol.maintenance import (
    BulkDeleteResult,
    ClientMetadataEntry,
    ClientMetadataParams,
    EnrichMetadataParams,
    EnrichMetadataResult,
    EventFilePathResult,
    FindByPrefixParams,
    ForkParams,
    ForkResult,
    InUseResult,
    KnownMetadata,
    LastForContextParams,
    NonEmptyIdsParams,
    OpenOptions,
    PruneOldParams,
    PruneOldResult,
    ReadPersistedEventsParams,
    ReloadHooksParams,
    RepoHooksResult,
    SessionIdsParams,
    SessionIdsResult,
    SessionsListParams,
    SessionsOpenParams,
    SessionsOpenResult,
    SizesResult,
)
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.server import EmptyParams, EmptyResult
from jumpseat_protocol.sessions import (
    SessionCreateParams,
    SessionIdResult,
    SessionListResult,
    SessionMetadata,
    SessionParams,
    SessionResumeParams,
)

log = logging.getLogger(__name__)

DAY_S = 24 * 60 * 60

MOST_IDS: Final = 1000
"""The number of sessions whose client metadata one request may ask for."""

NOT_FOUND = SessionsOpenResult(status="not_found")


async def open_(ctx: Context, params: SessionsOpenParams) -> SessionsOpenResult:
    """Create, resume or join a session for this connection, which receives its events from then on.

    Raises:
        InvalidRequestError: ``sessionId`` is missing or invalid, or an option is invalid.
        UnsupportedError: the session would run elsewhere.
    """
    match params.kind:
        case None:
            return NOT_FOUND
        case "create":
            return await _create(ctx, params)
        case "resume":
            return await _resume(ctx, params, ctx.registry.store.find(_required_id(params)))
        case "resumeLast":
            # Without a context, no session is more relevant than another.
            best = ctx.registry.store.find_best(params.context) if params.context is not None else None
            return await _resume(ctx, params, best)
        case "attach":
            return _attach(ctx, _required_id(params))
        case "remote" | "cloud" | "handoff":
            raise UnsupportedError(f"sessions.open of kind {params.kind!r}")


async def _create(ctx: Context, params: SessionsOpenParams) -> SessionsOpenResult:
    if not params.emit_start:
        raise UnsupportedError("sessions.open without session.start")
    try:
        create_params = SessionCreateParams.model_validate(_set_options(params.options))
    except ValidationError:
        raise InvalidRequestError(f"invalid session id {params.options.session_id!r}") from None
    session = await create_session(ctx, create_params)
    return SessionsOpenResult(status="created", session_id=session.id, startup_prompts=[])


async def _resume(ctx: Context, params: SessionsOpenParams, session_id: str | None) -> SessionsOpenResult:
    if session_id is None:
        return NOT_FOUND
    resume_params = {**_set_options(params.options), "session_id": session_id, "disable_resume": not params.resume}
    try:
        await resume_session(ctx, SessionResumeParams.model_validate(resume_params))
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


def _required_id(params: SessionsOpenParams) -> str:
    if not params.session_id:
        raise InvalidRequestError(f"sessions.open of kind {params.kind!r} needs a sessionId")
    return params.session_id


def _set_options(options: OpenOptions) -> dict[str, object]:
    given = {name: value for name, value in options if value is not None}
    for other, name in (("enable_streaming", "streaming"), ("model_capabilities_overrides", "model_capabilities")):
        if other in given:
            given[name] = given.pop(other)
    return given


async def fork(ctx: Context, params: ForkParams) -> ForkResult:
    """Copy a session up to an event. The copy can be resumed like any stored session."""
    name = (params.name or "").strip() or None
    new_id = await fork_session(ctx, params.session_id, params.to_event_id, name)
    return ForkResult(session_id=new_id, name=name)


def list_(ctx: Context, params: SessionsListParams) -> SessionListResult:
    """Return the stored sessions; entries after the first ``metadataLimit`` have only ids and times."""
    found = ctx.registry.list(params.filter) if params.source != "remote" else []
    complete = len(found) if params.metadata_limit is None else params.metadata_limit
    return SessionListResult(sessions=found[:complete] + [_basic_metadata(session) for session in found[complete:]])


def find_by_prefix(ctx: Context, params: FindByPrefixParams) -> SessionIdResult:
    """Return the session whose id begins with the prefix, if there is exactly one."""
    return SessionIdResult(session_id=ctx.registry.store.find(params.prefix))


def get_last_for_context(ctx: Context, params: LastForContextParams) -> SessionIdResult:
    """Return the session that matches a working directory best; by default the one that changed last."""
    return SessionIdResult(session_id=ctx.registry.store.find_best(params.context))


async def reload_plugin_hooks(ctx: Context, params: ReloadHooksParams) -> EmptyResult:
    """Read the hook files of a session again, possibly without those of its project."""
    session = ctx.registry.live(params.session_id)
    await session.hooks.commands.reload(project=not params.defer_repo_hooks)
    return EmptyResult()


async def load_deferred_repo_hooks(ctx: Context, params: SessionParams) -> RepoHooksResult:
    session = ctx.registry.live(params.session_id)
    return RepoHooksResult(startup_prompts=[], hook_count=await session.hooks.commands.reload())


async def get_sizes(ctx: Context, params: EmptyParams) -> SizesResult:
    """Return the size of each stored session, in bytes."""
    return SizesResult(sizes=await ctx.registry.store.sizes())


async def check_in_use(ctx: Context, params: SessionIdsParams) -> InUseResult:
    return InUseResult(in_use=await ctx.registry.store.in_use(params.session_ids))


async def close(ctx: Context, params: SessionParams) -> EmptyResult:
    """Shut a session down, like ``session.shutdown``. Does nothing if it is not live."""
    session = await ctx.registry.find_live(params.session_id)
    if session is not None:
        await shut_down_session(ctx.registry, session, "routine")
    return EmptyResult()


async def save(ctx: Context, params: SessionParams) -> EmptyResult:
    """Flush the log of a session to disk. Does nothing if it is not live."""
    await ctx.registry.save(params.session_id)
    return EmptyResult()


def release_lock(ctx: Context, params: SessionParams) -> EmptyResult:
    """Give up a session that is not live. The lock of a live session stays until the session is closed."""
    with suppress(SessionNotFoundError):
        ctx.registry.release(params.session_id)
    return EmptyResult()


async def delete(ctx: Context, params: SessionParams) -> None:
    """Delete a session. Unlike ``session.delete``, an unknown session is an error."""
    await ctx.registry.delete(params.session_id)


async def bulk_delete(ctx: Context, params: SessionIdsParams) -> BulkDeleteResult:
    """Close sessions and delete them from the disk. A failure is logged and does not stop the others."""
    freed: dict[str, int] = {}
    for session_id in dict.fromkeys(params.session_ids):
        try:
            freed[session_id] = await _delete(ctx, session_id)
        except JumpseatError as error:
            log.error("session %s was not deleted: %s", session_id, error)
    return BulkDeleteResult(freed_bytes=freed)


async def prune_old(ctx: Context, params: PruneOldParams) -> PruneOldResult:
    """Delete sessions that have not changed for a number of days; in a dry run, only return them."""
    pruned = await prune(
        ctx.registry,
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


async def enrich_metadata(ctx: Context, params: EnrichMetadataParams) -> EnrichMetadataResult:
    """Complete list entries whose metadata ``metadataLimit`` left out."""
    enriched: list[KnownMetadata | None] = []
    for session in params.sessions:
        enriched.append(_complete(ctx, session))
        # The files of each session are read.
        await anyio.lowlevel.checkpoint()
    return EnrichMetadataResult(sessions=[session for session in enriched if session is not None])


def get_event_file_path(ctx: Context, params: SessionParams) -> EventFilePathResult:
    return EventFilePathResult(file_path=str(ctx.registry.store.folder(params.session_id).log.path))


async def read_persisted_events(ctx: Context, params: ReadPersistedEventsParams) -> EventLogReadResult:
    """Return a page of a session's log, live or stored, without opening the session.

    Raises:
        SessionNotFoundError: there is no such session.
        StoreError: the log cannot be read.
    """
    path = ctx.registry.store.get_existing(params.session_id).log.path
    reads = ctx.process.persisted_reads
    page = await reads.read(params.session_id, path, params.cursor, params.direction, params.max)
    return EventLogReadResult(
        events=ctx.process.secrets.mask_records(page.records),
        cursor=page.cursor,
        has_more=bool(page.cursor),
        cursor_status="expired" if page.expired else "ok",
    )


async def get_client_metadata(ctx: Context, params: ClientMetadataParams) -> list[ClientMetadataEntry]:
    """Return the strings that clients keep with sessions, live or stored, in the order of the ids.

    Raises:
        InvalidRequestError: a key is invalid, or there are too many ids.
    """
    check_keys(params.keys or ())
    if len(params.session_ids) > MOST_IDS:
        raise InvalidRequestError(f"{len(params.session_ids)} session ids, expected at most {MOST_IDS}")
    store = ctx.registry.store

    def read() -> list[ClientMetadataEntry]:
        return [_client_metadata(store, session_id, params.keys) for session_id in params.session_ids]

    return await anyio.to_thread.run_sync(read)


def _client_metadata(store: SessionStore, session_id: str, keys: list[str] | None) -> ClientMetadataEntry:
    try:
        found = store.get_existing(session_id).client_metadata.read()
    except SessionNotFoundError:
        return ClientMetadataEntry(session_id=session_id, status="notFound")
    except CorruptMetadataError:
        return ClientMetadataEntry(session_id=session_id, status="corrupt")
    except UnknownVersionError:
        return ClientMetadataEntry(session_id=session_id, status="unsupportedVersion")
    except StoreError as error:
        return ClientMetadataEntry(session_id=session_id, status="unavailable", code="EIO", message=str(error))
    wanted = found if keys is None else {key: value for key, value in found.items() if key in keys}
    return ClientMetadataEntry(session_id=session_id, status="ok", metadata=wanted)


def list_non_empty_session_ids(ctx: Context, params: NonEmptyIdsParams) -> SessionIdsResult:
    """Return the ids of the sessions that have had a prompt, last changed first."""
    return SessionIdsResult(session_ids=[session.session_id for session in ctx.registry.list()[: params.limit]])


async def _delete(ctx: Context, session_id: str) -> int:
    try:
        size = await anyio.to_thread.run_sync(ctx.registry.store.folder(session_id).size_bytes)
        await ctx.registry.delete(session_id)
    except SessionNotFoundError:
        return 0
    return size


def _basic_metadata(session: SessionMetadata) -> SessionMetadata:
    return SessionMetadata(
        session_id=session.session_id, start_time=session.start_time, modified_time=session.modified_time
    )


def _complete(ctx: Context, known: KnownMetadata) -> KnownMetadata | None:
    if known.is_remote or (known.summary is not None and known.context is not None):
        return known
    described = ctx.registry.store.describe(known.session_id, known.modified_time)
    if described is None:
        return known
    found, is_listed = described
    if not is_listed and known.name is None and found.name is None:
        return None
    known.name = known.name or found.name
    known.summary = known.summary or known.name or found.summary
    known.context = known.context or found.context
    return known
