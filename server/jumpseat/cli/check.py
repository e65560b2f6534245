"""``jumpseat check``: send one small request to a model of an adapter, and diagnose a failure.

A key is never shown, only whether it is set.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from msgspec.structs import asdict

from jumpseat.adapters.models.checking import TIMEOUT_S, check_model
from jumpseat.adapters.models.diagnosis import WORKS
from jumpseat.adapters.models.resolver import Models
from jumpseat.cli.commands import CommandContext, CommandParser, print_json, print_text
from jumpseat.cli.models import with_models
from jumpseat.config import Config

DESCRIPTION: Final = (
    "Send one small request to a model of an adapter, and diagnose a failure. 'jumpseat check sandbox' says what"
    " confines commands on this machine, and what it does not stop."
)

SANDBOX: Final = "sandbox"
"""In the place of an adapter: check the sandbox."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "adapter", metavar="ADAPTER", help="name of the adapter, as in 'jumpseat adapters', or 'sandbox'"
    )
    parser.add_argument(
        "model", nargs="?", help="default: the first model that the adapter declares or its provider lists"
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=TIMEOUT_S, metavar="S", help="time-out in seconds; default: 60"
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="with 'sandbox': print what each mechanism stops as a table in Markdown",
    )
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    if args.adapter == SANDBOX:
        from jumpseat.cli.check_sandbox import check_sandbox

        return check_sandbox(ctx.environ, as_json=args.json, as_table=args.table)
    return with_models(ctx, partial(_check, ctx, args))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, at most 86400, got {text!r}")
    return seconds


async def _check(ctx: CommandContext, args: argparse.Namespace, models: Models, config: Config) -> int:
    """Try the functions of the adapter, send one small request, and print a paragraph with the result."""
    del ctx, config
    found = await check_model(models, args.adapter, args.model, args.timeout)
    facts, dry_run, diagnosis = found.facts, found.dry_run, found.diagnosis
    if args.json:
        result = {
            "adapter": facts.adapter,
            "model": facts.model or None,
            "address": facts.address if facts.address != facts.adapter else None,
            "works": diagnosis.exit_code == WORKS,
            "answer": found.answer,
            "problems": [asdict(problem) for problem in dry_run.problems] or None if dry_run else None,
            "warning": dry_run.warning or None if dry_run else None,
            "explanation": diagnosis.text,
            "exitCode": diagnosis.exit_code,
        }
        print_json({key: value for key, value in result.items() if value is not None})
        return diagnosis.exit_code
    if diagnosis.exit_code == WORKS:
        print_text(f"{found.name} works: asked for one word, the model answered {found.answer!r}.")
    else:
        print_text(f"{found.name} does not work. {diagnosis.text}")
    if dry_run is not None and not dry_run.problems:
        # The provider's answer exercised the handlers that samples cannot.
        for text in ("" if diagnosis.exit_code == WORKS else dry_run.untried, dry_run.warning):
            if text:
                print_text(text)
    return diagnosis.exit_code
