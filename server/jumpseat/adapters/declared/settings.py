"""Validation of settings against a ``schema``, and their placement in a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from jumpseat.adapters.adapter import Adapter, Endpoint, HttpRequest
from jumpseat.adapters.declared.declaration import Declaration, merge, read_declaration
from jumpseat.adapters.declared.schema import ASKED, CONTAINERS, MODEL, values_of, write_value
from jumpseat.adapters.declared.view import AdapterView
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.agent.model import ModelRequest
from jumpseat.errors import InvalidRequestError


def check_settings(declaration: Declaration, model: str | None, settings: Mapping[str, Any]) -> None:
    """Validate settings for ``model``.

    Raises:
        InvalidRequestError: a setting is unknown, disabled or invalid.
    """
    _values(AdapterView(declaration, model), settings)


def apply_settings(view: AdapterView, request: ModelRequest) -> ModelRequest:
    """Put all values into their places in ``view``, and return the request with its neutral fields set.

    Raises:
        InvalidRequestError: a setting is unknown, disabled or invalid.
        ConfigError: the mapping of an entry passes through a value that is not a table.
    """
    containers: dict[str, Any] = {name: getattr(view, name) for name in CONTAINERS}
    neutral_fields: dict[str, Any] = {}
    for key, value in _values(view, request.settings, request.model).items():
        mapping = view.schema[key].mapping
        if mapping is None:
            continue
        first, _, rest = mapping.partition(".")
        if first == ASKED:
            neutral_fields[rest] = value
        else:
            write_value(containers, mapping, key, value)
    return replace(request, **neutral_fields) if neutral_fields else request


def wire_declaration(adapter: str) -> Declaration:
    """Return a declaration with the settings of a provider and nothing else."""
    return read_declaration(
        {"name": adapter, "schema": PROVIDERS[adapter].settings_schema()}, where=f"adapter {adapter!r}"
    )


def write_with_settings(wire: Adapter, endpoint: Endpoint, request: ModelRequest) -> HttpRequest:
    """Write a request, with its settings in their places.

    Raises:
        InvalidRequestError: a setting is unknown or invalid.
    """
    view = AdapterView(wire_declaration(wire.name), request.model)
    call = wire.request(endpoint, apply_settings(view, request))
    return replace(call, body=merge(merge(call.body, view.body), view.parameters))


def _values(view: AdapterView, given: Mapping[str, Any], model: str | None = None) -> dict[str, Any]:
    if MODEL in given:
        raise InvalidRequestError(f"setting {MODEL!r} cannot be set: name the model as the session's model")
    if model is not None and MODEL in view.schema:
        given = {**given, MODEL: model}
    return values_of(view.schema, view, given)
