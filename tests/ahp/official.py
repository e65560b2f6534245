"""The official types and reducers of the protocol, from the crates ``ahp`` and ``ahp-types``, as a program.

``UPDATE_AHP=1 pytest tests/ahp/test_reducers.py`` builds the program, which takes minutes at first, and writes the
recorded states anew. Other runs use the program only if it is built.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import pytest

from tests.support.toolchains import tool_folder

Case: TypeAlias = dict[str, Any]

SOURCE: Final = Path(__file__).parent / "reference"
UPDATE: Final = bool(os.environ.get("UPDATE_AHP"))
BUILD_S: Final = 1800

RESULTS: Final = {
    "ping": "null",
    "createSession": "null",
    "disposeSession": "null",
    "authenticate": "AuthenticateResult",
    "completions": "CompletionsResult",
    "createResourceWatch": "CreateResourceWatchResult",
    "fetchTurns": "FetchTurnsResult",
    "initialize": "InitializeResult",
    "invokeChangesetOperation": "InvokeChangesetOperationResult",
    "listSessions": "ListSessionsResult",
    "reconnect": "ReconnectResult",
    "resolveSessionConfig": "ResolveSessionConfigResult",
    "resourceList": "ResourceListResult",
    "resourceRead": "ResourceReadResult",
    "resourceRequest": "ResourceRequestResult",
    "resourceResolve": "ResourceResolveResult",
    "sessionConfigCompletions": "SessionConfigCompletionsResult",
    "subscribe": "SubscribeResult",
}
NOTIFICATIONS: Final = {
    "action": "ActionEnvelope",
    "auth/required": "AuthRequiredParams",
    "root/progress": "ProgressParams",
    "root/sessionAdded": "SessionAddedParams",
    "root/sessionRemoved": "SessionRemovedParams",
    "root/sessionSummaryChanged": "SessionSummaryChangedParams",
}
"""The official types of what a server sends, by method."""


class Judge:
    """The running program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, case: Case) -> Any:
        """Return the answer to one case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(case)}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def check_messages(self, messages: Sequence[Case], methods: dict[int, str]) -> None:
        """Check that the official types read messages without loss; ``methods`` are those of the requests."""
        seen: set[str] = set()
        for message in messages:
            if (method := message.get("method")) is not None:
                kind, value = NOTIFICATIONS[method], message["params"]
                if "rejectionReason" in value:
                    # The action is the client's own, however it was.
                    value = {**value, "action": {"type": "session/ready"}}
            elif "error" in message:
                kind, value = "JsonRpcErrorResponse", message
            else:
                kind, value = RESULTS[methods[message["id"]]], message["result"]
            # What repeats is judged once.
            if (text := f"{kind} {json.dumps(value)}") not in seen:
                seen.add(text)
                answer = self.ask({"decode": kind, "value": value})
                assert plain(answer.get("encoded")) == plain(value), f"{kind}: {value}\n{answer}"


@cache
def judge() -> Judge | None:
    """Return the running program, one for all connections of a test process; ``None`` if it is not built."""
    with tool_folder("ahp-judge") as folder:
        program = folder / "target" / "debug" / "ahp-reference"
    if not program.exists():
        return None
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return Judge(process)


def states(cases: Iterable[Case]) -> list[Any]:
    """Return the states to which the official reducers come; the test is skipped without the program."""
    with tool_folder("ahp-judge") as folder:
        program = folder / "target" / "debug" / "ahp-reference"
        if UPDATE:
            shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
            environ = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
            subprocess.run(["cargo", "build", "--quiet"], cwd=folder, env=environ, timeout=BUILD_S, check=True)
        elif not program.exists():
            pytest.skip("the official reducers are not built: UPDATE_AHP=1 builds them once")
        lines = "".join(f"{json.dumps(case)}\n" for case in cases)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def plain(value: Any) -> Any:
    """Return a value in which absent members stand for ``null``, which is the same in the protocol."""
    match value:
        case dict():
            members = cast("Case", value).items()
            return {name: plain(member) for name, member in members if member is not None}
        case list():
            return [plain(item) for item in cast("list[Any]", value)]
        case _:
            return value
