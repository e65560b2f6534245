"""A language server for tests, on pygls: ``word_server.py [FAULT]``.

Files are lists of words. ``def NAME`` defines a name, ``use NAME`` uses one of any file in the project; an unknown
name is an error, ``warn NAME`` a warning. ``call NAME`` is an error if the name is known. A line that begins with
``!`` is a fault, which the server has when the file is opened or changed; a fault on the command line is one that
it has at once.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""

server = LanguageServer("words", "1", text_document_sync_kind=types.TextDocumentSyncKind.Full)


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(body: str) -> None:
    write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body.encode()))


def fail(fault: str) -> None:
    match fault:
        case "crash":
            os._exit(1)
        case "hang":
            time.sleep(3600)
        case "garbage":
            write(b"this is no message\r\n\r\n" * 10_000)
        case "huge":
            write(b"Content-Length: 104857600\r\n\r\n" + b" " * 1024)
        case "flood":
            while True:
                server.window_log_message(types.LogMessageParams(types.MessageType.Info, "flood"))
        case "exit":
            server.protocol.notify("exit", None)
        case "invalid":
            send('{"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": {"uri": 1}}')
        case _:
            raise AssertionError(fault)


def texts() -> dict[str, list[str]]:
    """Return the lines of all files of the project, by URI: of open ones with their unsaved text."""
    root = Path(server.workspace.root_path or ".")
    found = {path.as_uri(): path.read_text().splitlines() for path in sorted(root.rglob("*.words"))}
    found |= {uri: document.source.splitlines() for uri, document in server.workspace.text_documents.items()}
    return found


def places(kind: str, name: str) -> list[types.Location]:
    return [
        types.Location(uri, _range(number, line, name))
        for uri, lines in texts().items()
        for number, line in enumerate(lines)
        if line.split() == [kind, name]
    ]


def _range(number: int, line: str, name: str) -> types.Range:
    at = line.index(name)
    return types.Range(types.Position(number, at), types.Position(number, at + len(name)))


def check(uri: str) -> None:
    document = server.workspace.get_text_document(uri)
    for line in document.source.splitlines():
        if line.startswith("!"):
            _misbehave(uri, line[1:])
    for open_uri in list(server.workspace.text_documents):
        publish(open_uri)


def _misbehave(uri: str, fault: str) -> None:
    if fault == "many":
        spot = '{"line": 0, "character": 0}'
        one = f'{{"range": {{"start": {spot}, "end": {spot}}}, "message": "wrong"}}'
        send(
            '{"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params":'
            f' {{"uri": "{uri}", "diagnostics": [{", ".join([one] * 100_000)}]}}}}'
        )
    elif fault == "elsewhere":
        root = Path(server.workspace.root_path or ".")
        spot = types.Range(types.Position(0, 0), types.Position(0, 0))
        for path in (root, root.parent / "b.words"):
            wrong = types.Diagnostic(spot, "wrong", types.DiagnosticSeverity.Error)
            server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(path.as_uri(), [wrong]))
    elif fault == "edit":
        changes = {uri: [types.TextEdit(types.Range(types.Position(0, 0), types.Position(0, 0)), "edited\n")]}
        server.workspace_apply_edit(types.ApplyWorkspaceEditParams(types.WorkspaceEdit(changes)))
        server.window_show_message_request(types.ShowMessageRequestParams(types.MessageType.Error, "Which?"))
    else:
        fail(fault)


def publish(uri: str) -> None:
    document = server.workspace.get_text_document(uri)
    defined = {line.split()[1] for lines in texts().values() for line in lines if line.startswith("def ")}
    found = [
        types.Diagnostic(
            _range(number, line, words[1]),
            f"unknown name {words[1]}",
            types.DiagnosticSeverity.Error if words[0] == "use" else types.DiagnosticSeverity.Warning,
            code="unknown",
            source="words",
        )
        for number, line in enumerate(document.source.splitlines())
        if len(words := line.split()) == 2 and words[0] in ("use", "warn") and words[1] not in defined
    ]
    found += [
        types.Diagnostic(_range(number, line, words[1]), "missing argument", source="words")
        for number, line in enumerate(document.source.splitlines())
        if len(words := line.split()) == 2 and words[0] == "call" and words[1] in defined
    ]
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, document.version))


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def opened(params: types.DidOpenTextDocumentParams) -> None:
    check(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def changed(params: types.DidChangeTextDocumentParams) -> None:
    check(params.text_document.uri)


@server.feature(types.INITIALIZED)
def begin(_params: Any) -> None:
    if FAULT and FAULT != "stay":
        fail(FAULT)


def _word(uri: str, position: types.Position) -> str:
    return server.workspace.get_text_document(uri).lines[position.line].split()[-1]


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
def definition(params: types.DefinitionParams) -> list[types.Location]:
    return places("def", _word(params.text_document.uri, params.position))


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
def references(params: types.ReferenceParams) -> list[types.Location]:
    name = _word(params.text_document.uri, params.position)
    return places("def", name) + places("use", name)


@server.feature(types.TEXT_DOCUMENT_RENAME)
def rename(params: types.RenameParams) -> types.WorkspaceEdit:
    changes: dict[str, list[types.TextEdit]] = {}
    name = _word(params.text_document.uri, params.position)
    for place in places("def", name) + places("use", name) + places("call", name):
        changes.setdefault(place.uri, []).append(types.TextEdit(place.range, params.new_name))
    return types.WorkspaceEdit(changes)


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    lines = texts()[params.text_document.uri]
    return [
        types.DocumentSymbol(line.split()[1], types.SymbolKind.Variable, span, span)
        for number, line in enumerate(lines)
        if line.startswith("def ") and (span := _range(number, line, line.split()[1]))
    ]


if __name__ == "__main__":
    if FAULT == "refuse":
        sys.exit(3)
    server.start_io()
    if FAULT == "stay":
        # Under another name, so that a test sees the end of its input.
        os.execvp("sleep", ["sleep", "60"])
