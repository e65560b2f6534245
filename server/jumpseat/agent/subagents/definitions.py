"""The agents that can be started as sub-agents: the built-in ones, and the custom agents of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from jumpseat.agent.settings import SessionSettings

if TYPE_CHECKING:
    from jumpseat_protocol.sessions import CustomAgentConfig
    from jumpseat_protocol.tools import SubagentSettingsEntry

_READING: Final = ("view", "grep", "glob", "bash", "read_bash", "stop_bash", "list_bash")
_REPORT: Final = "Only your last message reaches the agent that gave you the task, so put the whole result into it."


class BuiltInAgent(NamedTuple):
    """An agent of this server; ``tools`` of ``None`` are those of the agent that starts it."""

    name: str
    display_name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None

    def config(self) -> CustomAgentConfig:
        """Return the agent in the form of a custom agent."""
        from jumpseat_protocol.sessions import CustomAgentConfig

        return CustomAgentConfig(
            name=self.name,
            display_name=self.display_name,
            description=self.description,
            prompt=f"{self.prompt} {_REPORT}",
            tools=None if self.tools is None else list(self.tools),
        )


BUILT_IN: Final = (
    BuiltInAgent(
        "explore",
        "Explore",
        "find and read code, answer questions",
        "You explore a code base to answer one question. Search first, read what matters, change nothing. Answer"
        " with paths and lines.",
        _READING,
    ),
    BuiltInAgent(
        "task",
        "Task",
        "run commands such as tests, report briefly",
        "You carry out commands: builds, tests, checks, installations. If all is well, say so in a line. If not,"
        " report the failing command with the part of its output that matters.",
    ),
    BuiltInAgent(
        "general-purpose",
        "General purpose",
        "several steps, all tools",
        "You do one task of several steps on your own. Do all of it, and nothing beyond it.",
    ),
    BuiltInAgent(
        "code-review",
        "Code review",
        "find defects in changes",
        "You review changes of code. Report only defects that you can show: what breaks, with which input, in which"
        " line, and how to fix it. Leave style aside. Change nothing.",
        _READING,
    ),
    BuiltInAgent(
        "research",
        "Research",
        "answer from code and web, with sources",
        "You research a question in the project and, with the tools that you have, on the web. Compare sources,"
        " name each, and say what remains unknown. Change nothing.",
        (*_READING, "web_fetch", "web_search"),
    ),
    BuiltInAgent(
        "security-review",
        "Security review",
        "find vulnerabilities",
        "You look for vulnerabilities: input that reaches commands, files, queries or the network unchecked,"
        " secrets, missing checks of rights. Show for each how it is reached and used. Change nothing.",
        _READING,
    ),
)
"""The agents that every session has, unless its client excludes them."""


def built_in_agents(settings: SessionSettings) -> list[BuiltInAgent]:
    """Return the built-in agents of a session, without those that are excluded, disabled or replaced."""
    unavailable = {*(agent.name for agent in settings.agents), *_disabled(settings)}
    return [agent for agent in _wanted(settings) if agent.name not in unavailable]


def startable_agents(settings: SessionSettings) -> dict[str, str]:
    """Return the descriptions of the agents that models may start in a session, by name: built-in ones first."""
    agents = {agent.name: agent.description for agent in _wanted(settings)}
    agents |= {agent.name: agent.description for agent in settings.agents if agent.infer}
    disabled = _disabled(settings)
    return {name: description for name, description in agents.items() if name not in disabled}


def _wanted(settings: SessionSettings) -> list[BuiltInAgent]:
    """Return the built-in agents that the client includes and does not exclude."""
    included, excluded = settings.options.included_builtin_agents, settings.options.excluded_builtin_agents
    every = "*" in included
    return [agent for agent in BUILT_IN if (every or agent.name in included) and agent.name not in excluded]


def _disabled(settings: SessionSettings) -> list[str]:
    of_user = settings.sub_agent_settings
    return (of_user.disabled_subagents if of_user is not None else None) or []


def find_agent(settings: SessionSettings, name: str) -> CustomAgentConfig | None:
    """Return the agent ``name``; a custom agent replaces the built-in one of that name."""
    if name not in startable_agents(settings):
        return None
    custom = next((agent for agent in settings.agents if agent.name == name), None)
    return custom or next(agent for agent in BUILT_IN if agent.name == name).config()


def user_settings_of(settings: SessionSettings, name: str) -> SubagentSettingsEntry | None:
    """Return the model and the effort that the user has set for a type of agent, if any."""
    of_user = settings.sub_agent_settings
    return ((of_user.agents if of_user is not None else None) or {}).get(name)


def with_user_settings(settings: SessionSettings, config: CustomAgentConfig) -> CustomAgentConfig:
    """Return an agent with the model and the effort that the user has set for its type, if any."""
    entry = user_settings_of(settings, config.name)
    if entry is None:
        return config
    if entry.model is not None:
        # An effort that was meant for another model may be unknown to this one.
        return config.model_copy(update={"model": entry.model, "reasoning_effort": entry.effort_level})
    if entry.effort_level is not None:
        return config.model_copy(update={"reasoning_effort": entry.effort_level})
    return config
