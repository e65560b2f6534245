"""Custom agents defined in files, as opposed to those that a client registers."""

from __future__ import annotations

from jumpseat_protocol.sessions import AgentSource, CustomAgentConfig


class AgentFile(CustomAgentConfig):
    """A custom agent read from the file ``path``; ``name`` is the file's name without its suffix.

    ``source`` is ``None`` if the client has named the folder. MCP servers keep the form they have in the file. Only
    programs select an agent that is not ``user_invocable``.
    """

    path: str
    source: AgentSource | None = None
    user_invocable: bool = True
