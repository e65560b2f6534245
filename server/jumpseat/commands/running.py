"""Slash commands of a session: built-in commands, commands of clients, and skills.

If names clash, a client's command comes first, then the built-in one, unless it yields to a skill. Neither is
recognized in prompts: clients that offer them call the methods for commands. The slash command of a skill is
recognized in any prompt. A skill whose name is taken is listed by its full name, such as ``project:help``.
"""

from __future__ import annotations

import logging
from typing import Final

import anyio

from jumpseat.agent.session.queue_items import QueuedCommand
from jumpseat.agent.session.session import Session
from jumpseat.agent.session.skill_calls import invoked_skill, user_invocable_skills
from jumpseat.agent.skills import Skill
from jumpseat.commands import approvals, conversation, surroundings, work
from jumpseat.commands.command import Builtin, Call
from jumpseat.commands.results import AgentPrompt, CommandResult, Done, Text, shown_text
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.sessions.context import Parts
from jumpseat_protocol import events
from jumpseat_protocol.commands import CommandChoice, CommandInput, SlashCommandInfo

log = logging.getLogger(__name__)


async def invoke(server: Parts, session: Session, name: str, args: str) -> CommandResult:
    """Run a command, given without its slash.

    Raises:
        InvalidRequestError: the command is unknown, or failed.
    """
    of_clients = session.clients.commands()
    client_command = next((command for command in of_clients if command.casefold() == name.casefold()), None)
    if client_command is not None:
        await _run_at_client(session, client_command, args)
        return Done()
    builtin = _BY_NAME.get(name.casefold())
    if builtin is None or builtin.yields:
        skill = invoked_skill(session, f"/{name}")
        if skill is not None:
            called = skill.name if skill.name.casefold() == name.casefold() else skill.full_name
            return AgentPrompt(f"/{called} {args}".rstrip())
    if builtin is None:
        raise InvalidRequestError(f"unknown command {f'/{name}'!r}")
    if builtin.required and not args:
        raise InvalidRequestError(f"expected /{builtin.name} {builtin.hint}")
    return await builtin.run(Call(session, args, server))


async def _run_at_client(session: Session, name: str, args: str) -> None:
    pending = session.clients.ask_command(name, args)
    if pending is None:
        raise InvalidRequestError(f"the client that provides {f'/{name}'!r} has disconnected")
    try:
        error = await pending.answer()
    finally:
        session.clients.command_calls.close(pending)
    if error is not None:
        raise InvalidRequestError(error)


async def run_queued(server: Parts, session: Session, command: QueuedCommand) -> bool:
    """Run a queued command; returns whether the commands behind it have to wait until something else is queued.

    If a client registered an interest in ``command.queued``, it runs the command. Errors become warnings; nothing
    but cancellation is raised.
    """
    try:
        session.emit(events.PendingMessagesModified())
        if session.clients.has_interest("command.queued"):
            return await _offer_to_client(session, command)
        result = await invoke(server, session, *split(command.text))
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
    session: Session, *, builtins: bool = True, clients: bool = True, skills: bool = True, loosening: bool = True
) -> list[SlashCommandInfo]:
    """Return the available commands, sorted by name. ``loosening`` is whether to include those that loosen."""
    of_clients = session.clients.commands()
    of_users = {skill.name.casefold(): skill for skill in user_invocable_skills(session)}
    taken = {name.casefold() for name in of_clients}
    found: list[SlashCommandInfo] = []
    if clients:
        found += [
            SlashCommandInfo(
                name=name,
                description=command.description or "",
                kind="client",
                allow_during_agent_execution=True,
            )
            for name, command in of_clients.items()
        ]
    own = [
        builtin
        for builtin in BUILTINS
        if builtin.name not in taken and not (builtin.yields and builtin.name in of_users)
    ]
    if builtins:
        found += [_info(builtin, taken) for builtin in own if loosening or not builtin.loosens]
    if skills:
        taken.update(name for builtin in own for name in builtin.names)
        found += [
            SlashCommandInfo(
                name=skill.full_name if name in taken else skill.name,
                description=_described(skill) if name in taken else skill.description,
                kind="skill",
                allow_during_agent_execution=True,
                input=CommandInput(hint=skill.argument_hint) if skill.argument_hint else None,
            )
            for name, skill in of_users.items()
        ]
    return sorted(found, key=lambda command: command.name)


def _described(skill: Skill) -> str:
    return f"{skill.description} (/{skill.name} is another command)".lstrip()


def _info(builtin: Builtin, taken: set[str]) -> SlashCommandInfo:
    return SlashCommandInfo(
        name=builtin.name,
        aliases=[alias for alias in builtin.aliases if alias not in taken] or None,
        description=builtin.description,
        kind="builtin",
        allow_during_agent_execution=builtin.while_prompting,
        input=CommandInput(
            hint=builtin.hint,
            required=builtin.required or None,
            completion="directory" if builtin.folder else None,
            choices=[CommandChoice(name=option.name, description=option.description) for option in builtin.options]
            or None,
        )
        if builtin.hint
        else None,
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


async def _help(call: Call) -> Text:
    lines = [
        f"/{command.name}{f' [{command.input.hint}]' if command.input else ''}  {command.description}".rstrip()
        for command in available_commands(call.session)
    ]
    return Text("\n".join(lines))


BUILTINS: Final = (
    *approvals.COMMANDS,
    *conversation.COMMANDS,
    *surroundings.COMMANDS,
    *work.COMMANDS,
    Builtin("help", "List the commands", _help),
)

_BY_NAME: Final = {name: command for command in BUILTINS for name in command.names}
