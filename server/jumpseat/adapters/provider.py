"""The description of one model provider, as in ``adapters/providers``, and of its list of models. No I/O.

A description is cheap: importing one imports neither the adapter nor its wire format.

``adapters/models/model_lists.py`` requests the lists. A fact that an answer leaves out stays unknown. This module
has the list of chat completions, which most providers share:
https://platform.openai.com/docs/api-reference/models/list, with the fields that others add to it,
``context_length`` (Moonshot), ``context_size`` (Novita), ``context_window`` (Groq), ``max_model_len`` (vLLM), and
``meta`` and ``architecture`` (llama.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from jumpseat.adapters.wire import as_flag, as_limit, as_list, as_object, as_text, merge_headers
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelInfo, ModelRequest
from jumpseat_protocol.structs import Discreet

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Adapter, Endpoint
    from jumpseat.adapters.local_servers import ServerState

EndpointFamily: TypeAlias = Literal["openai", "azure", "anthropic"]

SettingEntry: TypeAlias = Mapping[str, Any]
"""An entry of a settings schema; ``adapters/declared/schema.py`` describes its keys."""

SettingEntries: TypeAlias = Mapping[str, SettingEntry]

SCRIPTED: Final = "scripted"
"""The type of models that follow a script. They make no request, so no provider has this type."""


class EnvironmentVariables(NamedTuple):
    """The environment variables that configure a provider without a table in ``config.toml``.

    ``rank`` orders the providers found in the environment, lowest first. A ``fallback`` provider has a key that
    many people keep in their environment for other programs: its models can be named as ``provider/model``, but it
    serves other requests only where nothing else is configured.
    """

    base_url: str
    model: str
    rank: int
    fallback: bool = True


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """The built-in facts about a provider.

    ``type`` is the name of the provider's module and of its type in configurations; ``aliases`` are other names for
    that type. ``adapter`` is the adapter's class as ``"module:Class"``, relative to ``jumpseat.adapters.wires``, or
    absolute. ``family`` is the kind of endpoint that clients of the protocol know, ``None`` for others.

    ``key_variable`` is the environment variable in which users keep their key, ``other_key_variables`` are further
    ones; ``environment`` names the variables that configure the provider by themselves. ``options`` are defaults of
    ``Endpoint.options``, ``headers`` go with every request.

    ``listing`` reads the provider's list of models, ``None`` where it has none. ``settings`` are the entries of the
    settings schema, in the order of a form. ``own_limits`` marks a host that limits models in its own way, so that
    of the facts in ``known_models`` files only the abilities hold.

    ``title`` is the name for people, ``None`` if the type says it. ``local`` marks a server on the user's own
    machine, which needs no key: its models can be named without any configuration.
    """

    type: str
    adapter: str
    aliases: tuple[str, ...] = ()
    family: EndpointFamily | None = "openai"
    default_base_url: str | None = None
    key_variable: str | None = None
    other_key_variables: tuple[str, ...] = ()
    environment: EnvironmentVariables | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    listing: ModelListing | None = None
    settings: SettingEntries = field(default_factory=dict[str, SettingEntry])
    own_limits: bool = False
    title: str | None = None
    local: bool = False

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables in which users keep their key, the preferred one first."""
        return (() if self.key_variable is None else (self.key_variable,)) + self.other_key_variables

    def load(self) -> Adapter:
        """Import the adapter's class and create an adapter for this provider."""
        module, _, class_name = self.adapter.partition(":")
        path = module if "." in module else f"jumpseat.adapters.wires.{module}"
        adapter: Adapter = getattr(import_module(path), class_name)(
            self.type, options=self.options, headers=self.headers
        )
        return adapter

    def settings_schema(self) -> dict[str, Any]:
        """Return the schema of this provider's settings, in the order of a form."""
        return {
            key: {"order": place, "optional": True, **entry}
            for place, (key, entry) in enumerate(self.settings.items(), 1)
        }


MAX_NAME: Final = 256
"""Names of more characters are left out."""

# Compiled at its first use: most processes read no list.
_NOT_CHAT: Final = (
    r"embed|whisper|moderation|dall-e"
    r"|(?:^|[-/])(?:tts|realtime|audio|transcribe|image|sora|babbage|davinci)(?=[-.\d]|$)"
)


class ListRequest(Discreet, Struct, frozen=True):
    """The request for a list: a GET, or a POST of the JSON ``body``."""

    hidden = ("headers",)
    url: str
    headers: Mapping[str, str]
    body: JsonObject | None = None


class ModelPage(NamedTuple):
    """Some models, in the provider's order; ``after`` is the cursor of the next page, ``None`` on the last."""

    models: list[ModelInfo]
    after: str | None = None


