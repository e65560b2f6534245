"""The client half of the Language Server Protocol, by pygls: what a server may ask, and what it is told about us.

Loading pygls and lsprotocol takes half a second, so this module is imported in a thread, with the first server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, cast

import anyio
import anyio.to_thread
from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    default_converter,
)
from pygls.uris import to_fs_path

from jumpseat.lsp.documents import MOST_DIAGNOSTICS
from jumpseat.lsp.incoming import read_message
from jumpseat.lsp.process import Outgoing, RefusedError, ServerFailedError
from jumpseat.lsp.text_edits import TextEdit
from jumpseat_protocol.version import __version__

T = TypeVar("T")

Progress: TypeAlias = Literal["created", "begun", "ended"]

SERVER_STATUS: Final = "experimental/serverStatus"
"""An extension of rust-analyzer: whether the server has loaded the project."""

ACCEPTED: Final = (
    types.WINDOW_SHOW_MESSAGE_REQUEST,
    types.CLIENT_REGISTER_CAPABILITY,
    types.CLIENT_UNREGISTER_CAPABILITY,
    types.WORKSPACE_DIAGNOSTIC_REFRESH,
    types.WORKSPACE_SEMANTIC_TOKENS_REFRESH,
    types.WORKSPACE_INLAY_HINT_REFRESH,
    types.WORKSPACE_CODE_LENS_REFRESH,
)
"""Requests that are answered with ``null``."""


RETRIED: Final = (types.LSPErrorCodes.ContentModified, types.LSPErrorCodes.ServerCancelled)
"""Errors of requests that can be repeated."""


DEEPEST_SYMBOL: Final = 20
MOST_SECTIONS: Final = 1000
"""Sections of the settings in one answer, each of which may be all of them."""


class Listener(Protocol):
    """Hears what a server says unasked."""

    def published(self, path: Path, version: int | None, diagnostics: Sequence[types.Diagnostic]) -> None:
        """Take the diagnostics of a file, in place of all earlier ones."""
        ...

    def progressed(self, token: int | str, state: Progress) -> None:
        """Note that work of the server is about to begin, goes on, or has ended."""
        ...

    def reported(self, *, ready: bool, healthy: bool) -> None:
        """Note whether the server says that it has loaded the project, and the standard library."""
        ...


class _ClientProtocol(LanguageServerProtocol):
    def __init__(self, server: Any, converter: Converter) -> None:
        super().__init__(server, converter)
        # They are those of a server: `exit` would end this process.
        manager: Any = self.fm
        manager.builtin_features.clear()


class Client(LanguageClient):
    """The client of one server. ``settings`` are those that the server may ask for, by section."""

    def __init__(self, listener: Listener, root: Path, settings: Mapping[str, Any]) -> None:
        super().__init__("jumpseat", __version__, _ClientProtocol, _converter)
        self._settings = settings
        self.capabilities = types.ServerCapabilities()

        def publish(params: types.PublishDiagnosticsParams) -> None:
            if (path := path_of(params.uri)) is not None:
                listener.published(path, params.version, params.diagnostics)

        def create_progress(params: types.WorkDoneProgressCreateParams) -> None:
            listener.progressed(params.token, "created")

        def progress(params: types.ProgressParams) -> None:
            ended = _member(params.value, "kind") == "end"
            listener.progressed(params.token, "ended" if ended else "begun")

        def status(params: Any) -> None:
            listener.reported(
                ready=_member(params, "quiescent") is not False,
                # It then says how to install the sources. Other problems, such as a failed build, or that the
                # dependencies of the library cannot be loaded without network, make nothing wrong of what it says.
                healthy="rust-src" not in str(_member(params, "message") or ""),
            )

        def configuration(params: types.ConfigurationParams) -> list[Any]:
            return [_section(settings, item.section or "") for item in params.items[:MOST_SECTIONS]]

        def folders(_params: None) -> list[types.WorkspaceFolder]:
            return [types.WorkspaceFolder(root.as_uri(), root.name)]

        def refuse_edit(_params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            return types.ApplyWorkspaceEditResult(applied=False, failure_reason="only the agent edits files")

        def refuse_document(_params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            return types.ShowDocumentResult(success=False)

        def accept(_params: Any) -> None:
            """Answer with ``null``."""

        handlers: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(ACCEPTED, accept),
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: publish,
            types.WINDOW_WORK_DONE_PROGRESS_CREATE: create_progress,
            types.PROGRESS: progress,
            SERVER_STATUS: status,
            types.WORKSPACE_CONFIGURATION: configuration,
            types.WORKSPACE_WORKSPACE_FOLDERS: folders,
            types.WORKSPACE_APPLY_EDIT: refuse_edit,
            types.WINDOW_SHOW_DOCUMENT: refuse_document,
        }
        for method, handler in handlers.items():
            self.feature(method)(handler)

    def write_to(self, outgoing: Outgoing) -> None:
        """Send messages there from now on."""
        self.protocol.set_writer(outgoing)

    def decode(self, body: bytes) -> Any:
        """Return a message of the server; ``None`` for an answer that is no longer awaited. Runs in a thread.

        Raises:
            ValueError: the message is not an object in JSON.
        """
        message = read_message(body, MOST_DIAGNOSTICS)
        if message.get("error", message) is None:
            # Some servers send it beside the result.
            del message["error"]
        method, number = message.get("method"), message.get("id")
        manager: Any = self.protocol.fm
        if method is not None and number is None and method not in manager.features:
            return None
        try:
            return self.protocol.structure_message({"jsonrpc": "2.0", **message})
        except Exception as error:
            if method is None and number is not None:
                return types.ResponseErrorMessage(id=number, error=types.ResponseError(-32700, str(error)))
            raise ValueError("not a message") from None

    def handle(self, message: Any) -> None:
        """Answer a request, or hand on what the server said."""
        self.protocol.handle_message(message)

    def give_up(self) -> None:
        """Fail all requests, because the connection is closed."""
        futures: dict[Any, Any] = self.protocol._request_futures  # pyright: ignore[reportPrivateUsage]
        for future in list(futures.values()):
            if not future.done():
                future.set_exception(ServerFailedError("it has ended"))

    async def answer(self, request: Awaitable[T], limit_s: float) -> T:
        """Wait for the answer to a request.

        Raises:
            RefusedError: the server answers with an error.
            ServerFailedError: the server does not answer, or has ended.
        """
        try:
            with anyio.fail_after(limit_s):
                return await request
        except TimeoutError:
            raise ServerFailedError("it does not answer") from None
        except JsonRpcException as error:
            raise RefusedError(error.code, error.message[:300]) from None

    async def begin(self, params: types.InitializeParams, limit_s: float) -> None:
        """Do what the protocol demands at the start.

        Raises:
            RefusedError, ServerFailedError: as in :meth:`answer`.
        """
        result = await self.answer(self.initialize_async(params), limit_s)
        self.capabilities = result.capabilities
        self.initialized(types.InitializedParams())
        if self._settings:
            self.workspace_did_change_configuration(types.DidChangeConfigurationParams(self._settings))

    def open(self, path: Path, language: str, text: str) -> None:
        """Show a file to the server, with version 1."""
        document = types.TextDocumentItem(path.as_uri(), language, 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def change(self, path: Path, version: int, text: str) -> None:
        """Send the new text of an open file."""
        document = types.VersionedTextDocumentIdentifier(version, path.as_uri())
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    def close(self, path: Path) -> None:
        """Close a file."""
        self.text_document_did_close(types.DidCloseTextDocumentParams(_identifier(path)))

    def touch(self, path: Path, kind: Literal["created", "changed", "deleted"], text: str | None) -> None:
        """Notify the server of what has happened to a file on the disk."""
        event = types.FileEvent(path.as_uri(), types.FileChangeType[kind.capitalize()])
        self.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        if text is not None:
            self.save(path, text)

    def save(self, path: Path, text: str) -> None:
        """Notify the server that an open file has been saved."""
        self.text_document_did_save(types.DidSaveTextDocumentParams(_identifier(path), text))

    @property
    def pulls(self) -> bool:
        """Return whether the server answers requests for diagnostics."""
        return self.capabilities.diagnostic_provider is not None

    async def pull(self, path: Path) -> Sequence[types.Diagnostic] | None:
        """Return the diagnostics of an open file; ``None`` if they have to be requested again.

        Raises:
            RefusedError: the server answers with an error.
            ServerFailedError: the server has ended.
        """
        provider = self.capabilities.diagnostic_provider
        identifier = None if provider is None else provider.identifier
        params = types.DocumentDiagnosticParams(_identifier(path), identifier=identifier)
        try:
            report = await self.text_document_diagnostic_async(params)
        except JsonRpcException as error:
            if error.code in RETRIED:
                return None
            raise RefusedError(error.code, error.message) from None
        return report.items if isinstance(report, types.RelatedFullDocumentDiagnosticReport) else []

    async def places(
        self, operation: Literal["definition", "references"], path: Path, line: int, character: int
    ) -> list[tuple[Path, int]]:
        """Return files and lines, in their order, where the name at a place is defined or used.

        Raises:
            JsonRpcException: the server answers with an error.
            ServerFailedError: the server has ended.
        """
        document, position = _identifier(path), types.Position(line, character)
        if operation == "definition":
            found = await self.text_document_definition_async(types.DefinitionParams(document, position))
        else:
            context = types.ReferenceContext(include_declaration=True)
            found = await self.text_document_references_async(types.ReferenceParams(context, document, position))
        return await anyio.to_thread.run_sync(_places, found)

    async def rename(self, path: Path, line: int, character: int, name: str) -> dict[Path, list[TextEdit]]:
        """Return the edits that give the symbol at a place another name, by file.

        Raises:
            ServerFailedError: the server has ended, or would create, move or delete files.
            JsonRpcException: the server answers with an error.
        """
        document, position = _identifier(path), types.Position(line, character)
        found = await self.text_document_rename_async(types.RenameParams(document, position, name))
        return await anyio.to_thread.run_sync(_edits, found)

    async def symbols(self, path: Path) -> list[str]:
        """Return the symbols of a file, one a line, those inside of others indented.

        Raises:
            JsonRpcException, ServerFailedError: as in :meth:`places`.
        """
        params = types.DocumentSymbolParams(_identifier(path))
        found = await self.text_document_document_symbol_async(params) or []
        return await anyio.to_thread.run_sync(_outline, found)


def _places(found: types.Location | Sequence[types.Location | types.LocationLink] | None) -> list[tuple[Path, int]]:
    """Return the files and lines of the locations in an answer."""
    places: set[tuple[Path, int]] = set()
    for one in found if isinstance(found, Sequence) else [found] if found else []:
        is_link = isinstance(one, types.LocationLink)
        uri, span = (one.target_uri, one.target_selection_range) if is_link else (one.uri, one.range)
        if (other := path_of(uri)) is not None:
            places.add((other, span.start.line))
    return sorted(places)


def _edits(found: types.WorkspaceEdit | None) -> dict[Path, list[TextEdit]]:
    """Return the edits in an answer, by file.

    Raises:
        ServerFailedError: there are others than edits of texts.
    """
    edits: dict[Path, list[TextEdit]] = {}
    changes = list((found.changes or {}).items()) if found is not None else []
    for change in (found.document_changes or []) if found is not None else []:
        if not isinstance(change, types.TextDocumentEdit):
            raise ServerFailedError("the new name would move files")
        changes.append((change.text_document.uri, [edit for edit in change.edits if _is_plain(edit)]))
    for uri, parts in changes:
        if (other := path_of(uri)) is None:
            raise ServerFailedError(f"the new name would change {uri}")
        edits.setdefault(other, []).extend(
            TextEdit(
                (part.range.start.line, part.range.start.character),
                (part.range.end.line, part.range.end.character),
                part.new_text,
            )
            for part in parts
        )
    return edits


def _outline(found: Sequence[types.DocumentSymbol | types.SymbolInformation]) -> list[str]:
    """Return symbols as lines of text."""
    lines: list[str] = []

    def add(symbol: types.DocumentSymbol | types.SymbolInformation, depth: int) -> None:
        nested = isinstance(symbol, types.DocumentSymbol)
        line = (symbol.range if nested else symbol.location.range).start.line
        lines.append(f"{'  ' * depth}{line + 1}: {symbol.kind.name.lower()} {symbol.name}")
        for child in (symbol.children or []) if nested and depth < DEEPEST_SYMBOL else []:
            add(child, depth + 1)

    for symbol in found:
        add(symbol, 0)
    return lines


def _is_plain(edit: Any) -> TypeGuard[types.TextEdit]:
    """Return whether an edit has its text, and not a template of it."""
    return hasattr(edit, "new_text")


def path_of(uri: str) -> Path | None:
    """Return the path of a URI; ``None`` if it is not that of a file."""
    path = to_fs_path(uri)
    return None if path is None else Path(path)


def _identifier(path: Path) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(path.as_uri())


def _converter() -> Converter:
    """Return the converter of pygls, which would make a class of each object in a message that it does not know."""
    converter = default_converter()

    def request(data: dict[str, Any], _cls: object) -> JsonRPCRequestMessage:
        return JsonRPCRequestMessage(data["id"], str(data["method"]), data["jsonrpc"], data.get("params"))

    def response(data: dict[str, Any], _cls: object) -> JsonRPCResponseMessage:
        return JsonRPCResponseMessage(data["id"], data["jsonrpc"], data.get("result"))

    def notification(data: dict[str, Any], _cls: object) -> JsonRPCNotification:
        return JsonRPCNotification(str(data["method"]), data["jsonrpc"], data.get("params"))

    converter.register_structure_hook(JsonRPCRequestMessage, request)
    converter.register_structure_hook(JsonRPCResponseMessage, response)
    converter.register_structure_hook(JsonRPCNotification, notification)
    return converter


def _member(value: Any, name: str) -> Any:
    """Return a member of an object with or without a class; ``None`` if there is none."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(name)
    return getattr(value, name, None)


