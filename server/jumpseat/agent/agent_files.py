"""What a custom agent is that lies in a file, not in the hands of a client."""

from __future__ import annotations

from jumpseat_protocol.agents import AgentSource
from jumpseat_protocol.sessions import CustomAgentConfig


class AgentFile(CustomAgentConfig):
    """One agent; ``name`` is that of its file, without the suffix. ``path`` is the file.

    Its servers are as its file has them. Where it is not ``user_invocable``, it is for programs to select.
    """

    path: str
    source: AgentSource
    user_invocable: bool = True
