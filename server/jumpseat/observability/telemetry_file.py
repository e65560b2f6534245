"""Spans and metrics in a file, as JSON lines in the form that the Copilot SDKs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from opentelemetry.sdk.metrics.export import (
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from jumpseat.errors import ConfigError

# OpenTelemetry for Node, which wrote such files first, counts the kinds from 0, and the codes like this.
_KINDS = {
    SpanKind.INTERNAL: 0,
    SpanKind.SERVER: 1,
    SpanKind.CLIENT: 2,
    SpanKind.PRODUCER: 3,
    SpanKind.CONSUMER: 4,
}
_CODES = {StatusCode.UNSET: 0, StatusCode.OK: 1, StatusCode.ERROR: 2}


class TelemetryFile:
    """A file that is opened when something is written, so that it can be moved and deleted at any time."""

    def __init__(self, path: Path) -> None:
        """Check that the file can be written.

        Raises:
            ConfigError: it cannot.
        """
        self._path = path
        try:
            self._append(b"")
        except OSError as error:
            raise ConfigError(f"cannot write telemetry to {str(path)!r}: {error.strerror or error}") from None

    def write(self, entries: Sequence[Mapping[str, Any]]) -> bool:
        """Append entries, one per line; return whether that was possible."""
        try:
            self._append(b"".join(orjson.dumps(entry, default=list) + b"\n" for entry in entries))
        except OSError:
            return False
        return True

    def _append(self, data: bytes) -> None:
        with open(self._path, "ab", opener=_open_private) as file:
            file.write(data)


class SpansToFile(SpanExporter):
    """Writes each span when it ends."""

    def __init__(self, file: TelemetryFile) -> None:
        self._file = file

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans."""
        written = self._file.write([_span(span) for span in spans])
        return SpanExportResult.SUCCESS if written else SpanExportResult.FAILURE


class MetricsToFile(MetricExporter):
    """Writes metrics when they are collected."""

    def __init__(self, file: TelemetryFile) -> None:
        super().__init__()
        self._file = file

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Write metrics."""
        entries = [
            {"type": "metric", **_metric(metric)}
            for resource in metrics_data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        return MetricExportResult.SUCCESS if self._file.write(entries) else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Return at once: nothing is buffered."""
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Do nothing: the file is not kept open."""


def _open_private(path: str, flags: int) -> int:
    import os

    return os.open(path, flags, 0o600)


def _span(span: ReadableSpan) -> dict[str, Any]:
    context, parent = span.get_span_context(), span.parent
    assert context is not None
    status: dict[str, Any] = {"code": _CODES[span.status.status_code]}
    if span.status.description:
        status["message"] = span.status.description
    entry: dict[str, Any] = {
        "type": "span",
        "traceId": format_trace_id(context.trace_id),
        "spanId": format_span_id(context.span_id),
    }
    if parent is not None:
        entry["parentSpanId"] = format_span_id(parent.span_id)
    return {
        **entry,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTime": _time(span.start_time),
        "endTime": _time(span.end_time),
        "attributes": dict(span.attributes or {}),
        "status": status,
        "events": [_event(event) for event in span.events],
        "links": [
            {"traceId": format_trace_id(link.context.trace_id), "spanId": format_span_id(link.context.span_id)}
            for link in span.links
        ],
        "resource": _resource(span.resource),
        "instrumentationScope": _scope(span.instrumentation_scope),
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "name": event.name,
        "attributes": dict(event.attributes or {}),
        "time": _time(event.timestamp),
        "droppedAttributesCount": 0,
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "description": metric.description,
        "unit": metric.unit,
        "dataPoints": [
            {
                "attributes": dict(point.attributes or {}),
                "startTime": _time(point.start_time_unix_nano),
                "endTime": _time(point.time_unix_nano),
                "value": _value(metric, point),
            }
            for point in metric.data.data_points
        ],
    }


def _value(metric: Metric, point: Any) -> Any:
    if isinstance(metric.data, Histogram) and isinstance(point, HistogramDataPoint):
        return {
            "buckets": {"boundaries": list(point.explicit_bounds), "counts": list(point.bucket_counts)},
            "count": point.count,
            "sum": point.sum,
            "min": point.min,
            "max": point.max,
        }
    assert isinstance(point, NumberDataPoint)
    return point.value


def _resource(resource: Resource) -> dict[str, Any]:
    return {"attributes": dict(resource.attributes), "schemaUrl": resource.schema_url}


def _scope(scope: InstrumentationScope | None) -> dict[str, Any]:
    return {} if scope is None else {"name": scope.name, "version": scope.version}


def _time(nanoseconds: int | None) -> list[int]:
    return list(divmod(nanoseconds or 0, 1_000_000_000))
