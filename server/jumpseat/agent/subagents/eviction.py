"""Forget sub-agents that ended long ago, so that the memory of a long session does not grow.

The log has their events: :meth:`~jumpseat.agent.subagents.roster.Roster.look_up` reads their answers there.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from jumpseat.agent.subagents.subagent import SubAgent


def forget_old(agents: dict[str, SubAgent], most: int) -> list[SubAgent]:
    """Remove the oldest agents beyond the number ``most``, and return them.

    Agents stay while they can work, while somebody has to be told their outcome, and while they are the parents of
    agents that stay: more than ``most`` can be left.
    """
    surplus = len(agents) - most
    if surplus <= 0:
        return []
    parents = {agent.parent_id for agent in agents.values()}
    over = (agent for agent in agents.values() if agent.id not in parents and _is_over(agents, agent))
    old = list(islice(over, surplus))
    for agent in old:
        del agents[agent.id]
    return old


def _is_over(agents: Mapping[str, SubAgent], agent: SubAgent) -> bool:
    """Return whether an agent can neither continue nor has an outcome that somebody waits for."""
    if _can_work(agent):
        return False
    parent = agents.get(agent.parent_id) if agent.parent_id is not None else None
    unheard = agent.parent_id is not None and (parent is None or not _can_work(parent))
    return not agent.unread or unheard


def _can_work(agent: SubAgent) -> bool:
    return agent.status == "running" or agent.session is not None or agent.past is not None
