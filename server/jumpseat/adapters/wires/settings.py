"""Entries of settings schemas, and the forms that several providers share.

No entry has a default: what is not set is not sent, and the provider decides. Keys are the provider's own names.
A setting that wires write in several ways (limits, reasoning effort) is mapped to ``request``, and the wire finds
the field; all others are mapped to places in the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from jumpseat.adapters.provider import SettingEntries, SettingEntry

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


# --- entries ------------------------------------------------------------------------------------------------------


def number(desc: str, low: float, high: float | None = None, *, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for a number from ``low`` to ``high``."""
    return {"type": "number", "mapping": mapping, "minimum": low, "maximum": high, "desc": desc}


def integer(
    desc: str, low: float | None = 0, high: float | None = None, *, mapping: str = "parameters"
) -> SettingEntry:
    """Return an entry for an integer from ``low`` to ``high``."""
    return {"type": "integer", "mapping": mapping, "minimum": low, "maximum": high, "desc": desc}


def choice(desc: str, *choices: str, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for one of ``choices``."""
    return {"type": "enum", "mapping": mapping, "choices": list(choices), "desc": desc}


def entry(kind: str, desc: str, *, mapping: str = "parameters") -> SettingEntry:
    """Return an entry of the type ``kind`` without limits."""
    return {"type": kind, "mapping": mapping, "desc": desc}


def stop(most: int | None = None, *, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for 1 to ``most`` stop sequences."""

    def check(value: Any) -> tuple[bool, str]:
        sequences = cast("Sequence[Any]", value)
        fits = bool(sequences) and (most is None or len(sequences) <= most)
        expected = f"expected 1 to {most} strings" if most is not None else "expected at least one string"
        return fits and all(isinstance(text, str) and text for text in sequences), expected

    return {"type": "list", "mapping": mapping, "validate": check, "desc": "Strings at which the answer ends."}


def max_tokens() -> SettingEntry:
    """Return an entry for the limit of output tokens."""
    return integer("Most tokens of an answer, reasoning included.", 1, mapping="request.max_output_tokens")


def effort(*choices: str) -> SettingEntry:
    """Return an entry for the reasoning effort, by default with all levels."""
    return choice(
        "How hard the model thinks, if it can.", *(choices or EFFORTS), mapping="request.reasoning_effort"
    )


def temperature(high: float = 2, *, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the sampling temperature, from 0 to ``high``."""
    return number("Higher is more random, 0 the most predictable.", 0, high, mapping=mapping)


def top_p(*, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for nucleus sampling."""
    return number("Sample from the likeliest tokens whose probabilities add up to this.", 0, 1, mapping=mapping)


def top_k(*, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the number of tokens to sample from."""
    return integer("Sample from this many of the likeliest tokens.", 0, mapping=mapping)


def min_p(*, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the least probability, relative to the likeliest token."""
    return number(
        "Sample from tokens at least this probable, relative to the likeliest one.", 0, 1, mapping=mapping
    )


def presence_penalty(*, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the penalty on tokens that occurred before."""
    return number("Above 0, avoids words that were used before.", -2, 2, mapping=mapping)


def frequency_penalty(*, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the penalty on tokens by how often they occurred."""
    return number("Above 0, avoids words the more often they were used.", -2, 2, mapping=mapping)


def repetition_penalty(high: float | None = 2, *, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the factor that penalizes repetition."""
    return number("Above 1, avoids repetition.", 0, high, mapping=mapping)


def seed(*, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the seed of sampling."""
    return integer("The same seed tends to give the same answer.", None, mapping=mapping)


def verbosity(*, mapping: str = "parameters") -> SettingEntry:
    """Return an entry for the length of answers."""
    return choice("How long answers tend to be.", "low", "medium", "high", mapping=mapping)


USER: Final = entry("string", "An id of the end user, so that the provider can detect abuse.")
LOGIT_BIAS: Final = entry("map", "Tokens by number, each with the change to its likelihood (-100 to 100).")
SERVICE_TIER: Final = entry("string", "How the provider handles the request; the names are the provider's own.")

SAMPLING: Final[SettingEntries] = {"temperature": temperature(), "top_p": top_p()}
PENALTIES: Final[SettingEntries] = {
    "presence_penalty": presence_penalty(),
    "frequency_penalty": frequency_penalty(),
}


# --- forms of a wire ----------------------------------------------------------------------------------------------

CHAT: Final[SettingEntries] = {
    "reasoning_effort": effort(),
    **SAMPLING,
    "stop": stop(4),
    "max_tokens": max_tokens(),
    **PENALTIES,
    "logit_bias": LOGIT_BIAS,
    "seed": seed(),
    "user": USER,
}
"""Chat completions, as most providers have them."""

OPENAI_CHAT: Final[SettingEntries] = {**CHAT, "verbosity": verbosity(), "service_tier": SERVICE_TIER}
"""Chat completions of OpenAI and Azure."""

RESPONSES: Final[SettingEntries] = {
    "reasoning.effort": effort(),
    "reasoning.summary": choice(
        "Whether reasoning is summarized, and in how much detail.",
        "none",
        "auto",
        "concise",
        "detailed",
        mapping="request.reasoning_summary",
    ),
    **SAMPLING,
    "top_logprobs": integer("How many likely tokens are returned for each position.", 0, 20),
    "max_output_tokens": max_tokens(),
    "verbosity": verbosity(mapping="parameters.text"),
    "service_tier": SERVICE_TIER,
    "user": USER,
}


def _takes_sampling(view: Any) -> bool:
    """Decide whether a Claude model takes sampling parameters; those from 4.7 on refuse them."""
    from jumpseat.adapters.wires.messages import claude_version

    version = claude_version(str(view.model.get("name") or ""))
    return version is None or version < (4, 7)


MESSAGES: Final[SettingEntries] = {
    "effort": effort(),
    "max_tokens": max_tokens(),
    **{
        key: {**value, "enabled": _takes_sampling}
        for key, value in {"temperature": temperature(1), "top_p": top_p(), "top_k": top_k()}.items()
    },
    "stop_sequences": stop(),
    "service_tier": choice("Which capacity may be used.", "auto", "standard_only"),
    "metadata.user_id": USER,
}
