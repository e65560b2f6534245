"""``jumpseat cluster status`` and ``jumpseat store copy``: the commands for the people who run a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from jumpseat.cli.output import FAILED, CommandParser, print_error, print_json, print_table, print_text
from jumpseat.config import home_folder, load_config
from jumpseat.errors import ConfigError, JumpseatError

if TYPE_CHECKING:
    from jumpseat.cluster.nats.settings import ClusterSettings

_COLUMNS: Final = (
    *(
        "host",
        "version",
        "relay",
        "nats",
        "owned",
        "clients",
        "relayedClients",
        "relayed",
        "takeovers",
        "appendMs",
        "beatAgeS",
    ),
)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command in ``argv``, which begins with ``cluster`` or ``store``; return the exit code."""
    args = _parse(argv)
    given = {name: value for name, value in environ.items() if value}
    home = home_folder(given)
    try:
        settings = _settings(home, given)
        if args.command == "status":
            return anyio.run(_status, settings, args.json)
        return anyio.run(_copy, settings, home, args)
    except* JumpseatError as group:
        for error in group.exceptions:
            print_error(str(error))
    return FAILED


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(prog="jumpseat", allow_abbrev=False)
    groups = parser.add_subparsers(dest="group", required=True, metavar="cluster | store")
    cluster = groups.add_parser("cluster", help="look at the replicas", allow_abbrev=False)
    commands = cluster.add_subparsers(dest="command", required=True, metavar="status")
    status = commands.add_parser("status", help="list the replicas and what is stored", allow_abbrev=False)
    status.add_argument("--json", action="store_true", help="print JSON")
    store = groups.add_parser("store", help="move sessions", allow_abbrev=False)
    commands = store.add_subparsers(dest="command", required=True, metavar="copy")
    copy = commands.add_parser(
        "copy",
        help="copy sessions from files to the cluster, or back",
        description="Copy sessions that nobody has open. The originals stay; sessions that exist are left out.",
        allow_abbrev=False,
    )
    copy.add_argument("--to", choices=("cluster", "files"), required=True, help="where the copies go")
    copy.add_argument("--session", action="append", default=[], metavar="ID", help="only this one; can be repeated")
    return parser.parse_args(argv)


def _settings(home: Path, environ: Mapping[str, str]) -> ClusterSettings:
    config = load_config(home).store
    if config.url is None:
        raise ConfigError(f"{home / 'config.toml'}: there is no [store] url")
    try:
        from jumpseat.cluster.nats import jetstream
    except ImportError:
        raise ConfigError("store.url needs the package nats-py: install jumpseat[cluster]") from None
    del jetstream
    from jumpseat.cluster.nats.settings import cluster_settings

    return cluster_settings(config, environ)


async def _status(settings: ClusterSettings, as_json: bool) -> int:
    from jumpseat.cluster.admin import cluster_status

    status = await cluster_status(settings)
    if as_json:
        print_json(status)
    else:
        _print(status)
    return 0 if status["replicas"] else FAILED


def _print(status: Mapping[str, Any]) -> None:
    print_text(f"cluster {status['name']}: {status['sessions']} sessions, {status['open']} open")
    rows: list[tuple[str, ...]] = [("replica", *_COLUMNS)]
    for replica in status["replicas"]:
        draining = " (draining)" if replica.get("draining") else ""
        rows.append((f"{replica['id']}{draining}", *(_cell(replica.get(name)) for name in _COLUMNS)))
    print_table(rows)
    for replica in status["replicas"]:
        if replica["incompatible"]:
            others = ", ".join(replica["incompatible"])
            print_text(f"{replica['id']} cannot relay to {others}: they speak other versions of the relay protocol")
    rows = [("store", "messages", "bytes", "copies", "leader")]
    rows += [
        tuple(_cell(store[name]) for name in ("name", "messages", "bytes", "copies", "leader"))
        for store in status["stores"]
    ]
    print_table(rows)


def _cell(value: object) -> str:
    if isinstance(value, list):
        # The oldest and the newest version.
        return "-".join(map(str, dict.fromkeys(cast("list[int]", value))))
    return "-" if value is None else str(value)


async def _copy(settings: ClusterSettings, home: Path, args: argparse.Namespace) -> int:
    from jumpseat.cluster.admin import copy_to_cluster, copy_to_files

    copy = copy_to_cluster if args.to == "cluster" else copy_to_files
    failed = copied = 0
    async for session_id, outcome, reason in copy(settings, home, frozenset(args.session)):
        print_text(f"{session_id}: {outcome}{': ' if reason else ''}{reason}")
        copied += outcome == "copied"
        failed += outcome in ("failed", "open")
    print_text(f"{copied} copied")
    return FAILED if failed else 0
