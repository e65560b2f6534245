"""``jumpseat adapters``: list the adapters, their sources, and whether their keys are set. No key is shown."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from jumpseat.adapters.models.diagnosis import NOT_CONFIGURED, WORKS
from jumpseat.adapters.models.known_adapters import KnownAdapter, known_adapters
from jumpseat.adapters.models.resolver import Models
from jumpseat.cli.commands import CommandContext, CommandParser, print_json, print_table, print_text
from jumpseat.cli.models import with_models
from jumpseat.config import Config

DESCRIPTION: Final = "List the adapters, their sources, and whether their keys are set."


def add_arguments(parser: CommandParser) -> None:
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    return with_models(ctx, partial(_show_adapters, ctx, args))


async def _show_adapters(ctx: CommandContext, args: argparse.Namespace, models: Models, config: Config) -> int:
    found = known_adapters(models.adapters, config, models.environ)
    code = NOT_CONFIGURED if any(adapter.problem for adapter in found) else WORKS
    if args.json:
        print_json(
            [
                {
                    "name": adapter.name,
                    "origin": adapter.origin,
                    "type": adapter.type,
                    "address": adapter.address,
                    "keyEnv": adapter.key_env,
                    "hasKey": adapter.has_key,
                    "usable": adapter.usable,
                    "models": adapter.models,
                    **({"problem": adapter.problem} if adapter.problem else {}),
                }
                for adapter in found
            ]
        )
        return code
    rows = [("NAME", "FROM", "TYPE", "KEY", "MODELS", "ADDRESS")]
    rows += [
        (
            adapter.name,
            adapter.origin,
            adapter.type,
            _key_state(adapter),
            str(adapter.models or "-"),
            adapter.address or "-",
        )
        for adapter in found
        if adapter.problem is None
    ]
    print_table(rows)
    for adapter in found:
        if adapter.problem is not None:
            print_text(f"{adapter.name} cannot be used: {adapter.problem}")
    if not any(adapter.usable for adapter in found):
        print_text("\nNo adapter can be used yet: run 'jumpseat setup', or set an adapter's variable.")
    return code


def _key_state(adapter: KnownAdapter) -> str:
    if adapter.key_env is None:
        return "none named"
    return f"{adapter.key_env}: {'set' if adapter.has_key else 'not set'}"
