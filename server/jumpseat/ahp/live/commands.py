"""Slash commands in messages: their turns end with what they tell. Skills are prompts, and no commands."""

from __future__ import annotations

import logging

import anyio

from jumpseat.agent.clock import utc_now
from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.live.mirror import Mirror
from jumpseat.ahp.states.values import Action
from jumpseat.commands.results import AgentPrompt, shown_text
from jumpseat.commands.running import available_commands, invoke
from jumpseat.errors import JumpseatError

log = logging.getLogger(__name__)


def is_command(mirror: Mirror, text: str) -> bool:
    """Return whether a text calls a command that may be recognized in messages."""
    name = text.strip().partition(" ")[0]
    return name.startswith("/") and any(
        name[1:] in (command.name, *(command.aliases or ())) and command.kind != "skill"
        for command in available_commands(mirror.session, loosening=False)
    )


def run(mirror: Mirror, action: Action, origin: Origin) -> None:
    """Begin a turn that runs a command. No event tells of it, and it is not stored."""
    mirror.publish({**action, "startedAt": utc_now()}, origin)
    scope = mirror.commands[action["turnId"]] = anyio.CancelScope()
    mirror.tasks.start_soon(_run, mirror, action["turnId"], action["message"]["text"], scope)


async def _run(mirror: Mirror, turn_id: str, text: str, scope: anyio.CancelScope) -> None:
    name, _, args = text.strip().partition(" ")
    began, shown, prompt = anyio.current_time(), None, None
    try:
        with scope:
            result = await invoke(mirror.context, mirror.session, name[1:], args.strip())
            if isinstance(result, AgentPrompt):
                prompt = result.as_prompt()
            else:
                shown = shown_text(result)
    except JumpseatError as error:
        shown = str(error)
    except Exception:
        log.exception("session %s: a command failed", mirror.session_id)
        shown = f"{name} failed"
    finally:
        mirror.commands.pop(turn_id, None)
    if shown:
        part = {"kind": "markdown", "id": f"{turn_id}:result", "content": shown}
        mirror.publish({"type": "chat/responsePart", "turnId": turn_id, "part": part})
    end = "chat/turnCancelled" if scope.cancelled_caught else "chat/turnComplete"
    passed = int((anyio.current_time() - began) * 1000)
    mirror.publish({"type": end, "turnId": turn_id, "duration": passed}, mirror.cancelling.pop(turn_id, None))
    if prompt is not None:
        mirror.session.send(prompt)
