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
    """Where to look for sessions."""
    metadata_limit: int | None = Field(default=None, ge=0)
    """How many entries get more than their id and times."""
    filter: SessionListFilter | None = None
    """Which sessions to list."""
    include_detached: StrictBool = False
    """Has no effect."""
    throw_on_error: StrictBool = False
    """Has no effect."""


class FindByPrefixParams(WireModel):
    """The first characters of an id, at least seven."""

    prefix: str = Field(min_length=7)
    """The first characters of the id, at least seven."""


class LastForContextParams(WireModel):
    context: SessionContext | None = None
    """Where the session should have worked."""


class ReloadHooksParams(WireModel):
    """``defer_repo_hooks`` leaves out the hooks of the project, until they are asked for."""

    session_id: str
    defer_repo_hooks: StrictBool = False
    """Whether the hooks of the project are left out."""


class RepoHooksResult(WireModel):
    """``startup_prompts`` are always empty: hooks do not send prompts here. ``hook_count`` counts all hooks."""

    startup_prompts: list[str]
    """Always empty."""
    hook_count: int
    """How many hooks there are."""


class SizesResult(WireModel):
    """Sizes on the disk in bytes, by session id."""

    sizes: dict[str, int]
    """The sizes in bytes, by session id."""


class SessionIdsParams(WireModel):
    session_ids: list[str]
    """The ids of the sessions."""


class InUseResult(WireModel):
    """Those of the given sessions that another process has in use."""

    in_use: list[str]
    """The ids of those that another process has open."""


class BulkDeleteResult(WireModel):
    """The bytes freed, by session id; 0 for an unknown session. Sessions that remain are left out."""

    freed_bytes: dict[str, int]
    """The bytes that each session took, by id."""


class PruneOldParams(WireModel):
    """``older_than_days`` counts from the last change. Named sessions are kept unless ``include_named``."""

    older_than_days: float = Field(ge=0, allow_inf_nan=False)
    """How long a session must not have changed, in days."""
    dry_run: StrictBool = False
    """Whether to say only what would be deleted."""
    include_named: StrictBool = False
    """Whether named sessions are deleted, too."""
    exclude_session_ids: list[str] = Field(default_factory=list)
    """The ids of sessions that stay."""


class PruneOldResult(WireModel):
    """``candidates`` would be deleted without ``dry_run``. ``skipped`` are old, but named or in use."""

    deleted: list[str]
    """The ids of the deleted sessions."""
    candidates: list[str]
    """The ids of the sessions that would be deleted."""
    skipped: list[str]
    """The ids of old sessions that stay."""
    freed_bytes: int
    """The bytes that they took."""
    dry_run: StrictBool
    """Whether nothing was deleted."""


