"""Servers whose answers hold a given text: ``foreign_servers.py mcp|lsp PLACE FILE``, on stdio.

The MCP server puts the text of the file into the ``PLACE`` of its messages, and so does the language server.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPEN: dict[str, Any] = {"type": "object", "properties": {}}


def serve_mcp(place: str, text: str) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        for answer in _mcp_messages(place, text, message):
            sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
            sys.stdout.buffer.flush()
        if place == "elicitation" and message["method"] == "tools/call":
            # Whatever the answer is.
            sys.stdin.buffer.readline()
            _write_line({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})


def _write_line(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def _mcp_messages(place: str, text: str, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    def result(value: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": message["id"], "result": value}

    match message["method"]:
        case "initialize":
            info = {"name": "foreign", "version": "1"}
            said = {"instructions": text} if place == "instructions" else {}
            version = message["params"]["protocolVersion"]
            yield result({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info, **said})
        case "tools/list":
            yield result({"tools": _tools(place, text)})
        case "tools/call" if place == "elicitation":
            schema = {"type": "object", "properties": {"a": {"type": "string", "description": text}}}
            params = {"message": text, "requestedSchema": schema}
            yield {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
        case "tools/call" if place == "error":
            yield {"jsonrpc": "2.0", "id": message["id"], "error": {"code": 1, "message": text}}
        case "tools/call":
            if place == "notifications":
                for at in range(0, len(text), 100):
                    params = {"level": "info", "data": text[at : at + 100]}
                    yield {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
            value: dict[str, Any] = {"content": [{"type": "text", "text": text if place == "result" else "done"}]}
            if place == "structure":
                value["structuredContent"] = {part: [part] for part in _parts(text, 20)}
            yield result(value)
        case _:
            yield {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}


def _tools(place: str, text: str) -> list[dict[str, Any]]:
    described = text if place == "description" else "does something"
    schema = OPEN
    if place == "schema":
        # As a name, a pattern, a description and choices.
        quarter = len(text) // 4
        member = {"type": "string", "pattern": text[:quarter], "description": text[:quarter]}
        schema = {
            "type": "object",
            "properties": {text[:quarter]: member, "b": {"enum": _parts(text[:quarter], 9)}},
        }
    elif place == "members":
        schema = {"type": "object", "properties": {part: {"type": "string"} for part in _parts(text, 40)}}
    names = ["act", *(_parts(text, 60) if place == "names" else [])]
    return [{"name": name, "description": described, "inputSchema": schema} for name in names]


def _parts(text: str, length: int) -> list[str]:
    """Return parts of a text, with numbers that make them different."""
    return [f"{text[at : at + length]}{at}" for at in range(0, len(text), length)]


def serve_lsp(place: str, text: str) -> None:
    while length := _length():
        message = json.loads(sys.stdin.buffer.read(length))
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            _send({"id": number, "result": {"capabilities": {"textDocumentSync": 1}}})
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            found = [_diagnostic(part) for part in (_parts(text, 100) if place == "many" else [text])]
            params = {"uri": message["params"]["textDocument"]["uri"], "diagnostics": found}
            _send({"method": "textDocument/publishDiagnostics", "params": params})
        elif number is not None and method is not None:
            _send({"id": number, "result": None})


def _length() -> int:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length"):
            length = int(line.split(b":")[1])
    return length


def _send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def _diagnostic(message: str) -> dict[str, Any]:
    spot = {"line": 0, "character": 0}
    return {"range": {"start": spot, "end": spot}, "message": message, "source": "s"}


if __name__ == "__main__":
    kind, where, file = sys.argv[1:]
    foreign = Path(file).read_text("utf-8", "replace")
    (serve_mcp if kind == "mcp" else serve_lsp)(where, foreign)
