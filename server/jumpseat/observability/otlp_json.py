"""OTLP over HTTP as JSON, which OpenTelemetry for Python does not send: it is converted from protobuf.

The mapping: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import base64
from typing import Any, Final, cast

import orjson
import requests
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

# OTLP has ids in hexadecimal, where protobuf's JSON has base64.
_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})


class JsonSession(requests.Session):
    """Sends the requests of an exporter as JSON. The exporter must not compress them."""

    def __init__(self, message: type[ExportTraceServiceRequest] | type[ExportMetricsServiceRequest]) -> None:
        super().__init__()
        self._message = message

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Convert the body of a request, and send the request."""
        message = self._message.FromString(cast("bytes", request.body))
        request.prepare_body(orjson.dumps(_with_hexadecimal_ids(MessageToDict(message))), None)
        request.headers["Content-Type"] = "application/json"
        return super().send(request, **kwargs)


def _with_hexadecimal_ids(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: _with_hexadecimal_ids(item, key) for key, item in members.items()}
    if isinstance(value, list):
        return [_with_hexadecimal_ids(item) for item in cast("list[Any]", value)]
    if isinstance(value, str) and name in _IDS:
        return base64.b64decode(value).hex()
    return value
