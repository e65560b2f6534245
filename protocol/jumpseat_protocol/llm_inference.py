"""``llmInference.*``: responses of a client that performs the server's model requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import Field, StrictBool

from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.wire import Method, WireModel


class HttpResponseStartParams(WireModel):
    request_id: str
    status: int
    """The HTTP status."""
    headers: dict[str, list[str]] = Field(default_factory=dict, repr=False)


class HttpResponseError(WireModel):
    """Why the client has got no response."""

    message: str
    """What went wrong."""
    code: str | None = None
    """The kind of failure."""


class HttpResponseChunkParams(WireModel):
    """``binary`` means that ``data`` is base64."""

    request_id: str
    data: str = Field(default="", repr=False)
    """The next part of the body."""
    binary: StrictBool = False
    """Whether ``data`` is base64."""
    end: StrictBool = False
    """Whether the body is complete."""
    error: HttpResponseError | None = None


class AcceptedResult(WireModel):
    accepted: StrictBool
    """Whether the request still waits."""


METHODS: Final[Mapping[str, Method]] = {
    "llmInference.setProvider": Method(EmptyParams, SuccessResult, "Let the client make all model requests."),
    "llmInference.httpResponseStart": Method(
        HttpResponseStartParams, AcceptedResult, "Begin the response to a model request."
    ),
    "llmInference.httpResponseChunk": Method(
        HttpResponseChunkParams, AcceptedResult, "Send a part of that response."
    ),
}
