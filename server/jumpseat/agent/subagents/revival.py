"""Give an agent of an earlier process a session again, with the conversation that the log has of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jumpseat.agent.session.session import Session
from jumpseat.agent.session.sub_agents import SubAgentIdentity
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.subagents.definitions import find_agent, with_user_settings
from jumpseat.agent.subagents.session import SubAgentSession, settings_for
from jumpseat.agent.subagents.subagent import SubAgent
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol import events
from jumpseat_protocol.sessions import CustomAgentConfig


def revive(
    root: Session,
    agents: Mapping[str, SubAgent],
    agent: SubAgent,
    on_event: Callable[[events.Event], None],
) -> SubAgentSession:
    """Make the session of an agent from its events in the log. Its settings are those of a new agent of its type.

    Raises:
        InvalidRequestError: the session has no such type of agent any more; models can read the message.
    """
    session = SubAgentSession(
        root, identity_of(agents, agent, root), _settings(root.settings, agents, agent), on_event
    )
    for event_id, payload in agent.past or ():
        session.apply(event_id, payload)
    agent.past = None
    agent.session, agent.metrics = session, session.metrics
    agent.model = session.settings.for_model().options.model
    return session


def identity_of(agents: Mapping[str, SubAgent], agent: SubAgent, root: Session) -> SubAgentIdentity:
    """Return the identity of an agent of an earlier process."""
    depth, parent_id = 1, agent.parent_id
    while parent_id is not None and parent_id in agents:
        depth, parent_id = depth + 1, agents[parent_id].parent_id
    return agent.identity(depth, root.cause)


def with_choice(config: CustomAgentConfig, model: str | None, reasoning_effort: str | None) -> CustomAgentConfig:
    """Return an agent with the model and the effort that its call has chosen, if any."""
    chosen = {"model": model, "reasoning_effort": reasoning_effort}
    return config.model_copy(update={key: value for key, value in chosen.items() if value is not None})


def _settings(settings: SessionSettings, agents: Mapping[str, SubAgent], agent: SubAgent) -> SessionSettings:
    """Return the settings of an agent, which depend on the settings of those that have started it."""
    parent = agents.get(agent.parent_id) if agent.parent_id is not None else None
    if parent is not None:
        settings = parent.session.settings if parent.session is not None else _settings(settings, agents, parent)
    config = find_agent(settings, agent.type)
    if config is None:
        raise InvalidRequestError(f"Agent {agent.id} cannot continue: agent_type {agent.type} no longer exists.")
    chosen = with_choice(config, agent.requested_model, agent.requested_effort)
    return settings_for(settings, with_user_settings(settings, chosen))
