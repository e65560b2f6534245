"""``jumpseat script``: play scripts and report failures, record scripts, and play peers with faults.

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
from jumpseat.errors import InvalidRequestError
from jumpseat.script.patterns import ScriptError
from jumpseat.script.play import Outcome, PlayOptions
from jumpseat.script.play_file import play_file
from jumpseat.script.protocols import SPOKEN
from jumpseat.script.steps import load_script

DESCRIPTION: Final = "Play scripts of JSON-RPC messages against any server and report where it deviates."


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="a script, a transcript or a client's log"
    )
    parser.add_argument(
        "--server", type=shlex.split, metavar="COMMAND", help="the server to test, instead of the script's own"
    )
    parser.add_argument(
        "--url", metavar="URL", help="the address of the server to test: ws://..., wss://... or tcp://HOST:PORT"
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
    recording = parser.add_argument_group("recording")
    recording.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="stand between a client on standard input and output and its server, and write a script of it",
    )
    recording.add_argument(
        "--session", metavar="ID", help="with --record: write a script of a stored session instead (or 'last')"
    )
    recording.add_argument("--noise", action="store_true", help="with --record: leave nothing out")
    faults = parser.add_argument_group("peers with faults", "docs/script-faults.md lists the kinds")
    faults.add_argument("--fault", metavar="KIND", help="be a server with this fault, on standard input and output")
    faults.add_argument(
        "--faults",
        metavar="KINDS",
        help="try the script FILE, or --client, against these kinds: 'all', or KIND,KIND",
    )
    faults.add_argument("--client", type=shlex.split, metavar="COMMAND", help="a client; {peer} is its server")
    faults.add_argument("--protocol", choices=SPOKEN, default="copilot", help="that of the peer")
    faults.add_argument("--within", type=float, default=20.0, metavar="SECONDS", help="time limit of a client")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the whole conversation and stderr")
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    if args.record is not None:
        return _record(ctx, args)
    if args.fault is not None or args.faults is not None:
        return _play_faults(args)
    if not args.files:
        raise InvalidRequestError("expected a FILE to play, or --record FILE")
    return _play_all(args)


def _record(ctx: CommandContext, args: argparse.Namespace) -> int:
    from jumpseat.cli import script_recording

    if args.files:
        raise InvalidRequestError("expected --record FILE alone, without other files")
    try:
        if args.session is not None:
            return script_recording.record_stored(ctx.home, args.session, args.record, everything=args.noise)
        return script_recording.record_client(args.server, args.record, everything=args.noise)
    except ScriptError as error:
        print_error(f"{args.record.name}: {error}")
        return USAGE_ERROR


def _play_faults(args: argparse.Namespace) -> int:
    from jumpseat.script.faults.peer import serve_fault

    try:
        if args.fault is not None:
            return serve_fault(args.fault, args.protocol)
        return anyio.run(_try_faults, args)
    except ScriptError as error:
        print_error(str(error))
        return USAGE_ERROR


async def _try_faults(args: argparse.Namespace) -> int:
    from jumpseat.script.faults.report import Finding, kinds_of, summarize, try_client, try_script

    if (len(args.files) == 1) == (args.client is not None):
        raise InvalidRequestError("--faults: expected one script FILE, or --client COMMAND")
    if args.client is not None:
        findings = try_client(args.client, kinds_of(args.faults, args.protocol), args.protocol, args.within)
    else:
        script = load_script(args.files[0])
        findings = try_script(script, args.files[0].stem, kinds_of(args.faults, script.protocol))
    found: list[Finding] = []
    async for one in findings:
        found.append(one)
        if not args.json:
            print_text(f"{'ok    ' if one.ok else 'FAILED'} {one.kind:22} {one.how:8} {one.note[:80]}".rstrip())
    if args.json:
        print_json([{"kind": one.kind, "ok": one.ok, "how": one.how, "note": one.note} for one in found])
    else:
        print_text(summarize(found))
    return 0 if all(one.ok for one in found) else FAILED


def _play_all(args: argparse.Namespace) -> int:
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
    return await play_file(path, PlayOptions(args.server, args.url, keep, args.project), update=args.update)


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
