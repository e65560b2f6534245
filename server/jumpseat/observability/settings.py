"""The settings of OpenTelemetry: variables that the SDKs set, and those of operators; and what metrics show."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import Struct

from jumpseat.errors import ConfigError

log = logging.getLogger(__name__)

SOURCE_NAME: Final = "jumpseat"

NOT_INSTALLED: Final = "telemetry is asked for ({variable}), but OpenTelemetry is not installed: {instruction}"

Protocol = Literal["http/json", "http/protobuf"]


class TelemetrySettings(Struct, frozen=True):
    """Destination of traces and metrics: the file ``path``, or a collector over OTLP.

    ``variable`` is the one that asks for telemetry. With ``content``, prompts, answers, arguments and results are
    exported, too.
    """

    variable: str
    path: str | None = None
    protocol: Protocol = "http/protobuf"
    source_name: str = SOURCE_NAME
    content: bool = False


def telemetry_settings(environ: Mapping[str, str]) -> TelemetrySettings | None:
    """Return the settings that the variables make; ``None`` if they ask for no telemetry.

    If only variables that concern all programs of the environment ask for telemetry, by a protocol that is not
    supported, a warning is logged.

    Raises:
        ConfigError: a variable has an invalid value.
    """
    if _is_true(environ, "OTEL_SDK_DISABLED") or environ.get("COPILOT_OTEL_ENABLED", "").lower() in ("false", "0"):
        return None
    exporter = environ.get("COPILOT_OTEL_EXPORTER_TYPE")
    path = environ.get("COPILOT_OTEL_FILE_EXPORTER_PATH")
    if exporter not in (None, "", "file", "otlp-http"):
        raise ConfigError(f"COPILOT_OTEL_EXPORTER_TYPE is {exporter[:40]!r}, expected file or otlp-http")
    if exporter == "file" and not path:
        raise ConfigError(
            "COPILOT_OTEL_EXPORTER_TYPE is 'file': COPILOT_OTEL_FILE_EXPORTER_PATH must name the file"
        )
    variable = next(
        (
            name
            for name in (
                "COPILOT_OTEL_EXPORTER_TYPE",
                "COPILOT_OTEL_FILE_EXPORTER_PATH",
                "COPILOT_OTEL_ENABLED",
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            )
            if environ.get(name)
        ),
        None,
    )
    if variable is None:
        return None
    protocol = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if protocol not in ("http/json", "http/protobuf"):
        problem = f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol[:40]!r}, expected http/json or http/protobuf"
        if variable.startswith("COPILOT_OTEL_"):
            raise ConfigError(problem)
        log.warning("no telemetry: %s", problem)
        return None
    return TelemetrySettings(
        variable,
        path=path if exporter != "otlp-http" else None,
        protocol=protocol,
        source_name=environ.get("COPILOT_OTEL_SOURCE_NAME") or SOURCE_NAME,
        content=_is_true(environ, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
    )


def _is_true(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").strip().lower() in ("true", "1")


class Gauge(Struct, frozen=True):
    """A value that is read when metrics are collected."""

    name: str
    unit: str
    description: str
    read: Callable[[], float]
