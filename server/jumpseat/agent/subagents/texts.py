"""Texts for models about sub-agents. The wire fixes the beginnings of some of these texts."""

from __future__ import annotations

from typing import Final

from jumpseat.agent.interfaces import BackgroundCommand
from jumpseat.agent.subagents.lost_commands import LostCommand
from jumpseat.agent.subagents.subagent import SubAgent
from jumpseat_protocol import events

STARTED: Final = (
    "Agent started in background with agent_id: {id}. You'll be notified when it completes. Tell the user you're"
    " waiting and end your response, or continue unrelated work until notified."
)
MOVED: Final = "Agent moved to background (agent_id: {id}). You'll be notified when it completes."
MOST_OF_COMMAND: Final = 200
"""The most characters of a command that stand for its description."""
DEFAULT_MODEL: Final = "default"
"""Stands for the model that a provider chooses, whose name is not known before its first answer."""
NO_ANSWER: Final = "Agent completed but produced no response."
INTERRUPTION: Final = "agent_interrupted"
"""The type of the warning that an agent was interrupted at its work on a message after its first task."""
TIMED_OUT: Final = "The agent was ended because it worked for more than {seconds:g} s."
TOO_MANY_TOKENS: Final = "The agent was ended because it used more than {tokens} tokens."


def notification(agent: SubAgent) -> events.SystemNotification:
    """Return the message to the agent that has started ``agent`` about its end."""
    kind = {
        "agentId": agent.id,
        "agentType": agent.type,
        "displayName": agent.name,
        "description": agent.description,
    }
    if agent.status == "failed":
        text = (
            f'Agent "{agent.name}" ({agent.type}) has failed. Use read_agent with agent_id "{agent.id}" to see why.'
        )
        return events.SystemNotification(
            content=_framed(text), kind={"type": "agent_completed", "status": "failed", **kind}
        )
    text = (
        f'Agent "{agent.name}" ({agent.type}) has finished processing and is now idle. Use read_agent with agent_id'
        f' "{agent.id}" to read the results, or write_agent to send follow-up messages.'
    )
    return events.SystemNotification(content=_framed(text), kind={"type": "agent_idle", **kind})


def command_notification(command: BackgroundCommand) -> events.SystemNotification:
    """Return the message to the main agent about the end of a command in the background."""
    description = command.description or command.command[:MOST_OF_COMMAND]
    code = command.exit_code
    end = "has completed successfully" if code == 0 else f"has failed with exit code {code}"
    text = (
        f'Shell command "{description}" (shellId: {command.id}) {end}. Use read_bash with shellId "{command.id}" to'
        " read its output."
    )
    kind = {"type": "shell_completed", "shellId": command.id, "exitCode": code, "description": description}
    return events.SystemNotification(content=_framed(text), kind=kind)


def lost_notification(command: LostCommand) -> events.SystemNotification:
    """Return the message to the main agent about a command that an earlier process has left running."""
    description = command.text[:MOST_OF_COMMAND]
    text = (
        f'Shell command "{description}" (shellId: {command.shell_id}) does not run here any more: the session was'
        " opened again since. What it has written after your last read is lost."
    )
    kind = {"type": "shell_completed", "shellId": command.shell_id, "description": description}
    return events.SystemNotification(content=_framed(text), kind=kind)


def _framed(text: str) -> str:
    return f"<system_notification>\n{text}\n</system_notification>"


def report(agent: SubAgent, elapsed_s: float, since: int) -> str:
    """Return the state of an agent and its answers from the turn ``since`` on."""
    facts = (
        f"agent_id: {agent.id}, agent_type: {agent.type}, status: {agent.status}, description: {agent.description},"
        f" elapsed: {elapsed_s:.0f}s, total_turns: {agent.turns}"
    )
    match agent.status:
        case "running":
            head = (
                f"Agent is still running. {facts}. You'll be notified when it is done: do not ask again and again."
            )
        case "idle":
            head = f"Agent is idle (waiting for messages). {facts}"
        case "failed":
            head = f"Agent failed. {facts}, error: {agent.error}"
            if agent.was_interrupted:
                head += " write_agent lets it go on, with the conversation so far."
        case "cancelled":
            head = f"Agent was cancelled. {facts}"
    blocks = [head]
    for number, exchange in enumerate(agent.exchanges):
        if number < since or exchange.answer is None:
            continue
        if number == 0:
            blocks.append(f"[Turn 0]\n{exchange.answer}")
        else:
            blocks.append(f"[Turn {number}]\n[Message]\n{exchange.message}\n\n[Response]\n{exchange.answer}")
    return "\n\n".join(blocks)


def listing(agents: list[SubAgent], elapsed_s: dict[str, float], relations: dict[str, str]) -> str:
    """Return one line per agent, in groups by status."""
    if not agents:
        return "<no background agents>"
    groups: list[str] = []
    for status in ("running", "idle", "failed", "cancelled"):
        lines = [
            f'  {agent.name} ({agent.id}): {agent.type} - "{agent.description}"'
            f" ({elapsed_s[agent.id]:.0f}s, relation: {relations[agent.id]})"
            for agent in agents
            if agent.status == status
        ]
        if lines:
            groups.append("\n".join([f"{status.capitalize()} ({len(lines)}):", *lines]))
    return "\n\n".join(["Background agents:", *groups])
