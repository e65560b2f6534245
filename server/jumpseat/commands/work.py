"""Commands that change how the model works, or give it work: modes, schedules and ready-made prompts."""

from __future__ import annotations

from functools import partial
from typing import Final

from jumpseat.agent.clock import iso_time
from jumpseat.commands.command import Builtin, Call
from jumpseat.commands.results import AgentPrompt, CommandResult, Done, Option, Text
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.fleet import fleet_prompt

_INIT: Final = """\
Write the file AGENTS.md at the root of this project, for agents and people who work on it for the first time. If \
it exists, bring it up to date and keep what is still true.
- Read what the project says about itself first: the README, the build and package files, the configuration of CI \
and of the formatter, and the layout of the folders.
- State the commands that build, test (also a single test) and check the project. Try those that change nothing, \
and write down only what works.
- Describe the parts of the code and how they depend on each other, as far as the layout does not show it.
- Name the rules of this project that a newcomer would break: style, errors, tests, commits.
- Leave out what is true of any project, and what is a listing of files. One page is enough."""

_REVIEW: Final = """\
Review {what}. Change nothing.
- Read the changes, and then the code around them: callers, tests, and what the changes forgot.
- Report faults only: wrong results, missing cases, broken promises to callers, races, leaks, security holes, \
tests that could not fail. Leave out matters of taste and what a formatter does.
- Check each finding in the code before you report it. Say for each one where it is (file and line), what goes \
wrong and in which case, and how to mend it.
- The most serious finding comes first. If there are none, say so in one sentence."""
_CHANGES: Final = "the changes that are not committed yet or, if there are none, the last commit of this branch"


async def _plan(call: Call) -> AgentPrompt | Done:
    if call.args:
        return AgentPrompt(call.args, "plan")
    call.session.change_mode("plan")
    return Done()


async def _autopilot(call: Call) -> CommandResult:
    session, args = call.session, call.args
    match args:
        case "off":
            return _leave_autopilot(call)
        case "clear":
            cleared = session.autopilot.clear_objective()
            return Done("The objective was removed." if cleared else "There is no objective.")
        case "":
            session.change_mode("autopilot")
            objective = session.autopilot.objective
            goes_on = objective is not None and objective.status == "paused"
            more = f" The next prompt resumes the objective: {objective.text}" if objective and goes_on else ""
            return Done(f"Switched to autopilot mode.{more}")
        case _:
            session.autopilot.set_objective(args)
            session.change_mode("autopilot")
            text = f"{args}\n\nWork on this to its end without asking, and call task_complete when it is done."
            return AgentPrompt(text, "autopilot", f"Autopilot objective: {args}")


def _leave_autopilot(call: Call) -> Done:
    session = call.session
    if session.settings.mode == "interactive":
        return Done("Already in interactive mode.")
    session.change_mode("interactive")
    objective = session.autopilot.objective
    paused = objective is not None and objective.status == "paused"
    more = f" The objective is paused: {objective.text}" if objective and paused else ""
    return Done(f"Switched to interactive mode.{more}")


async def _schedule(call: Call, *, recurring: bool) -> Text:
    interval, _, prompt = call.args.partition(" ")
    if not prompt.strip():
        raise InvalidRequestError(
            f"expected /{'every' if recurring else 'after'} INTERVAL PROMPT, as in 5m Look again"
        )
    entry = call.session.schedules.add(prompt.strip(), interval=interval, recurring=recurring)
    return Text(f"Schedule {entry.id}: next at {iso_time(entry.next_run_at)}.")


async def _fleet(call: Call) -> AgentPrompt:
    prompt = fleet_prompt(call.args)
    return AgentPrompt(prompt.text, shown=prompt.display_text)


async def _init(call: Call) -> AgentPrompt:
    text = f"{_INIT}\n\nThe user adds: {call.args}" if call.args else _INIT
    return AgentPrompt(text, shown=f"/init {call.args}".rstrip())


async def _review(call: Call) -> AgentPrompt:
    return AgentPrompt(_REVIEW.format(what=call.args or _CHANGES), shown=f"/review {call.args}".rstrip())


COMMANDS: Final = (
    Builtin(
        "after",
        "Send a prompt once, later",
        partial(_schedule, recurring=False),
        hint="30m PROMPT",
        required=True,
    ),
    Builtin(
        "autopilot",
        "Keep working without you, as a mode or until an objective is reached",
        _autopilot,
        aliases=("goal",),
        hint="objective, off or clear",
        options=(
            Option("off", "Leave the mode; an objective is paused"),
            Option("clear", "Remove the objective"),
        ),
    ),
    Builtin(
        "every",
        "Send a prompt at regular intervals",
        partial(_schedule, recurring=True),
        aliases=("loop",),
        hint="30m PROMPT",
        required=True,
    ),
    Builtin("fleet", "Split a task among sub-agents", _fleet, hint="task"),
    Builtin("init", "Describe the project for agents, in AGENTS.md", _init, hint="what to add", yields=True),
    Builtin("plan", "Switch to plan mode, or plan one prompt", _plan, hint="a prompt to plan"),
    Builtin("review", "Look for bugs in changes", _review, hint="what to review", yields=True),
)
