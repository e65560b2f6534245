"""``jumpseat script``: play scripts and report failures.

Exit codes: 0, all scripts passed; 1, a script failed; 2, a file or argument is invalid, or the server cannot run.
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Final

import anyio

from jumpseat.cli.commands import (
    FAILED,
    USAGE_ERROR,
    CommandContext,
    CommandParser,
    print_error,
    print_json,
    print_text,
)
from jumpseat.script.patterns import ScriptError
from jumpseat.script.play import Outcome, PlayOptions
from jumpseat.script.play_file import play_file

DESCRIPTION: Final = "Play scripts of JSON-RPC messages against any server and report where it deviates."


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a script, a transcript or a client's log"
    )
    parser.add_argument(
        "--server", type=shlex.split, metavar="COMMAND", help="the server to test, instead of the script's own"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the server's files in this folder")
    parser.add_argument(
        "--files",
        dest="project",
        type=Path,
        metavar="DIR",
        help="the files of the project that a client's log was recorded with",
    )
    parser.add_argument("--update", action="store_true", help="replace the server's lines of a transcript")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the whole conversation and stderr")
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    del ctx
    wrong = False
    outcomes: list[Outcome] = []
    for path in args.files:
        try:
            outcome = anyio.run(_play, path, args)
        except ScriptError as error:
            print_error(f"{path.name}: {error}")
            wrong = True
        else:
            outcomes.append(outcome)
            if not args.json:
                _show(outcome, args)
    if args.json:
        print_json([_as_json(outcome) for outcome in outcomes])
    if wrong:
        return USAGE_ERROR
    return 0 if all(outcome.ok for outcome in outcomes) else FAILED


async def _play(path: Path, args: argparse.Namespace) -> Outcome:
    keep = args.keep
    if keep is not None:
        keep = (keep if len(args.files) == 1 else keep / path.stem).resolve()
        keep.mkdir(parents=True, exist_ok=True)
    return await play_file(path, PlayOptions(args.server, keep, args.project), update=args.update)


def _show(outcome: Outcome, args: argparse.Namespace) -> None:
    verdict = "ok    " if outcome.ok else "FAILED"
    steps = f"{outcome.steps} step{'' if outcome.steps == 1 else 's'}"
    print_text(f"{verdict} {outcome.name} ({steps}, {outcome.seconds:.2f} s)")
    for failure in outcome.failures:
        print_text("  " + failure.replace("\n", "\n  "))
    if args.verbose:
        for message in outcome.conversation:
            print_text(f"  {message.direction} {json.dumps(message.message, ensure_ascii=False)}")
        if outcome.stderr.strip():
            print_text("  stderr: " + outcome.stderr.strip().replace("\n", "\n  "))


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.name,
        "ok": outcome.ok,
        "steps": outcome.steps,
        "seconds": round(outcome.seconds, 3),
        "failures": outcome.failures,
    }
