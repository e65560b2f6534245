"""How each provider lists its models: what to ask, and how to read the answer. No I/O.

``adapters/models/model_lists.py`` asks. An adapter that is not in :data:`LISTINGS` has no list: Azure's has models
instead of the deployments that can be called. What an answer does not say stays unknown. Sources of the forms:

* https://platform.openai.com/docs/api-reference/models/list, and what relatives add: ``context_length``
  (Moonshot), ``context_size`` (Novita), ``context_window`` (Groq), ``max_model_len`` (vLLM)
* https://platform.claude.com/docs/en/api/models/list
* https://ai.google.dev/api/models#method:-models.list
* https://docs.mistral.ai/api/endpoint/models
* https://openrouter.ai/docs/overview/models
* https://docs.ollama.com/api/tags and https://docs.ollama.com/api-reference/show-model-details
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from jumpseat.adapters import load_adapter
from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wire import as_flag, as_limit, as_list, as_object, as_text, merge_headers
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo, ModelRequest, Price


@dataclass(frozen=True, slots=True)
class Question:
    """One look-up: a GET, or with a ``body`` a POST of JSON."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some models, in the provider's order; ``after`` is what the next page is asked for with."""

    models: list[ModelInfo]
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """One provider's list. ``path`` makes the URL of a page; ``detail`` what is to be asked of every model."""

    path: Callable[[Endpoint, str | None], str]
    read: Callable[[JsonObject], Page]
    detail: Detail | None = None

    def ask(self, adapter: str, endpoint: Endpoint, after: str | None = None) -> Question:
        """The question for the page that comes ``after``, asked as the adapter asks for an answer of the model."""
        return Question(self.path(endpoint, after), _headers(adapter, endpoint))


@dataclass(frozen=True, slots=True)
class Detail:
    """A question about one model, and what its answer makes of what is known; ``None``: it does not chat."""

    path: Callable[[Endpoint], str]
    read: Callable[[ModelInfo, JsonObject, Endpoint], ModelInfo | None]

    def ask(self, adapter: str, endpoint: Endpoint, model: str) -> Question:
        headers = merge_headers(_headers(adapter, endpoint), {"Content-Type": "application/json"})
        return Question(self.path(endpoint), headers, {"model": model})


def _headers(adapter: str, endpoint: Endpoint) -> dict[str, str]:
    # Whatever lets a model be called lets it be listed: keys, tokens, versions and the user's own headers.
    request = load_adapter(adapter).request(endpoint, ModelRequest("", "", [], stream=False))
    return {name: value for name, value in request.headers.items() if name.lower() != "content-type"}


# --- chat completions and relatives -------------------------------------------------------------------------------

MAX_NAME: Final = 256
"""Of characters; longer names are left out."""

_OTHER_TRADES: Final = re.compile(
    r"embed|whisper|moderation|dall-e|(?:^|[-/])(?:tts|realtime|audio|transcribe|image|sora|babbage|davinci)(?=[-.\d]|$)",
    re.IGNORECASE,
)
"""Names of models that do not chat, in lists that do not say what their models do."""


def _openai_path(endpoint: Endpoint, after: str | None) -> str:
    return f"{endpoint.base_url.rstrip('/').removesuffix('/chat/completions')}/models"


def openai_page(answer: JsonObject) -> Page:
    models: list[ModelInfo] = []
    for entry in _entries(answer, "data"):
        if (name := _word(entry.get("id"))) and not _OTHER_TRADES.search(name):
            windows = (
                entry.get(key) for key in ("context_length", "context_size", "context_window", "max_model_len")
            )
            most = entry.get("max_output_tokens") or entry.get("max_completion_tokens")
            models.append(
                ModelInfo(
                    id=name,
                    name=_word(entry.get("display_name")) or None,
                    vision=as_flag(entry.get("supports_image_in")),
                    reasoning=as_flag(entry.get("supports_reasoning")),
                    context_window=next(filter(None, map(as_limit, windows)), None),
                    max_output_tokens=as_limit(most),
                )
            )
    return Page(models)


def mistral_page(answer: JsonObject) -> Page:
    models: list[ModelInfo] = []
    for entry in _entries(answer, "data"):
        able = as_object(entry.get("capabilities"))
        if (name := _word(entry.get("id"))) and able.get("completion_chat") is not False:
            models.append(
                ModelInfo(
                    id=name,
                    vision=as_flag(able.get("vision")),
                    tools=as_flag(able.get("function_calling")),
                    reasoning=as_flag(able.get("reasoning")),
                    context_window=as_limit(entry.get("max_context_length")),
                )
            )
    return Page(models)


def openrouter_page(answer: JsonObject) -> Page:
    models: list[ModelInfo] = []
    for entry in _entries(answer, "data"):
        kinds = as_object(entry.get("architecture"))
        writes, reads = _texts(kinds.get("output_modalities")), _texts(kinds.get("input_modalities"))
        name = _word(entry.get("id"))
        if not name or (writes is not None and "text" not in writes):
            continue
        knows = _texts(entry.get("supported_parameters"))
        host, price = as_object(entry.get("top_provider")), as_object(entry.get("pricing"))
        thinking = as_object(entry.get("reasoning"))
        models.append(
            ModelInfo(
                id=name,
                name=_word(entry.get("name")) or None,
                vision=None if reads is None else "image" in reads,
                tools=None if knows is None else "tools" in knows,
                reasoning=None if knows is None else "reasoning" in knows,
                context_window=as_limit(entry.get("context_length")) or as_limit(host.get("context_length")),
                max_output_tokens=as_limit(host.get("max_completion_tokens")),
                reasoning_efforts=_texts(thinking.get("supported_efforts")),
                price=_price(price),
            )
        )
    return Page(models)


