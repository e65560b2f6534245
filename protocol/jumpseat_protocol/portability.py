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
    block: int
    type: str
    outcome: Literal["kept", "converted", "dropped"]
    reason: str | None = None


class Portability(WireModel):
    """``portable`` is whether all blocks are kept; ``summary`` describes the changes to a user."""

    model: str
    provider: str
    portable: StrictBool
    summary: str | None = None
    blocks: list[BlockPortability]
