"""The settings that nearly every provider has under its own name, such as the temperature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.complete import CompleteParams

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "top_k": ("top_k", "topK"),
    "seed": ("seed", "random_seed"),
    "stop": ("stop", "stop_sequences", "stopSequences"),
}
"""Our names, each with the names that providers have for the setting."""


def all_settings(params: CompleteParams, resolved: ResolvedModel) -> dict[str, Any]:
    """Return the settings of a request, with those of :data:`NAMES` under the provider's names.

    Raises:
        InvalidRequestError: the model's adapter has no such setting, or the setting is given twice.
    """
    settings = dict(params.settings)
    requested = {name: value for name in NAMES if (value := getattr(params, name)) is not None}
    if not requested and not settings:
        return settings
    known = _known_settings(resolved)
    if settings and not known:
        raise InvalidRequestError(f"the adapter {resolved.model.adapter_name!r} has no settings")
    for name, value in requested.items():
        key = next((key for key in NAMES[name] if key in known), None)
        if key is None:
            raise InvalidRequestError(f"the adapter {resolved.model.adapter_name!r} has no setting for {name!r}")
        if key in settings:
            raise InvalidRequestError(f"{name!r} is also given as the setting {key!r}")
        settings[key] = value
    return settings


def _known_settings(resolved: ResolvedModel) -> frozenset[str]:
    """Return the names of the settings of a model's adapter."""
    from jumpseat.adapters.declared.pipeline import DeclaredCaller
    from jumpseat.adapters.declared.settings import wire_declaration
    from jumpseat.adapters.declared.view import AdapterView
    from jumpseat.adapters.transport.http import HttpModel

    if not isinstance(resolved.model, HttpModel):
        return frozenset()
    caller = resolved.model.caller
    declaration = caller.declaration if isinstance(caller, DeclaredCaller) else wire_declaration(caller.wire_name)
    return frozenset(AdapterView(declaration, resolved.wire_name).schema)
