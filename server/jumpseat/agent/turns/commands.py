"""Slash commands of a session: built-in commands, commands of clients, and skills.

If names clash, a client's command comes first, then the built-in one. Neither is recognized in prompts: clients
that offer them call the methods for commands. The slash command of a skill is recognized in any prompt.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import anyio

from jumpseat.agent.clock import iso_time
from jumpseat.agent.compaction.compaction import compact
from jumpseat.agent.session.context_usage import context_limits, measure_context
from jumpseat.agent.session.queue import QueuedCommand
from jumpseat.agent.session.session import Session
from jumpseat.agent.session.skill_calls import invoked_skill, user_invocable_skills
from jumpseat.agent.turns.command_results import AgentPrompt, CommandResult, Done, Text, shown_text
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat_protocol import events
from jumpseat_protocol.commands import CommandInput, CommandKind, SlashCommandInfo
from jumpseat_protocol.lazy_dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in command. ``run`` takes the text after the name and returns the result, as :func:`invoke` does.

    ``hint`` describes the text after the name; ``while_prompting`` allows the command while a prompt runs.
    """

    description: str
    run: Callable[[Session, str], Awaitable[CommandResult]]
    hint: str | None = None
    while_prompting: bool = True


async def invoke(session: Session, name: str, args: str) -> CommandResult:
    """Run a command, given without its slash.

    Raises:
        InvalidRequestError: the command is unknown, or failed.
    """
    of_clients = session.clients.commands()
    client_command = next((command for command in of_clients if command.casefold() == name.casefold()), None)
    if client_command is None:
        builtin = BUILTINS.get(name.casefold())
        if builtin is not None:
            return await builtin.run(session, args)
        if (skill := invoked_skill(session, f"/{name}")) is not None:
            return AgentPrompt(f"/{skill.name} {args}".rstrip())
        raise InvalidRequestError(f"unknown command {f'/{name}'!r}")
    pending = session.clients.ask_command(client_command, args)
    if pending is None:
        raise InvalidRequestError(f"the client that provides {f'/{name}'!r} has disconnected")
    try:
        error = await pending.answer()
    finally:
        session.clients.command_calls.close(pending)
    if error is not None:
        raise InvalidRequestError(error)
    return Done()


async def run_queued(session: Session, command: QueuedCommand) -> bool:
    """Run a queued command; returns whether the commands behind it have to wait until something else is queued.

    If a client registered an interest in ``command.queued``, it runs the command. Errors become warnings; nothing
    but cancellation is raised.
    """
    try:
        session.emit(events.PendingMessagesModified())
        if session.clients.has_interest("command.queued"):
            return await _offer_to_client(session, command)
        result = await invoke(session, *split(command.text))
        if isinstance(result, AgentPrompt):
            session.queue.add_next(result.as_prompt())
        elif (shown := shown_text(result)) is not None:
            session.emit(events.SessionInfo(info_type="command", message=shown))
    except anyio.get_cancelled_exc_class():
        session.record_abort()
        raise
    except JumpseatError as error:
        _warn(session, f"{command.text}: {error}")
    except Exception:
        log.exception("session %s: a command failed", session.id)
        _warn(session, f"{command.text} failed")
    return False


def split(text: str) -> tuple[str, str]:
    """Split a command line into the name without its slash, and the rest.

    Raises:
        InvalidRequestError: the line does not begin with a slash and a name.
    """
    name, _, args = text.strip().partition(" ")
    if not name.startswith("/") or len(name) < 2:
        raise InvalidRequestError(f"invalid command {text[:100]!r}: expected a slash and a name")
    return name[1:], args.strip()


def available_commands(
    session: Session, *, builtins: bool = True, clients: bool = True, skills: bool = True
) -> list[SlashCommandInfo]:
    """Return the available commands, sorted by name."""
    of_clients = session.clients.commands()
    found = (
        [_info(name, command.description or "", "client") for name, command in of_clients.items()]
        if clients
        else []
    )
    hidden = {name.casefold() for name in of_clients}
    if builtins:
        found += [
            _info(name, command.description, "builtin", command.hint, while_prompting=command.while_prompting)
            for name, command in BUILTINS.items()
            if name not in hidden
        ]
    if skills:
        hidden.update(BUILTINS)
        found += [
            _info(skill.name, skill.description, "skill", skill.argument_hint)
            for skill in user_invocable_skills(session)
            if skill.name.casefold() not in hidden
        ]
    return sorted(found, key=lambda command: command.name)


def _info(
    name: str, description: str, kind: CommandKind, hint: str | None = None, *, while_prompting: bool = True
) -> SlashCommandInfo:
    shown = CommandInput(hint=hint) if hint else None
    return SlashCommandInfo(
        name=name, description=description, kind=kind, allow_during_agent_execution=while_prompting, input=shown
    )