def _section(settings: Mapping[str, Any], name: str) -> Any:
    found: Any = settings
    for part in filter(None, name.split(".")):
        found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
    return found


def initialize_params(root: Path, options: Any) -> types.InitializeParams:
    """Return what a server is told at its start.

    Without the id of a process: in a sandbox it would be that of another process, and the server would end with it.
    """
    formats = [types.MarkupKind.PlainText]
    return types.InitializeParams(
        capabilities=types.ClientCapabilities(
            general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf16]),
            window=types.WindowClientCapabilities(work_done_progress=True),
            workspace=types.WorkspaceClientCapabilities(
                configuration=True,
                workspace_folders=True,
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
                did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
                symbol=types.WorkspaceSymbolClientCapabilities(),
            ),
            text_document=types.TextDocumentClientCapabilities(
                synchronization=types.TextDocumentSyncClientCapabilities(did_save=True),
                publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True),
                diagnostic=types.DiagnosticClientCapabilities(related_document_support=True),
                definition=types.DefinitionClientCapabilities(),
                references=types.ReferenceClientCapabilities(),
                document_symbol=types.DocumentSymbolClientCapabilities(hierarchical_document_symbol_support=True),
                rename=types.RenameClientCapabilities(),
                hover=types.HoverClientCapabilities(content_format=formats),
            ),
            experimental={"serverStatusNotification": True},
        ),
        process_id=None,
        client_info=types.ClientInfo("jumpseat", __version__),
        root_path=str(root),
        root_uri=root.as_uri(),
        workspace_folders=[types.WorkspaceFolder(root.as_uri(), root.name)],
        initialization_options=options,
    )
