"""A virtual file system in memory, which a client offers to a server; it can be made to fail."""

from __future__ import annotations

import posixpath
import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from jumpseat_client import Client, RpcError

ROOT = "/state"
Params: TypeAlias = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


class VirtualDisk:
    """The files of all sessions, by session and path. It outlives clients and servers.

    ``before`` is called before each request with its method and params; what it returns, unless ``None``, is the
    answer. ``asked`` lists all requests.
    """

    def __init__(self) -> None:
        self.files: dict[str, dict[str, str]] = defaultdict(dict)
        self.databases: dict[str, sqlite3.Connection] = {}
        self.asked: list[tuple[str, Params]] = []
        self.before: Callable[[str, Params], Awaitable[Any]] | None = None

    async def offer(self, client: Client, *, sqlite: bool = False, cwd: str = "/workspace") -> None:
        """Answer the requests of a server, and register with it."""
        for name in (
            *("readFile", "writeFile", "appendFile", "exists", "stat", "mkdir", "readdirWithTypes", "rm", "rename"),
            *("sqliteQuery", "sqliteTransaction", "sqliteExists"),
        ):
            client.on_request(f"sessionFs.{name}", self._handler(name))
        params = {"initialCwd": cwd, "sessionStatePath": ROOT, "conventions": "posix"}
        await client.request("sessionFs.setProvider", params | {"capabilities": {"sqlite": sqlite}})

    def text(self, session: str, name: str) -> str:
        """Return the content of a file of a session."""
        return self.files[session][f"{ROOT}/{name}"]

    def names(self, session: str) -> list[str]:
        """Return the names of all files of a session."""
        return sorted(path.removeprefix(f"{ROOT}/") for path in self.files[session])

    def _handler(self, name: str) -> Callable[[Params], Awaitable[Any]]:
        async def handle(params: Params) -> Any:
            self.asked.append((name, params))
            if self.before is not None and (answer := await self.before(name, params)) is not None:
                return answer
            return getattr(self, f"_{name}")(self.files[params["sessionId"]], params)

        return handle

    def _readFile(self, files: dict[str, str], params: Params) -> Any:  # noqa: N802 - the name on the wire
        if params["path"] not in files:
            return {"content": "", "error": MISSING}
        return {"content": files[params["path"]]}

    def _writeFile(self, files: dict[str, str], params: Params) -> Any:  # noqa: N802
        files[params["path"]] = params["content"]

    def _appendFile(self, files: dict[str, str], params: Params) -> Any:  # noqa: N802
        files[params["path"]] = files.get(params["path"], "") + params["content"]

    def _exists(self, files: dict[str, str], params: Params) -> Any:
        return {"exists": params["path"] in files}

    def _stat(self, files: dict[str, str], params: Params) -> Any:
        path = params["path"]
        is_folder = any(name.startswith(f"{path}/") for name in files)
        state: Params = {
            "isFile": path in files,
            "isDirectory": is_folder,
            "size": len(files.get(path, "").encode()),
        }
        state |= {"mtime": NOW, "birthtime": NOW}
        return state if path in files or is_folder else state | {"error": MISSING}

    def _mkdir(self, files: dict[str, str], params: Params) -> Any:
        return None

    def _readdirWithTypes(self, files: dict[str, str], params: Params) -> Any:  # noqa: N802
        folder = params["path"].rstrip("/") + "/"
        below = {name.removeprefix(folder) for name in files if name.startswith(folder)}
        kinds = {name.partition("/")[0]: "directory" if "/" in name else "file" for name in below}
        return {"entries": [{"name": name, "type": kind} for name, kind in sorted(kinds.items())]}

    def _rm(self, files: dict[str, str], params: Params) -> Any:
        for name in [*files]:
            if name == params["path"] or (params.get("recursive") and name.startswith(params["path"] + "/")):
                del files[name]

    def _rename(self, files: dict[str, str], params: Params) -> Any:
        if params["src"] not in files:
            return MISSING
        files[posixpath.normpath(params["dest"])] = files.pop(params["src"])
        return None

    def _sqliteExists(self, _files: dict[str, str], params: Params) -> Any:  # noqa: N802
        return {"exists": params["sessionId"] in self.databases}

    def _sqliteQuery(self, _files: dict[str, str], params: Params) -> Any:  # noqa: N802
        database = self._database(params)
        try:
            return _run(database, params)
        except sqlite3.Error as error:
            return {"rows": [], "columns": [], "rowsAffected": 0, "error": unknown(str(error))}

    def _sqliteTransaction(self, _files: dict[str, str], params: Params) -> Any:  # noqa: N802
        database = self._database(params)
        database.execute("BEGIN")
        try:
            results = [_run(database, statement) for statement in params["statements"]]
        except sqlite3.Error as error:
            database.execute("ROLLBACK")
            return {"results": [], "error": {"errorClass": "fatal", "message": str(error)}}
        database.execute("COMMIT")
        return {"results": results}

    def _database(self, params: Params) -> sqlite3.Connection:
        session = params["sessionId"]
        if session not in self.databases:
            self.databases[session] = sqlite3.connect(":memory:", isolation_level=None)
        return self.databases[session]


def _run(database: sqlite3.Connection, params: Params) -> Params:
    if params["queryType"] == "exec" and not database.in_transaction:
        database.executescript(params["query"])
        return {"rows": [], "columns": [], "rowsAffected": 0}
    cursor = database.execute(params["query"])
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    found: Params = {"rows": rows, "columns": names, "rowsAffected": max(cursor.rowcount, 0)}
    return found | ({"lastInsertRowid": cursor.lastrowid} if cursor.lastrowid else {})


MISSING = {"code": "ENOENT", "message": "no such file"}


def unknown(message: str) -> Params:
    """Return an error of the file system."""
    return {"code": "UNKNOWN", "message": message}


def crash(message: str) -> RpcError:
    """Return the error of a client that fails with an exception."""
    return RpcError(-32603, message)