class KnownMetadata(SessionMetadata):
    """A list entry that a client has. Unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class EnrichMetadataParams(WireModel):
    sessions: list[KnownMetadata]
    """What is known of each session."""


class EnrichMetadataResult(WireModel):
    """The given entries, completed. A session without a name and without prompts is left out."""

    sessions: list[KnownMetadata]
    """The same, completed."""


class OpenOptions(SessionOptions):
    """``session_id`` and ``name`` are those of a new session.

    ``enable_streaming`` is another name of ``streaming``, and ``model_capabilities_overrides`` one of
    ``model_capabilities``.
    """

    session_id: str | None = None
    name: str | None = None
    """The name of a new session."""
    enable_streaming: StrictBool | None = None
    """Another name of ``streaming``."""
    model_capabilities_overrides: ModelCapabilities | None = None
    """Another name of ``modelCapabilities``."""


class SessionsOpenParams(WireModel):
    """``create`` creates a session, ``resume`` resumes the one whose id begins with ``session_id``, ``resumeLast``
    the one that matches ``context`` best (none without a context), and ``attach`` joins a live one. The other kinds
    are not supported. Without a kind, no session is found.

    ``resume: false`` suppresses the event ``session.resume``.
    """

    kind: Literal["create", "resume", "resumeLast", "attach", "remote", "cloud", "handoff"] | None = None
    session_id: str | None = None
    context: SessionContext | None = None
    """Where the session should work."""
    options: OpenOptions = Field(default_factory=OpenOptions.model_construct)
    """The options, as in ``session.create``."""
    resume: StrictBool = True
    """Whether a session that exists is opened."""
    emit_start: StrictBool = True
    """Whether the event ``session.resume`` is sent."""


class SessionsOpenResult(WireModel):
    """``session_id`` is left out if no session was found."""

    status: Literal["created", "resumed", "not_found"]
    """What was done."""
    session_id: str | None = None
    startup_prompts: list[str] | None = None
    """Always empty."""


class EventFilePathResult(WireModel):
    file_path: str
    """The absolute path of the log."""


class NonEmptyIdsParams(WireModel):
    limit: int | None = Field(default=None, ge=0)
    """The most ids to return."""


class SessionIdsResult(WireModel):
    session_ids: list[str]
    """The ids."""


class ForkParams(WireModel):
    """``to_event_id`` and later events are left out of the copy."""

    session_id: str
    to_event_id: str | None = None
    """The first event that the copy leaves out."""
    name: str | None = None
    """The name of the copy."""


class ForkResult(WireModel):
    session_id: str
    name: str | None = None
    """The name of the copy."""


class ReadPersistedEventsParams(WireModel):
    """``cursor`` is that of the page before, is good for one read, and keeps its direction."""

    session_id: str
    cursor: str | None = None
    max: int = Field(default=200, ge=1, le=1000)
    """The most events to return."""
    direction: Literal["forward", "backward"] = "forward"
    """Whether to begin with the oldest or the latest event."""


class ClientMetadataParams(WireModel):
    """At most 1000 ids. ``keys`` are the entries to return; by default all."""

    session_ids: list[str]
    """The ids of the sessions, at most 1,000."""
    keys: list[str] | None = None
    """The entries to return; all by default."""


class ClientMetadataEntry(WireModel):
    """``metadata`` is set if the ``status`` is ``ok``, ``code`` and ``message`` if it is ``unavailable``."""

    session_id: str
    status: Literal["ok", "notFound", "corrupt", "unsupportedVersion", "unavailable"]
    """Whether the entries could be read."""
    metadata: dict[str, str] | None = None
    """The entries."""
    code: str | None = None
    """The kind of failure."""
    message: str | None = None
    """What went wrong."""


METHODS: Final[Mapping[str, Method]] = {
    "sessions.fork": Method(ForkParams, ForkResult, "Copy a session, as a whole or up to an event."),
    "sessions.open": Method(SessionsOpenParams, SessionsOpenResult, "Create, resume or join a session."),
    "sessions.list": Method(SessionsListParams, SessionListResult, "List sessions, with filters."),
    "sessions.getMetadata": Method(SessionParams, SessionGetMetadataResult, "Return the list entry of a session."),
    "sessions.listNonEmptySessionIds": Method(
        NonEmptyIdsParams, SessionIdsResult, "List the ids of sessions that have prompts."
    ),
    "sessions.getEventFilePath": Method(
        SessionParams, EventFilePathResult, "Return the path of a session's log, which need not exist."
    ),
    "sessions.readPersistedEvents": Method(
        ReadPersistedEventsParams, EventLogReadResult, "Read the log of a session, page by page."
    ),
    "sessions.getClientMetadata": Method(
        ClientMetadataParams, list[ClientMetadataEntry], "Return the entries that clients have kept with sessions."
    ),
    "sessions.findByPrefix": Method(
        FindByPrefixParams, SessionIdResult, "Find the session whose id begins with some characters."
    ),
    "sessions.getLastForContext": Method(
        LastForContextParams, SessionIdResult, "Find the latest session that worked in a place."
    ),
    "sessions.reloadPluginHooks": Method(
        ReloadHooksParams, EmptyResult, "Read the hook files of the session again."
    ),
    "sessions.loadDeferredRepoHooks": Method(
        SessionParams, RepoHooksResult, "Read all hook files of the session, those of the project included."
    ),
    "sessions.getSizes": Method(EmptyParams, SizesResult, "Return the sizes of the sessions on the disk."),
    "sessions.checkInUse": Method(SessionIdsParams, InUseResult, "Return which sessions another process has open."),
    "sessions.close": Method(SessionParams, EmptyResult, "Close a session."),
    "sessions.save": Method(SessionParams, EmptyResult, "Write what is not stored yet."),
    "sessions.releaseLock": Method(
        SessionParams, EmptyResult, "Give up a stored session, so that another process can open it."
    ),
    "sessions.delete": Method(SessionParams, None, "Delete a session."),
    "sessions.bulkDelete": Method(SessionIdsParams, BulkDeleteResult, "Delete several sessions."),
    "sessions.pruneOld": Method(PruneOldParams, PruneOldResult, "Delete sessions that have not changed for long."),
    "sessions.enrichMetadata": Method(EnrichMetadataParams, EnrichMetadataResult, "Complete list entries."),
}
