"""A declared adapter merged with everything that it extends: its models and the server of its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.adapter import Adapter
from jumpseat.adapters.declared.checks import check_references
from jumpseat.adapters.declared.declaration import API_KEY, BASE_URL, TEXTS, Declaration
from jumpseat.adapters.declared.functions import value_from
from jumpseat.adapters.declared.schema import (
    MODEL,
    WIRE_MODEL,
    Choice,
    SchemaEntry,
    choices_of,
    default_of,
    model_problem,
)
from jumpseat.adapters.declared.view import AdapterView, Table
from jumpseat.adapters.provider import Offer
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.adapters.wire import as_amount, as_flag, as_limit, as_object
from jumpseat.agent.model import ModelInfo, Price
from jumpseat.declared.env import SECRET_NAME
from jumpseat.declared.values import entry_value
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import in_declaration

TOOL_PROTOCOL: Final = "tool_protocol"
"""The key in ``opts`` for how models call tools."""

WITHHELD: Final[Mapping[str, Any]] = {"value": "", "variable": True, "optional": True}
"""An entry of ``env`` that never has a value."""


class MergedAdapter(Struct, frozen=True):
    """An adapter merged with everything that it extends.

    ``wire`` is ``None`` if handlers do everything; ``kind`` is the built-in provider type that it is based on.
    ``where`` names the declaration in errors; ``file`` contains it.
    """

    declaration: Declaration
    wire: Adapter | None
    origin: str
    kind: str | None = None
    where: str = ""
    file: Path | None = None

    def check_callable(self) -> None:
        """Check that the adapter's models can be called.

        Raises:
            ConfigError: the adapter is not of type ``http``, has neither a wire nor handlers, or refers to a value
                that it does not declare.
        """
        name, declaration = self.declaration.name, self.declaration
        owner = self.where or f"adapter {name!r}"
        if declaration.type != "http":
            raise ConfigError(f"adapter {name!r} is of type {declaration.type!r}, expected 'http'")
        if self.wire is None and declaration.handler("parse_chat") is None:
            raise ConfigError(f"adapter {name!r} has no wire: extend an adapter, or add the handler parse_chat")
        try:
            check_references(owner, declaration, TEXTS)
        except ConfigError as error:
            raise in_declaration(owner, error, self.file) from None

    def without_secrets(self) -> MergedAdapter:
        """Return the adapter without its key and without all other values with secret names."""
        declaration = self.declaration
        env = {name: WITHHELD if SECRET_NAME.search(name) else raw for name, raw in declaration.env.items()}
        headers = {
            name: value
            for name, value in declaration.headers.items()
            if not SECRET_NAME.search(name) or (isinstance(value, str) and "${" in value)
        }
        update = {"env": {**env, API_KEY: WITHHELD}, "headers": headers}
        return replace(self, declaration=declaration.model_copy(update=update))

    def is_at(self, url: str) -> bool:
        """Return whether the declared base URL is on the same server as ``url``."""
        return _same_server(_address(self.declaration), url)

    def offers(self) -> list[Offer]:
        """Return the declared models, the default first. Calls the function that lists them, if there is one.

        Raises:
            ConfigError: the models have an unexpected form, or the function failed.
        """
        declaration = self.declaration
        entry = declaration.settings.get(MODEL)
        if entry is None:
            return []
        choices, default = _choices(declaration, entry)
        if isinstance(default, str) and all(choice.id != default for choice in choices):
            choices = [Choice(id=default), *choices]
        # The default is first, because a session without a model uses the first one.
        choices.sort(key=lambda choice: choice.id != default)
        return [self._offer(choice) for choice in choices]

    @property
    def calls_functions(self) -> bool:
        """Return whether a function lists the models or returns the default one. Functions may use the network."""
        entry = self.declaration.settings.get(MODEL)
        return entry is not None and (callable(entry.choices) or callable(entry.default))

    def fetch_models(self, resolve: Callable[..., Any] | None) -> MergedAdapter:
        """Return the adapter with the results of its functions in their place; ``resolve`` is called first.

        Raises:
            ConfigError: a function failed, or its result has an unexpected form.
        """
        declaration = self.declaration
        if resolve is not None:
            value_from(AdapterView(declaration.model_copy(update={"settings": {}})), "handlers.resolve", resolve)
        entry = declaration.settings.get(MODEL)
        if entry is None:
            return self
        choices, default = _choices(declaration, entry)
        answered = entry.model_copy(
            update={"choices": [choice.model_dump() for choice in choices], "default": default}
        )
        settings = {**declaration.settings, MODEL: answered}
        return replace(self, declaration=declaration.model_copy(update={"settings": settings}))

    def offer_unlisted(self, name: str) -> Offer:
        """Return an offer for an undeclared model, because lists lag behind their providers."""
        return self._offer(Choice(id=name))

    def _offer(self, choice: Choice) -> Offer:
        meta, opts = {**self.declaration.meta, **choice.meta}, {**self.declaration.opts, **choice.opts}
        if (protocol := opts.get(TOOL_PROTOCOL)) not in (None, "native", "xml"):
            raise ConfigError(
                f"adapter {self.declaration.name!r}: opts.{TOOL_PROTOCOL} {protocol!r}: expected 'native' or 'xml'"
            )
        name = str(choice.meta.get(WIRE_MODEL) or choice.id)
        info = ModelInfo(
            id=f"{self.declaration.name}/{choice.id}",
            name=choice.formatted_name or choice.id,
            vendor=self.declaration.vendor,
            vision=as_flag(opts.get("has_vision", opts.get("vision"))),
            tools=as_flag(opts.get("can_use_tools", opts.get("tools"))),
            tool_protocol=protocol,
            reasoning=as_flag(opts.get("can_reason")),
            context_window=as_limit(meta.get("context_window")),
            max_prompt_tokens=as_limit(meta.get("max_prompt_tokens")),
            max_output_tokens=as_limit(meta.get("max_tokens", meta.get("max_output_tokens"))),
            price=_price(as_object(meta.get("price"))),
        )
        return Offer(choice.id, name, info)


def _price(raw: Mapping[str, Any]) -> Price | None:
    input_price, output_price = as_amount(raw.get("input")), as_amount(raw.get("output"))
    if input_price is None or output_price is None:
        return None
    return Price(input_price, output_price, as_amount(raw.get("cache_read")), as_amount(raw.get("cache_write")))


def default_key(kind: str | None) -> dict[str, Any]:
    """Return the entry of ``env`` for the variable in which users of a provider keep their key."""
    variable = PROVIDERS[kind].key_variable if kind is not None and kind in PROVIDERS else None
    return {"value": variable or "", "variable": True, "optional": True}


def uses_other_server(own: Mapping[str, Any], base: MergedAdapter) -> bool:
    """Return whether ``own`` uses another server than the one that the usual key of ``base`` is for."""
    env: Mapping[str, Any] = as_object(own.get("env"))
    key = base.declaration.env.get(API_KEY)
    if API_KEY in env or base.wire is None or key != default_key(base.kind):
        return False
    for address in (own.get("url"), env.get(BASE_URL)):
        if address is None or (isinstance(address, str) and address.startswith(f"${{{BASE_URL}}}")):
            continue
        if not _same_server(_address(base.declaration), entry_value(address)):
            return True
    return False


def _address(declaration: Declaration) -> Any:
    return entry_value(declaration.env.get(BASE_URL))


def _same_server(one: Any, other: Any) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    try:
        first, second = urlsplit(one), urlsplit(other)
        same = (first.scheme, first.hostname, first.port) == (second.scheme, second.hostname, second.port)
    except ValueError:
        return False
    return same and bool(first.hostname)


def _choices(declaration: Declaration, entry: SchemaEntry) -> tuple[list[Choice], Any]:
    """Return the models of an adapter and the default one, calling functions where needed.

    Raises:
        ConfigError: the models have an unexpected form, or a function failed.
    """
    # The view is created without the schema, because it would look up its model there.
    view = AdapterView(declaration.model_copy(update={"settings": {}}))
    view.schema = Table(declaration.settings)
    where = f"adapter {declaration.name!r}: schema.{MODEL}"
    default = default_of(MODEL, entry, view)
    if default is not None and (problem := model_problem(default)) is not None:
        raise ConfigError(f"{where}.default: {problem}")
    return choices_of(where, entry, view), default


def drops_tools(declaration: Declaration) -> str:
    """Return the reason why the requests of an adapter without a wire contain no tools; empty if they do."""
    opts = declaration.opts
    if declaration.handler("build_tools") is not None:
        return ""
    if opts.get(TOOL_PROTOCOL) == "xml" or opts.get("tools") is False:
        # The model calls tools as XML in its text.
        return ""
    return (
        "Tools are not sent to the model: add the handler build_tools, or set opts.tools to false, so that the"
        " model calls them as XML."
    )
