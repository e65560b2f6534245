"""``llmInference.*``: answers of a client that makes the server's model requests."""

from __future__ import annotations

from pydantic import Field

from jumpseat_protocol.wire import WireModel


class HttpResponseStartParams(WireModel):
    request_id: str
    status: int = Field(ge=100, le=999)
    headers: dict[str, list[str]] = Field(default_factory=dict)


class HttpResponseError(WireModel):
    message: str
    code: str | None = None


class HttpResponseChunkParams(WireModel):
    """``binary`` means that ``data`` is base64."""

    request_id: str
    data: str = ""
    binary: bool = False
    end: bool = False
    error: HttpResponseError | None = None


class AcceptedResult(WireModel):
    accepted: bool
