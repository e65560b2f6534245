"""A session of many prompts with tools in the small window of a real model.

::

    make test-models ARGS='--session 24 --window 4096'

The model is too small to call tools by itself. So a relay in front of its server answers each new prompt with a
call of ``view``, and passes all other requests on: the real server reads and counts the results, refuses what is
too long, and writes the answers and summaries.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

PROMPT_S: Final = 1800
MARK: Final = "Read the file "
CHARS: Final = 1500
"""The size of each file that the session reads."""


class Relay(ThreadingHTTPServer):
    """Calls ``view`` for each new prompt, and passes all else on to ``port``."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = f"http://127.0.0.1:{port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        last = json.loads(content)["messages"][-1]["content"]
        text = last if isinstance(last, str) else last[-1]["text"]
        if text.startswith(MARK) or f"\n{MARK}" in text:
            name = text.rpartition(MARK)[2].split()[0]
            call = json.dumps({"name": "view", "arguments": {"path": name}})
            delta = {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"}
            choices: list[dict[str, Any]] = [{"delta": delta}, {"delta": {}, "finish_reason": "stop"}]
            data = "".join(f"data: {json.dumps({'choices': [{'index': 0, **each}]})}\n\n" for each in choices)
            self._send(200, "text/event-stream", f"{data}data: [DONE]\n\n".encode())
        else:
            self._pass_on(content)

    def _pass_on(self, content: bytes | None) -> None:
        headers = {"Content-Type": "application/json"} if content else {}
        assert isinstance(self.server, Relay)
        request = urllib.request.Request(f"{self.server.upstream}{self.path}", content, headers)
        try:
            with urllib.request.urlopen(request, timeout=PROMPT_S) as answer:
                self._send(answer.status, answer.headers["Content-Type"], answer.read())
        except urllib.error.HTTPError as error:
            self._send(error.code, "application/json", error.read())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def run_session(model: str, prompts: int, work: Path, environ: dict[str, str]) -> Counter[str]:
    """Run the prompts of one session, each in a process of its own; return how often each thing has happened."""
    seen: Counter[str] = Counter()
    work.mkdir()
    for number in range(prompts):
        path = work / f"part{number}.txt"
        path.write_text(f"Part {number} of a story. " * (CHARS // 25), encoding="utf-8")
        command = [sys.executable, "-m", "jumpseat", "run", "--model", model, "--yolo"]
        command += ["--output-format", "stream-json", *(["--continue"] if number else [])]
        done = subprocess.run(
            [*command, "-p", f"{MARK}{path.name} and say hello."],
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROMPT_S,
            check=False,
        )
        seen["prompts"] += 1
        seen["failed"] += done.returncode != 0
        for line in done.stdout.splitlines():
            event: dict[str, Any] = json.loads(line)
            _count(seen, event.get("type", ""), event.get("data") or {})
        print(f"  {number}: exit code {done.returncode} {done.stderr.strip()[-200:]}", flush=True)
    return seen


def _count(seen: Counter[str], kind: str, data: dict[str, Any]) -> None:
    match kind:
        case "tool.execution_complete":
            seen["calls"] += data["success"]
        case "session.truncation":
            seen["clearings"] += 1
        case "session.compaction_complete":
            seen["summaries" if data["success"] else "failed summaries"] += 1
        case "assistant.message" if not data["content"].strip() and not data["toolRequests"]:
            seen["empty answers"] += 1
        case "session.error":
            seen["errors"] += 1
        case "session.warning":
            seen[f"warnings: {data['warningType']}"] += 1
        case _:
            pass
