"""What users can set of the adapters that come with the server, as entries of a ``schema``.

Nothing has a default here: what is not set is not sent, and the provider decides. Keys are the provider's own
names. Where a wire already says the same in several ways (limits, thinking), an entry is mapped to ``request`` and
the wire finds the words; all others go into the body as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from jumpseat.adapters.wires.messages import claude_version

Entry: TypeAlias = Mapping[str, Any]
Entries: TypeAlias = Mapping[str, Entry]

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def settings_of(adapter: str) -> dict[str, Any]:
    """The schema of the adapter of that name, in the order of a form; empty where there is nothing to set."""
    entries = SETTINGS.get(adapter, {})
    return {
        key: {"order": place, "optional": True, **entry} for place, (key, entry) in enumerate(entries.items(), 1)
    }


def _number(desc: str, low: float, high: float | None = None, *, mapping: str = "parameters") -> Entry:
    return {"type": "number", "mapping": mapping, "minimum": low, "maximum": high, "desc": desc}


def _integer(desc: str, low: float | None = 0, high: float | None = None, *, mapping: str = "parameters") -> Entry:
    return {"type": "integer", "mapping": mapping, "minimum": low, "maximum": high, "desc": desc}


def _choice(desc: str, *choices: str, mapping: str = "parameters") -> Entry:
    return {"type": "enum", "mapping": mapping, "choices": list(choices), "desc": desc}


def _other(kind: str, desc: str, *, mapping: str = "parameters") -> Entry:
    return {"type": kind, "mapping": mapping, "desc": desc}


def _stop(most: int | None = None, *, mapping: str = "parameters") -> Entry:
    def check(value: Any) -> tuple[bool, str]:
        texts = cast("Sequence[Any]", value)
        few = bool(texts) and (most is None or len(texts) <= most)
        expected = f"expected 1 to {most} texts" if most is not None else "expected at least one text"
        return few and all(isinstance(text, str) and text for text in texts), expected

    return {"type": "list", "mapping": mapping, "validate": check, "desc": "Texts at which the answer ends."}


def _limit() -> Entry:
    return _integer("The most tokens of an answer, thinking included.", 1, mapping="request.max_output_tokens")


def _effort(*choices: str) -> Entry:
    desc = "How hard the model thinks, where it can."
    return _choice(desc, *(choices or EFFORTS), mapping="request.reasoning_effort")


def _temperature(high: float = 2, *, mapping: str = "parameters") -> Entry:
    return _number("Higher is more random, 0 the most predictable.", 0, high, mapping=mapping)


def _top_p(*, mapping: str = "parameters") -> Entry:
    return _number("Only the likeliest words, up to this sum of their chances.", 0, 1, mapping=mapping)


def _top_k(*, mapping: str = "parameters") -> Entry:
    return _integer("Only so many of the likeliest words.", 0, mapping=mapping)


def _min_p(*, mapping: str = "parameters") -> Entry:
    return _number("Only words of at least this part of the likeliest one's chance.", 0, 1, mapping=mapping)


def _penalty(of: str, *, mapping: str = "parameters") -> Entry:
    return _number(f"Above 0, words are avoided {of}.", -2, 2, mapping=mapping)


def _presence(*, mapping: str = "parameters") -> Entry:
    return _penalty("that were used before", mapping=mapping)


def _frequency(*, mapping: str = "parameters") -> Entry:
    return _penalty("the more often they were used", mapping=mapping)


def _seed(*, mapping: str = "parameters") -> Entry:
    return _integer("The same number tends to give the same answer.", None, mapping=mapping)


def _claude_samples(view: Any) -> bool:
    """Claude from 4.7 on refuses to be told how to sample."""
    version = claude_version(str(view.model.get("name") or ""))
    return version is None or version < (4, 7)


_USER: Final = _other("string", "Whom the request is for, so that the provider can tell abuse apart.")
_LOGIT_BIAS: Final = _other("map", "Tokens by number, each with how much likelier it is to become (-100 to 100).")
_TIER: Final = _other("string", "How the provider handles the request: the names are its own.")
_VERBOSITY: Final = ("low", "medium", "high")
_LONG: Final = "How long answers tend to be."
_REPEAT: Final = "Above 1, what was said is avoided."

_SAMPLING: Final[Entries] = {"temperature": _temperature(), "top_p": _top_p()}
_PENALTIES: Final[Entries] = {"presence_penalty": _presence(), "frequency_penalty": _frequency()}

CHAT: Final[Entries] = {
    "reasoning_effort": _effort(),
    **_SAMPLING,
    "stop": _stop(4),
    "max_tokens": _limit(),
    **_PENALTIES,
    "logit_bias": _LOGIT_BIAS,
    "seed": _seed(),
    "user": _USER,
}
"""What chat completions and most of their relatives know."""

OPENAI: Final[Entries] = {**CHAT, "verbosity": _choice(_LONG, *_VERBOSITY), "service_tier": _TIER}

RESPONSES: Final[Entries] = {
    "reasoning.effort": _effort(),
    "reasoning.summary": _choice(
        "Whether thoughts are told, and how much of them.",
        "none",
        "auto",
        "concise",
        "detailed",
        mapping="request.reasoning_summary",
    ),
    **_SAMPLING,
    "top_logprobs": _integer("How many likely words are told for each place.", 0, 20),
    "max_output_tokens": _limit(),
    "verbosity": _choice(_LONG, *_VERBOSITY, mapping="parameters.text"),
    "service_tier": _TIER,
    "user": _USER,
}

MESSAGES: Final[Entries] = {
    "effort": _effort(),
    "max_tokens": _limit(),
    **{
        key: {**entry, "enabled": _claude_samples}
        for key, entry in {"temperature": _temperature(1), "top_p": _top_p(), "top_k": _top_k()}.items()
    },
    "stop_sequences": _stop(),
    "service_tier": _choice("Which capacity may be used.", "auto", "standard_only"),
    "metadata.user_id": _USER,
}

_GENERATION: Final = "body.generationConfig"
_CONFIG: Final = "body.generation_config"
_OPTIONS: Final = "parameters.options"

SETTINGS: Final[Mapping[str, Entries]] = {
    "anthropic": MESSAGES,
    "azure": OPENAI,
    "azure_responses": RESPONSES,
    "copilot": CHAT,
    "copilot_messages": MESSAGES,
    "copilot_responses": RESPONSES,
    "deepseek": {
        "reasoning_effort": _effort("none", "low", "medium", "high", "max"),
        **_SAMPLING,
        "stop": _stop(16),
        "max_tokens": _limit(),
        **_PENALTIES,
    },
    "gemini": {
        "thinkingLevel": _effort(),
        "temperature": _temperature(mapping=_GENERATION),
        "topP": _top_p(mapping=_GENERATION),
        "topK": _top_k(mapping=_GENERATION),
        "maxOutputTokens": _limit(),
        "stopSequences": _stop(5, mapping=_GENERATION),
        "presencePenalty": _presence(mapping=_GENERATION),
        "frequencyPenalty": _frequency(mapping=_GENERATION),
        "seed": _seed(mapping=_GENERATION),
    },
    "gemini_interactions": {
        "thinking_level": _effort(),
        "temperature": _temperature(mapping=_CONFIG),
        "top_p": _top_p(mapping=_CONFIG),
        "max_output_tokens": _limit(),
        "stop_sequences": _stop(5, mapping=_CONFIG),
        "seed": _seed(mapping=_CONFIG),
    },
    "githubmodels": CHAT,
    "huggingface": CHAT,
    "kimi": {
        "reasoning_effort": _effort(),
        "temperature": _temperature(1),
        "top_p": _top_p(),
        "stop": _stop(5),
        "max_tokens": _limit(),
        **_PENALTIES,
    },
    "mistral": {
        "reasoning_effort": _effort("none", "high"),
        "temperature": _temperature(1.5),
        "top_p": _top_p(),
        "stop": _stop(),
        "max_tokens": _limit(),
        **_PENALTIES,
        "random_seed": _seed(),
        "safe_prompt": _other("boolean", "Whether Mistral puts a safety prompt before the conversation."),
    },
    "novita": {**CHAT, "top_k": _top_k(), "min_p": _min_p(), "repetition_penalty": _number(_REPEAT, 0, 2)},
    "ollama": {
        "think": _effort(),
        "num_ctx": _integer(
            "The context window in tokens; what does not fit is dropped silently.", 1, mapping=_OPTIONS
        ),
        "temperature": _temperature(mapping=_OPTIONS),
        "top_p": _top_p(mapping=_OPTIONS),
        "top_k": _top_k(mapping=_OPTIONS),
        "min_p": _min_p(mapping=_OPTIONS),
        "num_predict": _integer("The most tokens of an answer; -1 for no limit.", -2, mapping=_OPTIONS),
        "repeat_penalty": _number(_REPEAT, 0, mapping=_OPTIONS),
        "repeat_last_n": _integer(
            "How far back repetition is looked for; -1 for the whole context.", -1, mapping=_OPTIONS
        ),
        "stop": _stop(mapping=_OPTIONS),
        "seed": _seed(mapping=_OPTIONS),
        "keep_alive": _other("string", "How long the model stays in memory: a time such as 5m, -1 for ever."),
    },
    "openai": OPENAI,
    "openai_compatible": CHAT,
    "openai_responses": RESPONSES,
    "openrouter": {
        "reasoning.effort": _effort(),
        **_SAMPLING,
        "top_k": _top_k(),
        "min_p": _min_p(),
        "stop": _stop(4),
        "max_tokens": _limit(),
        **_PENALTIES,
        "repetition_penalty": _number(_REPEAT, 0, 2),
        "seed": _seed(),
        "models": _other("list", "Models to fall back on, in this order."),
        "provider": _other("map", "Which providers may answer, and how one is chosen."),
        "preset": _other("string", "A preset of the account."),
        "user": _USER,
    },
    "xai": CHAT,
}
"""By adapter. The order is that of a form."""
