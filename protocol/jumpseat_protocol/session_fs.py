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
    """The abilities of a client's file system."""

    sqlite: StrictBool | None = None
    """Whether the client runs SQL."""


class SetFsProviderParams(WireModel):
    """``session_state_path`` is the folder of a session's files; it is the same for all sessions."""

    initial_cwd: PathText
    """The folder that relative paths start from."""
    session_state_path: PathText
    """The folder of each session's own files."""
    conventions: Literal["posix", "windows"]
    """The form of paths."""
    capabilities: FsCapabilities | None = None
    """What the client can do."""


class FsError(WireModel):
    """``code`` is ``ENOENT`` if there is no such path, and ``UNKNOWN`` for all other errors."""

    code: str
    """``ENOENT`` if there is no such path, else ``UNKNOWN``."""
    message: str | None = None
    """What went wrong."""


class FsPathParams(WireModel):
    session_id: str
    path: PathText
    """The path."""


class FsWriteParams(FsPathParams):
    content: str = Field(repr=False)
    """The text."""
    mode: int | None = None
    """The permissions of a new file."""


class FsMkdirParams(FsPathParams):
    recursive: StrictBool | None = None
    """Whether missing parents are created."""
    mode: int | None = None
    """The permissions of the folder."""


class FsRmParams(FsPathParams):
    recursive: StrictBool | None = None
    """Whether a folder is removed with its contents."""
    force: StrictBool | None = None
    """Whether a missing path is no error."""


class FsRenameParams(WireModel):
    session_id: str
    src: str
    """The path now."""
    dest: str
    """The new path."""


class FsReadResult(WireModel):
    content: str = Field(default="", repr=False)
    """The text."""
    error: FsError | None = None


class FsDone(WireModel):
    """The answer of a change: ``null``, or an error."""

    code: str | None = None
    """``ENOENT`` if there is no such path, else ``UNKNOWN``."""
    message: str | None = None
    """What went wrong."""


class FsExistsResult(WireModel):
    exists: StrictBool
    """Whether the path exists."""


class FsStatResult(WireModel):
    """``size`` is in bytes, times are ISO 8601."""

    is_file: StrictBool
    """Whether it is a file."""
    is_directory: StrictBool
    """Whether it is a folder."""
    size: int
    """The size in bytes."""
    mtime: str
    """When it was changed, in ISO 8601."""
    birthtime: str
    """When it was created, in ISO 8601."""
    error: FsError | None = None


class FsEntry(WireModel):
    """A file or folder in a folder."""

    name: str
    """The name of the file or folder."""
    type: Literal["file", "directory"]


class FsEntriesResult(WireModel):
    entries: list[FsEntry]
    """The entries."""
    error: FsError | None = None


SqlKind: TypeAlias = Literal["exec", "query", "run"]
"""``exec`` changes the schema, ``query`` returns rows, ``run`` changes rows."""


class SqlStatement(WireModel):
    """A statement of SQL and its parameters."""

    query: str
    """The SQL text."""
    query_type: SqlKind
    """What the statement does."""
    params: dict[str, Any] | None = None
    """The parameters by name."""


class SqliteQueryParams(SqlStatement):
    session_id: str


class SqliteQueryResult(WireModel):
    rows: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """The rows, by column."""
    columns: list[str] = Field(default_factory=list[str])
    """The names of the columns."""
    rows_affected: int = 0
    """How many rows were changed."""
    last_insert_rowid: int | None = None
    """The id of the last row that was added."""
    error: FsError | None = None


class SqliteTransactionParams(WireModel):
    session_id: str
    statements: list[SqlStatement]
    """The statements."""


class SqliteTransactionError(WireModel):
    """``busyOrLocked``: nothing was changed, try again; ``postCommitAmbiguous``: never try again."""

    error_class: Literal["busyOrLocked", "fatal", "postCommitAmbiguous"]
    """Whether the client may try again."""
    message: str
    """What went wrong."""


class SqliteTransactionResult(WireModel):
    results: list[SqliteQueryResult] = Field(default_factory=list[SqliteQueryResult])
    """The result of each statement."""
    error: SqliteTransactionError | None = None


class SqliteExistsParams(WireModel):
    session_id: str


METHODS: Final[Mapping[str, Method]] = {
    "sessionFs.setProvider": Method(SetFsProviderParams, SuccessResult, "Keep the files of sessions in the client.")
}
