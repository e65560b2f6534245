"""Ollama: its own chat API. The key is for Ollama's cloud; a local server needs none.

The list of models: https://docs.ollama.com/api/tags and
https://docs.ollama.com/api-reference/show-model-details
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from jumpseat.adapters.provider import (
    EnvironmentVariables,
    ModelDetails,
    ModelListing,
    ModelPage,
    ProviderInfo,
    entries,
    model_name,
    strings,
)
from jumpseat.adapters.wire import as_limit, as_object, as_text
from jumpseat.adapters.wires.settings import (
    effort,
    entry,
    integer,
    min_p,
    repetition_penalty,
    seed,
    stop,
    temperature,
    top_k,
    top_p,
)
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Endpoint
    from jumpseat.adapters.local_servers import ServerState

_OPTIONS: Final = "parameters.options"


def models_url(endpoint: Endpoint, after: str | None) -> str:
    """Return the URL of the list. It has one page."""
    return _url(endpoint, "tags")


def details_url(endpoint: Endpoint) -> str:
    """Return the URL of the details of a model."""
    return _url(endpoint, "show")


def _url(endpoint: Endpoint, path: str) -> str:
    from jumpseat.adapters.wires.ollama_chat import address

    return f"{address(endpoint.base_url).removesuffix('/api')}/api/{path}"


def read_models(answer: JsonObject) -> ModelPage:
    """Read the list, which has the names alone."""
    names = (model_name(entry.get("model")) or model_name(entry.get("name")) for entry in entries(answer, "models"))
    return ModelPage([ModelInfo(id=name) for name in names if name])


def read_details(info: ModelInfo, answer: JsonObject, endpoint: Endpoint) -> ModelInfo | None:
    """Complete ``info`` with the details of its model; return ``None`` for a model that cannot chat."""
    able = strings(answer.get("capabilities"))
    if able is not None and "completion" not in able:
        return None
    facts = as_object(answer.get("model_info"))
    most = as_limit(facts.get(f"{as_text(facts.get('general.architecture'))}.context_length"))
    # The server gives a model the window that a request names, up to the model's own.
    wanted = as_limit(endpoint.options.get("num_ctx"))
    return replace(
        info,
        vision=None if able is None else "vision" in able,
        tools=None if able is None else "tools" in able,
        reasoning=None if able is None else "thinking" in able,
        context_window=min(wanted, most) if wanted and most else wanted or most,
    )


def server_state(answer: JsonObject) -> ServerState:
    """Return the request for the models that run."""
    # Imported late: most processes read no list.
    from jumpseat.adapters.local_servers import OLLAMA

    return OLLAMA


PROVIDER: Final = ProviderInfo(
    type="ollama",
    adapter="ollama_chat:OllamaChatAdapter",
    family=None,
    default_base_url="http://localhost:11434",
    key_variable="OLLAMA_API_KEY",
    environment=EnvironmentVariables(base_url="OLLAMA_HOST", model="OLLAMA_MODEL", rank=11),
    listing=ModelListing(models_url, read_models, ModelDetails(details_url, read_details), server_state),
    settings={
        "think": effort(),
        "num_ctx": integer("The context window in tokens.", 1, mapping=_OPTIONS),
        "temperature": temperature(mapping=_OPTIONS),
        "top_p": top_p(mapping=_OPTIONS),
        "top_k": top_k(mapping=_OPTIONS),
        "min_p": min_p(mapping=_OPTIONS),
        "num_predict": integer("Most tokens of an answer; -1 for no limit.", -2, mapping=_OPTIONS),
        "repeat_penalty": repetition_penalty(None, mapping=_OPTIONS),
        "repeat_last_n": integer(
            "How many tokens back repetition is penalized; -1 for the whole context.", -1, mapping=_OPTIONS
        ),
        "stop": stop(mapping=_OPTIONS),
        "seed": seed(mapping=_OPTIONS),
        "keep_alive": entry("string", "How long the model stays in memory: a duration such as 5m, or -1 forever."),
    },
    own_limits=True,
    title="Ollama",
    local=True,
)
