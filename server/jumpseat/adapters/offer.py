"""A model that an adapter offers."""

from __future__ import annotations

from jumpseat.agent.model import ModelInfo
from jumpseat_protocol.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """A model by its name within the adapter (``id``) and at the provider (``wire_name``).

    ``info.id`` is ``adapter/id``.
    """

    id: str
    wire_name: str
    info: ModelInfo