def _price(price: JsonObject) -> Price | None:
    asked, said = _per_million(price.get("prompt")), _per_million(price.get("completion"))
    if asked is None or said is None:
        return None
    cached, kept = _per_million(price.get("input_cache_read")), _per_million(price.get("input_cache_write"))
    return Price(asked, said, cached, kept)


def _per_million(text: Any) -> float | None:
    """Dollars per token, written as text; a negative number says that it depends."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return round(number * 1_000_000, 6) if math.isfinite(number) and number >= 0 else None


# --- others -------------------------------------------------------------------------------------------------------


def _anthropic_path(endpoint: Endpoint, after: str | None) -> str:
    base = endpoint.base_url.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    return f"{base}/v1/models?limit=1000" + (f"&after_id={quote(after, safe='')}" if after else "")


def anthropic_page(answer: JsonObject) -> Page:
    models: list[ModelInfo] = []
    for entry in _entries(answer, "data"):
        able = as_object(entry.get("capabilities"))
        effort = as_object(able.get("effort"))
        levels = tuple(level for level, one in effort.items() if as_object(one).get("supported") is True)
        if name := _word(entry.get("id")):
            models.append(
                ModelInfo(
                    id=name,
                    name=_word(entry.get("display_name")) or None,
                    vision=as_flag(as_object(able.get("image_input")).get("supported")),
                    reasoning=as_flag(as_object(able.get("thinking")).get("supported")),
                    context_window=as_limit(entry.get("max_input_tokens")),
                    max_output_tokens=as_limit(entry.get("max_tokens")),
                    reasoning_efforts=levels or None,
                )
            )
    return Page(models, (as_text(answer.get("last_id")) or None) if answer.get("has_more") is True else None)


def _gemini_path(endpoint: Endpoint, after: str | None) -> str:
    from jumpseat.adapters.wires.generate_content import api_root

    token = f"&pageToken={quote(after, safe='')}" if after else ""
    return f"{api_root(endpoint.base_url)}/models?pageSize=1000{token}"


def gemini_page(answer: JsonObject) -> Page:
    models: list[ModelInfo] = []
    for entry in _entries(answer, "models"):
        name = _word(entry.get("name")).removeprefix("models/")
        does = _texts(entry.get("supportedGenerationMethods"))
        if name and (does is None or "generateContent" in does) and not _OTHER_TRADES.search(name):
            models.append(
                ModelInfo(
                    id=name,
                    name=_word(entry.get("displayName")) or None,
                    reasoning=as_flag(entry.get("thinking")),
                    context_window=as_limit(entry.get("inputTokenLimit")),
                    max_output_tokens=as_limit(entry.get("outputTokenLimit")),
                )
            )
    return Page(models, as_text(answer.get("nextPageToken")) or None)


def _ollama_path(endpoint: Endpoint, path: str) -> str:
    from jumpseat.adapters.wires.ollama_chat import address

    return f"{address(endpoint.base_url).removesuffix('/api')}/api/{path}"


def ollama_page(answer: JsonObject) -> Page:
    names = (_word(entry.get("model")) or _word(entry.get("name")) for entry in _entries(answer, "models"))
    return Page([ModelInfo(id=name) for name in names if name])


def ollama_detail(info: ModelInfo, answer: JsonObject, endpoint: Endpoint) -> ModelInfo | None:
    able = _texts(answer.get("capabilities"))
    if able is not None and "completion" not in able:
        return None
    facts = as_object(answer.get("model_info"))
    most = as_limit(facts.get(f"{as_text(facts.get('general.architecture'))}.context_length"))
    # The server gives a model the window that it is asked for, if the model goes that far.
    wanted = as_limit(endpoint.options.get("num_ctx"))
    return replace(
        info,
        vision=None if able is None else "vision" in able,
        tools=None if able is None else "tools" in able,
        reasoning=None if able is None else "thinking" in able,
        context_window=min(wanted, most) if wanted and most else wanted or most,
    )


# --- parts --------------------------------------------------------------------------------------------------------


def _entries(answer: JsonObject, key: str) -> list[JsonObject]:
    return [as_object(entry) for entry in as_list(answer.get(key))]


def _word(value: Any) -> str:
    """A name, empty where it is none: what people see in a terminal must not command it."""
    text = as_text(value)
    return text if text.isprintable() and len(text) <= MAX_NAME else ""


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(item for item in as_list(value) if isinstance(item, str)) if isinstance(value, list) else None


_OPENAI: Final = Listing(_openai_path, openai_page)
_GEMINI: Final = Listing(_gemini_path, gemini_page)

LISTINGS: Final[Mapping[str, Listing]] = {
    "anthropic": Listing(_anthropic_path, anthropic_page),
    "deepseek": _OPENAI,
    "gemini": _GEMINI,
    "gemini_interactions": _GEMINI,
    "huggingface": _OPENAI,
    "kimi": _OPENAI,
    "mistral": Listing(_openai_path, mistral_page),
    "novita": _OPENAI,
    "ollama": Listing(
        lambda endpoint, _after: _ollama_path(endpoint, "tags"),
        ollama_page,
        Detail(lambda endpoint: _ollama_path(endpoint, "show"), ollama_detail),
    ),
    "openai": _OPENAI,
    "openai_compatible": _OPENAI,
    "openai_responses": _OPENAI,
    "openrouter": Listing(_openai_path, openrouter_page),
    "xai": _OPENAI,
}
