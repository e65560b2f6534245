"""Every request that the server may send to a client, with the types of its params and of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    AutoModeSwitchResponse,
    CancelClientTaskParams,
    CancelClientTaskResult,
    CanvasActionParams,
    CanvasCloseParams,
    CanvasOpenParams,
    CanvasOpenResult,
    EmptyAnswer,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    GitHubTokenParams,
    GitHubTokenResult,
    HooksInvokeParams,
    HooksInvokeResult,
    HttpRequestChunkParams,
    HttpRequestStartParams,
    PermissionRequestParams,
    PermissionRequestResult,
    ProviderTokenParams,
    ProviderTokenResult,
    SystemMessageTransformParams,
    SystemMessageTransformResult,
    ToolCallParams,
    ToolCallResult,
    UserInputRequestParams,
    UserInputResponse,
)
from jumpseat_protocol.session_fs import (
    FsDone,
    FsEntriesResult,
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
)
from jumpseat_protocol.wire import WireModel


class Callback(NamedTuple):
    """The types of a request's params and of its result, and what it does.

    With ``object``, any JSON is a result.
    """

    params: type[WireModel]
    result: type[Any]
    does: str


SERVER_REQUESTS: Final[Mapping[str, Callback]] = {
    "hooks.invoke": Callback(HooksInvokeParams, HooksInvokeResult, "Run a hook of the client."),
    "userInput.request": Callback(
        UserInputRequestParams, UserInputResponse, "Ask a person a question of the model."
    ),
    "exitPlanMode.request": Callback(
        ExitPlanModeParams, ExitPlanModeResponse, "Ask a person to decide about a plan."
    ),
    "autoModeSwitch.request": Callback(
        AutoModeSwitchParams, AutoModeSwitchResponse, "Ask a person whether to use another model."
    ),
    "systemMessage.transform": Callback(
        SystemMessageTransformParams,
        SystemMessageTransformResult,
        "Let the client change sections of the system message.",
    ),
    "providerToken.getToken": Callback(ProviderTokenParams, ProviderTokenResult, "Ask for a token of a provider."),
    "gitHubToken.getToken": Callback(GitHubTokenParams, GitHubTokenResult, "Ask for a token of GitHub."),
    "llmInference.httpRequestStart": Callback(
        HttpRequestStartParams, EmptyAnswer, "Begin a model request that the client makes."
    ),
    "llmInference.httpRequestChunk": Callback(HttpRequestChunkParams, EmptyAnswer, "Send a part of that request."),
    "canvas.open": Callback(CanvasOpenParams, CanvasOpenResult, "Open a canvas in the client."),
    "canvas.action.invoke": Callback(CanvasActionParams, object, "Invoke an action of a canvas."),
    "canvas.close": Callback(CanvasCloseParams, EmptyAnswer, "Close a canvas."),
    "tasks.cancel": Callback(CancelClientTaskParams, CancelClientTaskResult, "Ask the client to stop its work."),
    "sessionFs.readFile": Callback(FsPathParams, FsReadResult, "Read a file."),
    "sessionFs.writeFile": Callback(FsWriteParams, FsDone, "Write a file."),
    "sessionFs.appendFile": Callback(FsWriteParams, FsDone, "Append to a file."),
    "sessionFs.exists": Callback(FsPathParams, FsExistsResult, "Return whether a path exists."),
    "sessionFs.stat": Callback(FsPathParams, FsStatResult, "Return the size and times of a path."),
    "sessionFs.mkdir": Callback(FsMkdirParams, FsDone, "Create a folder."),
    "sessionFs.readdirWithTypes": Callback(FsPathParams, FsEntriesResult, "List a folder."),
    "sessionFs.rm": Callback(FsRmParams, FsDone, "Remove a path."),
    "sessionFs.rename": Callback(FsRenameParams, FsDone, "Rename a path."),
    "sessionFs.sqliteQuery": Callback(SqliteQueryParams, SqliteQueryResult, "Run a statement of SQL."),
    "sessionFs.sqliteTransaction": Callback(
        SqliteTransactionParams, SqliteTransactionResult, "Run several statements, all or none."
    ),
    "sessionFs.sqliteExists": Callback(SqliteExistsParams, FsExistsResult, "Return whether the database exists."),
    "tool.call": Callback(ToolCallParams, ToolCallResult, "Call a tool of the client (protocol 2)."),
    "permission.request": Callback(
        PermissionRequestParams, PermissionRequestResult, "Ask for permission (protocol 2)."
    ),
}
"""Every request that the server may send to a client."""
