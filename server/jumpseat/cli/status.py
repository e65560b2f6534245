"""``jumpseat status``: the health of running servers, as their ``--metrics-port`` shows it."""

from __future__ import annotations

import argparse
import http.client
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jumpseat.cli.commands import (
    FAILED,
    CommandContext,
    CommandParser,
    print_error,
    print_json,
    print_table,
    print_text,
)
from jumpseat.errors import JumpseatError
from jumpseat.store.user.running_servers import RunningServers

TIMEOUT_S: Final = 5.0
LARGEST_BYTES: Final = 1 << 20


DESCRIPTION: Final = (
    "Print the health of the servers that were started with --metrics-port. The exit code is 0 if all are ready."
)


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--port", type=int, help="only the server with this --metrics-port")
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    if args.port is not None:
        found = [_status(args.port)]
    else:
        servers = RunningServers(ctx.home)
        found: list[dict[str, Any]] = []
        for server in servers.all():
            status = _status(server.metrics_port)
            if status.get("pid") == server.pid:
                found.append({**status, "startedAt": server.started_at})
            else:
                _forget(servers, server.pid)
    if args.json:
        print_json(found)
    elif found:
        _print(found)
    if not found:
        print_error("no server with --metrics-port runs in this home folder")
    return 0 if found and all(status["ready"] for status in found) else FAILED


def _status(port: int) -> dict[str, Any]:
    """Return the status of the server with a metrics port; if there is none, one with ``ready`` false."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/status")
        value = json.loads(connection.getresponse().read(LARGEST_BYTES))
    except (OSError, ValueError, http.client.HTTPException, OverflowError) as error:
        return {"ready": False, "metricsPort": port, "problems": [f"no answer on port {port}: {error}"]}
    finally:
        connection.close()
    if not isinstance(value, dict) or "ready" not in value:
        return {"ready": False, "metricsPort": port, "problems": [f"port {port} belongs to another program"]}
    return {**value, "metricsPort": port}


def _forget(servers: RunningServers, pid: int) -> None:
    """Remove the entry of a server that was killed, if the file can be written."""
    try:
        servers.remove(pid)
    except JumpseatError as error:
        print_error(str(error))


def _print(found: Sequence[Mapping[str, Any]]) -> None:
    for status in found:
        rows = [("ready", "yes" if status["ready"] else "no")]
        rows += [("problem", str(problem)) for problem in status.get("problems", ())]
        names = ("version", "pid", "startedAt", "home", "metricsPort", "connections")
        rows += [(name, str(status[name])) for name in names if name in status]
        rows += [
            (name, str(status[name])) for name in ("sessions", "running", "waiting", "questions") if name in status
        ]
        print_table(rows)
        if status is not found[-1]:
            print_text("")
