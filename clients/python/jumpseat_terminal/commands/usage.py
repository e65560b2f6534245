"""The commands that show usage: calls and tokens, prices, and what fills the context window."""

from __future__ import annotations

from typing import Any, Final

from jumpseat_client import RpcError
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.commands.models import list_models
from jumpseat_transcript.words import count

CREDITS_PER_DOLLAR: Final = 100
"""Prices on the wire are in AI credits."""
_CATEGORIES: Final = (
    ("systemPrompt", "system message", "blue"),
    ("customInstructions", "instructions", "cyan"),
    ("systemTools", "tools", "magenta"),
    ("mcpTools", "MCP tools", "yellow"),
    ("messages", "messages", "green"),
    ("buffer", "kept free for the answer", "bright_black"),
    ("freeSpace", "free", ""),
)
"""The categories of ``session.metadata.getContextAttribution``, with their names and colours."""


async def usage(chat: Chat, _args: str) -> None:
    used = await chat.session.request("session.usage.getMetrics")
    changes = used["codeChanges"]
    rows = [(name, _calls(value)) for name, value in used["modelMetrics"].items()]
    if chat.feed.context_used is not None:
        rows.append(("context", f"{chat.feed.context_used:.0%} used"))
    rows.append(("changes", f"+{changes['linesAdded']} -{changes['linesRemoved']} lines"))
    chat.feed.show(chat.screen.painter().table(rows))


def _calls(value: dict[str, Any]) -> str:
    tokens = value["usage"]
    cached = f", {tokens['cacheReadTokens']:,} from cache" if tokens["cacheReadTokens"] else ""
    calls = count(value["requests"]["count"], "call")
    return f"{calls}, {tokens['inputTokens']:,} in{cached}, {tokens['outputTokens']:,} out"


async def cost(chat: Chat, _args: str) -> None:
    metrics = await chat.session.request("session.usage.getMetrics")
    used: dict[str, Any] = metrics["modelMetrics"]
    if not used:
        chat.feed.note("No model was called yet.")
        return
    try:
        prices = {model["id"]: model.get("billing", {}).get("tokenPrices") for model in await list_models(chat)}
    except RpcError:
        prices = {}
    rows: list[tuple[str, str, str]] = []
    total, unknown = 0.0, False
    for name, value in used.items():
        # Providers report the name without that of the adapter.
        found = [price for known, price in prices.items() if price and name in (known, known.partition("/")[2])]
        dollars = _dollars(value["usage"], found[0]) if found else None
        total += dollars or 0.0
        unknown = unknown or dollars is None
        rows.append((name, "price unknown" if dollars is None else f"${dollars:.4f}", _calls(value)))
    if nano_credits := metrics.get("totalNanoAiu"):
        rows.append(("GitHub Copilot", f"{nano_credits / 1e9:.2f} AI credits", ""))
    if len(rows) > 1 and total:
        rows.append(("together", f"${total:.4f}{' and more' if unknown else ''}", ""))
    painter = chat.screen.painter()
    chat.feed.show(painter.table(rows) + painter.notice("\nBy the known prices; the bill of the provider counts."))


def _dollars(tokens: dict[str, int], prices: dict[str, float]) -> float:
    batch = prices.get("batchSize") or 1_000_000
    plain = tokens["inputTokens"] - tokens["cacheReadTokens"] - tokens["cacheWriteTokens"]
    base = prices.get("inputPrice", 0.0)
    price = (
        max(plain, 0) * base
        + tokens["cacheReadTokens"] * prices.get("cacheReadPrice", base)
        + tokens["cacheWriteTokens"] * prices.get("cacheWritePrice", base)
        + tokens["outputTokens"] * prices.get("outputPrice", 0.0)
    )
    return price / batch / CREDITS_PER_DOLLAR


async def context(chat: Chat, _args: str) -> None:
    found = (await chat.session.request("session.metadata.getContextAttribution"))["contextAttribution"]
    if found is None:
        chat.feed.note("The context is empty before the first prompt.")
        return
    sizes: dict[str, int] = found["categories"]
    parts = [(label, sizes.get(name, 0), colour) for name, label, colour in _CATEGORIES if sizes.get(name, 0)]
    painter = chat.screen.painter()
    used, limit = found["totalTokens"], found["limit"]
    title = f"{used:,} of {limit:,} tokens of {found['modelId']} ({used / max(limit, 1):.0%}), estimated"
    compacted = f"\nSummarized {count(number, 'time')}." if (number := found["compactions"]["count"]) else ""
    threshold = f"Summarized automatically from {found['compactionThreshold']:,} tokens on; /compact does so now."
    chat.feed.show(painter.notice(title, "") + painter.shares(parts) + painter.notice(f"\n{threshold}{compacted}"))


async def compact(chat: Chat, args: str) -> None:
    # The result arrives as an event, which the feed shows.
    options = {"customInstructions": args} if args else {}
    await chat.session.request("session.history.compact", **options)
