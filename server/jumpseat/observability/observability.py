"""The observability of the process: log entries, telemetry, and the port for health and metrics."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from jumpseat.agent.observation import (
    ModelCall,
    Observer,
    Observers,
    PromptRun,
    Question,
    Record,
    ToolCall,
    TraceContext,
)
from jumpseat.agent.secrets import Secrets
from jumpseat.errors import JumpseatError, ProviderError, ProviderTransportError, StoreError
from jumpseat.observability.settings import NOT_INSTALLED, Gauge, TelemetrySettings, telemetry_settings
from jumpseat.options import Options
from jumpseat.system.log_fields import fields

if TYPE_CHECKING:
    from jumpseat.observability.prometheus import PrometheusMetrics
    from jumpseat.observability.telemetry import Telemetry
    from jumpseat.store.session.model_calls import ModelCallFile
    from jumpseat.store.user.running_servers import RunningServers

log = logging.getLogger(__name__)

log = logging.getLogger("jumpseat.sessions")

# A provider's explanation may quote the prompt: it is for debugging only.
PROVIDER_TEXT_CHARS: Final = 2000


class LogEntries:
    """Writes an entry when something has ended."""

    def begin(self, record: Record) -> None:
        """Do nothing."""

    def end(self, record: Record) -> None:
        """Write the entry."""
        match record:
            case PromptRun():
                _log_prompt(record)
            case ModelCall():
                _log_model_call(record)
            case ToolCall():
                _log_tool_call(record)
            case Question() if log.isEnabledFor(logging.INFO):
                log.info(
                    "question answered" if record.result else "question withdrawn",
                    extra=fields(
                        session=record.session_id,
                        asks_for=record.asks_for,
                        kind=record.kind,
                        tool=record.tool,
                        call=record.call_id,
                        answer=record.result or None,
                        ms=round(record.ms),
                    ),
                )
            case _:
                pass

    def trace_context(self) -> TraceContext | None:
        """Return ``None``: a log is no trace."""
        return None


def _log_prompt(record: PromptRun) -> None:
    message = "prompt aborted" if record.aborted else "prompt failed" if record.error_type else "prompt done"
    log.log(
        logging.WARNING if record.error_type and not record.aborted else logging.INFO,
        message,
        extra=fields(
            session=record.session_id,
            prompt=record.prompt_id,
            agent=record.agent,
            error=record.error_type,
            reason=record.reason,
            ms=round(record.ms),
        ),
    )


def _log_model_call(record: ModelCall) -> None:
    error = record.error
    level = logging.WARNING if error is not None else logging.INFO
    if not log.isEnabledFor(level):
        return
    completed, resolved = record.completed, record.resolved
    usage = completed.usage if completed is not None else None
    status = "ok" if completed is not None else error.status if isinstance(error, ProviderError) else None
    message = "model call cancelled" if completed is None else "model call"
    if error is not None:
        message = "model call failed"
    log.log(
        level,
        message,
        extra=fields(
            session=record.session_id,
            purpose=None if record.purpose == "turn" else record.purpose,
            provider=resolved.model.adapter_name,
            model=resolved.wire_name,
            status=status,
            first_ms=None if record.first_ms is None else round(record.first_ms),
            ms=round(record.ms),
            attempt=record.attempt if record.attempt > 1 or error is not None else None,
            input_tokens=usage and usage.input_tokens,
            cached_tokens=(usage and usage.cache_read_tokens) or None,
            output_tokens=usage and usage.output_tokens,
            cost_usd=resolved.cost_of(usage),
            stop=completed.stop_reason if completed is not None else None,
            **_failure_fields(error),
        ),
    )
    if isinstance(error, ProviderError) and not isinstance(error, ProviderTransportError):
        text = str(error)[:PROVIDER_TEXT_CHARS]
        log.debug("the provider's explanation", extra=fields(session=record.session_id, text=text))


def _failure_fields(error: Exception | None) -> dict[str, object]:
    if error is None:
        return {}
    if not isinstance(error, ProviderError):
        return {"error": type(error).__name__}
    found: dict[str, object] = {"error": error.error_type, "code": error.code, "retryable": error.retryable}
    # The reason of a failed connection is in our own words.
    return {**found, "reason": str(error)} if isinstance(error, ProviderTransportError) else found


def _log_tool_call(record: ToolCall) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    refused = record.decision in ("denied", "rejected")
    log.info(
        "tool call refused" if refused else "tool call" if record.status else "tool call cancelled",
        extra=fields(
            session=record.session_id,
            tool=record.tool,
            call=record.call_id,
            mcp_server=record.server,
            kind=record.kind,
            decision=record.decision,
            by=record.decided_by,
            status=record.status or None,
            exit=record.exit_code,
            ms=round(record.ms),
        ),
    )


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

    def __init__(
        self,
        options: Options,
        home: Path,
        secrets: Secrets,
        gauges: Sequence[Gauge],
        calls_of: Callable[[str], ModelCallFile | None],
    ) -> None:
        """Open the outputs that the arguments and the environment ask for. ``calls_of`` is for kept model calls.

        Raises:
            ConfigError: a variable is invalid, a file cannot be written, or OpenTelemetry is required and missing.
        """
        self._port = options.metrics_port
        self._host, self._token = options.metrics_host, options.metrics_token
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
        if options.keep_model_calls:
            from jumpseat.observability.model_call_files import ModelCallFiles

            observers.append(ModelCallFiles(calls_of))
        self.observers = Observers(tuple(observers))

    async def serve(self, tasks: TaskGroup, server: Observed) -> None:
        """Serve health and metrics, if there is a port for them.

        Raises:
            JumpseatError: the port is in use, or the list of servers cannot be written.
        """
        if self._port is None or self._metrics is None:
            return
        from jumpseat.observability.health import Health, open_health_sockets, serve_health
        from jumpseat.store.user.running_servers import RunningServers

        try:
            sockets = open_health_sockets(self._port, self._host)
        except OSError as error:
            option = f"--metrics-port {self._port}"
            option = f"--metrics-host {self._host} and {option}" if self._host is not None else option
            reason = error.strerror or os.strerror(error.errno or 0)
            raise JumpseatError(f"cannot listen on {option}: {reason}") from None
        health = Health(server.problems, server.status, self._metrics, self._host, self._token)
        for listening in sockets:
            tasks.start_soon(serve_health, listening, health)
        port = sockets[0].getsockname()[1]
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
    """Open the exporters; return ``None`` if their library is missing."""
    try:
        from jumpseat.observability.telemetry import Telemetry
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("opentelemetry"):
            raise
        from jumpseat.system.installation import how_to_add

        problem = NOT_INSTALLED.format(variable=settings.variable, instruction=how_to_add("otel"))
        log.warning("no telemetry: %s", problem)
        return None
    return Telemetry(settings, secrets, gauges)
