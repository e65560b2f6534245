"""The thinking of Gemini models: levels or a budget of tokens, depending on the generation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelRequest

THINKING_BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 24576,
    "max": 24576,
}
"""Tokens of thinking for each effort, on models that take budgets: the values of Google's OpenAI-like endpoint."""

DYNAMIC_BUDGET: Final = -1
"""The budget that lets the model decide."""

_MODEL: Final = re.compile(r"gemini-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)", re.IGNORECASE)
_NOT_THINKING: Final = re.compile(r"image|tts|audio|live|embedding", re.IGNORECASE)
_LATEST: Final = (99, 0)


def generation_of(model: str) -> tuple[int, int] | None:
    """Return the version in the name of a Gemini model, ``None`` for a name without one."""
    match = _MODEL.search(model)
    if match is not None:
        return int(match.group(1)), int(match.group(2) or 0)
    return _LATEST if re.search(r"gemini-(?:(?!gemini-).)*latest", model, re.IGNORECASE) else None


def thinking_level(model: str, effort: str) -> str | None:
    """Return the level for an effort, among the levels of the model; ``None`` for an unknown effort.

    No model with levels can turn thinking off: ``none`` becomes the lowest level.
    """
    version = generation_of(model)
    flash, lite = "flash" in model.lower(), "flash-lite" in model.lower()
    match effort:
        case "none" | "off" | "minimal":
            return "minimal" if lite or (flash and version is not None and version < (3, 7)) else "low"
        case "medium":
            return "high" if version == (3, 0) and not flash else "medium"
        case "low" | "high":
            return effort
        case "xhigh" | "max":
            return "high"
        case _:
            return None


def thinks(model: str) -> bool:
    """Return whether a model is known to think; other models refuse the field."""
    version = generation_of(model)
    return version is not None and version >= (2, 5) and not _NOT_THINKING.search(model)


def thinking_config(request: ModelRequest, mode: Any) -> JsonObject:
    """Return the thinking configuration: level or budget, and whether to include thoughts; empty for no field."""
    effort = request.reasoning_effort
    if mode == "none" or (mode is None and not thinks(request.model) and effort is None):
        return {}
    quiet = effort in ("none", "off")
    config: JsonObject = {"includeThoughts": not quiet and request.reasoning_summary != "none"}
    if effort is None:
        return config
    version = generation_of(request.model)
    if mode == "budget" or (mode is None and version is not None and version < (3, 0)):
        config["thinkingBudget"] = _budget(request, effort, quiet=quiet)
    elif level := thinking_level(request.model, effort):
        config["thinkingLevel"] = level
    return config


def _budget(request: ModelRequest, effort: str, *, quiet: bool) -> int:
    if quiet:
        # The large model of that generation always thinks; this is its minimum.
        return 128 if "pro" in request.model.lower() else 0
    budget = THINKING_BUDGETS.get(effort, DYNAMIC_BUDGET)
    if request.max_output_tokens is not None and budget > 0:
        # The limit includes thoughts: leave half of it for the answer.
        budget = min(budget, max(request.max_output_tokens // 2, 512))
    return budget
