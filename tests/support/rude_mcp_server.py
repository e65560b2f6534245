"""An MCP server on stdio, in plain JSON, that misbehaves in the way that its first argument names."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any


def say(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tools(mode: str) -> list[dict[str, Any]]:
    if mode == "nasty":
        return json.loads(Path(sys.argv[2]).read_text())
    names = [f"tool-{number}" for number in range(10_000)] if mode == "many" else ["go"]
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def main(mode: str) -> None:
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "silent":
        time.sleep(600)
    if mode == "noisy":
        while True:
            print("this is no message")
    if mode == "endless":
        while True:
            sys.stdout.write("x" * 65536)
    if mode == "dying":
        print("cannot open the database with key hunter2-hunter2", file=sys.stderr)
        sys.exit(7)
    while mode == "late" and not Path(sys.argv[2]).exists():
        time.sleep(0.01)
    answers: list[Any] = json.loads(Path(sys.argv[2]).read_text()) if mode in ("answering", "garbling") else []
    pages = 0
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                print("Welcome to a server that greets on stdout!", flush=True)
                result = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "rude", "version": "1"},
                }
                say({"jsonrpc": "2.0", "id": message["id"], "result": result})
            case "tools/list":
                if mode == "growing":
                    page = int(message.get("params", {}).get("cursor") or 0)
                    more = {} if page == pages else {"nextCursor": str(page + 1)}
                    named = {"name": f"tool-{page}" if page else "go", "inputSchema": {"type": "object"}}
                    say({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [named], **more}})
                elif mode == "unlisting":
                    say({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": "none"}})
                else:
                    say({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools(mode)}})
            case "tools/call" if mode == "growing" and not pages:
                pages = 50
                say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
                say({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})
            case "tools/call" if mode == "flooding":
                changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
                for _ in range(300):
                    say(changed)
                answer: dict[str, Any] = {"content": [{"type": "text", "text": "over"}]}
                say({"jsonrpc": "2.0", "id": message["id"], "result": answer})
                while True:
                    say(changed)
            case "tools/call" if mode == "babbling":
                say({"jsonrpc": "2.0", "id": message["id"], "result": {"content": "nonsense"}})
            case "tools/call" if mode == "answering":
                say({"jsonrpc": "2.0", "id": message["id"], "result": answers.pop(0)})
            case "tools/call" if mode == "garbling":
                text = json.dumps(answers.pop(0)).replace('"ID"', str(message["id"]))
                print(text.replace('"NESTED"', "[" * 2000 + "]" * 2000), flush=True)
            case "tools/call" if mode == "cutting":
                content = rb'[{"type": "text", "text": "cut \ud83d ' + b"\xff" + b'"}]'
                line = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": %b}}\n' % (message["id"], content)
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
            case "tools/call":
                answer = {"content": [{"type": "text", "text": "ok"}]}
                say({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            case "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                say({"jsonrpc": "2.0", "id": message["id"], "error": error})
            case _:
                pass
    if mode == "deaf":
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
