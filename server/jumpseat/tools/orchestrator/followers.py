"""Tools that work on what another tool has left: the default set has them as soon as there is something.

A tool is part of every request, and most sessions neither leave a command running nor start a sub-agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from jumpseat.agent.session.history import NO_NAMES
from jumpseat.agent.session.session import Session
from jumpseat.tools.tool import Tool

COMMANDS: Final = "bash"
AGENTS: Final = "task"


class Followers:
    """Knows which tools have nothing to work on yet."""

    def __init__(self, session: Session, has_commands: Callable[[], bool]) -> None:
        """``has_commands`` returns whether a command is in the background."""
        self._session = session
        self._has_left = {COMMANDS: has_commands, AGENTS: self._has_agents}
        # A tool that was offered stays, so that the beginning of requests changes once.
        self._begun = NO_NAMES

    def idle(self, tools: Mapping[str, Tool]) -> set[str]:
        """Return the names of those ``tools`` that have nothing to work on yet."""
        following = {name: leader for name, tool in tools.items() if (leader := _leader(tool))}
        for leader in {*following.values()} - self._begun:
            names = (name for name, followed in following.items() if followed == leader)
            if self._has_left[leader]() or self._was_used(names):
                self._begun |= {leader}
        return {name for name, leader in following.items() if leader not in self._begun}

    def _was_used(self, names: Iterable[str]) -> bool:
        return not self._session.history.tools_in_use.isdisjoint(names)

    def _has_agents(self) -> bool:
        session = self._session
        # A sub-agent may have siblings.
        if session.identity is not None or AGENTS in session.history.tools_in_use:
            return True
        return session.agents is not None and session.agents.has_any


def _leader(tool: Tool) -> str | None:
    """Return the tool that a built-in tool follows."""
    return getattr(tool, "follows", None) if tool.source == "builtin" else None
