"""OpenTelemetry: from the settings to observers that export traces and metrics. Loaded only if it is asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

from jumpseat.agent.observation import Observer
from jumpseat.observability.measurements import INSTRUMENTS, Attributes, Instrument, Measurements
from jumpseat.observability.settings import Gauge, TelemetrySettings
from jumpseat.observability.telemetry_file import MetricsToFile, SpansToFile, TelemetryFile
from jumpseat.observability.tracing import Traces
from jumpseat_protocol.version import __version__

log = logging.getLogger(__name__)

EXPORT_S: Final = 30.0
"""Interval at which metrics are sent to a collector."""

FLUSH_S: Final = 1.0
"""Time-out of sending what is left at the end of the process."""


class Telemetry:
    """The exporters of the process, and the observers that feed them."""

    def __init__(self, settings: TelemetrySettings, mask: Callable[[str], str], gauges: Sequence[Gauge]) -> None:
        """Open the exporters.

        Raises:
            ConfigError: the file cannot be written.
        """
        resource = Resource.create({"service.name": "jumpseat", "service.version": __version__})
        spans, metrics = _exporters(settings)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(spans)
        interval_s = float("inf") if settings.path is not None else EXPORT_S
        self._meters = MeterProvider(
            [PeriodicExportingMetricReader(metrics, export_interval_millis=interval_s * 1000)],
            resource=resource,
            shutdown_on_exit=False,
            views=[_view(instrument) for instrument in INSTRUMENTS if instrument.kind == "histogram"],
        )
        tracer = self._tracers.get_tracer(settings.source_name, __version__)
        meter = self._meters.get_meter(settings.source_name, __version__)
        self.observers: tuple[Observer, ...] = (
            Traces(tracer, mask, capture=settings.content),
            Measurements([_MeterSink(meter, gauges)]),
        )

    async def close(self) -> None:
        """Export what is left, for at most ``FLUSH_S``."""
        with anyio.move_on_after(FLUSH_S) as scope:
            async with anyio.create_task_group() as tasks:
                for provider in (self._tracers, self._meters):
                    tasks.start_soon(partial(anyio.to_thread.run_sync, abandon_on_cancel=True), _end, provider)
        if scope.cancelled_caught:
            log.warning("telemetry was not exported completely: the collector did not answer in time")


def _end(provider: TracerProvider | MeterProvider) -> None:
    provider.force_flush(int(FLUSH_S * 1000))
    provider.shutdown()


def _exporters(settings: TelemetrySettings) -> tuple[SpanProcessor, MetricExporter]:
    if settings.path is not None:
        file = TelemetryFile(Path(settings.path))
        return SimpleSpanProcessor(SpansToFile(file)), MetricsToFile(file)
    # The exporters read the other variables themselves: endpoints, headers, certificates, time-outs.
    if settings.protocol == "http/protobuf":
        return BatchSpanProcessor(OTLPSpanExporter()), OTLPMetricExporter()
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from jumpseat.observability.otlp_json import JsonSession

    plain = Compression.NoCompression
    spans = OTLPSpanExporter(session=JsonSession(ExportTraceServiceRequest), compression=plain)
    metrics = OTLPMetricExporter(session=JsonSession(ExportMetricsServiceRequest), compression=plain)
    return BatchSpanProcessor(spans), metrics


def _view(instrument: Instrument) -> View:
    return View(
        instrument_name=instrument.name,
        aggregation=ExplicitBucketHistogramAggregation(boundaries=list(instrument.boundaries)),
    )


class _MeterSink:
    """Passes values on to OpenTelemetry's instruments."""

    def __init__(self, meter: Meter, gauges: Sequence[Gauge]) -> None:
        self._record = {instrument.name: _recorder(meter, instrument) for instrument in INSTRUMENTS}
        for gauge in gauges:
            meter.create_observable_gauge(gauge.name, [partial(_observe, gauge)], gauge.unit, gauge.description)

    def add(self, instrument: Instrument, value: float, attributes: Attributes) -> None:
        """See :class:`jumpseat.observability.measurements.Sink`."""
        # An empty value stands for an attribute that is absent, as `error.type` of a success.
        self._record[instrument.name](value, {name: found for name, found in attributes.items() if found != ""})


def _recorder(meter: Meter, instrument: Instrument) -> Callable[[float, Attributes], None]:
    if instrument.kind == "counter":
        counter = meter.create_counter(instrument.name, instrument.unit, instrument.description)
        return lambda value, attributes: counter.add(value, attributes)
    histogram = meter.create_histogram(instrument.name, instrument.unit, instrument.description)
    return lambda value, attributes: histogram.record(value, attributes)


def _observe(gauge: Gauge, _options: CallbackOptions) -> list[Observation]:
    return [Observation(gauge.read())]
