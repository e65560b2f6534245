"""``jumpseat cluster status``: list the replicas of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from jumpseat.cli.commands import FAILED, CommandContext, CommandParser, print_json, print_table, print_text
from jumpseat.config import load_config
from jumpseat.errors import ConfigError

if TYPE_CHECKING:
    from jumpseat.cluster.nats.settings import ClusterSettings

_COLUMNS: Final = (
    *("host", "version", "relay", "nats", "owned", "clients", "relayedClients", "relayed", "takeovers", "appendMs"),
    "beatAgeS",
)


DESCRIPTION: Final = "Look at the replicas of a cluster."


def add_arguments(parser: CommandParser) -> None:
    parser.add_command("status", "list the replicas and the stored data").add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    return anyio.run(_status, load_cluster_settings(ctx), args.json)


def load_cluster_settings(ctx: CommandContext) -> ClusterSettings:
    """Return the settings of ``[store]``.

    Raises:
        ConfigError: there are none, or the package for NATS is not installed.
    """
    config = load_config(ctx.home).store
    if config.url is None:
        raise ConfigError(f"{ctx.home / 'config.toml'}: there is no [store] url")
    try:
        from jumpseat.cluster.nats import jetstream
    except ImportError:
        from jumpseat.system.installation import how_to_add

        raise ConfigError(f"store.url needs the package nats-py: {how_to_add('cluster')}") from None
    del jetstream
    from jumpseat.cluster.nats.settings import cluster_settings

    return cluster_settings(config, ctx.environ)


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
