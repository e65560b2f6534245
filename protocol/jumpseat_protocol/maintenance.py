"""``sessions.*`` and ``user.settings.*``: looking after what is on the disk.

Loaded when the first of these methods is called; see ``methods.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import ConfigDict, Field, StrictBool

from jumpseat_protocol.server import EmptyParams, EmptyResult
from jumpseat_protocol.sessions import (
    SessionContext,
    SessionGetMetadataResult,
    SessionIdResult,
    SessionListFilter,
    SessionListResult,
    SessionMetadata,
    SessionOptions,
    SessionParams,
)
from jumpseat_protocol.wire import Method, WireModel


class SessionsListParams(WireModel):
    """Of the entries after the first ``metadata_limit``, only ids and times are told.

    ``source`` is where sessions are looked for. None are remote here, and none are detached.
    """

    source: Literal["local", "remote", "all"] = "local"
    metadata_limit: int | None = Field(default=None, ge=0)
    filter: SessionListFilter | None = None
    include_detached: StrictBool = False
    throw_on_error: StrictBool = False


class FindByPrefixParams(WireModel):
    """The first characters of an id; fewer than seven tell too little."""

    prefix: str = Field(min_length=7)


class LastForContextParams(WireModel):
    context: SessionContext | None = None


class SizesResult(WireModel):
    """Bytes on the disk, by session."""

    sizes: dict[str, int]


class SessionIdsParams(WireModel):
    session_ids: list[str]


class InUseResult(WireModel):
    """Those of the sessions asked about that another process holds."""

    in_use: list[str]


class BulkDeleteResult(WireModel):
    """Bytes freed, by session; one that could not be deleted is left out, an unknown one frees nothing."""

    freed_bytes: dict[str, int]


class PruneOldParams(WireModel):
    """``older_than_days`` counts from the last change. Named sessions stay unless ``include_named``."""

    older_than_days: float = Field(ge=0, allow_inf_nan=False)
    dry_run: StrictBool = False
    include_named: StrictBool = False
    exclude_session_ids: list[str] = Field(default_factory=list)


class PruneOldResult(WireModel):
    """``candidates`` is what would be deleted, in a dry run; ``skipped`` is old too, but named or in use."""

    deleted: list[str]
    candidates: list[str]
    skipped: list[str]
    freed_bytes: int
    dry_run: StrictBool


class KnownMetadata(SessionMetadata):
    """An entry of a list as a client has it; fields of other servers stay in it."""

    model_config = ConfigDict(extra="allow")


class EnrichMetadataParams(WireModel):
    sessions: list[KnownMetadata]


class EnrichMetadataResult(WireModel):
    """The entries that were given, completed. One that is known to be empty, and has no name, is left out."""

    sessions: list[KnownMetadata]


class OpenOptions(SessionOptions):
    """``session_id`` is for a session to be created, ``name`` what its user calls it."""

    session_id: str | None = None
    name: str | None = None


class SessionsOpenParams(WireModel):
    """``create`` starts a session, ``resume`` finds one by its id or the beginning of it, ``resumeLast`` takes the
    one that fits ``context`` best, ``attach`` joins one that is live; the other kinds are for sessions elsewhere.

    ``resume: false`` keeps ``session.resume`` out of the log.
    """

    kind: Literal["create", "resume", "resumeLast", "attach", "remote", "cloud", "handoff"]
    session_id: str | None = None
    context: SessionContext | None = None
    options: OpenOptions = Field(default_factory=OpenOptions)
    resume: StrictBool = True
    emit_start: StrictBool = True


class SessionsOpenResult(WireModel):
    """``session_id`` is left out where none was found."""

    status: Literal["created", "resumed", "not_found"]
    session_id: str | None = None
    startup_prompts: list[str] | None = None


class EventFilePathResult(WireModel):
    file_path: str


class NonEmptyIdsParams(WireModel):
    limit: int | None = Field(default=None, ge=0)


class SessionIdsResult(WireModel):
    session_ids: list[str]


class ForkParams(WireModel):
    """``to_event_id`` and what comes after it stay out of the fork."""

    session_id: str
    to_event_id: str | None = None
    name: str | None = None


class ForkResult(WireModel):
    session_id: str
    name: str | None = None


METHODS: Final[Mapping[str, Method]] = {
    "sessions.fork": Method(ForkParams, ForkResult),
    "sessions.open": Method(SessionsOpenParams, SessionsOpenResult),
    "sessions.list": Method(SessionsListParams, SessionListResult),
    "sessions.getMetadata": Method(SessionParams, SessionGetMetadataResult),
    "sessions.listNonEmptySessionIds": Method(NonEmptyIdsParams, SessionIdsResult),
    "sessions.getEventFilePath": Method(SessionParams, EventFilePathResult),
    "sessions.findByPrefix": Method(FindByPrefixParams, SessionIdResult),
    "sessions.getLastForContext": Method(LastForContextParams, SessionIdResult),
    "sessions.getSizes": Method(EmptyParams, SizesResult),
    "sessions.checkInUse": Method(SessionIdsParams, InUseResult),
    "sessions.close": Method(SessionParams, EmptyResult),
    "sessions.save": Method(SessionParams, EmptyResult),
    "sessions.releaseLock": Method(SessionParams, EmptyResult),
    "sessions.delete": Method(SessionParams, None),
    "sessions.bulkDelete": Method(SessionIdsParams, BulkDeleteResult),
    "sessions.pruneOld": Method(PruneOldParams, PruneOldResult),
    "sessions.enrichMetadata": Method(EnrichMetadataParams, EnrichMetadataResult),
}
