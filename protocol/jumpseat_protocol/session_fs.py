"""``sessionFs.*``: the virtual file system of a client, in which its sessions are stored.

Paths are absolute, in the conventions that the client declares; the id of the session is not a part of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.wire import Method, WireModel


class FsCapabilities(WireModel):
    sqlite: StrictBool | None = None


class SetFsProviderParams(WireModel):
    """``session_state_path`` is the folder of a session's files; it is the same for all sessions."""

    initial_cwd: PathText
    session_state_path: PathText
    conventions: Literal["posix", "windows"]
    capabilities: FsCapabilities | None = None


class FsError(WireModel):
    """``code`` is ``ENOENT`` if there is no such path, and ``UNKNOWN`` for all other errors."""

    code: str
    message: str | None = None


class FsPathParams(WireModel):
    session_id: str
    path: PathText


class FsWriteParams(FsPathParams):
    content: str = Field(repr=False)
    mode: int | None = None


class FsMkdirParams(FsPathParams):
    recursive: StrictBool | None = None
    mode: int | None = None


class FsRmParams(FsPathParams):
    recursive: StrictBool | None = None
    force: StrictBool | None = None


class FsRenameParams(WireModel):
    session_id: str
    src: str
    dest: str


class FsReadResult(WireModel):
    content: str = Field(default="", repr=False)
    error: FsError | None = None


class FsDone(WireModel):
    """The answer of a change: ``null``, or an error."""

    code: str | None = None
    message: str | None = None


class FsExistsResult(WireModel):
    exists: StrictBool


class FsStatResult(WireModel):
    """``size`` is in bytes, times are ISO 8601."""

    is_file: StrictBool
    is_directory: StrictBool
    size: int
    mtime: str
    birthtime: str
    error: FsError | None = None


class FsEntry(WireModel):
    name: str
    type: Literal["file", "directory"]


class FsEntriesResult(WireModel):
    entries: list[FsEntry]
    error: FsError | None = None


SqlKind: TypeAlias = Literal["exec", "query", "run"]
"""``exec`` changes the schema, ``query`` returns rows, ``run`` changes rows."""


class SqlStatement(WireModel):
    query: str
    query_type: SqlKind
    params: dict[str, Any] | None = None


class SqliteQueryParams(SqlStatement):
    session_id: str


class SqliteQueryResult(WireModel):
    rows: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    columns: list[str] = Field(default_factory=list[str])
    rows_affected: int = 0
    last_insert_rowid: int | None = None
    error: FsError | None = None


class SqliteTransactionParams(WireModel):
    session_id: str
    statements: list[SqlStatement]


class SqliteTransactionError(WireModel):
    """``busyOrLocked``: nothing was changed, try again; ``postCommitAmbiguous``: never try again."""

    error_class: Literal["busyOrLocked", "fatal", "postCommitAmbiguous"]
    message: str


class SqliteTransactionResult(WireModel):
    results: list[SqliteQueryResult] = Field(default_factory=list[SqliteQueryResult])
    error: SqliteTransactionError | None = None


class SqliteExistsParams(WireModel):
    session_id: str


METHODS: Final[Mapping[str, Method]] = {"sessionFs.setProvider": Method(SetFsProviderParams, SuccessResult)}
