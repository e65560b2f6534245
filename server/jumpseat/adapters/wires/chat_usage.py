"""Usage of chat completions, from OpenAI and compatible servers."""

from __future__ import annotations

from jumpseat.adapters.wire import as_count, as_object, nano_aiu
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Usage


def usage_from_wire(answer: JsonObject) -> Usage | None:
    """Read the ``usage`` of an answer or a chunk; ``None`` without one.

    Besides OpenAI's names this knows DeepSeek's ``prompt_cache_hit_tokens``, Kimi's ``cached_tokens``, OpenRouter's
    ``cost`` and ``cache_creation_input_tokens`` of gateways before Anthropic.
    """
    node = as_object(answer.get("usage"))
    if not node:
        return None
    prompt = as_object(node.get("prompt_tokens_details"))
    completion = as_object(node.get("completion_tokens_details"))
    cost = node.get("cost")
    prompt_tokens, completion_tokens = as_count(node.get("prompt_tokens")), as_count(node.get("completion_tokens"))
    reasoning = as_count(completion.get("reasoning_tokens")) or as_count(node.get("reasoning_tokens"))
    if reasoning and as_count(node.get("total_tokens")) == prompt_tokens + completion_tokens + reasoning:
        # xAI counts reasoning outside of the answer's tokens, all others inside.
        completion_tokens += reasoning
    return Usage(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        cache_read_tokens=as_count(prompt.get("cached_tokens"))
        or as_count(node.get("prompt_cache_hit_tokens"))
        or as_count(node.get("cached_tokens")),
        cache_write_tokens=as_count(prompt.get("cache_write_tokens"))
        or as_count(node.get("cache_creation_input_tokens")),
        nano_aiu=nano_aiu(answer),
        reasoning_tokens=reasoning,
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
    )
