"""A model that an adapter offers."""

from __future__ import annotations

from msgspec import Struct

from jumpseat.agent.model import ModelInfo


class Offer(Struct, frozen=True):
    """A model by its name within the adapter (``id``) and at the provider (``wire_name``).

    ``info.id`` is ``adapter/id``.
    """

    id: str
    wire_name: str
    info: ModelInfo
