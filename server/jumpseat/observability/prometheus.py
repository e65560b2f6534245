"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from jumpseat.observability.measurements import INSTRUMENTS, Attributes, Instrument
from jumpseat.observability.settings import Gauge

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_UNITS = {"s": "_seconds", "USD": "_usd", "By": "_bytes"}


class PrometheusMetrics(Collector):
    """The metrics of the process, and the values that are read at each request."""

    def __init__(self, gauges: Sequence[Gauge]) -> None:
        self._registry = CollectorRegistry()
        self._gauges = gauges
        self._metrics = {instrument.name: self._metric(instrument) for instrument in INSTRUMENTS}
        self._registry.register(self)

    def add(self, instrument: Instrument, value: float, attributes: Attributes) -> None:
        """See :class:`jumpseat.observability.measurements.Sink`."""
        metric = self._metrics[instrument.name]
        if instrument.attributes:
            metric = metric.labels(*(_label(attributes[name]) for name in instrument.attributes))
        if isinstance(metric, Histogram):
            metric.observe(value)
        else:
            metric.inc(value)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Read the gauges."""
        for gauge in self._gauges:
            yield GaugeMetricFamily(_name(gauge.name, gauge.unit), gauge.description, value=gauge.read())

    def text(self) -> bytes:
        """Return all metrics."""
        return generate_latest(self._registry)

    def _metric(self, instrument: Instrument) -> Histogram | Counter:
        name = _name(instrument.name, instrument.unit)
        labels = [name.replace(".", "_") for name in instrument.attributes]
        if instrument.kind == "counter":
            return Counter(name, instrument.description, labels, registry=self._registry)
        return Histogram(
            name, instrument.description, labels, buckets=instrument.boundaries, registry=self._registry
        )


def _name(name: str, unit: str) -> str:
    return name.replace(".", "_") + _UNITS.get(unit, "")


def _label(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value
