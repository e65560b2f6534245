"""The command ``jumpseat-testkit``, also ``jumpseat script``: play, record, and be or try a peer with faults.

Exit codes: 0, all scripts passed; 1, a script failed; 2, a file or argument is invalid, or the server cannot run.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import anyio

from jumpseat_protocol.safe import safe
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play import Outcome
from jumpseat_testkit.play_file import play_file
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import SPOKEN
from jumpseat_testkit.steps import load_script

if TYPE_CHECKING:
    from jumpseat_testkit.faults.agents import AgentFinding
    from jumpseat_testkit.faults.report import Finding

DESCRIPTION: Final = "Play scripts of JSON-RPC messages against any server and report where it deviates."
FAILED: Final = 1
USAGE_ERROR: Final = 2


def main() -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser("jumpseat-testkit", description=DESCRIPTION)
    add_arguments(parser)
    args = parser.parse_args()
    try:
        return run(args)
    except ScriptError as error:
        print_error(str(error))
        return USAGE_ERROR
    except KeyboardInterrupt:
        return FAILED


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    recording.add_argument("--noise", action="store_true", help="with --record: leave nothing out")
    faults = parser.add_argument_group("peers with faults", "docs/script-faults.md lists the kinds")
    faults.add_argument("--fault", metavar="KIND", help="be a server with this fault, on standard input and output")
    faults.add_argument(
        "--faults",
        metavar="KINDS",
        help="try the script FILE, or --client, against these kinds: 'all', or KIND,KIND",
    )
    faults.add_argument(
        "--client-faults",
        metavar="KINDS",
        help="play the script FILE with clients of these kinds: 'all', or KIND,KIND",
    )
    faults.add_argument("--client", type=shlex.split, metavar="COMMAND", help="a client; {peer} is its server")
    faults.add_argument("--protocol", choices=SPOKEN, default="copilot", help="that of the peer")
    faults.add_argument("--within", type=float, default=20.0, metavar="SECONDS", help="time limit of a client")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the whole conversation and stderr")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Do what the arguments say, and return the exit code.

    Raises:
        ScriptError: an argument or a file is invalid, or the server cannot run.
    """
    if args.record is not None:
        return _record(args)
    if args.client_faults is not None:
        return anyio.run(_try_agent, args)
    if args.faults is not None:
        return anyio.run(_try_faults, args)
    if args.fault is not None:
        from jumpseat_testkit.faults.peer import serve_fault

        return serve_fault(args.fault, args.protocol)
    if not args.files:
        raise ScriptError("expected a FILE to play, or --record FILE")
    return _play_all(args)


def _record(args: argparse.Namespace) -> int:
    from jumpseat_testkit.record.client import record_client

    if args.files:
        raise ScriptError("expected --record FILE alone, without other files")
    return record_client(args.server, args.record, everything=args.noise)


async def _try_faults(args: argparse.Namespace) -> int:
    from jumpseat_testkit.faults.report import kinds_of, summarize, try_client, try_script

    if (len(args.files) == 1) == (args.client is not None):
        raise ScriptError("--faults: expected one script FILE, or --client COMMAND")
    if args.client is not None:
        findings = try_client(args.client, kinds_of(args.faults, args.protocol), args.protocol, args.within)
    else:
        script = load_script(args.files[0])
        findings = try_script(script, args.files[0].stem, kinds_of(args.faults, script.protocol))
    found: list[Finding] = []
    async for one in findings:
        found.append(one)
        _show_finding(one, args)
    return _conclude(found, summarize(found), args)


async def _try_agent(args: argparse.Namespace) -> int:
    from jumpseat_testkit.faults.agents import client_kinds, try_agent

    if len(args.files) != 1:
        raise ScriptError("--client-faults: expected one script FILE")
    script = load_script(args.files[0])
    kinds = client_kinds(args.client_faults, script.protocol)
    found: list[AgentFinding] = []
    async for one in try_agent(script, args.files[0].stem, kinds, PlayOptions(args.server, args.url)):
        found.append(one)
        _show_finding(one, args)
    return _conclude(found, f"{sum(one.ok for one in found)} of {len(found)} clients survived", args)


def _show_finding(one: Finding | AgentFinding, args: argparse.Namespace) -> None:
    if not args.json:
        print_text(f"{'ok    ' if one.ok else 'FAILED'} {one.kind:22} {one.how:11} {one.note[:80]}".rstrip())


def _conclude(found: Sequence[Finding | AgentFinding], summary: str, args: argparse.Namespace) -> int:
    if args.json:
        print_json([{"kind": one.kind, "ok": one.ok, "how": one.how, "note": one.note} for one in found])
    else:
        print_text(summary)
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


def print_text(text: str) -> None:
    """Print a result to stdout at once, without control characters for a terminal; a reader may have gone."""
    try:
        print(_shown(text, sys.stdout), flush=True)
    except BrokenPipeError:
        # What is still buffered would fail again when the process exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a result to stdout as JSON."""
    print_text(json.dumps(value, indent=2, ensure_ascii=False))


def print_error(text: str) -> None:
    """Print an error to stderr."""
    print(f"error: {_shown(text, sys.stderr)}", file=sys.stderr)


def _shown(text: str, stream: TextIO) -> str:
    return safe(text) if stream.isatty() else text
