"""``sessions.*``: opening, copying and maintaining the sessions on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import ConfigDict, Field, StrictBool

from jumpseat_protocol.event_log import EventLogReadResult
from jumpseat_protocol.server import EmptyParams, EmptyResult
from jumpseat_protocol.sessions import (
    ModelCapabilities,
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
    """Entries after the first ``metadata_limit`` have only ids and times.

    ``source`` is where sessions are searched for. This server has no remote and no detached sessions.
    """

    source: Literal["local", "remote", "all"] = "local"
    metadata_limit: int | None = Field(default=None, ge=0)
    filter: SessionListFilter | None = None
    include_detached: StrictBool = False
    throw_on_error: StrictBool = False


class FindByPrefixParams(WireModel):
    """The first characters of an id, at least seven."""

    prefix: str = Field(min_length=7)


class LastForContextParams(WireModel):
    context: SessionContext | None = None


class ReloadHooksParams(WireModel):
    """``defer_repo_hooks`` leaves out the hooks of the project, until they are asked for."""

    session_id: str
    defer_repo_hooks: StrictBool = False


class RepoHooksResult(WireModel):
    """``startup_prompts`` are always empty: hooks do not send prompts here. ``hook_count`` counts all hooks."""

    startup_prompts: list[str]
    hook_count: int


class SizesResult(WireModel):
    """Sizes on the disk in bytes, by session id."""

    sizes: dict[str, int]


class SessionIdsParams(WireModel):
    session_ids: list[str]


class InUseResult(WireModel):
    """Those of the given sessions that another process has in use."""

    in_use: list[str]


class BulkDeleteResult(WireModel):
    """The bytes freed, by session id; 0 for an unknown session. Sessions that remain are left out."""

    freed_bytes: dict[str, int]


class PruneOldParams(WireModel):
    """``older_than_days`` counts from the last change. Named sessions are kept unless ``include_named``."""

    older_than_days: float = Field(ge=0, allow_inf_nan=False)
    dry_run: StrictBool = False
    include_named: StrictBool = False
    exclude_session_ids: list[str] = Field(default_factory=list)


class PruneOldResult(WireModel):
    """``candidates`` would be deleted without ``dry_run``. ``skipped`` are old, but named or in use."""

    deleted: list[str]
    candidates: list[str]
    skipped: list[str]
    freed_bytes: int
    dry_run: StrictBool


class KnownMetadata(SessionMetadata):
    """A list entry that a client has. Unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class EnrichMetadataParams(WireModel):
    sessions: list[KnownMetadata]


class EnrichMetadataResult(WireModel):
    """The given entries, completed. A session without a name and without prompts is left out."""

    sessions: list[KnownMetadata]


class OpenOptions(SessionOptions):
    """``session_id`` and ``name`` are those of a new session.

    ``enable_streaming`` is another name of ``streaming``, and ``model_capabilities_overrides`` one of
    ``model_capabilities``.
    """

    session_id: str | None = None
    name: str | None = None
    enable_streaming: StrictBool | None = None
    model_capabilities_overrides: ModelCapabilities | None = None


class SessionsOpenParams(WireModel):
    """``create`` creates a session, ``resume`` resumes the one whose id begins with ``session_id``, ``resumeLast``
    the one that matches ``context`` best (none without a context), and ``attach`` joins a live one. The other kinds
    are not supported. Without a kind, no session is found.

    ``resume: false`` suppresses the event ``session.resume``.
    """

    kind: Literal["create", "resume", "resumeLast", "attach", "remote", "cloud", "handoff"] | None = None
    session_id: str | None = None
    context: SessionContext | None = None
    options: OpenOptions = Field(default_factory=OpenOptions.model_construct)
    resume: StrictBool = True
    emit_start: StrictBool = True


class SessionsOpenResult(WireModel):
    """``session_id`` is left out if no session was found."""

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
    """``to_event_id`` and later events are left out of the copy."""

    session_id: str
    to_event_id: str | None = None
    name: str | None = None


class ForkResult(WireModel):
    session_id: str
    name: str | None = None


class ReadPersistedEventsParams(WireModel):
    """``cursor`` is that of the page before, is good for one read, and keeps its direction."""

    session_id: str
    cursor: str | None = None
    max: int = Field(default=200, ge=1, le=1000)
    direction: Literal["forward", "backward"] = "forward"


class ClientMetadataParams(WireModel):
    """At most 1000 ids. ``keys`` are the entries to return; by default all."""

    session_ids: list[str]
    keys: list[str] | None = None


class ClientMetadataEntry(WireModel):
    """``metadata`` is set if the ``status`` is ``ok``, ``code`` and ``message`` if it is ``unavailable``."""

    session_id: str
    status: Literal["ok", "notFound", "corrupt", "unsupportedVersion", "unavailable"]
    metadata: dict[str, str] | None = None
    code: str | None = None
    message: str | None = None


METHODS: Final[Mapping[str, Method]] = {
    "sessions.fork": Method(ForkParams, ForkResult),
    "sessions.open": Method(SessionsOpenParams, SessionsOpenResult),
    "sessions.list": Method(SessionsListParams, SessionListResult),
    "sessions.getMetadata": Method(SessionParams, SessionGetMetadataResult),
    "sessions.listNonEmptySessionIds": Method(NonEmptyIdsParams, SessionIdsResult),
    "sessions.getEventFilePath": Method(SessionParams, EventFilePathResult),
    "sessions.readPersistedEvents": Method(ReadPersistedEventsParams, EventLogReadResult),
    "sessions.getClientMetadata": Method(ClientMetadataParams, list[ClientMetadataEntry]),
    "sessions.findByPrefix": Method(FindByPrefixParams, SessionIdResult),
    "sessions.getLastForContext": Method(LastForContextParams, SessionIdResult),
    "sessions.reloadPluginHooks": Method(ReloadHooksParams, EmptyResult),
    "sessions.loadDeferredRepoHooks": Method(SessionParams, RepoHooksResult),
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