class ModelDetails(NamedTuple):
    """A request about one model. ``read`` completes the model's facts, or returns ``None`` if it cannot chat."""

    url: Callable[[Endpoint], str]
    read: Callable[[ModelInfo, JsonObject, Endpoint], ModelInfo | None]

    def request(self, adapter: Adapter, endpoint: Endpoint, model: str) -> ListRequest:
        """Write the request for the details of ``model``."""
        headers = merge_headers(_headers(adapter, endpoint), {"Content-Type": "application/json"})
        return ListRequest(self.url(endpoint), headers, {"model": model})


class ModelListing(NamedTuple):
    """A provider's list of models. ``url`` returns the URL of a page from the endpoint and the page's cursor.

    ``state`` returns the request about the server that runs the models, from a page, where there is one.
    """

    url: Callable[[Endpoint, str | None], str]
    read: Callable[[JsonObject], ModelPage]
    details: ModelDetails | None = None
    state: Callable[[JsonObject], ServerState | None] = lambda _: None

    def request(self, adapter: Adapter, endpoint: Endpoint, after: str | None = None) -> ListRequest:
        """Write the request for the page at the cursor ``after``, the first without one."""
        return ListRequest(self.url(endpoint, after), _headers(adapter, endpoint))

    def state_request(self, state: ServerState, adapter: Adapter, endpoint: Endpoint) -> ListRequest:
        """Write the request for the state of the server."""
        return ListRequest(state.url(endpoint), _headers(adapter, endpoint))


def _headers(adapter: Adapter, endpoint: Endpoint) -> dict[str, str]:
    # Whatever lets a model be called lets it be listed: keys, tokens, versions and the user's own headers.
    request = adapter.request(endpoint, ModelRequest("", "", [], stream=False))
    return {name: value for name, value in request.headers.items() if name.lower() != "content-type"}


# --- the list of chat completions ---------------------------------------------------------------------------------


def chat_models_url(endpoint: Endpoint, after: str | None) -> str:
    """Return the URL of the list beside ``/chat/completions``. It has one page."""
    return f"{endpoint.base_url.rstrip('/').removesuffix('/chat/completions')}/models"


def read_chat_models(answer: JsonObject) -> ModelPage:
    """Read the list of a server that speaks chat completions."""
    models: list[ModelInfo] = []
    for entry in entries(answer, "data"):
        if (name := model_name(entry.get("id"))) and is_chat_model(name):
            windows = (
                entry.get(key) for key in ("context_length", "context_size", "context_window", "max_model_len")
            )
            # llama.cpp: the window of the running server, not that of the model's training.
            running = as_object(entry.get("meta")).get("n_ctx")
            modalities = strings(as_object(entry.get("architecture")).get("input_modalities"))
            seen = entry.get("supports_image_in", None if modalities is None else "image" in modalities)
            max_output = entry.get("max_output_tokens") or entry.get("max_completion_tokens")
            models.append(
                ModelInfo(
                    id=name,
                    name=model_name(entry.get("display_name")) or None,
                    vision=as_flag(seen),
                    reasoning=as_flag(entry.get("supports_reasoning")),
                    context_window=as_limit(running) or next(filter(None, map(as_limit, windows)), None),
                    max_output_tokens=as_limit(max_output),
                )
            )
    return ModelPage(models)


def _state_of_list(answer: JsonObject) -> ServerState | None:
    # Imported late: most processes read no list.
    from jumpseat.adapters.local_servers import state_of_list

    return state_of_list(answer)


CHAT_LISTING: Final = ModelListing(chat_models_url, read_chat_models, state=_state_of_list)


# --- parts --------------------------------------------------------------------------------------------------------


def entries(answer: JsonObject, key: str) -> list[JsonObject]:
    """Return the objects in the array ``answer[key]``."""
    return [as_object(entry) for entry in as_list(answer.get(key))]


def model_name(value: Any) -> str:
    """Return ``value`` if it is a name that is safe to print in a terminal, else an empty string."""
    text = as_text(value)
    return text if text.isprintable() and len(text) <= MAX_NAME else ""


def is_chat_model(name: str) -> bool:
    """Decide by its name whether a model chats, for lists that do not say what their models do."""
    return re.search(_NOT_CHAT, name, re.IGNORECASE) is None


def strings(value: Any) -> tuple[str, ...] | None:
    """Return the strings in an array, ``None`` for anything but an array."""
    return tuple(item for item in as_list(value) if isinstance(item, str)) if isinstance(value, list) else None


class Offer(Struct, frozen=True):
    """A model by its name within the adapter (``id``) and at the provider (``wire_name``).

    ``info.id`` is ``adapter/id``.
    """

    id: str
    wire_name: str
    info: ModelInfo