async def _offer_to_client(session: Session, command: QueuedCommand) -> bool:
    pending = session.clients.queued_commands.ask(command.text)
    try:
        session.emit(events.CommandQueued(request_id=pending.id, command=command.text))
        result = await pending.answer()
    finally:
        session.clients.queued_commands.close(pending)
        session.emit(events.CommandCompleted(request_id=pending.id))
    return result.handled and result.stop_processing_queue


def _warn(session: Session, message: str) -> None:
    try:
        session.emit(events.SessionWarning(warning_type="command", message=message))
    except JumpseatError as error:
        log.error("session %s: cannot write a warning to the log: %s", session.id, error)


async def _help(session: Session, _args: str) -> Text:
    found = available_commands(session)
    lines = [
        f"/{command.name}{f' [{command.input.hint}]' if command.input else ''}  {command.description}".rstrip()
        for command in found
    ]
    return Text("\n".join(lines))


async def _model(session: Session, args: str) -> Text:
    if args:
        session.use_model(args, "command")
        return Text(f"The model is {args} from the next call on.")
    resolved = await session.services.models.resolve(session.settings)
    return Text(f"The model is {resolved.info.id}.")


async def _compact(session: Session, args: str) -> Text:
    done = await compact(session, instructions=args or None)
    if not done.success:
        raise InvalidRequestError(f"the conversation was not compacted: {done.error}")
    before, after = done.pre_compaction_tokens, done.post_compaction_tokens
    return Text(f"The conversation was compacted from about {before} tokens to {after}.")


async def _usage(session: Session, _args: str) -> Text:
    models = session.metrics.models
    lines = [
        f"{name}: {used.calls} calls, {used.input_tokens} tokens in, {used.output_tokens} out"
        for name, used in models.items()
    ]
    return Text("\n".join(lines) or "No model has been called yet.")


async def _context(session: Session, _args: str) -> Text:
    usage, limits = measure_context(session), await context_limits(session)
    parts = {"system message": usage.system, "tools": usage.all_tools, "messages": usage.all_messages}
    share = round(100 * usage.total / max(1, limits.prompt))
    lines = [f"{name}: about {tokens} tokens" for name, tokens in parts.items()]
    return Text("\n".join([f"Context: about {usage.total} of {limits.prompt} tokens ({share} %)", *lines]))


async def _plan(session: Session, args: str) -> AgentPrompt | Done:
    if args:
        return AgentPrompt(args, "plan")
    session.change_mode("plan")
    return Done()


async def _autopilot(session: Session, args: str) -> Done | AgentPrompt:
    match args:
        case "off":
            return _leave_autopilot(session)
        case "clear":
            cleared = session.autopilot.clear_objective()
            return Done("The objective was removed." if cleared else "There is no objective.")
        case "":
            session.change_mode("autopilot")
            objective = session.autopilot.objective
            goes_on = objective is not None and objective.status == "paused"
            more = f" The objective goes on with the next prompt: {objective.text}" if objective and goes_on else ""
            return Done(f"Switched to autopilot mode.{more}")
        case _:
            session.autopilot.set_objective(args)
            session.change_mode("autopilot")
            text = f"{args}\n\nWork on this to its end without asking, and call task_complete when it is done."
            return AgentPrompt(text, "autopilot", f"Autopilot objective: {args}")


def _leave_autopilot(session: Session) -> Done:
    if session.settings.mode == "interactive":
        return Done("Already in interactive mode.")
    session.change_mode("interactive")
    objective = session.autopilot.objective
    paused = objective is not None and objective.status == "paused"
    more = f" The objective is paused: {objective.text}" if objective and paused else ""
    return Done(f"Switched to interactive mode.{more}")


async def _schedule(session: Session, args: str, *, recurring: bool) -> Text:
    interval, _, prompt = args.partition(" ")
    if not prompt.strip():
        raise InvalidRequestError(
            f"expected /{'every' if recurring else 'after'} INTERVAL PROMPT, as in 5m Look again"
        )
    entry = session.schedules.add(prompt.strip(), interval=interval, recurring=recurring)
    return Text(f"Schedule {entry.id}: next at {iso_time(entry.next_run_at)}.")


BUILTINS: Final = {
    "after": Builtin("Send a prompt once after an interval", partial(_schedule, recurring=False), "30m PROMPT"),
    "autopilot": Builtin(
        "Work on by itself, as a mode or to reach an objective", _autopilot, "objective, off or clear"
    ),
    "context": Builtin("Show how much of the context is used", _context),
    "every": Builtin("Send a prompt again and again", partial(_schedule, recurring=True), "30m PROMPT"),
    "plan": Builtin("Go to plan mode, or plan one prompt", _plan, "a prompt to plan"),
    "compact": Builtin(
        "Summarize the conversation to free up context",
        _compact,
        "what the summary should keep",
        while_prompting=False,
    ),
    "help": Builtin("List the commands", _help),
    "model": Builtin("Show or change the model", _model, "name of a model"),
    "usage": Builtin("Show the usage of this session since it was opened", _usage),
}
