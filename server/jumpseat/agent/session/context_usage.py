"""Estimates, in tokens, of the parts of a session's next model request.

The estimates are those of ``agent/conversation/tokens.py``; a provider may count differently.
"""

from __future__ import annotations

from msgspec import Struct

from jumpseat.agent.blocks import Message
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.prompt import system_prompt
from jumpseat.agent.model import DEFAULT_CONTEXT_WINDOW
from jumpseat.agent.session.session import Session
from jumpseat.errors import ConfigError, ProviderError


class ContextUsage(Struct, frozen=True):
    """Tokens of the parts of a request.

    ``instructions`` are included in ``system``, and ``mcp_tools`` in ``tools``, which has an entry per tool name.
    """

    system: int
    instructions: int
    tools: dict[str, int]
    mcp_tools: int
    messages: list[tuple[Message, int]]

    @property
    def all_tools(self) -> int:
        return sum(self.tools.values())

    @property
    def all_messages(self) -> int:
        return sum(size for _, size in self.messages)

    @property
    def total(self) -> int:
        return self.system + self.all_tools + self.all_messages


class ContextLimits(Struct, frozen=True):
    """The context window of ``model``, in tokens, and the part of it that is reserved for the response."""

    model: str
    window: int
    output: int

    @property
    def prompt(self) -> int:
        """The tokens that are left for the prompt."""
        return self.window - self.output


def measure_context(session: Session) -> ContextUsage:
    """Estimate the size of the next model request."""
    settings = session.settings
    instructions = session.services.read_instructions(settings)
    specs = session.tools.specs()
    tools = {spec.name: tokens.of_tools([spec]) for spec in specs}
    return ContextUsage(
        system=tokens.of_text(
            system_prompt(
                settings.options.system_message,
                settings.cwd,
                instructions,
                tools=session.tools.in_system_message().instructions,
                project=last[1].text if (last := session.root.project.last) is not None else "",
            )
        ),
        instructions=tokens.of_text(instructions),
        tools=tools,
        mcp_tools=sum(tools[spec.name] for spec in specs if spec.origin is not None),
        messages=[(message, tokens.of_message(message)) for message in session.conversation.messages()],
    )


async def context_limits(session: Session) -> ContextLimits:
    """Return the limits of the session's model; those of an average model if it cannot be resolved."""
    try:
        info = (await session.services.models.resolve(session.settings)).known
    except (ConfigError, ProviderError):
        return ContextLimits(session.settings.options.model or "unknown", DEFAULT_CONTEXT_WINDOW, 0)
    return ContextLimits(info.id, info.window, info.window - info.prompt_limit)


def compaction_threshold(session: Session, prompt_limit: int) -> int:
    """Return the number of tokens at which automatic compaction starts; ``prompt_limit`` if it is disabled."""
    policy = session.compaction_policy
    return round(policy.background * prompt_limit) if policy.enabled else prompt_limit
