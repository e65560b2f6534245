"""``jumpseat store copy``: copy sessions between files and a cluster."""

from __future__ import annotations

import argparse
from typing import Final

import anyio

from jumpseat.cli.cluster import load_cluster_settings
from jumpseat.cli.commands import FAILED, CommandContext, CommandParser, print_text

DESCRIPTION: Final = "Move sessions between files and a cluster."


def add_arguments(parser: CommandParser) -> None:
    copy = parser.add_command(
        "copy",
        "copy sessions from files to the cluster, or back",
        "Copy sessions that are not open. The originals remain; sessions that exist are left out.",
    )
    copy.add_argument("--to", choices=("cluster", "files"), required=True, help="where the copies go")
    copy.add_argument("--session", action="append", default=[], metavar="ID", help="only this one; can be repeated")


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    return anyio.run(_copy, ctx, args)


async def _copy(ctx: CommandContext, args: argparse.Namespace) -> int:
    settings = load_cluster_settings(ctx)
    from jumpseat.cluster.admin import copy_to_cluster, copy_to_files

    copy = copy_to_cluster if args.to == "cluster" else copy_to_files
    failed = copied = 0
    async for session_id, outcome, reason in copy(settings, ctx.home, frozenset(args.session)):
        print_text(f"{session_id}: {outcome}{': ' if reason else ''}{reason}")
        copied += outcome == "copied"
        failed += outcome in ("failed", "open")
    print_text(f"{copied} copied")
    return FAILED if failed else 0
