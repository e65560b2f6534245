"""Sessions with declared tools, and the results of their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio.abc import TaskGroup

from jumpseat.agent.blocks import ToolMessage
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool
from tests.support.sessions import MadeSession, make_session


def calls(*named: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a script: an answer with the calls ``c1``, ``c2``..., then the answer ``done``."""
    made = [
        {"id": f"c{number}", "name": name, "arguments": arguments}
        for number, (name, arguments) in enumerate(named, 1)
    ]
    return [{"tool_calls": made}, {"text": "done"}]


def session_of(
    tasks: TaskGroup,
    tools: Mapping[str, Mapping[str, Any]],
    *named: tuple[str, dict[str, Any]],
    cwd: Path = Path("/"),
    approve_all: bool = True,
    client_tools: Sequence[ClientTool] = (),
    **more: Any,
) -> MadeSession:
    """Run a session with ``tools`` whose model makes the calls ``named``."""
    settings = more.pop("settings", None) or SessionSettings(cwd=cwd)
    return make_session(
        tasks,
        script=calls(*named),
        settings=settings,
        declared=tools,
        approve_all=approve_all,
        tools=client_tools,
        **more,
    )


def results(made: MadeSession) -> list[str]:
    """Return the results that the model received, in the order of the calls."""
    (message,) = [message for message in made.session.conversation.messages() if isinstance(message, ToolMessage)]
    return [block.text for block in message.results]


def completed(made: MadeSession) -> list[events.ToolExecutionComplete]:
    """Return the completion events, in the order of the calls."""
    return sorted(
        made.client.payloads(events.ToolExecutionComplete), key=lambda completion: completion.tool_call_id
    )
