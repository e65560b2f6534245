"""The virtual file system of one client as one session sees it: requests to the client, with typed errors."""

from __future__ import annotations

import re
from typing import Final, Protocol, TypeVar

import anyio
from msgspec import Struct

from jumpseat.errors import ClientCallError, StoreError
from jumpseat_protocol.session_fs import (
    FsDone,
    FsEntriesResult,
    FsEntry,
    FsError,
    FsExistsResult,
    FsMkdirParams,
    FsPathParams,
    FsReadResult,
    FsRenameParams,
    FsRmParams,
    FsStatResult,
    FsWriteParams,
    SqliteExistsParams,
    SqliteQueryParams,
    SqliteQueryResult,
    SqliteTransactionParams,
    SqliteTransactionResult,
    SqlKind,
    SqlStatement,
)
from jumpseat_protocol.wire import WireModel

R = TypeVar("R", bound=WireModel)

CALL_S: Final = 30.0
"""Time that a client has for one request."""
FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_MISSING: Final = "ENOENT"
_SEPARATOR: Final = re.compile(r"[/\\\0]")


class FileSystemClient(Protocol):
    """The connection to a client that provides a file system."""

    @property
    def connected(self) -> bool:
        """Return whether the client has not hung up."""
        ...

    async def ask_session_fs(self, method: str, params: WireModel, result: type[R]) -> R:
        """Send a request of ``sessionFs`` and return its answer.

        Raises:
            ClientCallError: the client fails, has disconnected, or its answer is invalid.
        """
        ...


class Provider(Struct, frozen=True):
    """The file system that a client has registered. ``root`` is the folder of a session's files."""

    root: str
    windows: bool = False
    sqlite: bool = False

    def path(self, *names: str) -> str:
        """Return a path below ``root``; an absolute one is returned as it is."""
        path = self.root
        for name in names:
            path = name if self.is_absolute(name) else f"{path.rstrip('/')}/{name}"
        return path.replace("/", "\\") if self.windows and "\\" in self.root else path

    def is_absolute(self, path: str) -> bool:
        """Return whether a path is absolute, in the conventions of the client."""
        return path.startswith("/") or (self.windows and re.match(r"[A-Za-z]:[\\/]|\\", path) is not None)

    def relative(self, path: str) -> str | None:
        """Return a normalized path relative to ``root``; ``None`` if it is not below."""
        parts, root = self._parts(path), self._parts(self.root)
        if parts is None or root is None or len(parts) <= len(root) or parts[: len(root)] != root:
            return None
        return "/".join(parts[len(root) :])

    def covers(self, path: str) -> bool:
        """Return whether an absolute path is ``root`` or below it."""
        parts, root = self._parts(path), self._parts(self.root)
        return self.is_absolute(path) and parts is not None and root is not None and parts[: len(root)] == root

    def _parts(self, path: str) -> list[str] | None:
        """Return the names in a path without ``.`` and ``..``; ``None`` if it leads above its beginning."""
        parts: list[str] = []
        for name in (path.replace("\\", "/") if self.windows else path).split("/"):
            if name == "..":
                if not parts:
                    return None
                parts.pop()
            elif name not in ("", "."):
                parts.append(name)
        return parts


