"""How full the context is: estimates of what the next model call would send.

The estimates are those of ``agent/conversation/tokens.py``, whatever the provider counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from jumpseat.agent.blocks import AssistantMessage, Message, ToolMessage
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.system_prompt import system_prompt
from jumpseat.agent.model import DEFAULT_CONTEXT_WINDOW
from jumpseat.agent.session.session import Session
from jumpseat.errors import ConfigError, ProviderError
from jumpseat.handlers.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import (
    ContextAttributionResult,
    ContextInfoParams,
    ContextInfoResult,
    ContextTokensParams,
    ContextTokensResult,
    HeaviestMessagesParams,
    HeaviestMessagesResult,
)

HEAVIEST: Final = 10


@dataclass(frozen=True, slots=True)
class _Weights:
    """Tokens of the parts of a request; ``instructions`` are part of ``system``, ``mcp_tools`` of ``tools``."""

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
        return sum(weight for _, weight in self.messages)

    @property
    def total(self) -> int:
        return self.system + self.all_tools + self.all_messages


def _weigh(session: Session) -> _Weights:
    settings = session.settings
    instructions = session.services.read_instructions(settings)
    offered = session.tools.specs()
    tools = {spec.name: tokens.of_tools([spec]) for spec in offered}
    return _Weights(
        system=tokens.of_text(
            system_prompt(settings.system_message, settings.cwd, instructions, tools=session.tools.instructions())
        ),
        instructions=tokens.of_text(instructions),
        tools=tools,
        mcp_tools=sum(tools[spec.name] for spec in offered if spec.origin is not None),
        messages=[(message, tokens.of_message(message)) for message in session.conversation.messages()],
    )


def context_info(ctx: Context, params: ContextInfoParams) -> ContextInfoResult:
    """The parts of the context, measured against limits the caller names; nothing before the first prompt."""
    session = ctx.registry.live(params.session_id)
    if not len(session.conversation):
        return ContextInfoResult()
    weights = _weigh(session)
    return ContextInfoResult(
        context_info={
            "modelName": params.selected_model or session.settings.model or "",
            "systemTokens": weights.system,
            "conversationTokens": weights.all_messages,
            "toolDefinitionsTokens": weights.all_tools,
            "mcpToolsTokens": weights.mcp_tools,
            "totalTokens": weights.total,
            "promptTokenLimit": params.prompt_token_limit,
            "compactionThreshold": _threshold(session, params.prompt_token_limit),
            "limit": params.prompt_token_limit + params.output_token_limit,
            "bufferTokens": params.output_token_limit,
        }
    )


def recompute_context_tokens(ctx: Context, params: ContextTokensParams) -> ContextTokensResult:
    """System message and conversation, counted anew; the estimate is the same for all models."""
    weights = _weigh(ctx.registry.live(params.session_id))
    return ContextTokensResult(
        total_tokens=weights.system + weights.all_messages,
        messages_token_count=weights.all_messages,
        system_token_count=weights.system,
    )


async def get_context_attribution(ctx: Context, params: SessionParams) -> ContextAttributionResult:
    """What takes how much of the context; nothing before the first prompt."""
    session = ctx.registry.live(params.session_id)
    if not len(session.conversation):
        return ContextAttributionResult()
    model, window, output = await _limits(session)
    weights = _weigh(session)
    entries = [_entry("system", "system-prompt", "System prompt", weights.system - weights.instructions)]
    if weights.instructions:
        entries.append(_entry("instructions", "custom-instructions", "Custom instructions", weights.instructions))
    entries += [_entry("tool", f"tool-{name}", name, weight) for name, weight in weights.tools.items()]
    entries.append(_entry("messages", "messages", "Messages", weights.all_messages))
    return ContextAttributionResult(
        context_attribution={
            "totalTokens": weights.total,
            "modelId": model,
            "modelSource": "selected" if session.settings.model else "default",
            "promptTokenLimit": window - output,
            "limit": window,
            "bufferTokens": output,
            "compactionThreshold": _threshold(session, window - output),
            "categories": {
                "systemPrompt": weights.system - weights.instructions,
                "customInstructions": weights.instructions,
                "systemTools": weights.all_tools - weights.mcp_tools,
                "mcpTools": weights.mcp_tools,
                "messages": weights.all_messages,
                "freeSpace": max(0, window - output - weights.total),
                "buffer": output,
            },
            "entries": entries,
            "compactions": {"count": session.conversation.compactions},
        }
    )


def get_context_heaviest_messages(ctx: Context, params: HeaviestMessagesParams) -> HeaviestMessagesResult:
    """The largest messages, the largest first. Ids count messages and hold until the next one."""
    weights = _weigh(ctx.registry.live(params.session_id))
    found = [
        {"id": f"message-{place}", "label": _label(message), "role": _role(message), "tokens": weight}
        for place, (message, weight) in sorted(
            enumerate(weights.messages), key=lambda item: item[1][1], reverse=True
        )
    ]
    return HeaviestMessagesResult(total_tokens=weights.all_messages, messages=found[: params.limit or HEAVIEST])


async def _limits(session: Session) -> tuple[str, int, int]:
    """The model's name, its context window and how much of that its answers may take."""
    try:
        info = (await session.services.models.resolve(session.settings)).known
    except (ConfigError, ProviderError):
        return session.settings.model or "unknown", DEFAULT_CONTEXT_WINDOW, 0
    return info.id, info.window, info.window - info.prompt_limit


def _threshold(session: Session, limit: int) -> int:
    """From where on the conversation is compacted by itself: where the limit is, if it never is."""
    policy = session.compaction_policy
    return round(policy.background * limit) if policy.enabled else limit


def _entry(kind: str, entry_id: str, label: str, weight: int) -> dict[str, Any]:
    return {"kind": kind, "id": entry_id, "label": label, "tokens": max(0, weight)}


def _role(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return "tool"
    return "assistant" if isinstance(message, AssistantMessage) else "user"


def _label(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return "tool: " + ", ".join(result.tool_name for result in message.results)
    return _role(message)
