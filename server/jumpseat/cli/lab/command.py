"""``jumpseat lab``: run tasks with an agent and a model that makes mistakes, and print a row of the table.

Exit codes: 0, the tasks were run, whatever came of them; 2, an argument is invalid.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from typing import Final

import anyio
import msgspec

from jumpseat.cli.commands import USAGE_ERROR, CommandContext, CommandParser, print_error, print_json, print_text
from jumpseat.cli.lab.model_server import RealModel
from jumpseat.cli.lab.runs import TASK_S, WINDOW, Outcome, Plan, run_tasks, slips_of, summary
from jumpseat.cli.lab.tasks import load_tasks
from jumpseat.system.installation import own_command

DESCRIPTION: Final = "Run offline tasks with an agent, and report success, rounds, tokens and time."
_ARGUMENTS: Final = {"copilot": ["--headless", "--no-auto-update", "--stdio"], "acp": ["acp"], "command": []}


def _positive(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, not {text!r}")
    return int(text)


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="beginnings of tasks, such as go/ or python/edit-")
    parser.add_argument(
        "--agent",
        type=shlex.split,
        metavar="COMMAND",
        help="the agent: a path, which gets the arguments of its protocol, or a command with its arguments;"
        " with --protocol command, {prompt} in it stands for the prompt",
    )
    parser.add_argument("--protocol", choices=("copilot", "acp", "command"), default="copilot")
    parser.add_argument("--model", help="a real model in place of the simulated one")
    parser.add_argument("--base-url", metavar="URL", help="its provider, with the key in $LAB_API_KEY")
    parser.add_argument(
        "--seed",
        type=lambda text: text.split(","),
        default=["1"],
        metavar="SEED[,...]",
        help="chooses the mistakes of the simulated model; with several seeds, each task is run with each",
    )
    parser.add_argument(
        "--window", type=_positive, default=WINDOW, metavar="TOKENS", help="the window of the model"
    )
    parser.add_argument("--first", type=_positive, metavar="N", help="run the first N of the tasks")
    parser.add_argument("--limit", type=float, default=TASK_S, metavar="SECONDS", help="the time of a task")
    parser.add_argument("--list", action="store_true", help="list the tasks")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is wrong with each failed task")
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    tasks = load_tasks(tuple(args.tasks))[: args.first]
    unknown = [name for name in args.tasks if not load_tasks((name,))]
    if unknown:
        print_error(f"no task begins with {' or '.join(map(repr, unknown))}; 'jumpseat lab --list' lists them")
        return USAGE_ERROR
    if args.list:
        for task in tasks:
            print_text(f"{task.id}  ({task.kind})")
        return 0
    if (args.model is None) != (args.base_url is None):
        print_error("expected both --model and --base-url, or neither")
        return USAGE_ERROR
    if (command := _command(args)) is None:
        return USAGE_ERROR
    real = None
    if args.model is not None:
        real = RealModel(args.base_url, args.model, ctx.environ.get("LAB_API_KEY", "none"))
    plan = Plan(command, args.protocol, args.seed, real, args.window, args.limit)

    def report(outcome: Outcome) -> None:
        if not args.json:
            _show(outcome, verbose=args.verbose)

    outcomes = anyio.run(run_tasks, plan, tasks, report)
    figures = summary(outcomes)
    if args.json:
        print_json(
            {"summary": figures, "tasks": [{**msgspec.to_builtins(each), "ok": each.ok} for each in outcomes]}
        )
        return 0
    per_success = f"; {figures['tokens_per_success']} tokens per success" if figures["succeeded"] else ""
    print_text(
        f"\n{figures['succeeded']} of {figures['tasks']} succeeded; per task: {figures['rounds']} rounds,"
        f" {figures['tokens']} tokens sent ({figures['cached']:.0%} cached), {figures['seconds']} s{per_success}"
    )
    slips = slips_of(outcomes)
    for slip in sorted({slip for slip, _ in slips}):
        print_text(f"  {slip}: {slips[slip, True]} of {slips[slip, True] + slips[slip, False]} tasks succeeded")
    return 0


def _command(args: argparse.Namespace) -> list[str] | None:
    """Return the command of the agent; print an error if there is none."""
    if args.agent is None and args.protocol == "command":
        print_error("expected --agent with --protocol command")
        return None
    given: list[str] = own_command() if args.agent is None else args.agent
    program = shutil.which(given[0]) if given else None
    if program is None:
        print_error(f"--agent: there is no program {' '.join(given[:1])!r}")
        return None
    # The agent runs in the folder of its task.
    command = [os.path.abspath(program), *given[1:]]
    return [*command, *_ARGUMENTS[args.protocol]] if len(command) == 1 or args.agent is None else command


def _show(outcome: Outcome, *, verbose: bool) -> None:
    if outcome.skipped:
        print_text(f"skipped {outcome.task}: {outcome.skipped} is missing")
        return
    verdict = "ok     " if outcome.ok else "FAILED "
    slips = f", {', '.join(outcome.slips)}" if outcome.slips else ""
    cost = f"{outcome.rounds} rounds, {outcome.tokens} tokens, {outcome.seconds:.1f} s"
    print_text(f"{verdict} {outcome.task} (seed {outcome.seed}, {cost}{slips})")
    if verbose:
        for problem in outcome.problems:
            print_text(f"  {problem[:400]}")
