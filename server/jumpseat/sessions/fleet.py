"""Fleets: prompts that make the model split a task among sub-agents."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.agent.session.queue_items import Prompt

DISPLAYED: Final = "Fleet deployed"

INSTRUCTIONS: Final = """\
Lead a fleet of sub-agents, which you start with the `task` tool.
- Take the open todos of the session's database (table `todos`). If there are none, split the request into todos \
that depend on each other as little as possible; `todo_deps` holds what each waits for.
- Start sub-agents for all todos that wait for nothing, several in one answer, in the background. A single small \
todo is quicker without one.
- A sub-agent knows only its prompt: name the todo, the files and what counts as done. Tell it to set the status \
of its todo in the database, and to report what it did, what is left and what blocks it.
- When sub-agents end, check the todos, look at their work and run the tests. Start what has become possible.
- Stop when the request is fulfilled, and report."""


def fleet_prompt(request: str, attachments: list[dict[str, Any]] | None = None) -> Prompt:
    """Return a prompt that makes the model lead sub-agents; users see only what they asked for."""
    text = f"{INSTRUCTIONS}\n\nRequest: {request}" if request else INSTRUCTIONS
    shown = f"{DISPLAYED}: {request}" if request else DISPLAYED
    return Prompt(text, display_text=shown, attachments=attachments or [])
