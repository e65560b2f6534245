"""``llmInference.*``: answers of a client that makes the server's model requests."""

from __future__ import annotations

from pydantic import Field, StrictBool

from jumpseat_protocol.wire import WireModel


class HttpResponseStartParams(WireModel):
    request_id: str
    status: int
    headers: dict[str, list[str]] = Field(default_factory=dict, repr=False)


class HttpResponseError(WireModel):
    message: str
    code: str | None = None


class HttpResponseChunkParams(WireModel):
    """``binary`` means that ``data`` is base64."""

    request_id: str
    data: str = Field(default="", repr=False)
    binary: StrictBool = False
    end: StrictBool = False
    error: HttpResponseError | None = None


class AcceptedResult(WireModel):
    accepted: StrictBool
