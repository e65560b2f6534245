"""A model that an adapter offers."""

from __future__ import annotations

from dataclasses import dataclass

from jumpseat.agent.model import ModelInfo


@dataclass(frozen=True, slots=True)
class Offer:
    """``id`` is its name within the adapter, ``wire_name`` that at the provider; ``info.id`` is ``adapter/id``."""

    id: str
    wire_name: str
    info: ModelInfo
