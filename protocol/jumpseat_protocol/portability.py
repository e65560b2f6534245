"""The report on a conversation that continues with a model of another provider."""

from __future__ import annotations

from typing import Literal

from pydantic import StrictBool

from jumpseat_protocol.wire import WireModel


class BlockPortability(WireModel):
    """The form in which the model receives a block: unchanged, converted to another form, or not at all.

    ``message`` and ``block`` are positions from 0; those of a session count its messages as ``jumpseat.complete``
    would take them.
    """

    message: int
    """The position of the message, counted from 0."""
    block: int
    """The position of the block in it, counted from 0."""
    type: str
    outcome: Literal["kept", "converted", "dropped"]
    """What happens to the block."""
    reason: str | None = None
    """Why."""


class Portability(WireModel):
    """``portable`` is whether all blocks are kept; ``summary`` describes the changes to a user."""

    model: str
    """The id of the model."""
    provider: str
    """Its provider."""
    portable: StrictBool
    """Whether all blocks are kept."""
    summary: str | None = None
    """What changes, for people."""
    blocks: list[BlockPortability]
    """The blocks that change."""
