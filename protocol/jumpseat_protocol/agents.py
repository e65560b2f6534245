"""``session.agent.*``: the custom agents of a session."""

from __future__ import annotations

from pydantic import StrictBool

from jumpseat_protocol.wire import WireModel


class AgentListParams(WireModel):
    session_id: str
    include_built_in_agents: StrictBool = False
    include_prompt: StrictBool = False


class AgentInfo(WireModel):
    """``id`` and ``name`` are the same for agents that a client brought; ``prompt`` is told where asked for."""

    name: str
    display_name: str
    description: str
    id: str
    user_invocable: StrictBool = True
    tools: list[str] | None = None
    model: str | None = None
    skills: list[str] | None = None
    prompt: str | None = None


class AgentListResult(WireModel):
    agents: list[AgentInfo]


class AgentSelectParams(WireModel):
    """``name`` is the name or the id of an agent."""

    session_id: str
    name: str


class AgentSelectResult(WireModel):
    agent: AgentInfo


class AgentCurrentResult(WireModel):
    """``agent`` is ``null`` where the session works as itself."""

    sent_as_null = ("agent",)

    agent: AgentInfo | None = None


class AgentSetPromptParams(WireModel):
    session_id: str
    id: str
    prompt: str
