"""Model servers on the user's own machine: what they say of the model that runs, beside their lists. No I/O.

A list has the window that the model was trained with, or none. The running server has its own, which is smaller:

- llama.cpp: ``GET /props``, https://github.com/ggml-org/llama.cpp/tree/master/tools/server
- Ollama: ``GET /api/ps``, https://docs.ollama.com/api/ps
- LM Studio: ``GET /api/v0/models``, https://lmstudio.ai/docs/developer/rest/endpoints
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from jumpseat.adapters.wire import as_flag, as_limit, as_list, as_object
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Endpoint

_LOCAL_SUFFIXES: Final = (".localhost", ".local", ".lan", ".internal", ".home.arpa")


class ServerState(NamedTuple):
    """A request about a running server. ``read`` completes the facts of one of its models from the answer."""

    path: str
    read: Callable[[ModelInfo, JsonObject, Endpoint], ModelInfo]

    def url(self, endpoint: Endpoint) -> str:
        """Return the URL of the request: the path is not that of the API for chats."""
        return root(endpoint.base_url) + self.path


def _read_llama(info: ModelInfo, answer: JsonObject, endpoint: Endpoint) -> ModelInfo:
    window = as_limit(as_object(answer.get("default_generation_settings")).get("n_ctx"))
    vision = as_flag(as_object(answer.get("modalities")).get("vision"))
    tools = as_flag(as_object(answer.get("chat_template_caps")).get("supports_tools"))
    return _with(info, context_window=window, vision=vision, tools=tools)


def _read_ollama(info: ModelInfo, answer: JsonObject, endpoint: Endpoint) -> ModelInfo:
    if as_limit(endpoint.options.get("num_ctx")):
        # The server loads the model again, with the window that the requests name.
        return info
    names = (info.id, f"{info.id}:latest")
    running = _entry(answer, "models", "model", *names) or _entry(answer, "models", "name", *names)
    return _with(info, context_window=as_limit(running.get("context_length")))


def _read_lmstudio(info: ModelInfo, answer: JsonObject, endpoint: Endpoint) -> ModelInfo:
    loaded = _entry(answer, "data", "id", info.id)
    return _with(info, context_window=as_limit(loaded.get("loaded_context_length")))


LLAMA: Final = ServerState("/props", _read_llama)
OLLAMA: Final = ServerState("/api/ps", _read_ollama)
LMSTUDIO: Final = ServerState("/api/v0/models", _read_lmstudio)

BY_OWNER: Final = {"llamacpp": LLAMA, "library": OLLAMA, "organization_owner": LMSTUDIO}
"""The servers, by the ``owned_by`` of the models in their lists."""


def state_of_list(answer: JsonObject) -> ServerState | None:
    """Return the request about the server that sent a list of chat completions, if it is a known one."""
    owners = (as_object(entry).get("owned_by") for entry in as_list(answer.get("data")))
    return next((BY_OWNER[owner] for owner in owners if isinstance(owner, str) and owner in BY_OWNER), None)


def root(base_url: str) -> str:
    """Return the address of a server from the base URL of its API."""
    return base_url.rstrip("/").removesuffix("/chat/completions").removesuffix("/api").removesuffix("/v1")


def is_local(base_url: str) -> bool:
    """Return whether an address is on this machine or in its own network, by its name alone."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    try:
        # Not only private addresses, but also those that VPNs share with providers.
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_LOCAL_SUFFIXES))


def _entry(answer: JsonObject, key: str, name: str, *values: str) -> JsonObject:
    nothing: JsonObject = {}
    found = (as_object(entry) for entry in as_list(answer.get(key)))
    return next((entry for entry in found if entry.get(name) in values), nothing)


def _with(info: ModelInfo, **facts: Any) -> ModelInfo:
    return replace(info, **{name: value for name, value in facts.items() if value is not None})
