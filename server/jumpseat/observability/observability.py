"""What the process shows of itself: log entries, telemetry, and the port for health and metrics."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from jumpseat.agent.observation import Observer, Observers
from jumpseat.agent.secrets import Secrets
from jumpseat.errors import ConfigError, JumpseatError, StoreError
from jumpseat.observability.entries import LogEntries
from jumpseat.observability.gauge import Gauge
from jumpseat.observability.settings import NOT_INSTALLED, TelemetrySettings, telemetry_settings
from jumpseat.options import Options
from jumpseat.system.log_fields import fields

if TYPE_CHECKING:
    from jumpseat.observability.prometheus import PrometheusMetrics
    from jumpseat.observability.telemetry import Telemetry
    from jumpseat.store.user.running_servers import RunningServers

log = logging.getLogger(__name__)

FORGET_S: Final = 0.3
"""Time-out of taking the server off the list of running ones."""


class Observed(Protocol):
    """The server, as far as its health is concerned."""

    def status(self) -> Mapping[str, Any]:
        """Return the state of the server as a JSON object."""
        ...

    def problems(self) -> Sequence[str]:
        """Return the reasons why no new client should be sent to this server."""
        ...


class Observability:
    """The observers of the process, and their outputs. The libraries of an output are loaded if it is used."""

    def __init__(self, options: Options, home: Path, secrets: Secrets, gauges: Sequence[Gauge]) -> None:
        """Open the outputs that the arguments and the environment ask for.

        Raises:
            ConfigError: a variable is invalid, a file cannot be written, or OpenTelemetry is required and missing.
        """
        self._port = options.metrics_port
        self._home = home
        self._listed: RunningServers | None = None
        self._metrics: PrometheusMetrics | None = None
        self._telemetry: Telemetry | None = None
        observers: list[Observer] = [] if options.log_level == "none" else [LogEntries()]
        if self._port is not None:
            from jumpseat.observability.measurements import Measurements
            from jumpseat.observability.prometheus import PrometheusMetrics

            self._metrics = PrometheusMetrics(gauges)
            observers.append(Measurements([self._metrics]))
        if (settings := telemetry_settings(options.environ)) is not None:
            self._telemetry = _open_telemetry(settings, secrets, gauges)
        if self._telemetry is not None:
            observers += self._telemetry.observers
        if options.keep_model_calls or (options.tcp is not None and options.tcp.web_port is not None):
            from jumpseat.observability.model_call_files import ModelCallFiles

            observers.append(ModelCallFiles(home / "session-state"))
        self.observers = Observers(tuple(observers))

    async def serve(self, tasks: TaskGroup, server: Observed) -> None:
        """Serve health and metrics, if there is a port for them.

        Raises:
            JumpseatError: the port is in use, or the list of servers cannot be written.
        """
        if self._port is None or self._metrics is None:
            return
        from jumpseat.observability.health import Health, open_health_socket, serve_health
        from jumpseat.store.user.running_servers import RunningServers

        try:
            listening = open_health_socket(self._port)
        except OSError as error:
            message = (
                f"cannot listen on --metrics-port {self._port}: {error.strerror or os.strerror(error.errno or 0)}"
            )
            raise JumpseatError(message) from None
        tasks.start_soon(serve_health, listening, Health(server.problems, server.status, self._metrics))
        port = listening.getsockname()[1]
        log.info("serving health and metrics", extra=fields(port=port))
        servers = RunningServers(self._home)
        await anyio.to_thread.run_sync(servers.add_this, port)
        self._listed = servers

    async def close(self) -> None:
        """Export what is left, and take the server off the list; may be called again."""
        servers, self._listed = self._listed, None
        if servers is not None:
            with suppress(StoreError), anyio.move_on_after(FORGET_S):
                await anyio.to_thread.run_sync(servers.remove, os.getpid(), abandon_on_cancel=True)
        telemetry, self._telemetry = self._telemetry, None
        if telemetry is not None:
            await telemetry.close()


def _open_telemetry(settings: TelemetrySettings, secrets: Secrets, gauges: Sequence[Gauge]) -> Telemetry | None:
    """Open the exporters; return ``None`` if their library is missing, and not required."""
    try:
        from jumpseat.observability.telemetry import Telemetry
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("opentelemetry"):
            raise
        problem = NOT_INSTALLED.format(variable=settings.variable)
        if settings.required:
            raise ConfigError(problem) from None
        log.warning("no telemetry: %s", problem)
        return None
    return Telemetry(settings, secrets, gauges)
