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
    """The types of a request's params and of its result, which is ``object`` if any JSON is a result."""

    params: type[WireModel]
    result: type[Any]


SERVER_REQUESTS: Final[Mapping[str, Callback]] = {
    "hooks.invoke": Callback(HooksInvokeParams, HooksInvokeResult),
    "userInput.request": Callback(UserInputRequestParams, UserInputResponse),
    "exitPlanMode.request": Callback(ExitPlanModeParams, ExitPlanModeResponse),
    "autoModeSwitch.request": Callback(AutoModeSwitchParams, AutoModeSwitchResponse),
    "systemMessage.transform": Callback(SystemMessageTransformParams, SystemMessageTransformResult),
    "providerToken.getToken": Callback(ProviderTokenParams, ProviderTokenResult),
    "gitHubToken.getToken": Callback(GitHubTokenParams, GitHubTokenResult),
    "llmInference.httpRequestStart": Callback(HttpRequestStartParams, EmptyAnswer),
    "llmInference.httpRequestChunk": Callback(HttpRequestChunkParams, EmptyAnswer),
    "canvas.open": Callback(CanvasOpenParams, CanvasOpenResult),
    "canvas.action.invoke": Callback(CanvasActionParams, object),
    "canvas.close": Callback(CanvasCloseParams, EmptyAnswer),
    "tasks.cancel": Callback(CancelClientTaskParams, CancelClientTaskResult),
    "sessionFs.readFile": Callback(FsPathParams, FsReadResult),
    "sessionFs.writeFile": Callback(FsWriteParams, FsDone),
    "sessionFs.appendFile": Callback(FsWriteParams, FsDone),
    "sessionFs.exists": Callback(FsPathParams, FsExistsResult),
    "sessionFs.stat": Callback(FsPathParams, FsStatResult),
    "sessionFs.mkdir": Callback(FsMkdirParams, FsDone),
    "sessionFs.readdirWithTypes": Callback(FsPathParams, FsEntriesResult),
    "sessionFs.rm": Callback(FsRmParams, FsDone),
    "sessionFs.rename": Callback(FsRenameParams, FsDone),
    "sessionFs.sqliteQuery": Callback(SqliteQueryParams, SqliteQueryResult),
    "sessionFs.sqliteTransaction": Callback(SqliteTransactionParams, SqliteTransactionResult),
    "sessionFs.sqliteExists": Callback(SqliteExistsParams, FsExistsResult),
    "tool.call": Callback(ToolCallParams, ToolCallResult),
    "permission.request": Callback(PermissionRequestParams, PermissionRequestResult),
}
"""Every request that the server may send to a client."""
