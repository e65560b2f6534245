"""What an adapter can do beyond text and calls, as its class says.

``hosted`` has the tools that its provider runs itself, by our names for them, in the form of the wire; ``bash`` and
``text_editor`` are tools that a model was trained on and that run here. ``structured_output`` tells of a model when
requests have a field for the form of an answer, ``sees(model)`` whether they have room for images. ``cites_as`` is
whose form its citations have. A class that says none of these has no such tools and no citations, and always the
rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from jumpseat.adapters.adapter import Adapter
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Capabilities, ModelRequest


def capabilities(wire: Adapter, model: str) -> Capabilities:
    """What ``model`` can do behind ``wire``."""
    judge, sees = getattr(wire, "structured_output", None), getattr(wire, "sees", None)
    return Capabilities(
        hosted_tools=frozenset[str](getattr(wire, "hosted", ())),
        structured_output="always" if judge is None else judge(model),
        images=True if sees is None else sees(model),
        citations=getattr(wire, "cites_as", None),
    )


def hosted(forms: Mapping[str, JsonObject], request: ModelRequest) -> list[tuple[JsonObject, JsonObject]]:
    """The hosted tools of a request that there are ``forms`` of: the form of each, and what the user adds."""
    return [(dict(forms[tool.name]), tool.options) for tool in request.hosted_tools if tool.name in forms]
