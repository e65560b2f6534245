"""Forms for the person behind a client."""

from __future__ import annotations

from typing import Any, Literal

from jumpseat_protocol.wire import WireModel


class ElicitationParams(WireModel):
    """``session.ui.elicitation``. ``requested_schema`` is a JSON Schema of an object with flat fields."""

    session_id: str
    message: str
    requested_schema: dict[str, Any]


class ElicitationResult(WireModel):
    """``content`` goes with ``accept``."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class HandlePendingElicitationParams(WireModel):
    session_id: str
    request_id: str
    result: ElicitationResult
