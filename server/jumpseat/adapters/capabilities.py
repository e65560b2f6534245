"""The capabilities of a model behind an adapter, and the hosted tools of a request."""

from __future__ import annotations

from collections.abc import Mapping

from jumpseat.adapters.adapter import Adapter
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Capabilities, ModelRequest


def capabilities(adapter: Adapter, model: str) -> Capabilities:
    """Return what can be asked of ``model`` behind ``adapter``."""
    return Capabilities(
        hosted_tools=frozenset[str](adapter.hosted_by(model)),
        structured_output=adapter.structured_output(model),
        images=adapter.sees(model),
        citations=adapter.cites_as,
        limits_calls=adapter.limits_calls,
        reports_cost=adapter.reports_cost,
    )


def hosted(forms: Mapping[str, JsonObject], request: ModelRequest) -> list[tuple[JsonObject, JsonObject]]:
    """Return the form and the user's options of each hosted tool of ``request`` that ``forms`` has."""
    return [(dict(forms[tool.name]), tool.options) for tool in request.hosted_tools if tool.name in forms]