class FileSystem:
    """The file system as one session sees it. All paths are absolute; all methods may raise ``StoreError``."""

    def __init__(self, client: FileSystemClient, provider: Provider, session_id: str) -> None:
        self.client = client
        self.provider = provider
        self.session_id = session_id

    async def read(self, path: str) -> str | None:
        """Return the content of a file; ``None`` if there is none."""
        params = FsPathParams(session_id=self.session_id, path=path)
        result = await self._ask("readFile", path, params, FsReadResult)
        if result.error is not None and result.error.code == _MISSING:
            return None
        self._check("readFile", path, result.error)
        return result.content

    async def write(self, path: str, content: str) -> None:
        """Replace a file."""
        params = FsWriteParams(session_id=self.session_id, path=path, content=content, mode=FILE_MODE)
        await self._do("writeFile", path, params)

    async def append(self, path: str, content: str) -> None:
        """Add to the end of a file, which need not exist."""
        params = FsWriteParams(session_id=self.session_id, path=path, content=content, mode=FILE_MODE)
        await self._do("appendFile", path, params)

    async def exists(self, path: str) -> bool:
        """Return whether there is anything at a path."""
        params = FsPathParams(session_id=self.session_id, path=path)
        return (await self._ask("exists", path, params, FsExistsResult)).exists

    async def stat(self, path: str) -> FsStatResult | None:
        """Return the state of a file or folder; ``None`` if there is nothing."""
        params = FsPathParams(session_id=self.session_id, path=path)
        result = await self._ask("stat", path, params, FsStatResult)
        if result.error is not None and result.error.code == _MISSING:
            return None
        self._check("stat", path, result.error)
        return result

    async def create_folder(self, path: str, *, recursive: bool = True) -> None:
        """Create a folder; with ``recursive``, it may exist."""
        params = FsMkdirParams(session_id=self.session_id, path=path, recursive=recursive, mode=FOLDER_MODE)
        await self._do("mkdir", path, params)

    async def entries(self, path: str) -> list[FsEntry]:
        """Return the entries of a folder; none if it does not exist. Names that are paths are left out."""
        params = FsPathParams(session_id=self.session_id, path=path)
        result = await self._ask("readdirWithTypes", path, params, FsEntriesResult)
        if result.error is not None and result.error.code == _MISSING:
            return []
        self._check("readdirWithTypes", path, result.error)
        return [entry for entry in result.entries if entry.name.strip(".") and not _SEPARATOR.search(entry.name)]

    async def remove(self, path: str, *, recursive: bool = False, force: bool = False) -> None:
        """Remove a file or a folder."""
        params = FsRmParams(session_id=self.session_id, path=path, recursive=recursive, force=force)
        await self._do("rm", path, params)

    async def rename(self, source: str, destination: str) -> None:
        """Rename a file or folder; a file at the destination is replaced."""
        params = FsRenameParams(session_id=self.session_id, src=source, dest=destination)
        await self._do("rename", source, params)

    async def query(self, query: str, kind: SqlKind) -> SqliteQueryResult:
        """Run one statement, or with ``exec`` several, in the database of the session."""
        params = SqliteQueryParams(session_id=self.session_id, query=query, query_type=kind)
        result = await self._ask("sqliteQuery", "", params, SqliteQueryResult)
        self._check("sqliteQuery", "", result.error)
        return result

    async def transact(self, statements: list[SqlStatement]) -> SqliteTransactionResult:
        """Run statements, all or none of them. The result may hold an error."""
        params = SqliteTransactionParams(session_id=self.session_id, statements=statements)
        return await self._ask("sqliteTransaction", "", params, SqliteTransactionResult)

    async def has_database(self) -> bool:
        """Return whether the session has a database yet."""
        params = SqliteExistsParams(session_id=self.session_id)
        return (await self._ask("sqliteExists", "", params, FsExistsResult)).exists

    async def _do(self, method: str, path: str, params: WireModel) -> None:
        result = await self._ask(method, path, params, FsDone)
        self._check(method, path, FsError(code=result.code, message=result.message) if result.code else None)

    async def _ask(self, method: str, path: str, params: WireModel, result: type[R]) -> R:
        try:
            with anyio.fail_after(CALL_S):
                return await self.client.ask_session_fs(f"sessionFs.{method}", params, result)
        except TimeoutError:
            raise StoreError(_text(method, path, f"no answer within {CALL_S:g} s")) from None
        except ClientCallError as error:
            raise StoreError(_text(method, path, str(error))) from None

    def _check(self, method: str, path: str, error: FsError | None) -> None:
        if error is not None:
            raise StoreError(_text(method, path, ": ".join(filter(None, (error.code, error.message)))))


def _text(method: str, path: str, reason: str) -> str:
    place = f" of {path!r}" if path else ""
    return f"sessionFs.{method}{place} failed: {reason[:500]}"
